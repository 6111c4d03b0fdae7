"""The roster: a CSV file of the class with nbgrader's own columns, Canvas's or Moodle's."""

import re
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from autograder.csv_tables import read_rows
from autograder.discover import student_id
from autograder.user_error import UserError

FILE = "roster.csv"
# {column that tells which table it is: the columns of id, first_name, last_name, email, lms_user_id}; "id" is
# last, as Canvas's and Moodle's tables may also have a column of that name
TABLES = {
    "sis login id": ("sis login id", "", "student", "", "id"),  # Canvas, Gradebook, Export
    "identifier": ("email address", "", "full name", "email address", "identifier"),  # Moodle's worksheet
    "id": ("id", "first_name", "last_name", "email", "lms_user_id"),  # `nbgrader db student import`
}


@dataclass(frozen=True)
class Person:
    """One line of a roster. student: the id under which grades are kept (discover.student_id).

    id: as the roster writes it. lms_user_id: the learning platform's number for this person. section and
    sis_user_id are Canvas's. participant: whether lms_user_id is known to be the number in the names of
    Moodle's files.
    """

    student: str
    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""
    sis_user_id: str = ""
    section: str = ""
    participant: bool = False

    @property
    def names(self) -> set[str]:
        """The forms in which a platform's file names may have the person's name: letters and digits only."""
        first, last = letters(self.first_name), letters(self.last_name)
        parts = self.last_name.split(",")
        return {first + last, last + first, letters("".join(reversed(parts)))} - {""}

    @property
    def first_and_last(self) -> tuple[str, str]:
        """(first name, last name) for formgrader. Canvas and Moodle have both in one column, as "Lovelace,
        Ada" and "Ada Lovelace"."""
        if self.first_name or " " not in self.last_name:
            return self.first_name, self.last_name
        if ", " in self.last_name:
            last, _, first = self.last_name.partition(", ")
        else:
            first, _, last = self.last_name.rpartition(" ")
        return first, last


def letters(name: str) -> str:
    """A name in lower case without spaces and punctuation, for comparing."""
    return re.sub(r"[\W_]", "", normalize("NFC", name)).casefold()


def read_roster(path: Path | None, root: Path) -> dict[str, Person]:
    """{student: Person} from `path`; by default from roster.csv in the course folder, {} without that file.

    Raises UserError that names the file, the line and the problem.
    """
    file = path or root / FILE
    if path is None and not file.exists():
        return {}
    people: dict[str, Person] = {}
    wanted = (
        "with the column id, and first_name, last_name, email, lms_user_id where they are known; Canvas's "
        "exported gradebook and Moodle's grading worksheet do, too"
    )
    for line, row in read_rows(file, *((mark,) for mark in TABLES), wanted=wanted):
        person = _person(row, next(TABLES[mark] for mark in TABLES if mark in row))
        if not person.id:
            continue  # Canvas's line "Points Possible" and its test student have no login
        if person.student in people:
            raise UserError(f"{file}, line {line}: {person.id!r} stands there twice; keep one line")
        people[person.student] = person
    if path and not people:
        raise UserError(f"{file} names nobody: no line of it says who somebody is; expected one {wanted}")
    return people


def _person(row: dict[str, str], table: tuple[str, ...]) -> Person:
    id_, first, last, email, lms = (row.get(column, "") for column in table)
    number, participant = lms.removeprefix("Participant "), lms.startswith("Participant ")
    sis_user_id, section = row.get("sis user id", "") or row.get("sis_user_id", ""), row.get("section", "")
    return Person(student_id(id_), id_, first, last, email, number, sis_user_id, section, participant)
