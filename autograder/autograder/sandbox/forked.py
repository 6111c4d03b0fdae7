"""Start a process for other people's code, say how it ended, and leave nothing of it behind.

A launcher knows walls and limits and nothing of what is said: the conversation runs over `Running.channel`,
and no file crosses. Processes are forked from a warm parent: `SelfSandbox` puts them behind our own walls,
`Unsafe` behind none.
"""

import atexit
import contextlib
import errno
import json
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from autograder.sandbox import cgroup, landlock, view
from autograder.sandbox.job import JailedJob
from autograder.sandbox.launcher import ROLES, StartError, environment
from autograder.sandbox.limits import Limits

END_SECONDS = 60.0
HAND_OVER_SECONDS = 20.0


class WarmParent:
    """The zygote as the grader sees it.

    It is started at the first job, and again if it died or the environment changed. roles: of the jobs that
    it will get; a fork costs what the parent has imported, so those who need little have one of their own.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = roles
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.environment: dict[str, str] = {}
        atexit.register(self.stop)

    def start(self, job: JailedJob, descriptors: Sequence[int]) -> None:
        """Hand one job over."""
        with self.lock:
            now = environment(Path.home()) | {"TMPDIR": tempfile.gettempdir()}
            control = self._serving(now)
            try:
                hand_over(control, json.dumps(msgspec.to_builtins(job)).encode(), descriptors)
            except OSError as problem:
                raise StartError(f"the warm parent takes no job: {problem.strerror}") from None

    def stop(self) -> None:
        """End it; jobs that still run end with their lifelines."""
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.process is not None:
            self.process.kill()  # it may still be importing
            self.process.wait()
            self.process = None

    def _serving(self, now: dict[str, str]) -> socket.socket:
        """The way to a zygote that runs in this environment; starts one where there is none."""
        alive = self.process is not None and self.process.poll() is None
        if self.control is not None and alive and now == self.environment:
            return self.control
        self.stop()
        self.environment = now
        # the kernel lets a user have this many descriptors under way, and ours go that way to the warm parent
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "autograder.sandbox.zygote", str(theirs.fileno()), *self.roles],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=now,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C at the terminal reaches the grader alone
                umask=0o022,  # the jail's user must get into what root makes there
            )
        self.control = control
        return control


def hand_over(control: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Send a message with descriptors.

    While this user's other programs have too many descriptors under way, it waits. Raises OSError.
    """
    deadline = time.monotonic() + HAND_OVER_SECONDS
    while True:
        try:
            socket.send_fds(control, [message], descriptors)
            return
        except OSError as problem:
            if problem.errno != errno.ETOOMANYREFS or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


PARENT, READERS = WarmParent("student", "executor", "probe"), WarmParent("reader")


class Running:
    """One started process and all that it started itself; its keeper is at the other end of a lifeline."""

    def __init__(
        self, role: str, limits: Limits, imports: tuple[str, ...], jailed: bool, stopping: threading.Event
    ) -> None:
        self.limits, self.stopping = limits, stopping
        self.said: list[str] = []
        self.rest, self.gone = b"", False
        self.scratch = tempfile.mkdtemp(prefix="submission-") if not jailed else None
        folder = self.scratch or view.JOB
        if self.scratch:
            os.mkdir(f"{folder}/home")
        job = JailedJob(
            module=ROLES[role],
            jailed=jailed,
            limits=limits,
            folder=folder,
            environment=environment(f"{folder}/home"),
            gpu=role == "executor",  # the only one that times anything
            imports=imports,
        )
        self.channel, theirs = socket.socketpair()
        self.lifeline, end = socket.socketpair()
        try:
            with theirs, end:
                parent = READERS if role == "reader" else PARENT
                parent.start(job, [theirs.fileno(), end.fileno()])
        except StartError:
            self._forget()
            raise

    def stand(self) -> None:
        """Wait until it stands behind its walls and is about to enter its role's main.

        Raises StartError, and then it is closed.
        """
        try:
            self._wait_for_start(self.limits.start_seconds)
        except StartError:
            self._forget()
            raise

    def _wait_for_start(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.said:
            if self.stopping.is_set():
                raise StartError("stopped")
            if time.monotonic() > deadline:
                raise StartError(f"the process did not start in {seconds:g} s")
            self._listen(0.2)
            if self.gone and not self.said:
                raise StartError("its keeper ended before the process began")
        if self.said[0] != "started":
            raise StartError(self.said[0].removeprefix("failed "))

    def _forget(self) -> None:
        """Let go of a process that is gone or never stood."""
        self.channel.close()
        self.lifeline.close()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def ended(self) -> str | None:
        """None while it runs, else one phrase: "exited 3", "killed by SIGSEGV", "killed (memory)"."""
        if not self.gone:
            self._listen(0)
        how = next((line.removeprefix("ended ") for line in self.said if line.startswith("ended")), None)
        return how or ("lost with its keeper" if self.gone else None)

    def processor_seconds(self) -> float:
        """What all of it has used, once it is closed; 0 where nothing counts it."""
        return sum(float(line.removeprefix("used ")) for line in self.said if line.startswith("used "))

    def let_go(self) -> None:
        """Have the whole tree killed, without waiting for it."""
        if self.lifeline.fileno() >= 0:
            self.channel.close()
            with contextlib.suppress(OSError):
                self.lifeline.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Kill the whole tree and wait until nothing of it is left. Idempotent. Raises StartError."""
        if self.lifeline.fileno() < 0:
            return
        self.let_go()
        deadline = time.monotonic() + END_SECONDS
        while not self.gone and "reaped" not in self.said and time.monotonic() < deadline:
            self._listen(1.0)
        self._forget()
        never_stood = self.gone and self.said[:1] and self.said[0].startswith("failed")
        if "reaped" in self.said or never_stood:
            return
        if not self.gone:
            raise StartError(f"a process could not be killed within {END_SECONDS:g} s")
        raise StartError("its keeper is gone, so that nobody knows whether all of it ended")

    def _listen(self, seconds: float) -> None:
        """Take in what the keeper says within `seconds`."""
        if select.select([self.lifeline], [], [], seconds)[0]:
            try:
                data = self.lifeline.recv(4096)
            except ConnectionResetError:
                data = b""
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.said += [line.decode(errors="replace") for line in lines]
            self.gone = not data


class Launcher:
    """Starts one process per call.

    `isolation` is stamped on every grade; setting `stopping` asks conversations to end.
    """

    jailed, isolation = True, ""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def launch(self, role: str, limits: Limits, imports: tuple[str, ...] = ()) -> Running:
        """Order a process that enters its role's main(folder, channel descriptor); returns at once.

        imports: modules of launcher.OFTEN that it will need. Raises StartError.
        """
        return Running(role, limits, imports, self.jailed, self.stopping)


class SelfSandbox(Launcher):
    """Behind our own walls: namespaces, a view of the file system, seccomp, Landlock and limits."""

    name = "self-sandbox"

    def __init__(self) -> None:
        super().__init__()
        walls = ["namespaces", "seccomp", landlock.name(), cgroup.name()]
        self.isolation = f"sandboxed ({self.name}: {', '.join(walls)})"


class Unsafe(Launcher):
    """With limits and nothing else: keeps honest mistakes apart, not attacks."""

    jailed, isolation = False, "unsafe: limits on time, memory and file size, no isolation"
