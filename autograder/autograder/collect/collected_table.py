"""What `autograder collect` was asked, checked, and what it prints."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.collect.intake import Collected
from autograder.collect.platforms import checked_pattern
from autograder.collect.repositories import PROTOCOLS
from autograder.receipt import utc
from autograder.user_error import UserError


def options(pattern: str | None, protocol: str, deadline: str | None) -> dict[str, Any]:
    """The options of the command as collect() takes them. Raises UserError."""
    moment = utc(deadline) if deadline else None
    if deadline and moment is None:
        raise UserError(f"--deadline {deadline!r} is no time; expected one such as 2026-03-01T23:59Z")
    if protocol not in PROTOCOLS:
        raise UserError(f"--protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    try:
        return {
            "pattern": checked_pattern(pattern) if pattern else None,
            "protocol": protocol,
            "deadline": moment,
        }
    except ValueError as problem:
        raise UserError(f"--pattern cannot be used: {problem}") from None


def show(console: Console, rows: list[Collected], times: Path, assignment: str) -> None:
    """One line a student, and what comes next."""
    table = Table(title=f"{assignment}, collected", title_justify="left")
    for name in ("student", "", "from", "note"):
        table.add_column(name)
    for row in rows:
        table.add_row(*(Text(text) for text in (row.student, row.state, row.place, row.why)))
    console.print(table)
    counts = {
        state: sum(row.state == state for row in rows)
        for state in ("new", "replaced", "unchanged", "refused")
    }
    console.print(
        ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "nothing found"
    )
    console.print(f"next: autograder grade {assignment} --received {times}", markup=False, soft_wrap=True)
