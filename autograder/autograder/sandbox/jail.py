"""The last steps of a process before it runs a student's code: limits, no privileges, Landlock, seccomp.

None of them can be undone.
"""

import os
import random
import resource
import selectors
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping

from autograder.sandbox import landlock, linux, seccomp, view
from autograder.sandbox.limits import Limits

NICE = 3  # so that the judge, which serves all jails, has twice a jail's weight where they share a core
QUEUED_SIGNALS = 256


def limit(limits: Limits) -> None:
    """Set the limits that the kernel keeps for each single process."""
    os.nice(NICE)
    amounts = {
        # not RLIMIT_AS: the CUDA driver reserves far more address space than it uses
        resource.RLIMIT_DATA: limits.memory_mib << 20,
        resource.RLIMIT_FSIZE: limits.file_mib << 20,
        resource.RLIMIT_CPU: int(limits.processor_seconds) + 1,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for what, amount in amounts.items():
        _, most = resource.getrlimit(what)
        amount = amount if most == resource.RLIM_INFINITY else min(amount, most)
        resource.setrlimit(what, (amount, amount))


def lock(student: int, limits: Limits, gpu: bool) -> None:
    """Become the student: a user without capabilities that reaches only the files in view.py's view."""
    # In the job's own user namespace the kernel counts only this job's processes and signals towards these;
    # elsewhere it would count all of the user's.
    resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (QUEUED_SIGNALS, QUEUED_SIGNALS))
    linux.become(student)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # lets the process read its own /proc
    landlock.restrict(["/"], view.readable(gpu), view.WRITABLE, view.driven(gpu))
    seccomp.install(view.has_gpu(gpu))


def settle(home: str, environment: Mapping[str, str]) -> None:
    """Reset signals, files, folder, environment and random numbers to those of a newly started process.

    Also sets the allocator for a process that runs kernels (linux.keep_freed_memory).
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    linux.keep_freed_memory()
    own_files()
    os.chdir(home)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = [""]
    tempfile.tempdir = None
    random.seed()
    if "numpy.random" in sys.modules:  # a later import seeds itself
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def own_files() -> None:
    """Open descriptors 0 to 2 anew: inherited ones are shared by all jails, which could set their flags."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def without_refused_calls() -> None:
    """Replace pipes and epoll, which the filter refuses, in the standard library by sockets and poll.

    asyncio, multiprocessing and subprocess use them. They are refused because the kernel limits them for all
    processes of a user together.
    """
    os.pipe = pipe_of_sockets
    selectors.DefaultSelector = selectors.PollSelector


def pipe_of_sockets() -> tuple[int, int]:
    """Like os.pipe(): (descriptor to read from, descriptor to write to)."""
    reader, writer = socket.socketpair()
    reader.shutdown(socket.SHUT_WR)
    return reader.detach(), writer.detach()
