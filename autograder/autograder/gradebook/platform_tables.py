"""One set's grades in the tables that Canvas, Moodle and Blackboard import.

Canvas (lib/gradebook_importer.rb): the first columns are Student, ID, SIS User ID, SIS Login ID, Section, the
second line has the points possible; a person is found by ID, then by the SIS columns; an empty cell would
clear a grade, so who has none has no line; a name with "Points Possible" in it would be taken for that line.
Moodle (grade/import/csv): any columns, which the importer maps; one unknown person stops the whole import.
Blackboard: Username finds the person, the column's ID (`... |12345`) the column, every field in quotes.

An apostrophe in front, which keeps a spreadsheet from running a formula, would make another person of an
identifier: neither Canvas nor Moodle strips it. So names get one, and whoever's identifier begins like a
formula is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.csv_tables import csv_text, guard
from autograder.gradebook.export import figure
from autograder.gradebook.standing import Standing
from autograder.roster import Person


@dataclass(frozen=True)
class PlatformTable:
    """CSV text, and why each student without a line has none."""

    text: str
    left_out: tuple[tuple[str, str], ...]


def canvas(found: Iterable[Standing], roster: Mapping[str, Person], column: str) -> PlatformTable:
    """Canvas's table. column: the assignment's title, best with its number as Canvas has it: "PS 4 (123)"."""
    given, left_out = sorted_out(found, roster)
    rows = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", column)]
    most = max((one.max for one, _ in given), default=0.0)
    rows.append(("    Points Possible", "", "", "", "", figure(most)))
    for one, person in given:
        name = guard(", ".join(filter(None, (person.last_name, person.first_name))) or person.id)
        if "Points Possible" in name:
            left_out.append(
                (one.student, "Canvas would read this name as the line of points: enter it by hand")
            )
            continue
        ids = (person.lms_user_id, person.sis_user_id, person.id)
        rows.append((name, *ids, guard(person.section), figure(one.score)))
    return PlatformTable(csv_text(rows, end="\r\n"), tuple(left_out))


def moodle(found: Iterable[Standing], roster: Mapping[str, Person], column: str) -> PlatformTable:
    """Moodle's table: map Username or Email address to the person, and the last column to the assignment."""
    given, left_out = sorted_out(found, roster)
    rows = [("Username", "Email address", column)]
    rows += [(person.id, person.email, figure(one.score)) for one, person in given]
    return PlatformTable(csv_text(rows, end="\r\n"), tuple(left_out))


def blackboard(found: Iterable[Standing], roster: Mapping[str, Person], column: str) -> PlatformTable:
    """Blackboard's table. column: the head of the column as Blackboard downloads it, with its ID after |."""
    given, left_out = sorted_out(found, roster)
    rows = [("Last Name", "First Name", "Username", column)]
    rows += [
        (guard(person.last_name), guard(person.first_name), person.id, figure(one.score))
        for one, person in given
    ]
    return PlatformTable(csv_text(rows, end="\r\n", quoted=True), tuple(left_out))


TABLES = {"canvas": canvas, "moodle": moodle, "blackboard": blackboard}


def sorted_out(
    found: Iterable[Standing], roster: Mapping[str, Person]
) -> tuple[list[tuple[Standing, Person]], list[tuple[str, str]]]:
    """(who has a grade to pass on, why the others have none)."""
    given: list[tuple[Standing, Person]] = []
    left_out: list[tuple[str, str]] = []
    for one in found:
        person = roster.get(one.student)
        why = "not in the roster" if person is None else waiting(one) or risky(person)
        if why or person is None:
            left_out.append((one.student, why))
        else:
            given.append((one, person))
    return given, left_out


def waiting(one: Standing) -> str:
    """Why this is no grade yet; "" if it is one."""
    if not one.has_score:
        return f"{one.status}: {one.reason}" if one.reason else one.status
    told = {"ungraded": "wait for a GPU", "manual": "wait for you in formgrader"}
    return ", ".join(f"{figure(one.open(kind))} points {told[kind]}" for kind in told if one.open(kind))


def risky(person: Person) -> str:
    """Why an identifier cannot stand in a table."""
    for name in ("id", "email", "lms_user_id", "sis_user_id"):
        if guard(getattr(person, name)) != getattr(person, name):
            return f"the roster's {name} begins like a formula: enter this one by hand"
    return ""
