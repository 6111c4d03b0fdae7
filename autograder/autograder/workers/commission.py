"""The request to judge one submission, as it is sent to a machine: without the student's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from autograder.layout import Assignment, assignment_of
from autograder.sandbox.limits import Limits


@dataclass(frozen=True)
class Conditions:
    """All that judging one submission depends on besides its file. It is sent to the machine that judges.

    id: of the request. version: results.course_version() of the grader. seed: of one round of inputs.
    unsafe: without a sandbox.
    """

    id: str
    version: str
    assignment: Assignment
    seed: int
    limits: Limits
    unsafe: bool = False

    def as_bytes(self) -> bytes:
        """Serialised as JSON, with the released notebook, so that a worker needs no course folder."""
        released = [self.assignment.document, self.assignment.name, self.assignment.notebook]
        return json.dumps(vars(self) | {"assignment": released, "limits": asdict(self.limits)}).encode()

    @classmethod
    def of(cls, data: bytes) -> Conditions:
        """The inverse of as_bytes. Raises ValueError, TypeError or LookupError for anything else."""
        told: dict[str, Any] = json.loads(data)
        read = {"assignment": assignment_of(*told["assignment"]), "limits": Limits(**told["limits"])}
        return cls(**told | read)


@dataclass(frozen=True, eq=False)
class Commission:
    """One submission to be judged. student, submission: for the grader's log, not sent to other machines.

    notebook: returns the submitted file's bytes; called just before they are sent, so that a class's files
    need not be held in memory. It may raise Malformed.
    """

    student: str
    conditions: Conditions
    notebook: Callable[[], bytes]
    submission: str = ""

    @property
    def id(self) -> str:
        return self.conditions.id
