"""Progress of a run of `autograder grade`: a bar on a terminal, occasional lines in a log file.

For programs, OUT/log.jsonl has each event as one JSON object.
"""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autograder.grade import Grading, Row
from autograder.user_error import first_few, tell
from autograder.workers.event_log import Event, sentence

QUIET = 60.0  # seconds between two progress lines in a log


class Follower:
    """Shows the events of one run: anything unusual as it happens, and the progress.

    The rate and the time left count only what was judged in this run, not results kept from an earlier one.
    """

    def __init__(self, console: Console, name: str, total: int) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        text = TextColumn("{task.description}")
        self.progress = Progress(text, *columns, console=console, disable=not console.is_terminal)
        self.bar = self.progress.add_task(f"grading {name}", total=total, now="")
        self.console, self.name, self.total = console, name, total
        self.done, self.doing, self.last = 0, "", time.monotonic()
        self.judged, self.since = 0, time.monotonic()

    def hear(self, event: Event) -> None:
        """Show one event; registered as a listener of the run's EventLog."""
        if event["event"] == "decided":
            self.done += 1
            self.judged += event["fresh"]
            if not self.judged:  # the clock starts once the results kept from earlier runs are through
                self.since = time.monotonic()
        self.doing = doing(event) or self.doing
        over = self.done == self.total
        now = "; ".join(filter(None, (self.pace(), "" if over else self.doing)))
        self.progress.update(self.bar, completed=self.done, now=now.replace("[", "\\["))
        if told := sentence(event):
            tell(self.console, told)
        late = over or time.monotonic() - self.last >= QUIET
        if self.progress.disable and event["event"] == "decided" and late:
            self.last = time.monotonic()
            far = f"{self.name}: {self.done} of {self.total}"
            tell(self.console, ", ".join(filter(None, (far, self.pace()))))

    def pace(self) -> str:
        """ "12.5 a minute, about 8 min left"; "" before the first."""
        seconds, left = time.monotonic() - self.since, self.total - self.done
        if not self.judged or seconds <= 0:
            return ""
        each = seconds / self.judged
        rest = f"{each * left:.0f} s" if each * left < 120 else f"{each * left / 60:.0f} min"
        return f"{60 / each:.3g} a minute" + (f", about {rest} left" if left else "")


def doing(event: Event) -> str:
    """Who is being judged and how many wait, in words; "" for an event without that information."""
    if event["event"] != "judging":
        return ""
    students, queued = event["students"], event["queued"]
    waiting = f"{queued} wait for a worker" if queued else ""
    return "; ".join(filter(None, (f"now {first_few(students)}" if students else "", waiting)))


def follow(console: Console, grading: Grading) -> list[Row]:
    """Run a Grading, showing its progress; returns its rows sorted by student."""
    follower = Follower(console, grading.assignment.name, len(grading.submissions))
    grading.events.listeners.append(follower.hear)
    with follower.progress:
        return sorted(grading.rows(), key=lambda row: row.student)
