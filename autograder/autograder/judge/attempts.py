"""Runs a submission's code to its end, even if parts of it crash the process.

A crash or timeout loses only the step (cell or task) that caused it. First the student's process answers the
questions of all tasks; then the executor executes the orders in those answers. To save time the executor
starts while the student's process runs, and that one is torn down while the executor runs. All processes of
all attempts draw on one budget; when it is used up, what was finished counts.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from autograder.judge.budget import Budget, Lost, UsedUp
from autograder.judge.faults import blamed_on
from autograder.judge.process import Process, let_all_go
from autograder.judge.rank_processes import outcomes_of_ranks, processes_at_once, reason
from autograder.judge.timed_rows import time_case
from autograder.sandbox.forked import Launcher
from autograder.sandbox.launcher import often_imported
from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import (
    Answer,
    Call,
    Cell,
    Done,
    Executed,
    Failure,
    Missing,
    Question,
    Reply,
    RunOrder,
)
from warplab import crossing
from warplab.crossing import Order, Outcome
from warplab.tasks import registry
from warplab.tasks.declaration import KernelTask, RanksTask, Task
from warplab.tasks.rubric import Case

MAX_ATTEMPTS = 8
Cases = dict[str, list[Case]]  # {task name: its cases}


@dataclass(frozen=True)
class NotebookStep:
    """One step of a run, in notebook order: execute a cell's `source`, or ask a task's questions.

    id: the cell's grade id or cell id. kind: "cell" or "task".
    """

    id: str
    kind: str
    source: str = ""
    task: str = ""


@dataclass
class Run:
    """The merged result of all attempts. outcomes: {task name: [Outcome]}. errors: {cell id: sentence}."""

    status: str = "graded"
    reason: str = ""
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def note(self, step: str, lost: Lost) -> None:
        """Record the loss of a process: the first is the run's reason; a used-up budget is added to it."""
        if self.status == "graded":
            self.status, self.reason = lost.kind, f"{step}: {lost}"
        elif isinstance(lost, UsedUp) and str(lost) not in self.reason:
            self.reason += f"; {lost}"


def run_all(steps: Iterable[NotebookStep], cases: Cases, launcher: Launcher, limits: Limits) -> Run:
    """Run all steps.

    After a crash or timeout, the step that caused it and the finished tasks are dropped, and a new process
    runs the rest, while the budget lasts. Every case gets an Outcome. Raises NotStarted if a process does not
    start.
    """
    left = list(steps)
    imports = often_imported(step.source for step in left)
    lost: dict[str, str] = {}  # task name -> why its step was lost
    why = "not reached: an earlier cell ended the process"
    with _Conversation(cases, launcher, limits, imports) as conversation:
        run = conversation.run
        for _ in range(MAX_ATTEMPTS):
            if not any(step.kind == "task" for step in left):
                break
            ended = conversation.go(left)
            if ended is None:
                break
            culprit, problem = ended
            run.note(culprit.id, problem)
            if culprit.kind == "task":
                lost[culprit.task] = str(problem)
            else:
                run.errors[culprit.id] = str(problem)
            if isinstance(problem, UsedUp):
                why = str(problem)
                break
            left = [step for step in left if step is not culprit and step not in conversation.finished]
        else:
            run.reason = f"{run.reason}; gave up after {MAX_ATTEMPTS} crashes or timeouts"
        conversation.execute()
    for name, mine in cases.items():
        _fill(run.outcomes[name], mine, lost.get(name, why))
    return run


class _Conversation(contextlib.ExitStack):
    """All attempts at one submission: its processes, the answers so far, the orders to execute.

    A context manager that closes all processes at its end.
    """

    def __init__(self, cases: Cases, launcher: Launcher, limits: Limits, imports: tuple[str, ...]) -> None:
        super().__init__()
        self.cases, self.launcher, self.imports = cases, launcher, imports
        self.budget = Budget(limits)
        self.at_once = max((processes_at_once(registry.get(name), cases[name]) for name in cases), default=1)
        self.processes: list[Process] = []
        self.executor: Process | None = None
        self.run = Run(outcomes={name: [] for name in cases})
        self.finished: list[NotebookStep] = []
        self.orders: dict[str, list[tuple[Case, Order]]] = {}  # {task name: orders to execute}

    def go(self, steps: Sequence[NotebookStep]) -> tuple[NotebookStep, Lost] | None:
        """Make one attempt at the steps in a new process.

        Returns (the step that ended the process, how); None if all steps were done.
        """
        try:
            process = self._started("student")
        except UsedUp as problem:
            return steps[0], problem
        if any(registry.get(name).crossing in crossing.EXECUTED for name in self.cases):
            self._bring_up_executor()
        for number, step in enumerate(steps):
            try:
                self._do(process, step, steps[:number])
            except Lost as lost:
                process.close()
                return step, lost
        process.let_go()
        return None

    def _do(self, process: Process, step: NotebookStep, before: Sequence[NotebookStep]) -> None:
        """Do one step. before: the steps that this process has done."""
        process.begin_step(self.budget.limits.step_seconds)
        if step.kind == "cell":
            error = process.ask(Cell(step.id, step.source), (Executed,)).error
            if error:
                self.run.errors[step.id] = error
            return
        task = registry.get(step.task)
        if isinstance(task, RanksTask):
            self._ranks(step, task, [Cell(one.id, one.source) for one in before if one.kind == "cell"])
        else:
            halves = crossing.has_halves(task)
            other = self._second_process([one for one in before if one.kind == "cell"]) if halves else None
            for case in crossing.tried(self.cases[task.name], self.run.outcomes[task.name]):
                self._ask(process, task, case, other)
            if other is not None:
                other.close()
        self.finished.append(step)

    def _second_process(self, cells: Sequence[NotebookStep]) -> Process:
        """A second student process that has run the same cells but seen no question."""
        process = self._started("student")
        process.begin_step(self.budget.limits.step_seconds)
        for cell in cells:
            process.ask(Cell(cell.id, cell.source), (Executed,))
        return process

    def _bring_up_executor(self) -> Process:
        if self.executor is None:
            self.executor = self._started("executor")
        return self.executor

    def _started(self, role: str) -> Process:
        student = role == "student"
        imports, at_once = (self.imports, self.at_once) if student else ((), 1)
        process = self.enter_context(Process(self.launcher, role, self.budget, imports, at_once))
        self.processes.append(process)
        return process

    def __exit__(self, *details: Any) -> bool | None:
        let_all_go(self.processes)
        return super().__exit__(*details)

    def _ask(self, process: Process, task: Task, case: Case, other: Process | None = None) -> None:
        """Ask one case's question and store the result: an outcome, or an order for the executor.

        other: the process that gets the second half of a question in two halves.
        """
        outcomes = self.run.outcomes[task.name]
        with blamed_on(task):
            data = crossing.CROSSINGS[task.crossing].question(task, case)
            host = crossing.host(task, case)
        allowed = (Answer, Failure, Missing, Call) if host else (Answer, Failure, Missing)
        reply = process.ask(Question(task.crossing, task.entry, task.plan_entry, data, task.most_s), allowed)
        while isinstance(reply, Call):
            assert host is not None  # only then is a Call allowed
            with blamed_on(task):
                served = Reply(host.call(reply.data))
            reply = process.ask(served, allowed)
        if not isinstance(reply, Answer):
            seen = crossing.traced(host)
            outcomes.append(Outcome(case.name, error=reason(reply, self.run.errors), trace=seen))
            return
        try:
            answer: Any = reply.data
            if other is not None:
                with blamed_on(task):
                    data = crossing.CROSSINGS[task.crossing].second(task, case, answer)
                again = Question(task.crossing, task.entry, None, data, task.most_s)
                reply = other.ask(again, (Answer, Failure, Missing))
                if not isinstance(reply, Answer):
                    raise crossing.Refused(reason(reply, self.run.errors))
                answer = [answer, reply.data]
            with blamed_on(task):
                done = crossing.finish(task, case, answer, host)
        except crossing.Refused as refused:
            outcomes.append(Outcome(case.name, error=str(refused), trace=crossing.traced(host)))
            return
        if isinstance(done, Order):
            self.orders.setdefault(task.name, []).append((case, done))
        else:
            outcomes.append(done.of(case))

    def _ranks(self, step: NotebookStep, task: RanksTask, cells: Sequence[Cell]) -> None:
        found, lost = outcomes_of_ranks(task, self.cases[task.name], cells, self.launcher, self.budget)
        self.run.outcomes[task.name] += found
        if lost:
            self.run.note(step.id, lost)
            _fill(self.run.outcomes[task.name], self.cases[task.name], str(lost))

    def execute(self) -> None:
        """Execute all orders. A kernel that crashes the executor or runs out of time loses its task's rest.

        Timed orders come last, in their own processes: they wait for their turn on the GPU, and meanwhile
        the executor's time would run out.
        """
        for timed in (False, True):
            for name, orders in self.orders.items():
                task = registry.get(name)
                have = {outcome.case for outcome in self.run.outcomes[name]}
                mine = [
                    (case, order)
                    for case, order in orders
                    if task.is_timed(case) == timed and case.name not in have
                ]
                try:
                    if timed:
                        self._time(task, mine)
                    else:
                        self._execute(task, mine)
                except Lost as lost:
                    self.run.note(name, lost)
                    _fill(self.run.outcomes[name], [case for case, _ in orders], _kernel_error(lost))
                    self._close_executor()
            self._close_executor()

    def _execute(self, task: Task, orders: Sequence[tuple[Case, Order]]) -> None:
        executor = self._bring_up_executor()
        executor.begin_step(self.budget.limits.step_seconds)
        for case, order in orders:
            done = executor.ask(RunOrder(order.plain()), (Done,))
            try:
                _check(done, order)
            except crossing.Refused as problem:
                raise executor.not_an_answer(problem) from None
            self.run.outcomes[task.name].append(outcome_of(case, done, order))

    def _time(self, task: Task, orders: Sequence[tuple[Case, Order]]) -> None:
        for case, order in orders:
            assert isinstance(task, KernelTask)  # only these have timed rows
            self.run.outcomes[task.name].append(
                time_case(task, case, order, self.launcher, self.budget.limits)
            )

    def _close_executor(self) -> None:
        if self.executor is not None:
            self.executor.close()
            self.executor = None


def outcome_of(case: Case, done: Done, order: Order) -> Outcome:
    """The Outcome of a case, from the executor's message Done about its order."""
    return Outcome(case.name, **structs.asdict(done), launch=order.launch)


def _check(done: Done, order: Order) -> None:
    """Raise Refused unless a Done is about results and inputs of this order only."""
    if not set(done.outputs) <= set(order.results):
        raise crossing.Refused("it has results that the order does not ask for")
    if not set(done.modified) <= set(order.inputs):
        raise crossing.Refused("it reports a change of an array that is not an input")
    crossing.checked_access(done.access, order.buffers)
    crossing.checked_findings(done.findings)


def _kernel_error(lost: Lost) -> str:
    """The sentence for a student whose kernel, not a cell, ended the process."""
    told = (
        str(lost).replace("the code ended", "the kernel ended").replace("the code wrote", "the kernel wrote")
    )
    return f"running the kernel: {told}"


def _fill(outcomes: list[Outcome], cases: Iterable[Case], why: str) -> None:
    """Give every case without an outcome an error outcome with the reason."""
    have = {outcome.case for outcome in outcomes}
    outcomes.extend(Outcome(case.name, error=why) for case in cases if case.name not in have)
