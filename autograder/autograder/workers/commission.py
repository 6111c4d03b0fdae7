"""What a machine is asked: to judge one submission. A student's name stays with the one who asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from autograder.layout import Assignment, assignment_of
from autograder.sandbox.limits import Limits


@dataclass(frozen=True)
class Conditions:
    """Under which one submission is judged: the same wherever that happens.

    version: results.course_version() of the one who asks. seed: of one round of inputs. unsafe: without a
    sandbox.
    """

    id: str
    version: str
    assignment: Assignment
    seed: int
    limits: Limits
    unsafe: bool = False

    def as_bytes(self) -> bytes:
        """JSON; the released notebook goes along, so that a worker needs no course folder."""
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
    """One submission to be judged. student, submission: for our own log, and told to nobody else.

    notebook: gives the submitted file's bytes, and is called when a machine is about to have them, so that
    a class of large files need not be held in memory; it may raise Malformed.
    """

    student: str
    conditions: Conditions
    notebook: Callable[[], bytes]
    submission: str = ""

    @property
    def id(self) -> str:
        return self.conditions.id
