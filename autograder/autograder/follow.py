"""How far a run of `autograder grade` is: a bar on a terminal, few lines in a log, JSON for a program."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autograder.grade import Grading, Row
from autograder.workers.happenings import Event, sentence

WAYS = ("auto", "bar", "lines", "json", "none")
QUIET = 60.0  # seconds between two lines of a log that say no more than how far it is
NAMED = 3  # students of those who are judged now


class Pace:
    """Rate and rest, of what was judged in this run; what was taken over from an earlier one took no time."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.clock = total, clock
        self.done = 0
        self.times: deque[float] = deque([clock()], maxlen=31)

    def count(self, fresh: bool) -> None:
        """One more is decided about."""
        self.done += 1
        if fresh:
            self.times.append(self.clock())
        elif len(self.times) == 1:  # the first judgement begins after what is only looked at
            self.times[0] = self.clock()

    @property
    def per_minute(self) -> float:
        """Over the last thirty at most; 0 before the first."""
        seconds = self.clock() - self.times[0]
        return 60 * (len(self.times) - 1) / seconds if seconds > 0 else 0.0

    def text(self) -> str:
        """ "12.5 a minute, about 8 min left"; "" before the first."""
        rate, left = self.per_minute, self.total - self.done
        if not rate:
            return ""
        if not left:
            return f"{rate:.3g} a minute"
        minutes = left / rate
        rest = f"{60 * minutes:.0f} s" if minutes < 2 else f"{minutes:.0f} min"
        return f"{rate:.3g} a minute, about {rest} left"


class Display(Protocol):
    """What a person or a program sees of a run, for as long as it is entered."""

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> None: ...
    def hear(self, event: Event) -> None: ...


class BarOnTerminal:
    """A bar that says who is judged now and who waits; other events scroll by above it."""

    def __init__(self, console: Console, name: str, total: int) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        self.progress = Progress(TextColumn("{task.description}"), *columns, console=console)
        self.pace, self.doing = Pace(total), ""
        self.bar = self.progress.add_task(f"grading {name}", total=total, now="")

    def __enter__(self) -> object:
        return self.progress.__enter__()

    def __exit__(self, *_: object) -> None:
        self.progress.__exit__(None, None, None)

    def hear(self, event: Event) -> None:
        """As it happens."""
        if event["event"] == "decided":
            self.pace.count(event["fresh"])
        self.doing = doing(event) or self.doing
        over = self.pace.done == self.pace.total
        now = "; ".join(filter(None, (self.pace.text(), "" if over else self.doing)))
        self.progress.update(self.bar, completed=self.pace.done, now=now.replace("[", "\\["))
        if told := sentence(event):
            self.progress.console.print(told, markup=False, soft_wrap=True)


class Lines:
    """Lines of a log: what is out of the ordinary, and once a minute how far it is."""

    def __init__(self, console: Console, name: str, total: int) -> None:
        self.console, self.name = console, name
        self.pace, self.last = Pace(total), time.monotonic()

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def hear(self, event: Event) -> None:
        """As it happens."""
        if told := sentence(event):
            self.console.print(told, markup=False, soft_wrap=True)
        if event["event"] == "decided":
            self.pace.count(event["fresh"])
            if time.monotonic() - self.last >= QUIET or self.pace.done == self.pace.total:
                self.last = time.monotonic()
                far = f"{self.name}: {self.pace.done} of {self.pace.total}"
                told = ", ".join(filter(None, (far, self.pace.text())))
                self.console.print(told, markup=False, soft_wrap=True)


class JsonLines(Lines):
    """Each event as one JSON object a line."""

    def hear(self, event: Event) -> None:
        """As it happens."""
        print(json.dumps(event), file=self.console.file, flush=True)


class Silence(Lines):
    """Nothing."""

    def hear(self, event: Event) -> None:
        """Say nothing."""


def doing(event: Event) -> str:
    """Who is judged now and who waits, in words; "" for an event that does not tell."""
    if event["event"] != "judging":
        return ""
    students, queued, for_gpu = event["students"], event["queued"], event["for_gpu"]
    some = ", ".join(students[:NAMED]) + (
        f" and {len(students) - NAMED} more" if len(students) > NAMED else ""
    )
    waiting = f"{queued - for_gpu} wait for a worker" if queued > for_gpu else ""
    gpu = f"{for_gpu} for a GPU" if for_gpu else ""
    return "; ".join(filter(None, (f"now {some}" if some else "", waiting, gpu)))


def follow(console: Console, grading: Grading, how: str = "auto") -> list[Row]:
    """Run a Grading and show how far it is; returns its rows sorted by student. how: one of WAYS."""
    if how == "auto":
        how = "bar" if console.is_terminal else "lines"
    kinds = {"bar": BarOnTerminal, "lines": Lines, "json": JsonLines, "none": Silence}
    display: Display = kinds[how](console, grading.assignment.name, len(grading.submissions))
    grading.happened.listeners.append(display.hear)
    try:
        with display:
            return sorted(grading.rows(), key=lambda row: row.student)
    finally:
        grading.happened.listeners.remove(display.hear)
