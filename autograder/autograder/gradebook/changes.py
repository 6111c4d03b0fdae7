"""What was changed after hand-in: OUT/changes.jsonl, a change a line; `autograder undo` takes the last back.

What the judge decided stays as it is stored. A change says what it is worth, also for whoever hands in later.
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
    """One change of a set. told: a sentence, which stands on the feedback pages, too, unless it is `quiet`.

    worth: what cells are worth from now on, by grade id. given: cells of which everybody has all points.
    hours: of an extension, by student. entered: of what a person had entered (before, after), by student and
    field, as Edits have them. judged: the stored records (before, after) of those who were judged again.
    beside: a folder with their notebooks, while the change is made.
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
    """All changes, in order. Raises UserError for a damaged file: grades depend on it."""
    file = out / FILE
    try:
        return msgspec.json.Decoder(Change).decode_lines(file.read_bytes()) if file.exists() else []
    except msgspec.MsgspecError as problem:
        raise UserError(
            f"{file} is damaged ({problem}); each line is a change: bring back your last copy, or remove the "
            "damaged line, and run `autograder grade`"
        ) from None


def write_changes(out: Path, changes: Iterable[Change]) -> None:
    """All of them anew."""
    write_atomic(out / FILE, msgspec.json.Encoder().encode_lines(list(changes)))


@dataclass(frozen=True)
class ChangedSet:
    """What all changes of one set come to, the later over the earlier. worth: of every graded cell."""

    worth: dict[str, float]
    given: tuple[str, ...]
    hours: dict[str, float]
    told: tuple[str, ...]

    @classmethod
    def of(cls, changes: Iterable[Change], assignment: Assignment) -> ChangedSet:
        """Of this set."""
        mine = [one for one in changes if one.assignment == assignment.name]
        worth = {spec.grade_id: spec.points for spec in assignment.graded()}
        worth |= {cell: points for one in mine for cell, points in one.worth.items()}
        hours = {student: hours for one in mine for student, hours in one.hours.items()}
        given = tuple(dict.fromkeys(cell for one in mine for cell in one.given))
        return cls(worth, given, hours, tuple(one.told for one in mine if not one.quiet))
