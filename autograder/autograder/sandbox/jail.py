"""The last steps of a process before it runs other people's code: limits, no privileges, Landlock, seccomp.

There is no way back.
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

NICE = 3  # the judge, which serves all jails, has twice the weight of one where they compete for a core
QUEUED_SIGNALS = 256


def limit(limits: Limits) -> None:
    """Limits that hold for one process."""
    os.nice(NICE)
    amounts = {
        # not the address space: the CUDA driver reserves far more than it uses
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
    """Become the student: a user without capabilities that sees and reaches only what is in its view."""
    # only in a user namespace of its own: there the kernel counts the processes and signals of this job,
    # elsewhere all of the user's
    resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (QUEUED_SIGNALS, QUEUED_SIGNALS))
    linux.become(student)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or it could not read its own /proc
    landlock.restrict(["/"], view.readable(gpu), view.WRITABLE, view.driven(gpu))
    seccomp.install(view.has_gpu(gpu))


def settle(home: str, environment: Mapping[str, str]) -> None:
    """Fresh signals, files, folder, environment and random numbers, as in a process just started.

    Its allocator is told what suits a process that runs kernels.
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
    if "numpy.random" in sys.modules:  # imported later, it begins afresh by itself
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def own_files() -> None:
    """Open descriptors 0 to 2 anew: all jails could set the flags of an open file that they share."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def without_refused_calls() -> None:
    """Let the standard library do by other calls what the filter refuses: pipes and epoll, which asyncio,
    multiprocessing and subprocess use, are counted for all processes of a user together.
    """
    os.pipe = pipe_of_sockets
    selectors.DefaultSelector = selectors.PollSelector


def pipe_of_sockets() -> tuple[int, int]:
    """As os.pipe(): what is written to the second descriptor is read from the first."""
    reader, writer = socket.socketpair()
    reader.shutdown(socket.SHUT_WR)
    return reader.detach(), writer.detach()
