"""What comes of one case: the one shape of a result on its way from the student's code to the judge."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Outcome:
    """Plain arrays and counters, or one sentence on why there is no result.

    case: the name of the case, "" while nobody has said which.
    modified: names of the inputs that the submission changed.
    access: the line that costs most (warplab.crossing.costliest), or {}.
    findings: what the engine found, an error's own record first (warplab.crossing.findings).
    launch: (grid, block) where there was one launch, or ().
    held: of the judge's own device the host arrays that have a result's name.
    trace: what the judge's own device or router saw: see trace() of VirtualDevice and Router.
    """

    case: str = ""
    outputs: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)
    modified: tuple = ()
    error: str | None = None
    access: dict = field(default_factory=dict)
    findings: tuple = ()
    launch: tuple = ()
    held: dict = field(default_factory=dict)
    trace: dict = field(default_factory=dict)

    def of(self, case):
        """The same as the outcome of `case`."""
        return replace(self, case=case.name)
