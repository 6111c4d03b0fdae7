"""Checks the options of `autograder collect`, and words what it prints."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from autograder.collect.handed_in import CollectOptions
from autograder.collect.intake import TAKEN, Collection
from autograder.collect.platforms import checked_pattern
from autograder.collect.repositories import PROTOCOLS
from autograder.receipt import received_times, utc
from autograder.user_error import UserError, first_few


def options(pattern: str | None, protocol: str, deadline: str | None) -> CollectOptions:
    """The options of the command, checked. Raises UserError."""
    moment = utc(deadline) if deadline else None
    if deadline and moment is None:
        raise UserError(f"--deadline {deadline!r} is no time; expected one such as 2026-03-01T23:59Z")
    if protocol not in PROTOCOLS:
        raise UserError(f"--protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    return CollectOptions(checked_pattern(pattern) if pattern else None, protocol, moment)


def told(found: Collection, assignment: str, shown: Callable[[Path], Path]) -> Iterator[str]:
    """The lines below the table: counts, each file that was not taken, the next step.

    shown: shortens a path for printing.
    """
    counts = Counter(row.state for row in found.rows if row.state != "nothing")
    yield (
        ", ".join(f"{counts[state]} {state}" for state in (*TAKEN, "refused") if counts[state])
        or ("no work" if found.asking else "nothing found")
    )
    for place, why in found.left:
        yield f"not taken: {place}: {why}"
    count = found.taken + len(found.left)
    yield f"{count} file{'s' * (count != 1)}: {found.taken} taken, {len(found.left)} not"
    if found.asking:
        yield f"asking for a regrade: {', '.join(found.asking)}; see autograder requests {assignment}"
    times = shown(found.times)
    if found.names:
        yield (
            f"files of an unknown student are listed in {shown(found.names)}: enter whose they are there "
            "(several students with ; between) and collect again"
        )
    if found.late:
        yield f"late without a time: {first_few(found.late)}; enter times in {times}, or nothing is taken off"
    timed = f" --received {times}" if found.late or received_times(found.times) else ""
    yield f"next: autograder grade {assignment}{timed}"
