"""Whose each notebook is, which of several counts, and what is written into submitted/."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.collect.handed_in import HandedIn, Owner, Refusal, unfit
from autograder.collect.sources import handed_in
from autograder.csv_tables import csv_text
from autograder.discover import student_id, written_out
from autograder.layout import Assignment
from autograder.receipt import received_times
from autograder.results import write_atomic
from autograder.roster import Person, letters


@dataclass(frozen=True)
class Collected:
    """One line of the table. state: "new", "replaced", "unchanged", "refused" or "nothing"."""

    student: str
    state: str
    place: str
    why: str


def collect(
    source: Path,
    assignment: Assignment,
    into: Path,
    roster: Mapping[str, Person],
    *,
    pattern: re.Pattern[str] | None = None,
    protocol: str = "https",
    deadline: datetime | None = None,
) -> tuple[list[Collected], Path]:
    """Bring in all that lies at `source`; returns the table and the file with the times of arrival.

    Whatever is wrong with one thing is that student's line. Writes INTO/<student>/<set>/<notebook> and
    INTO/<set>.received.csv, in which times that an earlier run knew of the same notebook stay.
    """
    rows: list[Collected] = []
    mine: defaultdict[str, list[HandedIn]] = defaultdict(list)
    for one in handed_in(source, assignment, pattern, protocol, deadline):
        try:
            mine[_student(one.owner, roster)].append(one)
        except Refusal as problem:
            rows.append(
                Collected(legible(str(one.owner)), "refused", legible(one.place), one.refused or str(problem))
            )
    times_file = into / f"{assignment.name}.received.csv"
    times = received_times(times_file) if times_file.exists() else {}
    into.mkdir(mode=0o700, parents=True, exist_ok=True)  # everybody's work lies in it
    for student, found in mine.items():
        row, received = _take_in(student, found, assignment, into)
        rows.append(row)
        if received is not None:
            times[row.student] = received
        elif row.state in ("new", "replaced"):
            times.pop(row.student, None)
    here = {row.student for row in rows}
    rows += [
        Collected(one.student, "nothing", "", "nothing handed in")
        for one in roster.values()
        if one.student not in here
    ]
    write_times(times_file, times)
    return sorted(rows, key=lambda row: row.student), times_file


def _student(owner: Owner, roster: Mapping[str, Person]) -> str:
    """The name of the folder. Raises Refusal."""
    if owner.student:
        if unfit(owner.student):
            raise Refusal(unfit(owner.student))
        if roster and student_id(owner.student) not in roster:
            raise Refusal("not in the roster")
        return owner.student
    if not roster:
        if unfit(str(owner)):
            raise Refusal(unfit(str(owner)))
        return str(owner)
    numbered = [one for one in roster.values() if owner.number and one.lms_user_id == owner.number]
    if owner.by_number:
        found = numbered
    else:
        found = [one for one in roster.values() if letters(owner.name) in one.names]
        sure = any(one.participant for one in numbered)
        found = [one for one in found if one in numbered] if len(found) > 1 or sure else found
    if len(found) != 1:
        raise Refusal(
            "nobody in the roster has this number" if owner.by_number and not found
            else f"the number {owner.number} is another's in the roster: somebody has taken this name"
            if numbered and not found
            else "nobody in the roster has this name" if not found
            else f"{len(found)} in the roster have this name or number"
        )  # fmt: skip
    return found[0].id


def _take_in(
    student: str, found: list[HandedIn], assignment: Assignment, into: Path
) -> tuple[Collected, datetime | None]:
    """Write the one notebook that counts. Returns its line and when it arrived."""
    name, place = student_id(student), legible(found[-1].place)
    try:
        one = _newest(found, assignment)
        place = legible(one.place)
        assert one.read is not None  # _newest gives no other
        data = one.read()
        target = into / student / assignment.name / assignment.filename
        before = _before(target, into)
        if before != data:
            write_atomic(target, data)
        state = "unchanged" if before == data else "new" if before is None else "replaced"
        return Collected(name, state, place, one.note), one.received
    except Refusal as problem:
        return Collected(name, "refused", place, str(problem)), None
    except OSError as problem:
        return Collected(name, "refused", place, f"cannot be written: {problem.strerror}"), None


def _newest(found: list[HandedIn], assignment: Assignment) -> HandedIn:
    readable = [one for one in found if one.read is not None]
    if len({one.owner.number for one in readable}) > 1:
        raise Refusal(f"{len(readable)} people of this name handed in: add their numbers to the roster")
    if not readable:
        told = [one.refused for one in found if one.refused]
        others = ", ".join(legible(Path(one.place).name) for one in found[:3])
        raise Refusal(told[-1] if told else f"no {assignment.filename}; found {others}")
    last = max(one.order for one in readable)
    newest = [one for one in readable if one.order == last]
    if len(newest) > 1:
        raise Refusal(f"{len(newest)} files that could be {assignment.filename}: leave one")
    return newest[0]


def _before(target: Path, into: Path) -> bytes | None:
    """What was collected before. Raises Refusal where a link would have us write elsewhere."""
    for path in (target, target.parent, target.parent.parent):
        if path.is_symlink():
            raise Refusal(f"{path.relative_to(into)} in {into} is a link: remove it")
    return target.read_bytes() if target.is_file() else None


def write_times(file: Path, times: Mapping[str, datetime]) -> None:
    """The file that `autograder grade --received` reads."""
    rows = [(student, f"{times[student].isoformat()}Z") for student in sorted(times)]
    write_atomic(file, csv_text([("student", "time"), *rows]).encode("utf-8", "replace"))


def legible(text: str) -> str:
    """A place as a table may show it."""
    return written_out(text).replace("~~", "~")[:120]
