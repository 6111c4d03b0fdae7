"""Run a request to its end even where the student's code ends the process: each crash or timeout costs one step, no more."""

from dataclasses import dataclass, field, replace

import warplab.task

MAX_ATTEMPTS = 8


class NotStarted(Exception):
    """The worker never began: a fault of this machine, not of the student. Nothing is graded."""


@dataclass
class Run:
    """The merged result of all attempts. outcomes: task name -> [Outcome]; errors: cell id -> sentence."""

    status: str = "graded"
    reason: str = ""
    outcomes: dict[str, list] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def run_all(request, sandbox):
    """Attempt the request; after an early end, drop the step that caused it and what is finished, and try the rest afresh.

    Raises NotStarted if the sandbox does not come up.
    """
    run = Run(outcomes={name: [] for name in request.cases})
    steps, lost = list(request.steps), {}
    for _ in range(MAX_ATTEMPTS):
        response = sandbox.run(replace(request, steps=tuple(steps)))
        if response.ended == "not started":
            raise NotStarted(response.detail)
        for name, outcomes in response.outcomes.items():
            run.outcomes[name] = run.outcomes[name] or outcomes
        run.errors.update(response.errors)
        if response.ended == "done":
            break
        run.status = "timeout" if response.ended == "timeout" else "crashed"
        run.reason = run.reason or f"{response.step}: {response.detail}"
        culprit = next(step for step in steps if step.id == response.step)
        if culprit.kind == "task":
            lost[culprit.task] = response.detail
        else:
            run.errors[culprit.id] = response.detail
        done = {step.id for step in steps if step.kind == "task" and step.id in response.finished}
        steps = [step for step in steps if step.id != culprit.id and step.id not in done]
        if not any(step.kind == "task" for step in steps):
            break
    else:
        run.reason = f"{run.reason}; gave up after {MAX_ATTEMPTS} crashes or timeouts"
    for name, cases in request.cases.items():
        _fill(run.outcomes[name], cases, lost.get(name, "not reached: an earlier cell ended the process"))
    return run


def _fill(outcomes, cases, reason):
    """Give every case without an outcome an error outcome with the reason."""
    have = {outcome.case for outcome in outcomes}
    outcomes.extend(warplab.task.Outcome(case.name, error=reason) for case in cases if case.name not in have)
