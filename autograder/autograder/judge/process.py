"""One sandboxed process, seen from the judge: what arrives is checked, limits are kept, its end explained."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterable, Sequence

from autograder.judge.budget import Budget, Lost, UsedUp
from autograder.sandbox.forked import Launcher
from autograder.sandbox.launcher import StartError
from autograder.sandbox.messages import (
    Allowance,
    BadMessage,
    Broken,
    Channel,
    Closed,
    Kind,
    Message,
    Ready,
    TooMuch,
)

TICK = 0.25  # seconds between two looks at deadlines and at whether the process lives


class NotStarted(Exception):
    """A process could not be started: a fault of this machine, not of the student. Nothing is graded."""


def let_all_go(processes: Iterable[Process]) -> None:
    """Have several processes killed at once, so that closing them one by one waits less."""
    for process in processes:
        process.let_go()


class Process:
    """A launched process of one role; a context manager that kills it and all its children at the end.

    It starts in the background; the first begin_step() waits until it is up. budget: shared with the
    submission's other processes. ranks: among how many simultaneous processes memory, disk and process limits
    are divided. imports: see Launcher. Raises NotStarted if the process does not start, or when the
    launcher's `stopping` is set, and UsedUp where the budget has no time left.
    """

    def __init__(
        self, launcher: Launcher, role: str, budget: Budget, imports: tuple[str, ...] = (), ranks: int = 1
    ) -> None:
        self.launcher, self.role, self.budget = launcher, role, budget
        self.up = self.closed = False
        self.seconds, self.deadline = budget.limits.start_seconds, math.inf
        try:
            self.running = launcher.launch(role, budget.for_a_process().shared_by(ranks), imports)
        except StartError as problem:
            raise self._not_started(problem) from None
        self.running.channel.settimeout(TICK)
        self.channel = Channel(self.running.channel)

    def _come_up(self) -> None:
        """Wait until the process is up, and start the budget's clock."""
        self.seconds = self.budget.for_a_process().start_seconds
        self.deadline = time.monotonic() + self.seconds
        try:
            self.running.stand()
            self.receive((Ready,))
        except (Lost, StartError) as problem:
            self.budget.left()
            raise self._not_started(problem) from None
        self.up = True
        self.budget.start()

    def _not_started(self, problem: Lost | StartError) -> NotStarted:
        return NotStarted(f"the {self.role}'s process did not come up: {problem}")

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def let_go(self) -> None:
        """Have the process killed without waiting; close() is still needed."""
        self.running.let_go()

    def close(self) -> None:
        """Kill the process and its children, and take its processor time off the budget."""
        if self.closed:
            return
        self.closed = True
        try:
            self.running.close()
        except StartError as problem:
            raise NotStarted(str(problem)) from None
        self.budget.processor_seconds -= self.running.processor_seconds()

    def begin_step(self, seconds: float, shared: Allowance | None = None) -> None:
        """Begin a step: it may take `seconds` (within the budget) and send a step's share of the messages.

        shared: that share, where several processes work on one step.
        """
        if not self.up:
            self._come_up()
        left = self.budget.left()
        self.seconds, self.deadline = seconds, time.monotonic() + min(seconds, left)
        self.channel.allowances = (self.budget.allowance, shared or self.budget.for_a_step())

    def ask(self, message: Message, allowed: tuple[type[Kind], ...]) -> Kind:
        """Send one message and return the one answer, of a type in `allowed`. Raises Lost for any other."""
        self.send(message)
        reply = self.receive((*allowed, Broken) if self.role == "executor" else allowed)
        if self.channel.more():
            raise self.not_an_answer("more than one answer to a question")
        if isinstance(reply, Broken):
            raise Lost("crashed", reply.error)
        return reply

    def send(self, message: Message) -> None:
        """Send one message. Raises Lost if the process does not read it in time."""
        try:
            self.channel.send(message, self.in_time)
        except Closed:
            raise self.lost() from None

    def receive(self, allowed: tuple[type[Kind], ...]) -> Kind:
        """Wait for the next message.

        Raises Lost when time is up, when the process ends, and for a message of another type.
        """
        while (message := self.take(allowed)) is None:
            self.in_time()
            try:
                self.fill()
            except TimeoutError:
                self.wait([self])
        return message

    def take(self, allowed: tuple[type[Kind], ...]) -> Kind | None:
        """The next message if it has arrived, else None. Raises Lost for one of another type."""
        try:
            return self.channel.take(allowed)
        except BadMessage as problem:
            raise self._refused(problem) from None

    def fill(self) -> None:
        """Read what has arrived into the channel's buffer.

        Raises Lost at the end of the channel, and when more arrives than a step may send.
        """
        try:
            self.channel.fill()
        except Closed:
            raise self.lost() from None
        except BadMessage as problem:
            raise self._refused(problem) from None

    def _refused(self, problem: BadMessage) -> Lost:
        if not isinstance(problem, TooMuch):
            return self.not_an_answer(problem)
        return self.budget.too_much() or Lost(
            "crashed", f"{problem} than one step may send: does a loop never end?"
        )

    def in_time(self) -> None:
        """Raise Lost if the deadline has passed."""
        if time.monotonic() >= self.deadline:
            raise self.late()

    @staticmethod
    def wait(processes: Sequence[Process]) -> list[Process]:
        """Wait until at least one of several processes has sent something; returns those that have.

        Raises Lost at the first deadline and if one has ended, NotStarted if the run is being stopped.
        """
        first = processes[0]
        while True:
            if first.launcher.stopping.is_set():
                raise NotStarted("stopped")
            left = min(process.deadline for process in processes) - time.monotonic()
            if left <= 0:
                raise first.late()
            channels = [process.running.channel for process in processes]
            ready, _, _ = select.select(channels, [], [], min(left, TICK))
            if ready:
                return [process for process in processes if process.running.channel in ready]
            for process in processes:
                if process.running.ended():
                    raise process.lost()

    @staticmethod
    def not_an_answer(problem: object) -> Lost:
        """The Lost for a message that breaks the protocol, which only a student's code can have written."""
        return Lost("crashed", f"the code sent the grader a message that breaks its protocol: {problem}")

    def late(self) -> Lost:
        """The Lost for a step whose time is up."""
        try:
            self.budget.left()
        except UsedUp as problem:
            return problem
        return Lost("timeout", f"ran longer than the limit of {self.seconds:g} s")

    def lost(self) -> Lost:
        """The Lost for a closed channel or an ended process; waits a moment to learn how it ended."""
        patience = time.monotonic() + 5
        while (how := self.running.ended()) is None and time.monotonic() < patience:
            time.sleep(0.01)
        if how is None:
            return Lost("crashed", "the process closed its channel to the grader")
        if how == "killed (processor time)":
            return self.budget.out_of_processor_time()
        if how.startswith("exited"):
            status = how.removeprefix("exited ")
            return Lost("crashed", f"the code ended its own process (exit status {status})")
        often = " (often: out of memory)" if how.endswith("SIGKILL") else ""
        return Lost("crashed", f"the process was {how}{often}")
