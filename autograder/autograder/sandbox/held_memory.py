"""How much memory a jail holds where no cgroup counts it: a sum that is never far below the truth.

Pages, page tables and what is swapped out are counted by the kernel. Its own memory for sockets, mappings and
files is counted for no process; how many there are is told, and each is taken for the most that it can
hold. What the seccomp filter closes has no entry here: pipes, descriptors in flight, System V's shared
memory, memfd, and shared memory that outlives its mapping.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.sandbox import view


def _send_buffer() -> int:
    """Bytes that a socket may have under way; setsockopt, which could raise it, is refused."""
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except OSError:  # in a container's network namespace the kernel may not tell
        return 212_992


# what a socket has sent and what was sent to it by another that is closed, each up to half a buffer over
SOCKET = 3 * _send_buffer()
OPEN_FILE = 1024  # struct file and what hangs on it, like a timer
INODE = 1024  # of a temporary file, with its name
TASK = 32 << 10  # kernel stack, struct task_struct
MAPPING = 512  # struct vm_area_struct, its place in the tree, its anon_vma
MOST_MAPPINGS = 65_530  # sysctl vm.max_map_count as most machines have it
# What a second sum may go through, pages that processes share counted for each: more takes seconds, in which
# nobody watches. A hundred idle processes with torch hold 20 GiB so, in 90,000 pieces, and take 0.5 s.
MOST_RESIDENT, MOST_PIECES = 128 << 30, 1_000_000
PAGES = ("RssAnon", "RssShmem", "VmSwap")
TABLES = ("VmPTE", "HugetlbPages")
SHARED_OUT = ("Pss_Anon", "Pss_Shmem", "SwapPss")


@dataclass(frozen=True)
class Held:
    """What one process holds, in bytes. pages: shared ones in full. of_kernel: without its mappings.

    task: folder in /proc of a thread that still has the memory; the first may have ended before the others.
    """

    task: str
    pages: int
    of_kernel: int


def over(limit: int, proc: str = "/proc", folders: Iterable[str] = view.WRITABLE) -> bool:
    """Whether the processes of a pid namespace hold more memory than `limit` bytes.

    proc: the namespace's, folders: the file systems that it can write, both as seen from here.
    A quick upper bound comes first. The second sum counts pages that processes share once, and what they
    share with the warm parent in proportion; it walks page tables. Who has so many processes, mappings and
    shared pages that this would take seconds holds too much.
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
    """The sums of one process; nothing for one that has just gone."""
    task, pages, of_kernel = process, 0, 0
    try:
        threads = os.listdir(f"{process}/task")
    except OSError:
        threads = []
    for thread in threads:
        found = _fields(f"{process}/task/{thread}/status")
        of_kernel += TASK + found.get("FDSize", 0) * OPEN_FILE
        if "RssAnon" in found and not pages:  # threads have one memory
            task = f"{process}/task/{thread}" if thread != os.path.basename(process) else process
            pages = 1024 * sum(found.get(name, 0) for name in PAGES)
            of_kernel += 1024 * sum(found.get(name, 0) for name in TABLES)
    return Held(task, pages, of_kernel)


def _in_proportion(held: Held) -> int:
    """A process's pages with its share of the shared ones; all of them where the kernel does not tell."""
    found = _fields(f"{held.task}/smaps_rollup")
    if not found:  # of a thread that is not the first; or the process has just ended, and holds nothing
        found = _fields(f"{held.task}/status")
        return 1024 * sum(found.get(name, 0) for name in PAGES)
    return 1024 * sum(found.get(name, 0) for name in SHARED_OUT)


def _fields(path: str) -> dict[str, int]:
    """{name: number} of the lines "Name:  123 kB"; nothing where the file has gone."""
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
