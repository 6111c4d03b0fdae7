"""The interface of places where submissions are judged, and its implementation by threads of this machine."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

import warplab
from autograder.judge.judge import legible
from autograder.sandbox import Launcher
from autograder.validate import Malformed
from autograder.workers.commission import Commission
from autograder.workers.event_log import EventLog
from autograder.workers.interrupts import stop_if_asked
from autograder.workers.machine_judge import MachineJudge
from autograder.workers.ruling import Ruling, fault_of, read_ruling, without_grade

MOMENT = 0.2  # seconds between two checks for Ctrl-C

Rulings = Generator[tuple[Commission, Ruling], None, None]


class Pool(Protocol):
    """A place where submissions are judged.

    isolation: how student code runs there. device: (name, architecture) of the device for timed rows.
    """

    isolation: str
    device: tuple[str, str]

    def rulings(self, todo: deque[Commission], events: EventLog) -> Rulings:
        """Judge all of `todo`, roughly in order, taking items off it; yields each ruling when it is ready.

        Closing the generator stops running work as soon as possible.
        """
        ...


class Threads:
    """Threads of this process, `jobs` submissions at a time."""

    def __init__(self, launcher: Launcher, jobs: int = 1) -> None:
        self.judge, self.jobs = MachineJudge(launcher), max(1, jobs)
        self.isolation = launcher.isolation
        device = warplab.device()
        self.device = device.name, device.arch

    def rulings(self, todo: deque[Commission], events: EventLog) -> Rulings:
        """As in Pool."""
        pool, stopping = ThreadPoolExecutor(self.jobs), self.judge.launcher.stopping
        running: dict[Future[Ruling], Commission] = {}
        try:
            while todo or running:
                while todo and len(running) < self.jobs:
                    one = todo.popleft()
                    running[pool.submit(self._rule, one)] = one
                    names = [other.student for other in running.values()]
                    events.tell("judging", students=names, queued=len(todo))
                stop_if_asked()
                for future in wait(running, MOMENT, FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
            stopping.clear()

    def _rule(self, one: Commission) -> Ruling:
        try:
            answer = self.judge.rule(one.conditions, one.notebook()).as_bytes()
            return read_ruling(answer, one.id, one.conditions.assignment)
        except Exception as problem:  # noqa: BLE001 - an unforeseen error costs one grade, not the run
            return ruling_without_judging(one, problem)


def ruling_without_judging(one: Commission, problem: Exception) -> Ruling:
    """The ruling on a submission that could not be judged: malformed, or not graded for another error."""
    if isinstance(problem, Malformed):
        return Ruling(one.id, "malformed", legible(str(problem)))
    return without_grade(one.id, fault_of(problem))
