"""Whose each notebook is, which of several counts, and what is written into submitted/."""

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
"""{id of what was handed in: (place, why it was not taken)}"""


@dataclass(frozen=True)
class Collected:
    """One line of the table. state: one of TAKEN, "refused" or "nothing"."""

    student: str
    state: str
    place: str
    why: str


@dataclass(frozen=True)
class Collection:
    """What one run found: every file was taken, and is a row's, or was left, with the reason.

    taken: how many files; what a group handed in is one. left: (place, why). times: the file with the times
    of arrival. late: who is marked late and has no time.
    names: a file to fill in, place and student, with what seems to be work and says nobody's name.
    asking: who asks for a regrade.
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
    """Bring in all that lies at `source`.

    Whatever is wrong with one thing is that student's line. Writes INTO/<student>/<set>/<notebook> and
    INTO/<set>.received.csv, in which times that an earlier run knew of the same notebook stay. Whose a file
    is that does not say so is read in INTO/<set>.names.csv, where what nobody has claimed is entered; of
    several who handed it in together, with ; between them.
    """
    names_file, times_file = (into / f"{assignment.name}.{what}.csv" for what in ("names", "received"))
    names = read_places(names_file)
    things = list(handed_in(source, assignment, options))
    taken, left = set[int](), Left()
    mine, rows, unclaimed = _by_student(things, names, roster, left)
    times = received_times(times_file) if times_file.exists() else {}
    waiting = without_time(times_file) if times_file.exists() else []
    into.mkdir(mode=0o700, parents=True, exist_ok=True)  # everybody's work lies in it
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
        _beside(found, one, row, assignment.filename, left)
        if one:
            taken.add(id(one))
            place = guard(written_out(one.place))
            places.pop(place, None)  # the newest stands last
            if not names.get(place) and not one.others:  # else the name there is not this student's
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
    """The rows of those who have nothing at this source."""
    for one in people:
        before = os.path.exists(into / one.id / assignment.name / assignment.filename)
        why = "nothing here; what was collected before stays" if before else "nothing handed in"
        yield Collected(one.student, "nothing", "", why)


def _by_student(
    things: Iterable[HandedIn], names: Mapping[str, str], roster: Mapping[str, Person], left: Left
) -> tuple[dict[str, list[HandedIn]], list[Collected], list[str]]:
    """What is each student's; of the rest rows, and the places that nobody has claimed."""
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
                left[id(one)] = legible(one.place), why
                if one.read or one.refused:
                    rows.append(Collected(legible(who) or NOBODY, "refused", *left[id(one)]))
                if one.read:
                    unclaimed.append(place)
    return mine, rows, unclaimed


def _request(
    student: str, found: list[HandedIn], assignment: Assignment, into: Path, left: Left
) -> HandedIn | None:
    """Keep the newest file of a student that asks for a regrade beside the work; of others say why not."""
    newest, taken = max((one.order for one in found), default=()), None
    for one in found:
        try:
            if one.order != newest or taken or one.read is None:
                raise Refusal("another file that asks for a regrade is newer")
            target = into / student / assignment.name / REQUEST
            _before(target, into)
            write_atomic(target, one.read()[:LONGEST_REQUEST])
            taken = one
        except Refusal as problem:
            left[id(one)] = legible(one.place), str(problem)
    return taken


def write_places(file: Path, known: Mapping[str, str]) -> None:
    """INTO/<set>.names.csv, and INTO/<set>.places.csv, of which `give-back` makes names of files."""
    write_rows(file, [("file", "student"), *known.items()])


def read_places(file: Path) -> dict[str, str]:
    """{place: student} of such a file; {} where there is none."""
    rows = read_rows(file, ("file", "student")) if file.exists() else ()
    return {row["file"]: row["student"] for _, row in rows}


def _student(owner: Owner, roster: Mapping[str, Person]) -> str:
    """The name of the folder. Raises Refusal."""
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
    """Write the one notebook that counts. Returns its line, and which it is."""
    name, place = student_id(student), legible(found[-1].place)
    try:
        one = _newest(found, assignment)
        place = legible(one.place)
        assert one.read is not None  # _newest gives no other
        data = one.read()
        target = into / student / assignment.name / assignment.filename
        if (before := _before(target, into)) != data:
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
    notebooks = [one for one in found if one.read is not None]
    readable = [one for one in notebooks if one.named] or [
        one for one in notebooks if _holds(one, assignment)
    ]
    if len({one.owner.number for one in notebooks}) > 1:
        raise Refusal(f"{len(notebooks)} people of this name handed in: add their numbers to the roster")
    if not readable:
        told = [one.refused for one in found if one.refused]
        others = ", ".join(legible(Path(one.place).name) for one in found[:3])
        raise Refusal(told[-1] if told else f"no {assignment.filename}; found {others}")
    last = max(one.order for one in readable)
    newest = [one for one in readable if one.order == last]
    if len(newest) > 1:
        raise Refusal(f"{len(newest)} files that could be {assignment.filename}: leave one")
    return newest[0]


def _holds(one: HandedIn, assignment: Assignment) -> bool:
    """Whether a notebook, by whatever name, has the cells of this set. It is not parsed here."""
    assert one.read is not None
    try:
        data = one.read()
    except Refusal:
        return False
    return all(re.search(rb'"grade_id": ?"%b"' % re.escape(key).encode(), data) for key in assignment.cells)


def _beside(found: list[HandedIn], taken: HandedIn | None, row: Collected, wanted: str, left: Left) -> None:
    """Of one student's files those that were not taken, and why."""
    for one in found:
        why = one.refused or (
            row.why if not taken
            else "no notebook" if one.read is None
            else "an earlier upload" if one.order < taken.order
            else f"not named {wanted}"
        )  # fmt: skip
        left[id(one)] = legible(one.place), why


def _before(target: Path, into: Path) -> bytes | None:
    """What was collected before. Raises Refusal where a link would have us write elsewhere."""
    for path in (target, target.parent, target.parent.parent):
        if path.is_symlink():
            raise Refusal(f"{path.relative_to(into)} in {into} is a link: remove it")
    return target.read_bytes() if target.is_file() else None


def write_times(file: Path, times: Mapping[str, datetime], late: Iterable[str]) -> None:
    """The file that `autograder grade --received` reads. late: whose time a person has to enter."""
    rows = [(student, f"{times[student].isoformat()}Z", "") for student in times]
    rows += [(guard(student), "", f"{LATE}: enter the time") for student in late]
    write_rows(file, [("student", "time", "note"), *sorted(rows)])


def legible(text: str) -> str:
    """A place as a table may show it."""
    return written_out(text).replace("~~", "~")[:120]
