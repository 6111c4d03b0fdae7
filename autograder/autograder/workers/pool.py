"""Where submissions are judged: the interface, and threads of this machine behind it."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

import warplab
from autograder.judge.judge import legible
from autograder.sandbox import Launcher
from autograder.validate import Malformed
from autograder.workers.commission import Commission
from autograder.workers.happenings import Happenings
from autograder.workers.interrupts import stop_if_asked
from autograder.workers.machine_judge import MachineJudge
from autograder.workers.ruling import Ruling, fault_of, read_ruling, without_grade

MOMENT = 0.2  # seconds of waiting until Ctrl-C is looked for

Rulings = Generator[tuple[Commission, Ruling], None, None]


class Pool(Protocol):
    """Judges submissions somewhere.

    isolation: how student code runs there. device: name and architecture of what timed rows are timed on.
    """

    isolation: str
    device: tuple[str, str]

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """Judge all of `todo`, in about its order, until it is empty.

        Closing it stops what runs as soon as that can be.
        """
        ...


class Threads:
    """Threads of this process, `jobs` submissions at a time."""

    def __init__(self, launcher: Launcher, jobs: int = 1) -> None:
        self.judge, self.jobs = MachineJudge(launcher), max(1, jobs)
        self.isolation = launcher.isolation
        device = warplab.device()
        self.device = device.name, device.arch

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        pool, stopping = ThreadPoolExecutor(self.jobs), self.judge.launcher.stopping
        running: dict[Future[Ruling], Commission] = {}
        try:
            while todo or running:
                while todo and len(running) < self.jobs:
                    one = todo.popleft()
                    running[pool.submit(self._rule, one)] = one
                    names = [other.student for other in running.values()]
                    happened.tell("judging", students=names, queued=len(todo))
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
        except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade, not the others'
            return of_a_file(one, problem)


def of_a_file(one: Commission, problem: Exception) -> Ruling:
    """What is said of a submission that did not come to be judged."""
    if isinstance(problem, Malformed):
        return Ruling(one.id, "malformed", legible(str(problem)))
    return without_grade(one.id, fault_of(problem))
