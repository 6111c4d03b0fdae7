"""How a submission crosses from the student's code to the judge.

One module for each kind, each with up to five functions:

    question(task, case)                        judge    plain data: what the student's process may know
    second(task, case, answer)                  judge    the same for a second process (optional)
    host(task, case)                            judge    what it keeps open meanwhile: a device (optional)
    answer(question, names, entry, plan, call)  student  alone touches a student's objects; plain data
    finish(task, case, answer, host)            judge    an Order for the executor (execute.py), or an Outcome

`call(message) -> reply` reaches the host. In a notebook all of it runs in one process; when a submission is
graded these are three, and the same plain data goes between them as messages.
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
EXECUTED = ("kernel", "driver")  # their answer is code for the executor; of the others it is the result


def has_halves(task):
    """Whether a second process goes on with what the first one answers."""
    return hasattr(CROSSINGS[task.crossing], "second")


def host(task, case):
    """What the judge keeps open meanwhile: an object with call(message) and counters(), or None."""
    opened = getattr(CROSSINGS[task.crossing], "host", None)
    return opened(task, case) if opened else None


def finish(task, case, answer, host):
    """An answer (untrusted plain data) as an Order or an Outcome. With `second`, both answers, in a list.

    Counters come from the executor, or are the judge's own: none is taken from the student's process.
    Raises Refused where it is not an answer.
    """
    if hasattr(CROSSINGS[task.crossing], "finish"):
        return CROSSINGS[task.crossing].finish(task, case, answer, host)
    told = result_of(answer)
    changed = tuple(name for name in told.modified if name in case.inputs)
    counters = host.counters() if host else {}
    held = host.held(task.returns) if hasattr(host, "held") else {}
    return Outcome("", told.outputs, counters, changed, held=held, trace=traced(host))


def traced(host):
    """What the judge's device or router has seen; {} where there is none."""
    return host.trace() if host is not None and hasattr(host, "trace") else {}


def run_here(task, case, entry, plan=None, seen=None):
    """The whole way in this process: an Outcome. Raises whatever the student's code raises.

    seen: a list for what the judge's device or router saw, which is there also after a mistake.
    """
    module = CROSSINGS[task.crossing]
    opened = None
    try:
        if module is ranks:
            opened = ranks.router(task, case)
            answer = ranks.together(ranks.run_here(task, case, entry, opened), opened)
        else:
            opened = host(task, case)
            names, call = (task.entry, task.plan_entry), opened.call if opened else None
            asked = module.question(task, case)
            answer = module.answer(asked, names, entry, plan, call)
            if has_halves(task):
                more = module.second(task, case, answer)
                with contextlib.suppress(Exception):  # so that nothing of this case is left lying about
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
    """The whole way in this process: an Outcome of the case, whatever the student's objects do but Ctrl-C.

    What computes without end is stopped, and so is a rank in its thread.
    """
    if task.is_timed(case) and not can_time():
        return Outcome(case.name)
    seen = []
    try:
        with stopped_after(task.most_s):
            return run_here(task, case, entry, plan, seen).of(case)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a student's SystemExit is a mistake, not an order to us
        return Outcome(case.name, error=explain(error), trace=seen[0] if seen else {})


def tried(cases, outcomes):
    """Each case in turn; after a loop without end, which takes seconds, the others get its error untried.

    outcomes: a list, to which the caller adds what comes of a case.
    """
    for number, case in enumerate(cases, 1):
        yield case
        if outcomes and ENDLESS.search(outcomes[-1].error or ""):
            outcomes += [Outcome(other.name, error=outcomes[-1].error) for other in cases[number:]]
            return


def can_time():
    """Whether this machine has a CUDA device, which timed rows need."""
    return device().kind == "cuda"
