"""The result of one case, in the same form for all crossings."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Outcome:
    """Plain arrays and counters, or one sentence on why there is no result.

    case: the name of the case; "" until of() sets it.
    outputs: {result: array}. counters: {name: value}. error: a sentence for the student.
    modified: names of the inputs that the submission changed.
    access: the line that costs most (warplab.crossing.costliest), or {}.
    findings: what the engine found; an error's record comes first (warplab.crossing.findings).
    launch: (grid, block) if there was one launch, else ().
    held: {result: array} read from host arrays of the judge's virtual device.
    trace: from trace() of the judge's VirtualDevice or Router.
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
        """This outcome with the name of `case`."""
        return replace(self, case=case.name)
