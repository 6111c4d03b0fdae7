"""How much memory a jail holds, where no cgroup counts it: an estimate that is never far below the truth.

The kernel reports pages, page tables and swap of each process. It does not report its own memory for sockets,
mappings and files, only their number; each is taken to have the largest possible size. What the seccomp
filter forbids is not counted: pipes, descriptors in flight, System V shared memory, memfd, and shared memory
that outlives its mapping.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.sandbox import view


def _send_buffer() -> int:
    """Bytes that a socket's send buffer may hold; the filter refuses setsockopt, which could raise it."""
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except OSError:  # in a container's network namespace the kernel may not tell
        return 212_992


# its own send buffer, and that of a closed peer whose data it still holds; each may overrun by half
SOCKET = 3 * _send_buffer()
OPEN_FILE = 1024  # struct file and what belongs to it, such as a timer
INODE = 1024  # of a temporary file, with its name
TASK = 32 << 10  # kernel stack, struct task_struct
MAPPING = 512  # struct vm_area_struct, its place in the tree, its anon_vma
MOST_MAPPINGS = 65_530  # the usual sysctl vm.max_map_count
# Limits of the exact second sum in over(), shared pages counted once for each process: beyond them it would
# take seconds, in which nothing watches the job. A hundred idle processes with torch have 20 GiB resident in
# this sense, in 90,000 mappings, and take 0.5 s.
MOST_RESIDENT, MOST_PIECES = 128 << 30, 1_000_000
PAGES = ("RssAnon", "RssShmem", "VmSwap")
TABLES = ("VmPTE", "HugetlbPages")
SHARED_OUT = ("Pss_Anon", "Pss_Shmem", "SwapPss")


@dataclass(frozen=True)
class Held:
    """What one process holds, in bytes. pages: shared ones counted in full. of_kernel: kernel memory except
    for mappings.

    task: the folder in /proc of a thread that still has the memory; the first thread may have ended.
    """

    task: str
    pages: int
    of_kernel: int


def over(limit: int, proc: str = "/proc", folders: Iterable[str] = view.WRITABLE) -> bool:
    """Whether the processes of a pid namespace hold more memory than `limit` bytes.

    proc: the namespace's /proc. folders: the file systems it can write to. Both as seen by this process.
    A quick upper bound comes first. If that is above the limit, a second, slower sum counts shared pages in
    proportion. A job with so many processes, mappings and shared pages that this would take seconds counts as
    over the limit.
    """
    try:
        pids = [name for name in os.listdir(proc) if name.isdigit() and name != "1"]
    except OSError:  # the namespace has just ended
        return False
    beside = SOCKET * _lines(f"{proc}/1/net/unix") + INODE * sum(map(_files, folders))
    every = [_held(f"{proc}/{pid}") for pid in pids]
    beside += sum(held.of_kernel for held in every)
    if beside + sum(held.pages + MOST_MAPPINGS * MAPPING for held in every) <= limit:
        return False
    if sum(held.pages for held in every) > MOST_RESIDENT:
        return True
    pieces = 0
    for held in every:
        found = _lines(f"{held.task}/maps")
        pieces += found
        beside += _in_proportion(held) + MAPPING * found
        if beside > limit or pieces > MOST_PIECES:
            return True
    return False


def _held(process: str) -> Held:
    """The sums of one process; zeros for one that has just ended."""
    task, pages, of_kernel = process, 0, 0
    try:
        threads = os.listdir(f"{process}/task")
    except OSError:
        threads = []
    for thread in threads:
        found = _fields(f"{process}/task/{thread}/status")
        of_kernel += TASK + found.get("FDSize", 0) * OPEN_FILE
        if "RssAnon" in found and not pages:  # threads share their memory
            task = f"{process}/task/{thread}" if thread != os.path.basename(process) else process
            pages = 1024 * sum(found.get(name, 0) for name in PAGES)
            of_kernel += 1024 * sum(found.get(name, 0) for name in TABLES)
    return Held(task, pages, of_kernel)


def _in_proportion(held: Held) -> int:
    """Bytes of a process's pages, shared ones in proportion; in full where the kernel does not tell."""
    found = _fields(f"{held.task}/smaps_rollup")
    if not found:  # only a first thread has this file; or the process has just ended, and holds nothing
        found = _fields(f"{held.task}/status")
        return 1024 * sum(found.get(name, 0) for name in PAGES)
    return 1024 * sum(found.get(name, 0) for name in SHARED_OUT)


def _fields(path: str) -> dict[str, int]:
    """{name: number} of the lines "Name:  123 kB"; {} where the file has gone."""
    try:
        text = Path(path).read_text()
    except OSError:
        return {}
    lines = (line.split() for line in text.splitlines())
    return {words[0][:-1]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _lines(path: str) -> int:
    """How many lines a file has; 0 where it has gone."""
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def _files(folder: str) -> int:
    """How many files there are in the file system of a folder."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_files - found.f_ffree
