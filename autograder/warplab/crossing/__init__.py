"""How a submission crosses from the student's process to the judge's, by plain data only.

There is one module for each kind of task, with up to five functions:

    question(task, case)                        judge    the question: all that the student's process may know
    second(task, case, answer)                  judge    the question for a second process (optional)
    host(task, case)                            judge    a device or router that serves calls (optional)
    answer(question, names, entry, plan, call)  student  runs the student's objects; returns plain data
    finish(task, case, answer, host)            judge    an Order for the executor (execute.py), or an Outcome

`call(message) -> reply` reaches the host. In a notebook everything runs in one process; when a submission is
graded there are three (judge, student, executor), and the same plain data goes between them as messages.
"""

import contextlib
from dataclasses import replace

from warplab.crossing import driver, function, kernel, ranks, remote_device, timed, vjp
from warplab.crossing.costliest import checked_access as checked_access
from warplab.crossing.endless import ENDLESS, stopped_after
from warplab.crossing.execute import execute
from warplab.crossing.explain import Refused as Refused
from warplab.crossing.explain import explain
from warplab.crossing.findings import checked_findings as checked_findings
from warplab.crossing.orders import Order
from warplab.crossing.outcome import Outcome
from warplab.crossing.values import negated, result_of
from warplab.hardware.device import device

CROSSINGS = {
    "kernel": kernel,
    "driver": driver,
    "function": function,
    "vjp": vjp,
    "device": remote_device,
    "ranks": ranks,
}
EXECUTED = ("kernel", "driver")  # crossings whose answer is code for the executor, not the result itself


def has_halves(task):
    """Whether a task's question has a second half, asked of another process with the first one's answer."""
    return hasattr(CROSSINGS[task.crossing], "second")


def host(task, case):
    """The judge's device or router for one case, an object with call(message) and counters(); or None."""
    opened = getattr(CROSSINGS[task.crossing], "host", None)
    return opened(task, case) if opened else None


def finish(task, case, answer, host):
    """Turn an answer (untrusted plain data) into an Order or an Outcome.

    answer: for a task with two halves, the list of both. Counters come from the executor or the judge's host,
    never from the student's process. Raises Refused for data that is not an answer.
    """
    if hasattr(CROSSINGS[task.crossing], "finish"):
        return CROSSINGS[task.crossing].finish(task, case, answer, host)
    told = result_of(answer)
    changed = tuple(name for name in told.modified if name in case.inputs)
    counters = host.counters() if host else {}
    held = host.held(task.returns) if hasattr(host, "held") else {}
    return Outcome("", told.outputs, counters, changed, held=held, trace=traced(host))


def traced(host):
    """The trace of the judge's device or router, for a drawing; {} without one."""
    return host.trace() if host is not None and hasattr(host, "trace") else {}


def run_here(task, case, entry, plan=None, seen=None):
    """Run one case entirely in this process; returns an Outcome. Raises whatever the student's code raises.

    seen: a list to which the host's trace is appended, also when the student's code raises.
    """
    module = CROSSINGS[task.crossing]
    opened = None
    try:
        if module is ranks:
            opened = ranks.router(task, case)
            answer = ranks.merged(ranks.run_here(task, case, entry, opened), opened)
        else:
            opened = host(task, case)
            names, call = (task.entry, task.plan_entry), opened.call if opened else None
            asked = module.question(task, case)
            answer = module.answer(asked, names, entry, plan, call)
            if has_halves(task):
                more = module.second(task, case, answer)
                with contextlib.suppress(Exception):  # overwrites what the code may have kept of this case
                    module.answer(negated(asked), names, entry, plan, call)
                answer = [answer, module.answer(more, names, entry, plan, call)]
    finally:
        if seen is not None:
            seen.append(traced(opened))
    done = finish(task, case, answer, opened)
    if type(done) is not Order:
        return done
    if task.is_timed(case):
        return timed.measure_here(task, case, done)
    return replace(execute(done), launch=done.launch)


def try_here(task, case, entry, plan=None):
    """Run one case entirely in this process; returns an Outcome, whatever the student's code raises.

    Only KeyboardInterrupt passes through. Code that computes longer than task.most_s is stopped.
    """
    if task.is_timed(case) and not can_time():
        return Outcome(case.name)
    seen = []
    try:
        with stopped_after(task.most_s):
            return run_here(task, case, entry, plan, seen).of(case)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - also SystemExit: a mistake in the student's code
        return Outcome(case.name, error=explain(error), trace=seen[0] if seen else {})


def tried(cases, outcomes):
    """Yield each case; after an endless loop, which takes seconds, the remaining cases get its error instead.

    outcomes: a list to which the caller appends the Outcome of each yielded case.
    """
    for number, case in enumerate(cases, 1):
        yield case
        if outcomes and ENDLESS.search(outcomes[-1].error or ""):
            outcomes += [Outcome(other.name, error=outcomes[-1].error) for other in cases[number:]]
            return


def can_time():
    """Whether this machine has a CUDA device, which timed rows need."""
    return device().kind == "cuda"
