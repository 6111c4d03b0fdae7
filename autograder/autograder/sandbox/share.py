"""A job is one share of the processors, however many of its threads are busy.

The kernel sees to it where each job has a cgroup, or where sessions have shares of their own (autogroup: each
worker is the only session of its jail). Elsewhere it shares out by thread, and a hundred busy threads would
leave a neighbour a hundredth. Each step of nice takes a fifth off a thread's weight, so process 1 of a jail
raises it until all of them weigh about as much as one; the last step, 19, is reached by 36.
"""

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autograder.sandbox import cgroup

LAST, STEP = 19, 1.25
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
AT_RISK = (  # 128 threads at the last step weigh 3.7 times as much as one as it starts
    "the processors are shared out by thread here: a submission with a hundred busy processes gets up to "
    "four times what each of its neighbours gets, and their answers may run into the time limit"
)


def evens_out(student: int, nice: int) -> Callable[..., None]:
    """What process 1 of a jail calls often. nice: of the student's processes as they start.

    Nobody but the machine's root can take it back, so that it holds to the end of the jail.
    """

    def even_out(*_: object) -> None:
        nonlocal nice
        wanted = min(LAST, start + math.ceil(math.log(max(busy(), 1), STEP)))
        if wanted > nice:
            nice = wanted
            with suppress(OSError):  # of one that is there already, or has just ended
                os.setpriority(os.PRIO_USER, student, nice)  # in this pid namespace, and in no other

    start = nice
    return even_out


def busy(proc: str = "/proc") -> int:
    """How many threads of a pid namespace run, or wait for a processor; without process 1."""
    found = 0
    with suppress(OSError):
        for pid in filter(str.isdigit, os.listdir(proc)):
            with suppress(OSError):  # it has just ended
                threads = [] if pid == "1" else os.listdir(f"{proc}/{pid}/task")
                found += sum(_runs(f"{proc}/{pid}/task/{thread}/stat") for thread in threads)
    return found


def _runs(stat: str) -> bool:
    try:
        with open(stat, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"R"
    except OSError:
        return False


def at_risk(mount: Path = cgroup.MOUNT, setting: Path = AUTOGROUP, proc: Path = Path("/proc/self")) -> str:
    """What to expect, and what to do, where the kernel does not share out by job; "" where it does.

    Sessions have shares only outside every cgroup that the processors are shared out to.
    """
    if cgroup.name() == "cgroup":
        return ""
    cure = cgroup.next_step()
    with suppress(OSError):
        groups = [line.split(":", 2)[1:] for line in (proc / "cgroup").read_text().splitlines()]
        if not any(
            path != "/"
            if "cpu" in which.split(",")
            else not which and (mount / path[1:] / "cpu.weight").exists()
            for which, path in groups
        ):
            if setting.read_text().strip() == "1":
                return ""
            cure = f"sudo sysctl kernel.sched_autogroup_enabled=1, or: {cure}"
    return f"{AT_RISK}. {cure}"
