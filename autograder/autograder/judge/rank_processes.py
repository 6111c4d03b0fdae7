"""Tasks with several ranks: a student process for each rank; messages between them go through the judge."""

import contextlib
from collections.abc import Collection, Sequence
from typing import Any

from autograder.judge.budget import Budget, Lost
from autograder.judge.faults import blamed_on
from autograder.judge.process import Process, let_all_go
from autograder.sandbox.forked import Launcher
from autograder.sandbox.messages import Answer, Call, Cell, Executed, Failure, Missing, Question, Reply
from warplab import crossing
from warplab.crossing import Outcome, ranks
from warplab.tasks.declaration import RanksTask, Task
from warplab.tasks.rubric import Case


def processes_at_once(task: Task, cases: Sequence[Case]) -> int:
    """How many processes run student code at the same time while this task is judged.

    These are the notebook's own process, and one for each rank or one for the second half of the questions.
    """
    if not isinstance(task, RanksTask):
        return 1 + crossing.has_halves(task)
    return 1 + max((task.world(case.inputs) for case in cases), default=0)


def outcomes_of_ranks(
    task: RanksTask, cases: Sequence[Case], cells: Sequence[Cell], launcher: Launcher, budget: Budget
) -> tuple[list[Outcome], Lost | None]:
    """Start a process for each rank, run the cells in all of them, then every case.

    Returns the outcomes, and the Lost if a process was lost.
    """
    outcomes: list[Outcome] = []
    step_seconds = budget.limits.step_seconds
    at_once = processes_at_once(task, cases)
    try:
        with contextlib.ExitStack() as stack:
            processes = [
                stack.enter_context(Process(launcher, "student", budget, ranks=at_once))
                for _ in range(at_once - 1)
            ]
            stack.callback(let_all_go, processes)
            errors: dict[str, str] = {}
            for cell in cells:
                step = budget.for_a_step()
                for process in processes:
                    process.begin_step(step_seconds, step)
                    process.send(cell)
                told = [process.receive((Executed,)).error for process in processes]
                error = next(filter(None, told), None)
                if error:
                    errors[cell.id] = error
            step = budget.for_a_step()
            for process in processes:
                process.begin_step(step_seconds, step)
            for case in crossing.tried(cases, outcomes):
                with blamed_on(task):
                    outcomes.append(_case(task, case, processes[: task.world(case.inputs)], errors))
    except Lost as lost:
        return outcomes, lost
    return outcomes, None


def reason(reply: Failure | Missing, errors: dict[str, str]) -> str:
    """The sentence for a Failure, or for a Missing name; that tells the error of the last cell that failed.

    errors: {cell id: what the cell raised}.
    """
    if isinstance(reply, Failure):
        return reply.error
    told = next((f"its cell stopped with {text}" for text in reversed(errors.values())), "no cell defines it")
    return f"`{reply.name[:80]}` does not exist: {told}"


def _case(task: RanksTask, case: Case, processes: Sequence[Process], errors: dict[str, str]) -> Outcome:
    """Run one case: question every rank, route their calls to each other, and finish with their answers."""
    router = ranks.router(task, case)
    for rank, process in enumerate(processes):
        data = ranks.question(task, case, rank)
        process.send(Question(task.crossing, task.entry, None, data, task.most_s))
    answers: dict[int, dict[str, Any]] = {}
    failures: dict[int, str] = {}
    while len(answers) + len(failures) < len(processes):
        for rank, message in _arrived(processes, answers.keys() | failures.keys()):
            if isinstance(message, Call):
                replies = router.call(rank, message.data)
            else:
                if isinstance(message, Answer):
                    answers[rank] = message.data
                else:
                    failures[rank] = reason(message, errors)
                replies = router.leave(rank)
            for to, reply in replies:
                processes[to].send(Reply(reply))
    if failures:
        error = failures[ranks.root_cause(failures)]
        return Outcome(case.name, error=error, trace=crossing.traced(router))
    try:
        result = crossing.finish(task, case, ranks.merged(answers, router), router)
    except crossing.Refused as refused:
        return Outcome(case.name, error=str(refused), trace=crossing.traced(router))
    return result.of(case)


def _arrived(
    processes: Sequence[Process], done: Collection[int]
) -> list[tuple[int, Answer | Failure | Missing | Call]]:
    """Wait for messages from the ranks that are not done; returns at least one (rank, message)."""
    running = [process for rank, process in enumerate(processes) if rank not in done]
    while True:
        found: list[tuple[int, Answer | Failure | Missing | Call]] = []
        for rank, process in enumerate(processes):
            process.in_time()
            message = None if rank in done else process.take((Answer, Failure, Missing, Call))
            if message is not None:
                found.append((rank, message))
        if found:
            return found
        for process in Process.wait(running):
            process.fill()
