"""One jailed process and the judge's end of its channel: what may arrive, how long it may take, how it was lost."""

import math
import select
import time

from autograder.sandbox.launch import LaunchError
from autograder.sandbox.messages import BadMessage, Channel, Closed, Ready

STEP_BYTES = 1 << 30  # that one process may send while it works on one step
STEP_MESSAGES = 250_000
TICK = 0.25


class NotStarted(Exception):
    """A process never began: a fault of this machine, not of the student. Nothing is graded."""


class Lost(Exception):
    """The process is of no use any more. kind: "timeout" or "crashed"; the text is a sentence for the student."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Process:
    """A launched process of one role, a context manager that leaves nothing behind. It starts beside us; the first step waits for it.

    imports: see Launcher. Raises NotStarted if it does not come up, or when the launcher's `stopping` is set.
    """

    def __init__(self, launcher, role, limits, imports=()):
        self.launcher, self.role, self.limits = launcher, role, limits
        self.end = None  # until it is up
        try:
            self.running = launcher.launch(role, limits, imports)
        except LaunchError as problem:
            raise self._not_started(problem) from None
        self.channel = Channel(self.running.channel)

    def _come_up(self):
        self.seconds, self.end = self.limits.start_seconds, math.inf
        self.deadline = time.monotonic() + self.limits.start_seconds
        try:
            self.running.stand()
            self.receive((Ready,))
        except (Lost, LaunchError) as problem:
            raise self._not_started(problem) from None
        self.end = time.monotonic() + self.limits.total_seconds

    def _not_started(self, problem):
        return NotStarted(f"the {self.role}'s process did not come up: {problem}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def let_go(self):
        """Have it killed without waiting for that; it must be closed all the same."""
        self.running.let_go()

    def close(self):
        """Kill the process and all that it started."""
        try:
            self.running.close()
        except LaunchError as problem:
            raise NotStarted(str(problem)) from None

    def begin_step(self, seconds):
        """From now on the process has `seconds` (within its total), and a step's worth of messages."""
        if self.end is None:
            self._come_up()
        self.deadline = min(time.monotonic() + seconds, self.end)
        self.seconds = seconds
        self.channel.allow(STEP_BYTES, STEP_MESSAGES)

    def ask(self, message, allowed):
        """Send one message and wait for one of the types in `allowed`, and nothing after it. Raises Lost."""
        self.send(message)
        reply = self.receive(allowed)
        if self.channel.more():
            raise self.babble("more than one answer to a question")
        return reply

    def send(self, message):
        """Send one message; a process that does not read within its time is lost."""
        self.running.channel.settimeout(max(self.deadline - time.monotonic(), TICK))
        try:
            self.channel.send(message)
        except Closed:
            raise self.lost() from None
        except TimeoutError:
            raise self.late() from None

    def receive(self, allowed):
        """The next message. Raises Lost when time is up, the process ends, or what it says is no such message."""
        while (message := self.take(allowed)) is None:
            self.wait([self])
            self.fill()
        return message

    def take(self, allowed):
        """A message that has arrived, or None. Raises Lost for anything that is not one of `allowed`."""
        try:
            return self.channel.take(allowed)
        except BadMessage as problem:
            raise self.babble(problem) from None

    def fill(self):
        """Read what has arrived. Raises Lost at the end of the channel, and when more comes than a step may send."""
        try:
            self.channel.fill()
        except Closed:
            raise self.lost() from None
        except BadMessage as problem:
            raise self.babble(problem) from None

    @staticmethod
    def wait(processes):
        """Wait until one of several processes has something to read; returns those. Raises Lost or NotStarted."""
        first = processes[0]
        while True:
            if first.launcher.stopping.is_set():
                raise NotStarted("stopped")
            left = min(process.deadline for process in processes) - time.monotonic()
            if left <= 0:
                raise first.late()
            ready = select.select([process.running.channel for process in processes], [], [], min(left, TICK))[0]
            if ready:
                return [process for process in processes if process.running.channel in ready]
            for process in processes:
                if process.running.ended():
                    raise process.lost()

    @staticmethod
    def babble(problem):
        """It said what no worker of ours says."""
        return Lost("crashed", f"the code wrote to the grader's channel what is not an answer: {problem}")

    def late(self):
        """What a process is told whose time is up."""
        if time.monotonic() >= self.end:
            return Lost("timeout", f"all steps together ran longer than the limit of {self.limits.total_seconds:g} s")
        return Lost("timeout", f"ran longer than the limit of {self.seconds:g} s")

    def lost(self):
        """The channel is closed, or the process is gone."""
        patience = time.monotonic() + 5
        while (how := self.running.ended()) is None and time.monotonic() < patience:
            time.sleep(0.01)
        if how is None:
            return Lost("crashed", "the process closed its channel to the grader")
        if how.startswith("exited"):
            return Lost("crashed", f"the code ended its own process (exit status {how.removeprefix('exited ')})")
        return Lost("crashed", f"the process was {how}" + (" (often: out of memory)" if how.endswith("SIGKILL") else ""))
