"""Changes after hand-in: OUT/changes.jsonl, one change a line; `autograder undo` takes the last one back.

The stored results of the judge stay as they are. A change alters how many points they are worth, also for
those who hand in later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from autograder.layout import Assignment
from autograder.results import write_atomic
from autograder.user_error import UserError

FILE = "changes.jsonl"


class Change(msgspec.Struct, omit_defaults=True):
    """One change of a set. told: its sentence, which feedback pages show as well unless it is `quiet`.

    when: its time, in UTC. worth: {grade id: new maximum points}. given: grade ids of which everybody has all
    points. hours: {student: hours of extension}. entered: {student: {field of gradebook.Edits: (before,
    after)}} of what a person had entered. judged: {student: stored records (before, after)} of a regrade.
    beside: the folder with the notebooks of a regrade, while the change is made.
    """

    assignment: str
    told: str
    when: str
    quiet: bool = False
    worth: dict[str, float] = {}
    given: list[str] = []
    hours: dict[str, float] = {}
    entered: dict[str, dict[str, tuple[Any, Any]]] = {}
    judged: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    beside: str = ""


def read_changes(out: Path) -> list[Change]:
    """All changes of all sets, in order. Raises UserError for a damaged file: grades depend on it."""
    file = out / FILE
    try:
        return msgspec.json.Decoder(Change).decode_lines(file.read_bytes()) if file.exists() else []
    except msgspec.MsgspecError as problem:
        raise UserError(
            f"{file} is damaged ({problem}); each line is a change: bring back your last copy, or remove the "
            "damaged line, and run `autograder grade`"
        ) from None


def write_changes(out: Path, changes: Iterable[Change]) -> None:
    """Replace the file by these changes."""
    write_atomic(out / FILE, msgspec.json.Encoder().encode_lines(list(changes)))


@dataclass(frozen=True)
class ChangedSet:
    """The sum of all changes of one set; later ones override earlier ones.

    worth: {grade id: points} of every graded cell. given, hours: as in Change. told: the sentences to show.
    """

    worth: dict[str, float]
    given: tuple[str, ...]
    hours: dict[str, float]
    told: tuple[str, ...]

    @classmethod
    def of(cls, changes: Iterable[Change], assignment: Assignment) -> ChangedSet:
        """Sum up the changes that concern `assignment`."""
        mine = [one for one in changes if one.assignment == assignment.name]
        worth = {spec.grade_id: spec.points for spec in assignment.graded()}
        worth |= {cell: points for one in mine for cell, points in one.worth.items()}
        hours = {student: hours for one in mine for student, hours in one.hours.items()}
        given = tuple(dict.fromkeys(cell for one in mine for cell in one.given))
        return cls(worth, given, hours, tuple(one.told for one in mine if not one.quiet))
