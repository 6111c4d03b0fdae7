"""`autograder plan`: a dated syllabus, from the minutes, hours and points that chapters and sets state."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from autograder.csv_tables import csv_text
from autograder.layout import assignment_names, load_assignment
from autograder.user_error import UserError
from warplab.rendering import render

ORDER = (1, 5, 2, 4, 3, 9, 7, 6, 13, 10, 8, 11, 12, 14)  # by priority, where not all chapters fit
TOGETHER = ((11, 12), (13, 14))  # chapters taught in one week
HOURS_A_DAY = 8  # of a workshop
WEEKS_A_SET = 2
STUDY = 7  # default hours a week; with 6, twelve weeks have no room for sets 3 and 4
BY_HAND = 5  # points of a set's last question, which a person grades
MOST = {"--hours": 40, "--weeks": 30, "--study": 60}
MINUTES = re.compile(r"\*\*Minutes\.\*\* (\d+) to read and run, and about (\d+) more")
HOURS = re.compile(r"\*\*About (an|[\d.]+) hours?\*\*(?: \(estimated; the stars? about ([\d.]+) more\))?")


@dataclass(frozen=True)
class TaughtChapter:
    """A chapter of the book. hours: to read and run it and to solve its problems."""

    number: int
    title: str
    hours: float


@dataclass(frozen=True)
class ProblemSet:
    """A problem set. chapter: after which it is given, 0 for the warm-ups. stars: points of starred tasks.

    hours: without the starred tasks, which take star_hours. starred: whether the plan includes them.
    """

    name: str
    title: str
    chapter: int
    hours: float
    points: float
    stars: float
    star_hours: float
    starred: bool = True

    @property
    def takes(self) -> float:
        return self.hours + self.star_hours * self.starred


@dataclass(frozen=True)
class Plan:
    """A finished plan. syllabus: Markdown. dates: CSV. left: {set that is left out: why}."""

    syllabus: str
    dates: str
    left: dict[str, str]


@dataclass(frozen=True)
class Week:
    """A week of a term, or an hour of a workshop. given, due: sets handed out and to be handed in.

    own: hours that a student spends outside class.
    """

    number: int
    date: date
    chapters: tuple[TaughtChapter, ...]
    given: tuple[ProblemSet, ...] = ()
    due: tuple[ProblemSet, ...] = ()
    own: float = 0.0


def read_chapters(root: Path) -> list[TaughtChapter]:
    """The chapters of the book, in order. Raises UserError where there are none, or one states no minutes."""
    found = []
    for path in sorted((root / "chapters").glob("[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        title, minutes = re.search(r"^# (\d+)\. (.*)$", text, re.MULTILINE), MINUTES.search(text)
        if not title or not minutes:
            raise UserError(f"{path} has no title with a number, or no line **Minutes.**")
        found.append(TaughtChapter(int(title[1]), title[2], (int(minutes[1]) + int(minutes[2])) / 60))
    if not found:
        raise UserError(
            f"no chapters in {root / 'chapters'}: a plan needs the whole course, not its package alone"
        )
    return found


def read_sets(root: Path) -> list[ProblemSet]:
    """The released sets that state how long they take, by the priority of their chapters (ORDER).

    A set that does not state the hours of its starred tasks gets a share of its hours by their points.
    """
    found = []
    for name in assignment_names(root):
        released, text, points, stars, starred = load_assignment(root, name), "", 0.0, 0.0, False
        for cell in released.document["cells"]:
            if cell["cell_type"] == "markdown" and "nbgrader" not in cell["metadata"]:
                text += cell["source"] + "\n"
                if heading := re.search(r"^## (.*)$", cell["source"], re.MULTILINE):
                    starred = "*" in heading[1]
            worth = float(cell["metadata"].get("nbgrader", {}).get("points", 0))
            points, stars = points + worth, stars + worth * starred
        title, hours = re.search(r"^# Problem set \d+: (.*)$", text, re.MULTILINE), HOURS.search(text)
        after = re.search(r"after\s+chapter\s+(\d+)", text)
        if points - stars <= BY_HAND:  # nothing but stars: the set is given whole or not
            stars = 0.0
        if title and hours:
            long = 1.0 if hours[1] == "an" else float(hours[1])
            more = float(hours[2]) if hours[2] else stars and long * stars / points
            alone = long if hours[2] else long - more
            found.append(
                ProblemSet(name, title[1], int(after[1]) if after else 0, alone, points, stars, more)
            )
    return sorted(found, key=lambda one: (rank(one.chapter) if one.chapter else -1, one.name))


def term(root: Path, weeks: int, study: float, begin: date) -> Plan:
    """Plan a term with a chapter a week, from the day `begin`.

    study: hours a week outside class, for the chapter and the sets. Raises UserError for numbers out of range
    and where `study` is too short for a chapter.
    """
    check_range("--weeks", weeks)
    check_range("--study", study)
    chapters = read_chapters(root)
    lessons = [tuple(one for one in chapters if one.number in pair) for pair in TOGETHER]
    lessons += [(one,) for one in chapters if one.number not in sum(TOGETHER, ())]
    kept = sorted(filter(None, lessons), key=lambda lesson: rank(lesson[0].number))[:weeks]
    kept.sort(key=lambda lesson: lesson[0].number)
    taught = {1 + place * weeks // len(kept): lesson for place, lesson in enumerate(kept)}
    load = {week: sum(one.hours for one in taught.get(week, ())) for week in range(1, weeks + WEEKS_A_SET)}
    if study < (most := max(load.values())):
        raise UserError(
            f"--study {study:g}: a chapter alone takes up to {most + 0.05:.1f} hours a week; give more"
        )
    week_of = {0: 1} | {one.number: week for week, lesson in taught.items() for one in lesson}

    def placed(hours: float, weeks: range) -> bool:
        """Spread hours evenly over the weeks if each has room for its share; returns whether they fit."""
        share = hours / len(weeks)
        if any(load[week] + share > study for week in weeks):
            return False
        load.update({week: load[week] + share for week in weeks})
        return True

    sets = read_sets(root)
    silent = set(assignment_names(root)) - {one.name for one in sets}
    left = dict.fromkeys(sorted(silent), "its first cell does not say how long it takes: **About 3 hours**")
    opened: dict[ProblemSet, range] = {}
    for one in sets:
        first = week_of.get(one.chapter, 0)
        open_for = range(first, first + (WEEKS_A_SET if one.chapter else 1))
        if not first:
            left[one.name] = f"chapter {one.chapter} is not taught"
        elif open_for[-1] > weeks:
            left[one.name] = "the term ends too soon for it"
        elif placed(one.hours, open_for):
            opened[one] = open_for
        else:
            left[one.name] = f"{study:g} hours a week have no room for it"
    given = {  # starred tasks where the sets have left room
        replace(one, starred=placed(one.star_hours, open_for)): open_for for one, open_for in opened.items()
    }
    table = [
        Week(
            week,
            begin + timedelta(weeks=week - 1),
            taught.get(week, ()),
            tuple(one for one, open_for in given.items() if open_for.start == week),
            tuple(one for one, open_for in given.items() if open_for.stop == week),
            load[week] if week <= weeks else 0,
        )
        for week in range(1, weeks + 2)
    ]
    return written("term", table, given, left, study=study, weeks=weeks)


def workshop(root: Path, hours: int, begin: date) -> Plan:
    """Plan a workshop: an hour for each chapter, the rest for the sets. Raises UserError."""
    check_range("--hours", hours)
    by_number = {one.number: one for one in read_chapters(root)}
    taught = sorted(sorted(by_number.keys() - {ORDER[-1]}, key=rank)[:hours])  # ORDER's last: in terms only
    sets = [one for one in read_sets(root) if one.chapter in {0, *taught}]
    table = [
        Week(
            hour + 1,
            begin + timedelta(days=hour // HOURS_A_DAY),
            (by_number[taught[hour]],) if hour < len(taught) else (),
        )
        for hour in range(hours)
    ]
    return written("workshop", table, sets, {}, hours=hours)


def check_range(option: str, value: float) -> None:
    if not 1 <= value <= MOST[option]:
        raise UserError(f"{option} {value:g}: expected 1 to {MOST[option]}")


def rank(chapter: int) -> int:
    """The position of a chapter in ORDER; chapters that a course has added come last."""
    return ORDER.index(chapter) if chapter in ORDER else len(ORDER)


def written(
    kind: str, table: list[Week], sets: Iterable[ProblemSet], left: dict[str, str], **told: float
) -> Plan:
    """Render a Plan. kind: "term" or "workshop". told: further variables of the template."""
    sets = sorted(sets, key=lambda one: one.name)
    text = render("autograder", "syllabus.md.j2", kind=kind, table=table, sets=sets, **told)
    rows: list[tuple[object, ...]] = [("date", "what", "which")]
    for week in table:
        rows += [(week.date, "chapter", one.number) for one in week.chapters]
        rows += [(week.date, "given", one.name) for one in week.given]
        rows += [(week.date, "due", one.name) for one in week.due]
    return Plan(text, csv_text(rows), left)
