"""The warm parent: `python -m autograder.sandbox.zygote FD [ROLE...]`.

It has imported what the workers of its roles need, and forks one keeper per job. It holds nothing to steal:
it is started with a clean environment and without descriptors but its socket, never sees a submission, a seed
or an expected value, and never initialises CUDA. A message on the socket is one job as JSON, which names what
it will import, with two descriptors: the worker's channel and the lifeline. When the socket closes it ends.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

import msgspec

from autograder.sandbox import linux, seccomp
from autograder.sandbox.job import JailedJob
from autograder.sandbox.keeper import keep
from autograder.sandbox.launcher import OFTEN, ROLES

# Host uids for jobs when root grades, one for each running job: the kernel's limits count per uid, and two
# jobs never share a count. Between the ids of adduser and systemd and those of containers; where only 16-bit
# ids are mapped, as in a container, between those of adduser and of systemd.
HOST_IDS, FEW_HOST_IDS = range(70_000, 80_000), range(61_000, 61_184)
IDS_IN_USE = "/run/autograder-ids"
PATIENCE = 20.0
TRIED: set[str] = set()  # modules of OFTEN that were imported, or could not be


def serve(control: socket.socket, broken: Mapping[str, str]) -> None:
    """Take jobs until the other end of the socket is gone. broken: {module: why no job can have it}."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's business
    settle()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not data:
            return
        reap()
        job = msgspec.convert(json.loads(data), JailedJob)  # JSON keeps bytes of PATH that are no text
        channel, lifeline = descriptors
        prepare(job.imports)
        if job.module in broken:
            os.write(lifeline, f"failed import of {job.module}: {broken[job.module]}\n".encode())
        else:
            try:
                start(job, channel, lifeline, control)
            except OSError as problem:
                os.write(lifeline, f"failed {problem.strerror} ({problem.filename})\n".encode())
        os.close(channel)
        os.close(lifeline)


def reap() -> None:
    """Take leave of the keepers that have ended, so that their time counts as the grader's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def prepare(modules: Iterable[str]) -> None:
    """Import what the jobs from now on need, as far as it is of OFTEN and can be imported.

    If it cannot, a student's own import tells why.
    """
    fresh = set(modules) & set(OFTEN.values()) - TRIED
    TRIED.update(fresh)
    for name in sorted(fresh):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if fresh:
        look_around()
        settle()


def look_around() -> None:
    """Have libraries look at the machine that do so when they are first used.

    Behind the walls they find no processor, and fail or take slow code with other roundings.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].zeros(1).half().float()


def settle() -> None:
    """Make what is here cheap to fork, and to leave alone: the children's collections pass over it."""
    gc.collect()
    gc.freeze()


def start(job: JailedJob, channel: int, lifeline: int, control: socket.socket) -> None:
    """Fork the keeper of one job, and write its id maps.

    Only a process outside its user namespace may do that.
    """
    mine, mapper = socket.socketpair()
    with mine, mapper, lent_id(job) as host_id:
        keeper = os.fork()
        if keeper == 0:
            try:
                mine.close()
                control.close()
                keep(job, channel, lifeline, mapper)
            finally:
                os._exit(0)
        mapper.close()
        wants_maps = job.jailed and select.select([mine], [], [], PATIENCE)[0] and mine.recv(16)
        if wants_maps:
            with contextlib.suppress(OSError):
                mine.send(write_maps(keeper, job.student, host_id))


@contextlib.contextmanager
def lent_id(job: JailedJob) -> Generator[int | None, None, None]:
    """A host id that no other running job has, None where none is needed or free.

    A lock in a file holds it. The keeper inherits the lock and keeps it to its end, also past ours.
    """
    if not job.jailed or os.geteuid() != 0:
        yield None
        return
    file = os.open(IDS_IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield next((number for number in host_ids() if locked(file, number)), None)
    finally:
        os.close(file)


def host_ids() -> range:
    """The ids to choose from."""
    spans = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    enough = any(first <= HOST_IDS.start and first + length >= HOST_IDS.stop for first, _, length in spans)
    return HOST_IDS if enough else FEW_HOST_IDS


def locked(file: int, number: int) -> bool:
    """Lock byte `number` of a file for as long as this opening of it lasts; False where another has it."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
    except BlockingIOError:
        return False
    return True


def write_maps(pid: int, student: int, host_id: int | None) -> bytes:
    """Give a new user namespace its ids. Returns what the keeper is told: b"mapped", or why not.

    Root keeps 0 for the keeper and gives the student host_id, which owns nothing outside.
    """
    process = Path(f"/proc/{pid}")
    try:
        if os.geteuid() == 0:
            if host_id is None:
                return b"every user id for students is in use"
            text = {"uid_map": f"0 0 1\n{student} {host_id} 1\n"}
            text["gid_map"] = text["uid_map"]
        else:
            text = {
                "setgroups": "deny",
                "uid_map": f"{student} {os.geteuid()} 1\n",
                "gid_map": f"{student} {os.getegid()} 1\n",
            }
        for name, line in text.items():
            (process / name).write_text(line)
    except OSError as problem:
        return f"its ids could not be mapped: {problem.strerror}".encode()
    return b"mapped"


def warm_up(roles: Iterable[str] = ()) -> dict[str, str]:
    """Import what workers need, of some roles or, if none is named, of all.

    Returns {module of a role: why it cannot be imported}.
    """
    broken: dict[str, str] = {}
    for name in [ROLES[role] for role in roles or ROLES]:
        try:
            importlib.import_module(name)
        except ImportError as problem:
            broken[name] = str(problem)
    for gpu in (False, True):
        seccomp.program(gpu)
    return broken


if __name__ == "__main__":
    without = warm_up(sys.argv[2:])
    with socket.socket(fileno=int(sys.argv[1])) as socket_:
        serve(socket_, without)
