"""Gives every job one fair share of the processors, however many of its threads are busy.

The kernel does this where each job has a cgroup, or where sessions have their own shares (autogroup: each
worker is its jail's only session). Elsewhere it shares by thread, and a hundred busy threads would leave a
neighbour a hundredth. A step of nice takes a fifth off a thread's weight, so process 1 of a jail raises nice
until all threads together weigh about as much as one. Its maximum, 19, is reached with 36 busy threads.
"""

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autograder.sandbox import cgroup

LAST, STEP = 19, 1.25
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
AT_RISK = (  # 128 threads at nice 19 weigh 3.7 times as much as one thread of a new job
    "the processors are shared out by thread here: a submission with a hundred busy processes gets up to "
    "four times what each of its neighbours gets, and their answers may run into the time limit"
)


def evens_out(student: int, nice: int) -> Callable[..., None]:
    """A signal handler for process 1 of a jail that adapts nice to the number of busy threads.

    student: the uid of the jail's processes. nice: their initial value. It is only ever raised, since
    lowering it needs the machine's root.
    """

    def even_out(*_: object) -> None:
        nonlocal nice
        wanted = min(LAST, start + math.ceil(math.log(max(busy(), 1), STEP)))
        if wanted > nice:
            nice = wanted
            with suppress(OSError):  # a process has just ended, or is at this value already
                os.setpriority(os.PRIO_USER, student, nice)  # reaches processes of this pid namespace only

    start = nice
    return even_out


def busy(proc: str = "/proc") -> int:
    """The number of threads in a pid namespace that run or wait for a processor, without process 1."""
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
    """A warning with the next step where the kernel does not share processors by job; "" where it does.

    Autogroup works only for processes outside every cgroup with a cpu controller.
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
