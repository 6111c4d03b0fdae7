"""Decides whose each notebook is and which of several counts, and writes it into submitted/."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.collect.handed_in import CollectOptions, HandedIn, Owner, Refusal, unfit
from autograder.collect.platforms import BLIND, LATE
from autograder.collect.sources import handed_in
from autograder.csv_tables import guard, read_rows
from autograder.discover import student_id, written_out
from autograder.layout import Assignment
from autograder.receipt import received_times, without_time
from autograder.results import write_atomic, write_rows
from autograder.roster import Person, letters

NOBODY = "(nobody)"
REQUEST, LONGEST_REQUEST = "regrade.md", 20_000
TAKEN = ("new", "replaced", "unchanged")
Left = dict[int, tuple[str, str]]
"""{id() of a HandedIn: (place, why it was not taken)}"""


@dataclass(frozen=True)
class Collected:
    """One line of the table. state: one of TAKEN, "refused" or "nothing"."""

    student: str
    state: str
    place: str
    why: str


@dataclass(frozen=True)
class Collection:
    """The result of one run: every file was either taken, and has a row, or is in `left`.

    taken: how many files were taken; a group's counts once. left: (place, why it was not taken). times: the
    CSV file with the times of arrival. late: students who are marked late but have no time.
    names: a CSV file to fill in (place, student) with the notebooks whose student is unknown; None if there
    are none. asking: students who ask for a regrade.
    """

    rows: list[Collected]
    taken: int
    left: list[tuple[str, str]]
    times: Path
    late: list[str]
    names: Path | None
    asking: list[str]


def collect(
    source: Path, assignment: Assignment, into: Path, roster: Mapping[str, Person], options: CollectOptions
) -> Collection:
    """Take in all notebooks at `source`; an error with one becomes that student's row.

    Writes INTO/<student>/<set>/<notebook>, and the times of arrival into INTO/<set>.received.csv, which keeps
    times from earlier runs for unchanged notebooks. Files that do not tell their student are listed in
    INTO/<set>.names.csv; the names that a person enters there (a group's with ; between) are used by the
    next run.
    """
    names_file, times_file = (into / f"{assignment.name}.{what}.csv" for what in ("names", "received"))
    names = read_places(names_file)
    things = list(handed_in(source, assignment, options))
    taken, left = set[int](), Left()
    mine, rows, unclaimed = _by_student(things, names, roster, left)
    times = received_times(times_file) if times_file.exists() else {}
    waiting = without_time(times_file) if times_file.exists() else []
    into.mkdir(mode=0o700, parents=True, exist_ok=True)  # private: it holds every student's work
    late, asking, places = [], [], read_places(into / f"{assignment.name}.places.csv")
    for student, everything in mine.items():
        found = [one for one in everything if not one.asks]
        if asked := _request(student, [one for one in everything if one.asks], assignment, into, left):
            asking.append(student)
            taken.add(id(asked))
        if not found:
            continue
        row, one = _take_in(student, found, assignment, into)
        rows.append(row)
        _reject(found, one, row, assignment.filename, left)
        if one:
            taken.add(id(one))
            place = guard(written_out(one.place))
            places.pop(place, None)  # so that the newest is the last line
            if not names.get(place) and not one.others:  # neither claimed by a person nor a group's
                places[place] = guard(row.student)
        if one and one.received is not None:
            times[guard(row.student)] = one.received
        elif row.state in ("new", "replaced"):
            times.pop(guard(row.student), None)
        if one and one.note == LATE and guard(row.student) not in times:
            late.append(row.student)
        if row.state in ("new", "replaced"):
            waiting = [student for student in waiting if student != guard(row.student)]
    late += [student for student in waiting if student not in {*times, *map(guard, late)}]
    here = {row.student for row in rows} | {student_id(student) for student in asking}
    rows += _nothing([one for one in roster.values() if one.student not in here], into, assignment)
    write_times(times_file, times, late)
    write_places(into / f"{assignment.name}.places.csv", places)
    if unclaimed:
        write_places(names_file, {one: names.get(one, "") for one in sorted({*names, *unclaimed})})
    rows.sort(key=lambda row: row.student)
    untaken = [left[id(one)] for one in things if id(one) not in taken]
    return Collection(rows, len(taken), untaken, times_file, late, names_file if unclaimed else None, asking)


def _nothing(people: Iterable[Person], into: Path, assignment: Assignment) -> Iterator[Collected]:
    """A row for each person of the roster who has nothing at this source."""
    for one in people:
        before = os.path.exists(into / one.id / assignment.name / assignment.filename)
        why = "nothing here; what was collected before stays" if before else "nothing handed in"
        yield Collected(one.student, "nothing", "", why)


def _by_student(
    things: Iterable[HandedIn], names: Mapping[str, str], roster: Mapping[str, Person], left: Left
) -> tuple[dict[str, list[HandedIn]], list[Collected], list[str]]:
    """({student: what they handed in}, rows for files of no known student, places of those files).

    names: {place: students that a person entered in names.csv}. Fills `left`.
    """
    rows: list[Collected] = []
    unclaimed: list[str] = []
    mine: defaultdict[str, list[HandedIn]] = defaultdict(list)
    for one in things:
        place = guard(written_out(one.place))
        claimed = [Owner(student=name.strip()) for name in names.get(place, "").split(";") if name.strip()]
        for owner in claimed or (one.owner, *one.others):
            try:
                mine[_student(owner, roster)].append(one)
            except Refusal as problem:
                who = str(owner)
                why = one.refused or ("" if who else one.note) or str(problem)
                left[id(one)] = shown_place(one.place), why
                if one.read or one.refused:
                    rows.append(Collected(shown_place(who) or NOBODY, "refused", *left[id(one)]))
                if one.read:
                    unclaimed.append(place)
    return mine, rows, unclaimed


def _request(
    student: str, found: list[HandedIn], assignment: Assignment, into: Path, left: Left
) -> HandedIn | None:
    """Write a student's newest request for a regrade beside the notebook, and return it; fills `left`."""
    newest, taken = max((one.order for one in found), default=()), None
    for one in found:
        try:
            if one.order != newest or taken or one.read is None:
                raise Refusal("another file that asks for a regrade is newer")
            target = into / student / assignment.name / REQUEST
            _collected_before(target, into)
            write_atomic(target, one.read()[:LONGEST_REQUEST])
            taken = one
        except Refusal as problem:
            left[id(one)] = shown_place(one.place), str(problem)
    return taken


def write_places(file: Path, known: Mapping[str, str]) -> None:
    """Write {place: student} as INTO/<set>.names.csv or INTO/<set>.places.csv, which `give-back` reads."""
    write_rows(file, [("file", "student"), *known.items()])


def read_places(file: Path) -> dict[str, str]:
    """{place: student} from such a file; {} where there is none."""
    rows = read_rows(file, ("file", "student")) if file.exists() else ()
    return {row["file"]: row["student"] for _, row in rows}


def _student(owner: Owner, roster: Mapping[str, Person]) -> str:
    """The name of the owner's folder in submitted/. Raises Refusal where the roster does not decide it."""
    if not str(owner):
        raise Refusal("its name says no student")
    if owner.student:
        if unfit(owner.student):
            raise Refusal(unfit(owner.student))
        if roster and student_id(owner.student) not in roster:
            alike = {owner.student, owner.name} - {""}
            found = [one for one in roster.values() if alike & {one.id, one.email, one.sis_user_id}]
            if len(found) == 1:
                return found[0].id
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
        found = numbered if sure and owner.name == BLIND else found
    if len(found) != 1:
        raise Refusal(
            "nobody in the roster has this number" if owner.by_number and not found
            else f"the number {owner.number} is another's in the roster: a group, or a name that is taken"
            if numbered and not found
            else "nobody in the roster has this name" if not found
            else f"{len(found)} in the roster have this name or number"
        )  # fmt: skip
    return found[0].id


def _take_in(
    student: str, found: list[HandedIn], assignment: Assignment, into: Path
) -> tuple[Collected, HandedIn | None]:
    """Write the one notebook of a student that counts. Returns its row, and the notebook unless refused."""
    name, place = student_id(student), shown_place(found[-1].place)
    try:
        one = _newest(found, assignment)
        place = shown_place(one.place)
        assert one.read is not None  # _newest() returns only files that are read
        data = one.read()
        target = into / student / assignment.name / assignment.filename
        if (before := _collected_before(target, into)) != data:
            write_atomic(target, data)
        state = "unchanged" if before == data else "new" if before is None else "replaced"
        other = "" if one.named else f"its name is not {assignment.filename}; taken by its cells"
        other = other if data else "the file is empty"
        return Collected(name, state, place, "; ".join(filter(None, (one.note, other)))), one
    except Refusal as problem:
        return Collected(name, "refused", place, str(problem)), None
    except OSError as problem:
        return Collected(name, "refused", place, f"cannot be written: {problem.strerror}"), None


def _newest(found: list[HandedIn], assignment: Assignment) -> HandedIn:
    """The one notebook among a student's files that counts. Raises Refusal where none or several could."""
    notebooks = [one for one in found if one.read is not None]
    readable = [one for one in notebooks if one.named] or [
        one for one in notebooks if _holds(one, assignment)
    ]
    if len({one.owner.number for one in notebooks}) > 1:
        raise Refusal(f"{len(notebooks)} people of this name handed in: add their numbers to the roster")
    if not readable:
        told = [one.refused for one in found if one.refused]
        others = ", ".join(shown_place(Path(one.place).name) for one in found[:3])
        raise Refusal(told[-1] if told else f"no {assignment.filename}; found {others}")
    last = max(one.order for one in readable)
    newest = [one for one in readable if one.order == last]
    if len(newest) > 1:
        raise Refusal(f"{len(newest)} files that could be {assignment.filename}: leave one")
    return newest[0]


def _holds(one: HandedIn, assignment: Assignment) -> bool:
    """Whether a file contains the grade ids of this set's cells; it is searched as bytes, not parsed."""
    assert one.read is not None
    try:
        data = one.read()
    except Refusal:
        return False
    return all(re.search(rb'"grade_id": ?"%b"' % re.escape(key).encode(), data) for key in assignment.cells)


def _reject(found: list[HandedIn], taken: HandedIn | None, row: Collected, wanted: str, left: Left) -> None:
    """Enter in `left` why each of a student's files was not taken; collect() ignores the one that was."""
    for one in found:
        why = one.refused or (
            row.why if not taken
            else "no notebook" if one.read is None
            else "an earlier upload" if one.order < taken.order
            else f"not named {wanted}"
        )  # fmt: skip
        left[id(one)] = shown_place(one.place), why


def _collected_before(target: Path, into: Path) -> bytes | None:
    """The bytes that an earlier run wrote to `target`, or None. Raises Refusal if a link leads elsewhere."""
    for path in (target, target.parent, target.parent.parent):
        if path.is_symlink():
            raise Refusal(f"{path.relative_to(into)} in {into} is a link: remove it")
    return target.read_bytes() if target.is_file() else None


def write_times(file: Path, times: Mapping[str, datetime], late: Iterable[str]) -> None:
    """Write the file that `autograder grade --received` reads. late: students whose time is to be entered."""
    rows = [(student, f"{times[student].isoformat()}Z", "") for student in times]
    rows += [(guard(student), "", f"{LATE}: enter the time") for student in late]
    write_rows(file, [("student", "time", "note"), *sorted(rows)])


def shown_place(text: str) -> str:
    """A place as the table shows it: printable, and cut to 120 characters."""
    return written_out(text).replace("~~", "~")[:120]
