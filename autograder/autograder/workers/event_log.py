"""The events of a run, in order: written to a log, and passed on to listeners such as the progress bar."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Event = dict[str, Any]

# how each event is shown to a person; events without a sentence are in the log only
SENTENCES = {
    "waiting": "waiting for {for_what}",
    "workers": "{judging} of {workers} workers may judge, {threads} submissions at a time",
    "refused": "worker {worker} may not judge: {reason}",
    "worker-joined": "worker {worker} joined",
    "worker-left": "worker {worker} left; what it was judging is judged again by another",
    "again": "{student} is judged again: {reason}",
}


class EventLog:
    """Passes each event to its listeners and appends it to a file, one JSON object a line.

    file: None for no log yet; `log_to` begins one with the events until then.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.early: list[Event] = []
        self.listeners: list[Callable[[Event], None]] = []

    def log_to(self, file: Path) -> None:
        """Write the events so far, and from now on all events, to this file. Raises OSError."""
        self.file, early, self.early = file, self.early, []
        for told in early:
            self._log(told)

    def tell(self, event: str, **about: Any) -> None:
        """Record an event. about: its fields, JSON data. Raises OSError if the log cannot be written."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told: Event = {"time": time, "event": event} | about
        self._log(told)
        for listener in self.listeners:
            listener(told)

    def _log(self, told: Event) -> None:
        if self.file is None:
            self.early.append(told)
            return
        with open(self.file, "a", encoding="utf-8") as log:
            log.write(json.dumps(told) + "\n")


def sentence(event: Event) -> str | None:
    """An event in words; None for one that is in the log only."""
    if event["event"] == "decided" and event["status"] == "not graded":
        return f"{event['student']} is set aside, for the next run: {event['reason']}"
    form = SENTENCES.get(event["event"])
    return form.format(**event) if form else None
