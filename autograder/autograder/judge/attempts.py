"""A submission's code, run to its end even where it ends the process.

Each crash or timeout costs one step, no more. First the student's process answers the questions of all tasks,
then the executor does what the answers order. The executor comes up while the student's process runs, and
that one is torn down while the executor runs. All of them, in all attempts, draw on one budget; when that
is used up, what was finished counts.
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
Cases = dict[str, list[Case]]  # by the name of their task


@dataclass(frozen=True)
class NotebookStep:
    """One thing to do, in notebook order: execute a cell's `source`, or ask a task's questions.

    id: the cell's grade id or cell id. kind: "cell" or "task".
    """

    id: str
    kind: str
    source: str = ""
    task: str = ""


@dataclass
class Run:
    """The merged result of all attempts. outcomes: task name -> [Outcome]; errors: cell id -> sentence."""

    status: str = "graded"
    reason: str = ""
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def note(self, step: str, lost: Lost) -> None:
        """The first loss is the reason of the whole run; that its budget is used up is told, too."""
        if self.status == "graded":
            self.status, self.reason = lost.kind, f"{step}: {lost}"
        elif isinstance(lost, UsedUp) and str(lost) not in self.reason:
            self.reason += f"; {lost}"


def run_all(steps: Iterable[NotebookStep], cases: Cases, launcher: Launcher, limits: Limits) -> Run:
    """Run all steps.

    After an early end, the step that caused it and what is finished are dropped, and the rest is tried
    afresh, while the budget lasts. Every case gets an Outcome. Raises NotStarted if a process does not come
    up.
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
    """What has been asked and answered so far, over all attempts.

    Every process is closed at its end, if not before.
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
        self.orders: dict[str, list[tuple[Case, Order]]] = {}  # by the name of their task

    def go(self, steps: Sequence[NotebookStep]) -> tuple[NotebookStep, Lost] | None:
        """One attempt in a process of its own.

        Returns the step that ended it, and how; None if nothing did.
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
        """One step. before: those that this process has behind it."""
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
            other = self._another([one for one in before if one.kind == "cell"]) if halves else None
            for case in crossing.tried(self.cases[task.name], self.run.outcomes[task.name]):
                self._ask(process, task, case, other)
            if other is not None:
                other.close()
        self.finished.append(step)

    def _another(self, cells: Sequence[NotebookStep]) -> Process:
        """A second process of the student's that has seen the same cells and no question."""
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
        """Ask one case's question and keep what comes of it: an outcome, or an order for the executor.

        other: whom to ask the second half of the question, where there is one.
        """
        outcomes = self.run.outcomes[task.name]
        with blamed_on(task):
            data = crossing.CROSSINGS[task.crossing].question(task, case)
            host = crossing.host(task, case)
        allowed = (Answer, Failure, Missing, Call) if host else (Answer, Failure, Missing)
        reply = process.ask(Question(task.crossing, task.entry, task.plan_entry, data, task.most_s), allowed)
        while isinstance(reply, Call):
            assert host is not None  # or a Call would not be allowed
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
        """Do all orders; a kernel that costs the executor its life or time costs the rest of its own task.

        Timed ones come last, in processes of their own: they wait for their turn on the GPU, and the
        executor's time would run out meanwhile.
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
                    _fill(self.run.outcomes[name], [case for case, _ in orders], _of_a_kernel(lost))
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
                raise executor.babble(problem) from None
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
    """The Outcome of an order that the executor's message Done tells of."""
    return Outcome(case.name, **structs.asdict(done), launch=order.launch)


def _check(done: Done, order: Order) -> None:
    """Raises Refused unless this is what an executor may say of an order: of its results and its inputs."""
    if not set(done.outputs) <= set(order.results):
        raise crossing.Refused("results that were not asked for")
    if not set(done.modified) <= set(order.inputs):
        raise crossing.Refused("a change of what is no input")
    crossing.checked_access(done.access, order.buffers)
    crossing.checked_findings(done.findings)


def _of_a_kernel(lost: Lost) -> str:
    """The sentence for a student whose kernel, and not a cell, lost the process."""
    told = (
        str(lost).replace("the code ended", "the kernel ended").replace("the code wrote", "the kernel wrote")
    )
    return f"running the kernel: {told}"


def _fill(outcomes: list[Outcome], cases: Iterable[Case], why: str) -> None:
    """Give every case without an outcome an error outcome with the reason."""
    have = {outcome.case for outcome in outcomes}
    outcomes.extend(Outcome(case.name, error=why) for case in cases if case.name not in have)
