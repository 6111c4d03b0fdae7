"""A submission's code, run to its end even where it ends the process: each crash or timeout costs one step, no more.

First the student's process answers the questions of all tasks, then the executor does what the answers order. The executor comes up
while the student's process runs, and that one is torn down while the executor runs.
"""

import contextlib
from dataclasses import dataclass, field

import warplab.task
from autograder.judge.faults import blamed_on
from autograder.judge.process import Lost, Process
from autograder.judge.ranks import outcomes_of_ranks, reason
from autograder.judge.timing import time_case
from autograder.sandbox.launch import often_imported
from autograder.sandbox.messages import Answer, Call, Cell, Done, Executed, Failure, Missing, Question, Reply, Work
from warplab import crossing
from warplab.task import Outcome

MAX_ATTEMPTS = 8


@dataclass(frozen=True)
class Step:
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
    outcomes: dict[str, list] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def note(self, step, lost):
        """The first loss is the reason of the whole run."""
        if self.status == "graded":
            self.status, self.reason = lost.kind, f"{step}: {lost}"


def run_all(steps, cases, launcher, limits):
    """Run all steps; after an early end, drop the step that caused it and what is finished, and try the rest afresh.

    cases: task name -> [Case]. Every case gets an Outcome. Raises NotStarted if a process does not come up.
    """
    with _Conversation(cases, launcher, limits, often_imported(step.source for step in steps)) as conversation:
        run, steps, lost = conversation.run, list(steps), {}
        for _ in range(MAX_ATTEMPTS):
            if not any(step.kind == "task" for step in steps):
                break
            try:
                conversation.go(steps)
                break
            except Lost as problem:
                culprit = conversation.step
                run.note(culprit.id, problem)
                if culprit.kind == "task":
                    lost[culprit.task] = str(problem)
                else:
                    run.errors[culprit.id] = str(problem)
                steps = [step for step in steps if step is not culprit and step not in conversation.finished]
        else:
            run.reason = f"{run.reason}; gave up after {MAX_ATTEMPTS} crashes or timeouts"
        conversation.execute()
    for name, mine in cases.items():
        _fill(run.outcomes[name], mine, lost.get(name, "not reached: an earlier cell ended the process"))
    return run


class _Conversation(contextlib.ExitStack):
    """What has been asked and answered so far, over all attempts. Every process is closed at its end, if not before."""

    def __init__(self, cases, launcher, limits, imports):
        super().__init__()
        self.cases, self.launcher, self.limits, self.imports = cases, launcher, limits, imports
        self.executor = None
        self.run = Run(outcomes={name: [] for name in cases})
        self.step, self.finished = None, []
        self.orders = {}  # task name -> [(case, Order)]

    def go(self, steps):
        """One attempt in a process of its own. Raises Lost; `step` is then the one that was running."""
        process = self.enter_context(Process(self.launcher, "student", self.limits, self.imports))
        if any(warplab.task.get(name).crossing in crossing.EXECUTED for name in self.cases):
            self._bring_up_executor()
        try:
            for number, self.step in enumerate(steps):
                process.begin_step(self.limits.step_seconds)
                if self.step.kind == "cell":
                    error = process.ask(Cell(self.step.id, self.step.source), (Executed,)).error
                    if error:
                        self.run.errors[self.step.id] = error
                    continue
                task = warplab.task.get(self.step.task)
                if task.crossing == "ranks":
                    cells = [Cell(step.id, step.source) for step in steps[:number] if step.kind == "cell"]
                    self._ranks(task, cells)
                else:
                    for case in self.cases[task.name]:
                        self._ask(process, task, case)
                self.finished.append(self.step)
        except Lost:
            process.close()
            raise
        process.let_go()

    def _bring_up_executor(self):
        if self.executor is None:
            self.executor = self.enter_context(Process(self.launcher, "executor", self.limits))

    def _ask(self, process, task, case):
        """Ask one case's question and keep what comes of it: an outcome, or an order for the executor."""
        outcomes = self.run.outcomes[task.name]
        with blamed_on(task):
            question = Question(task.crossing, task.entry, task.plan_entry, crossing.CROSSINGS[task.crossing].question(task, case))
            host = crossing.host(task, case)
        allowed = (Answer, Failure, Missing) + ((Call,) if host else ())
        reply = process.ask(question, allowed)
        while type(reply) is Call:
            with blamed_on(task):
                served = Reply(host.call(reply.data))
            reply = process.ask(served, allowed)
        if type(reply) is not Answer:
            outcomes.append(Outcome(case.name, error=reason(reply, self.run.errors)))
            return
        try:
            with blamed_on(task):
                done = crossing.finish(task, case, reply.data, host)
        except crossing.Refused as refused:
            outcomes.append(Outcome(case.name, error=str(refused)))
            return
        if type(done) is crossing.Order:
            self.orders.setdefault(task.name, []).append((case, done))
        else:
            outcomes.append(warplab.task.outcome_of(case, done))

    def _ranks(self, task, cells):
        found, lost = outcomes_of_ranks(task, self.cases[task.name], cells, self.launcher, self.limits)
        self.run.outcomes[task.name] += found
        if lost:
            self.run.note(self.step.id, lost)
            _fill(self.run.outcomes[task.name], self.cases[task.name], str(lost))

    def execute(self):
        """Do all orders; a kernel that costs the executor its life or its time costs the rest of its own task.

        Timed ones come last, in processes of their own: they wait for their turn on the GPU, and the executor's time would run out meanwhile.
        """
        for timed in (False, True):
            for name, orders in self.orders.items():
                task, have = warplab.task.get(name), {outcome.case for outcome in self.run.outcomes[name]}
                mine = [(case, order) for case, order in orders if task.is_timed(case) == timed and case.name not in have]
                try:
                    self._time(task, mine) if timed else self._execute(task, mine)
                except Lost as lost:
                    self.run.note(name, lost)
                    told = str(lost).replace("the code ended", "the kernel ended").replace("the code wrote", "the kernel wrote")
                    _fill(self.run.outcomes[name], [case for case, _ in orders], f"running the kernel: {told}")
                    self._close_executor()
            self._close_executor()

    def _execute(self, task, orders):
        self._bring_up_executor()
        self.executor.begin_step(self.limits.step_seconds)
        for case, order in orders:
            done = self.executor.ask(Work(order.plain()), (Done,))
            try:
                crossing.checked_access(done.access, order.buffers)
            except crossing.Refused as problem:
                raise self.executor.babble(problem) from None
            self.run.outcomes[task.name].append(warplab.task.outcome_of(case, done))

    def _time(self, task, orders):
        for case, order in orders:
            self.run.outcomes[task.name].append(time_case(task, case, order, self.launcher, self.limits))

    def _close_executor(self):
        if self.executor is not None:
            self.executor.close()
            self.executor = None


def _fill(outcomes, cases, why):
    """Give every case without an outcome an error outcome with the reason."""
    have = {outcome.case for outcome in outcomes}
    outcomes.extend(Outcome(case.name, error=why) for case in cases if case.name not in have)
