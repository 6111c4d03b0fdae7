"""Timed rows: takes samples of the student's kernel and of the task's yardstick (a library's) alternately.

The two run in separate executors that share no buffer.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from autograder.judge.budget import Budget, Lost
from autograder.judge.process import NotStarted, Process
from autograder.sandbox.forked import Launcher
from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import Allowance, Prepare, Prepared, Sample, Sampled, Yardstick
from warplab import crossing
from warplab.crossing import Order, Outcome
from warplab.crossing.timed import measure
from warplab.tasks.declaration import KernelTask
from warplab.tasks.rubric import Case
from warplab.timing.samples import Unsteady

NEXT_STEP = (
    "`autograder doctor` tries the GPU behind the grader's walls; "
    "with CUDA_VISIBLE_DEVICES=-1 all but the points for time is graded"
)
FREE_LOCK = "remove it, or let TMPDIR name a folder of your own"


def time_case(task: KernelTask, case: Case, order: Order, launcher: Launcher, limits: Limits) -> Outcome:
    """The Outcome of one timed case.

    All samples together, with process starts, warm-up and checks, may take limits.timed_seconds from the
    moment when this case has its turn on the GPU. Raises Lost when the student's kernel crashes its executor,
    NotStarted when the yardstick fails.
    """
    with one_at_a_time():
        budget = Budget(replace(limits, total_seconds=limits.timed_seconds))
        budget.start()
        budget.allowance = Allowance()  # unlimited: every sample sends its outputs, and none is kept
        return _timed(task, case, order, launcher, budget)


@contextlib.contextmanager
def one_at_a_time() -> Generator[None, None, None]:
    """A lock in which no other thread or process of this user's takes timings on this machine.

    Raises NotStarted where the lock file cannot be used; others may write into the temporary folder, too.
    """
    lock = Path(tempfile.gettempdir(), f"autograder-times-{os.getuid()}")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as problem:
        raise NotStarted(f"cannot lock {lock}: {problem.strerror}; {FREE_LOCK}") from None
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise NotStarted(f"cannot lock {lock}: it belongs to another user; {FREE_LOCK}")
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def gpu_problem(launcher: Launcher) -> str:
    """Why an executor cannot take timings on this machine's GPU; "" if it can."""
    with Process(launcher, "executor", Budget(Limits())) as executor:
        executor.begin_step(60)
        try:
            executor.ask(Yardstick(["torch.clone", "a"], [{"a": np.ones(4, np.float32)}]), (Prepared,))
        except Lost as problem:
            return str(problem)
    return ""


def orders_of(sets: Sequence[Case], order: Order) -> list[Order]:
    """`order` once for each set of inputs, with the set's contents in its buffers."""
    contents = [{name: one.inputs[name] for name in order.buffers if name in one.inputs} for one in sets]
    return [replace(order, buffers=order.buffers | own) for own in contents]


def _sampled(process: Process, number: int) -> tuple[float, float, dict[str, np.ndarray]]:
    """Take one sample of input set `number`: (seconds, SM clock in MHz, outputs)."""
    found = process.ask(Sample(number), (Sampled,))
    return found.seconds, found.clock, found.outputs


def _timed(task: KernelTask, case: Case, order: Order, launcher: Launcher, budget: Budget) -> Outcome:
    sets: list[Case] = case.memo.get("sets", [case])
    orders = orders_of(sets, order)
    with Process(launcher, "executor", budget) as reference, Process(launcher, "executor", budget) as student:
        for process in (reference, student):
            process.begin_step(budget.limits.timed_seconds, shared=budget.allowance)
        yardstick = task.yardstick_of(case)
        inputs = task.yardstick_sets(yardstick, [one.inputs for one in sets])
        try:  # no kernel of the student's has run yet
            reference.ask(Yardstick(list(yardstick), inputs), (Prepared,))
        except Lost as problem:
            told = str(problem).rstrip(".")
            raise NotStarted(
                f"this machine's GPU could not run {list(yardstick)}: {told}. {NEXT_STEP}"
            ) from None
        bandwidth = student.ask(Prepare([one.plain() for one in orders]), (Prepared,)).bandwidth
        start = time.monotonic()

        def elapsed() -> float:
            return time.monotonic() - start

        try:
            of_both = partial(_sampled, student), partial(_sampled, reference)
            counters = measure(task, sets, *of_both, bandwidth, elapsed)
        except crossing.Refused as refused:
            return Outcome(case.name, error=str(refused))
        except Unsteady:
            return Outcome(case.name)  # the device's fault, so the row stays ungraded
        _, _, outputs = _sampled(student, sets.index(case))
    return Outcome(case.name, outputs, counters)
