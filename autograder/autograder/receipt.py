"""When each submission arrived, from the collecting side: never from a file that the student handed in."""

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

from autograder.csv_tables import read_rows
from autograder.user_error import UserError

TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?: ?(Z|UTC|[+-]\d\d:?\d\d))?", re.ASCII
)
COLUMNS = ("student", "time")
LONGEST = 60  # bytes of a timestamp.txt, with the white space around the time


def utc(text: str) -> datetime | None:
    """Parse "2026-03-02 10:00", "2026-03-02T10:00:00+01:00" or "2026-03-02 10:00:00.5 UTC".

    A time without a zone is taken as UTC. Returns a naive datetime in UTC, as nbgrader keeps them; None for
    any other text.
    """
    found = TIME.fullmatch(text)
    if found is None:
        return None
    day, clock, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z', 'UTC') else zone}")
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def received_times(file: str | Path) -> dict[str, datetime]:
    """{student: time in UTC} from a CSV file with the columns `student` and `time`; others are ignored.

    A line with a `note` and no time is left out: `autograder collect` writes such a line for somebody late.
    Raises UserError with the line's number for an invalid time and for a student named twice.
    """
    times: dict[str, datetime] = {}
    for line, row in read_rows(file, COLUMNS):
        student, moment = row["student"], utc(row["time"])
        if not row["time"] and row.get("note"):
            continue
        if moment is None or student in times:
            why = f"{student!r} stands there twice" if moment else f"{row['time'][:40]!r} is no time"
            raise UserError(
                f"{file}, line {line}: {why}; expected one line a student, such as ada,2026-03-02T10:00:00Z"
            )
        times[student] = moment
    return times


def without_time(file: Path) -> list[str]:
    """The students with a note and no time in such a file: somebody still has to enter the time."""
    return [row["student"] for _, row in read_rows(file, COLUMNS) if row.get("note") and not row["time"]]


def exchange_time(folder: Path) -> datetime | None:
    """The time in the timestamp.txt that nbgrader's exchange leaves beside a collected notebook, in UTC.

    None where the file holds no time, is missing, or is not a regular file.
    """
    try:
        handle = os.open(folder / "timestamp.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            text = file.read(LONGEST + 1) if plain else b""
    except OSError:
        return None
    return utc(text.decode("ascii", "replace").strip())
