"""The warm parent: `python -m autograder.sandbox.zygote FD [ROLE...]`.

It has imported what the workers of its roles need, and forks one keeper per job. It has no secrets: it starts
with a clean environment and no descriptor but its socket, never sees a submission, a seed or an expected
value, and never initialises CUDA. A message on the socket is one job (JailedJob) as JSON, with two
descriptors: the worker's channel and the lifeline. It exits when the socket closes.
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

# Host uids for jobs when root grades, a different one for each running job, since the kernel's limits count
# per uid. The range lies between the ids of adduser and systemd and those of containers; where only 16-bit
# ids are mapped, as in a container, between those of adduser and of systemd.
HOST_IDS, FEW_HOST_IDS = range(70_000, 80_000), range(61_000, 61_184)
IDS_IN_USE = "/run/autograder-ids"
PATIENCE = 20.0
TRIED: set[str] = set()  # modules of OFTEN whose import was tried, with or without success


def serve(control: socket.socket, broken: Mapping[str, str]) -> None:
    """Start jobs until the other end of the socket closes. broken: {role's module: why it cannot run}."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader
    settle()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not data:
            return
        reap()
        job = msgspec.convert(json.loads(data), JailedJob)  # json keeps surrogate escapes in PATH
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
    """Wait for keepers that have ended, so that their processor time counts as the grader's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def prepare(modules: Iterable[str]) -> None:
    """Import those of `modules` that are in OFTEN and new, for all later jobs.

    An error is ignored: the student's own import will raise it again.
    """
    fresh = set(modules) & set(OFTEN.values()) - TRIED
    TRIED.update(fresh)
    for name in sorted(fresh):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if fresh:
        detect_processor()
        settle()


def detect_processor() -> None:
    """Make libraries detect the processor now, which they otherwise do at their first use.

    In the sandbox they would not find it, and fail or choose slow code that rounds differently.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].zeros(1).half().float()


def settle() -> None:
    """Collect garbage and freeze what is left, so that collections in children do not touch shared pages."""
    gc.collect()
    gc.freeze()


def start(job: JailedJob, channel: int, lifeline: int, control: socket.socket) -> None:
    """Fork the keeper of one job, and write the id maps of its user namespace, which only we may do."""
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
    """A host uid that no other running job has; None where none is needed or free.

    It is reserved by a lock in a file, which the keeper inherits and holds until it ends.
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
    """The host uids to choose from, as far as this user namespace maps them."""
    spans = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    enough = any(first <= HOST_IDS.start and first + length >= HOST_IDS.stop for first, _, length in spans)
    return HOST_IDS if enough else FEW_HOST_IDS


def locked(file: int, number: int) -> bool:
    """Lock byte `number` of an open file until it is closed everywhere; False if another holds the lock."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
    except BlockingIOError:
        return False
    return True


def write_maps(pid: int, student: int, host_id: int | None) -> bytes:
    """Write the id maps of process `pid`'s user namespace. Returns b"mapped", or why it failed.

    Run by root, 0 stays 0 for the keeper, and the student gets host_id, which owns no file outside.
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
    """Import the modules of some roles (default: all) and compile the seccomp filters.

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
