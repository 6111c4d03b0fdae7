"""The last steps of a process before it runs other people's code: limits, no privileges, Landlock, seccomp.

There is no way back.
"""

import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping

from autograder.sandbox import landlock, linux, seccomp, view
from autograder.sandbox.limits import Limits


def limit(limits: Limits) -> None:
    """Limits that hold for one process (processes: for all of its user namespace)."""
    seconds = int(limits.start_seconds + limits.total_seconds) + 1
    amounts = {
        # not the address space: the CUDA driver reserves far more than it uses
        resource.RLIMIT_DATA: limits.memory_mib << 20,
        resource.RLIMIT_FSIZE: limits.file_mib << 20,
        resource.RLIMIT_CPU: seconds,
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
    # only in a user namespace of its own: there the kernel counts the processes of this job,
    # elsewhere all of the user's
    resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
    linux.become(student)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or it could not read its own /proc
    landlock.restrict(readable=["/"], writable=view.WRITABLE, devices=view.devices(gpu))
    seccomp.install()


def settle(home: str, environment: Mapping[str, str]) -> None:
    """Fresh signals, folder, environment and random numbers, as if the process had just been started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(home)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = [""]
    tempfile.tempdir = None
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
