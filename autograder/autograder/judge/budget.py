"""What is left of one submission's limits, and the exceptions for a process that is lost."""

import math
import time
from dataclasses import replace

from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import Allowance

STEP_SHARE = 4  # a step may use a quarter of the messages


class Lost(Exception):
    """A process crashed, ran out of time or broke the protocol. The text is a sentence for the student.

    kind: "timeout" or "crashed".
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class UsedUp(Lost):
    """The submission's whole budget of time, processor time or messages is used up."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(
            kind, f"this submission's total of {what} is used up; what was finished before counts"
        )


class Budget:
    """The limits that all processes of one submission share, over all attempts, crossings and ranks.

    end: when its time is up, by time.monotonic(). The clock starts when the first process is up, so that a
    slow start costs the student nothing. processor_seconds: how many are left. allowance: the messages that
    may still arrive.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.end = limits, math.inf
        self.processor_seconds = limits.processor_seconds
        self.allowance = Allowance(limits.message_mib << 20, limits.messages)

    def start(self) -> None:
        """Start the clock unless it runs already."""
        if self.end == math.inf:
            self.end = time.monotonic() + self.limits.total_seconds

    def left(self) -> float:
        """Seconds of wall-clock time that are left. Raises UsedUp if time or processor time is used up."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise UsedUp("timeout", f"{self.limits.total_seconds:g} s")
        if self.processor_seconds <= 0:
            raise self.out_of_processor_time()
        return min(left, self.limits.total_seconds)

    def for_a_process(self) -> Limits:
        """The limits of a process that starts now. Raises UsedUp."""
        if self.end == math.inf:
            return self.limits
        left = self.left()
        start_seconds = min(self.limits.start_seconds, left)
        return replace(
            self.limits,
            total_seconds=left,
            start_seconds=start_seconds,
            processor_seconds=self.processor_seconds,
        )

    def for_a_step(self) -> Allowance:
        """The messages that one step may send, within the total."""
        return Allowance((self.limits.message_mib << 20) // STEP_SHARE, self.limits.messages // STEP_SHARE)

    def out_of_processor_time(self) -> UsedUp:
        """The UsedUp for processor time."""
        return UsedUp("timeout", f"{self.limits.processor_seconds:g} s of processor time")

    def too_much(self) -> UsedUp | None:
        """The UsedUp for messages, or None while the submission may send more."""
        if self.allowance.bytes < 0:
            return UsedUp("crashed", f"{self.limits.message_mib:,} MiB of messages")
        if self.allowance.messages < 0:
            return UsedUp("crashed", f"{self.limits.messages:,} messages")
        return None
