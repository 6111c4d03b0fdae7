"""A cgroup (version 2) for each job, where this user may make one.

In it the kernel counts the memory and processes of the whole job exactly and, with the cpu controller, shares
the processors job by job. Elsewhere (version 1, a login without delegation) the keeper's sums and rlimits do
that, and share.py takes care of the processors.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from autograder.sandbox.limits import Limits

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = frozenset(("memory", "pids"))
WISHED = "cpu", "memory", "pids"
# files that not every kernel has; the judge's own cpu.weight is the default, 100
OPTIONAL = {"memory.swap.max": "0", "cpu.weight": "50"}


def place(mount: Path = MOUNT, controllers: AbstractSet[str] = CONTROLLERS) -> Path | None:
    """The nearest cgroup, at or above this process's own, in which it may make child cgroups and enter them.

    None if there is no such cgroup with these controllers.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = mount / next(line for line in lines if line.startswith("0::")).removeprefix("0::").lstrip("/")
        for folder in (own, *own.parents):
            given = (folder / "cgroup.subtree_control").read_text().split()
            may = all(os.access(one, os.W_OK) for one in (folder, folder / "cgroup.procs"))
            if may and controllers <= set(given):
                return folder
            if folder == mount:
                break
    except (OSError, StopIteration):
        pass
    return None


def name() -> str:
    """How jobs are limited here, in words: "cgroup", what it lacks, or what replaces it."""
    folder = place()
    if folder is None:
        return "memory summed without a cgroup"
    given = (folder / "cgroup.subtree_control").read_text().split()
    return "cgroup" if "cpu" in given else "cgroup without shares of the processors"


def next_step() -> str:
    """What to do so that place() finds a cgroup, as one sentence without a full stop."""
    if not (MOUNT / "cgroup.controllers").exists():
        return "This system has no cgroups of version 2, as Linux with systemd 247 or later has"
    if os.geteuid() == 0 and not os.path.isdir("/run/systemd/system"):
        wished = " ".join(f"+{name}" for name in WISHED)
        return f"echo '{wished}' > {MOUNT}/cgroup.subtree_control"
    whose = "" if os.geteuid() == 0 else "--user "
    return f"Start it by systemd-run {whose}--scope -p Delegate='{' '.join(WISHED)}' autograder grade ..."


class Cgroup:
    """One job's cgroup inside `folder`. settings: {file: text}. The keeper makes it and stays outside it."""

    def __init__(self, folder: Path, settings: Mapping[str, str], name: str = "") -> None:
        self.name = name or f"autograder-{os.getpid()}"
        self.parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.mkdir(self.name, dir_fd=self.parent)
        for file, text in settings.items():
            self._write(file, text)
        for file, text in OPTIONAL.items():
            with contextlib.suppress(FileNotFoundError):
                self._write(file, text)
        self.procs = os.open(f"{self.name}/cgroup.procs", os.O_WRONLY, dir_fd=self.parent)

    def enter(self) -> None:
        """Move the calling process into the cgroup; its future children start in it."""
        os.write(self.procs, b"0")

    def ran_out(self) -> bool:
        """Whether the kernel has killed a process of this cgroup for exceeding memory.max."""
        try:
            with open(os.open(f"{self.name}/memory.events", os.O_RDONLY, dir_fd=self.parent)) as events:
                return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in events)
        except OSError:
            return False

    def processor_seconds(self) -> float:
        """Processor time of all processes that were ever in this cgroup."""
        with open(os.open(f"{self.name}/cpu.stat", os.O_RDONLY, dir_fd=self.parent)) as lines:
            return int(next(line for line in lines if line.startswith("usage_usec ")).split()[1]) / 1e6

    def remove(self) -> None:
        """Remove the cgroup, waiting up to two seconds until no process is left in it."""
        for _ in range(200):
            try:
                os.rmdir(self.name, dir_fd=self.parent)
                return
            except OSError:
                time.sleep(0.01)  # a reaped process leaves its cgroup a moment later

    def _write(self, file: str, text: str) -> None:
        descriptor = os.open(f"{self.name}/{file}", os.O_WRONLY, dir_fd=self.parent)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def for_job(limits: Limits) -> Cgroup | None:
    """A Cgroup with a job's limits; None where none can be made.

    memory.max includes disk_mib, as the job's temporary files are on a tmpfs.
    """
    folder = place()
    settings = {
        "memory.max": str(limits.memory_mib + limits.disk_mib << 20),
        "memory.oom.group": "1",
        "pids.max": str(limits.processes + 1),  # and process 1
    }
    return Cgroup(folder, settings) if folder else None
