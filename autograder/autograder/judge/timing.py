"""Timed rows: the student's kernel and the task's yardstick in two executors that share no buffer, sampled in turn."""

import threading
import time
from dataclasses import replace

import warplab.task
from autograder.judge.process import Process
from autograder.sandbox.messages import Prepare, Prepared, Sample, Sampled, Yardstick
from warplab import crossing
from warplab.crossing.timed import measure
from warplab.samples import Unsteady
from warplab.task import Outcome

SECONDS = 120.0  # for all samples of one row, warm-up and checks included
ONE_AT_A_TIME = threading.Lock()  # submissions are judged in threads; two that are timed together would time each other


def time_case(task, case, order, launcher, limits):
    """The Outcome of one timed case. Raises Lost when the student's kernel takes an executor with it."""
    with ONE_AT_A_TIME:
        return _timed(task, case, order, launcher, limits)


def orders_of(sets, order):
    """`order` once for each set of inputs, which differ in the contents of its buffers."""
    return [replace(order, buffers=order.buffers | {name: one.inputs[name] for name in order.buffers if name in one.inputs}) for one in sets]


def _timed(task, case, order, launcher, limits):
    sets = case.memo.get("sets", [case])
    orders = orders_of(sets, order)
    with Process(launcher, "executor", limits) as reference, Process(launcher, "executor", limits) as student:
        for process in (reference, student):
            process.begin_step(SECONDS)
        reference.ask(Yardstick(list(task.yardstick), task.yardstick_sets([one.inputs for one in sets])), (Prepared,))
        bandwidth = student.ask(Prepare([one.plain() for one in orders]), (Prepared,)).bandwidth
        start = time.monotonic()

        def of_student(number):
            found = student.ask(Sample(number), (Sampled,))
            return found.seconds, found.clock, found.outputs

        def of_reference(number):
            found = reference.ask(Sample(number), (Sampled,))
            return found.seconds, found.clock, {}

        try:
            counters = measure(task, sets, of_student, of_reference, bandwidth, lambda: time.monotonic() - start)
        except crossing.Refused as refused:
            return Outcome(case.name, error=str(refused))
        except Unsteady:
            return Outcome(case.name)  # the device's fault, so the row stays ungraded
        outputs = student.ask(Sample(sets.index(case)), (Sampled,)).outputs
    return warplab.task.outcome_of(case, crossing.Result(outputs, counters))
