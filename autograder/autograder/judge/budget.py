"""What is left of one submission's limits, and how a process of it is lost."""

import math
import time
from dataclasses import replace

from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import Allowance

STEP_SHARE = 4  # a step may use a quarter of the messages


class Lost(Exception):
    """A process is of no use any more. The text is a sentence for the student.

    kind: "timeout" or "crashed".
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class UsedUp(Lost):
    """The submission has nothing left to go on with."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(
            kind, f"this submission's total of {what} is used up; what was finished before counts"
        )


class Budget:
    """All processes of one submission draw on it, whichever attempt, crossing or rank they belong to.

    end: when its time is up, by time.monotonic(). The clock starts when its first process is up: what comes
    before is the machine's. processor_seconds: what is left of them. allowance: the messages that may still
    come.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.end = limits, math.inf
        self.processor_seconds = limits.processor_seconds
        self.allowance = Allowance(limits.message_mib << 20, limits.messages)

    def start(self) -> None:
        """Start the clock, if it does not run."""
        if self.end == math.inf:
            self.end = time.monotonic() + self.limits.total_seconds

    def left(self) -> float:
        """Seconds. Raises UsedUp where there are none."""
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
        """How a submission ends that has used up its processor time."""
        return UsedUp("timeout", f"{self.limits.processor_seconds:g} s of processor time")

    def too_much(self) -> UsedUp | None:
        """How the submission ends that has sent its last message; None where it has not."""
        if self.allowance.bytes < 0:
            return UsedUp("crashed", f"{self.limits.message_mib:,} MiB of messages")
        if self.allowance.messages < 0:
            return UsedUp("crashed", f"{self.limits.messages:,} messages")
        return None
