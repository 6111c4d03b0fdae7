"""Chooses the launcher: the sandbox, or Unsafe on request.

If the sandbox does not work, an error gives the reason and the next step. It never falls back to Unsafe.
"""

import contextlib
import functools
import os
import sys
from pathlib import Path

from autograder.sandbox.forked import Launcher, SelfSandbox, Unsafe
from autograder.sandbox.launcher import StartError
from autograder.sandbox.limits import Limits
from autograder.user_error import UserError


class NoSandbox(UserError):
    """The sandbox does not work here."""


def choose(unsafe: bool = False) -> Launcher:
    """The sandbox, or Unsafe where that was asked for.

    Raises NoSandbox, with the reason, where the sandbox does not work.
    """
    if unsafe:
        return Unsafe()
    if (problem := problem_of()) is None:
        return SelfSandbox()
    raise NoSandbox(
        f"the sandbox does not work here, so students' code could read and change what you can ({problem}). "
        f"{next_step()}; `autograder doctor` shows each protection; "
        "--unsafe grades without any and says so on every grade"
    )


@functools.cache
def problem_of() -> str | None:
    """Why the sandbox does not work here, found by starting a process in it; None if it does."""
    try:
        with contextlib.closing(SelfSandbox().launch("probe", Limits(start_seconds=60))) as running:
            running.stand()
    except StartError as problem:
        return str(problem)
    return None


def next_step() -> str:
    """What to do on this machine so that a sandbox works, as one sentence without a full stop."""
    if not sys.platform.startswith("linux"):
        return "Sandboxes need Linux (on Windows: WSL2)"
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1" and os.geteuid() != 0:
        return (
            "AppArmor keeps unprivileged user namespaces from doing anything (Ubuntu 23.10 and later, "
            "GitHub's runners): sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or grade as root"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return (
            "This kernel forbids unprivileged user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1"
        )
    if _setting("user/max_user_namespaces") == "0":
        return "This kernel allows no user namespaces: sudo sysctl user.max_user_namespaces=10000"
    if any(os.path.exists(path) for path in ("/.dockerenv", "/run/.containerenv")):
        return (
            "In a container of Podman's, start it with --security-opt unmask=ALL; in one of Docker's, with "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined; or grade outside it"
        )
    return "Grade on a Linux machine of your own with kernel 5.12 or later, x86-64 or 64-bit Arm"


def _setting(name: str) -> str:
    """A sysctl's value, "" where this kernel has no such setting."""
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""
