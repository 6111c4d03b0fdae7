"""Launchers: start a process for students' code, say how it ended, and leave nothing of it behind.

A launcher knows protections and limits, but not the protocol: messages go over `Running.channel`, and no file
is exchanged. Processes are forked from a warm parent: `SelfSandbox` puts them into our own sandbox, `Unsafe`
into none.
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
    """The grader's side of the zygote, the process from which jobs are forked.

    It is started at the first job, and again if it died or the environment changed. roles: the roles of its
    jobs. A fork costs more the more the parent has imported, so readers, which need little, have their own.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = roles
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.environment: dict[str, str] = {}
        atexit.register(self.stop)

    def start(self, job: JailedJob, descriptors: Sequence[int]) -> None:
        """Send one job to the zygote. descriptors: [channel, lifeline]. Raises StartError."""
        with self.lock:
            now = environment(Path.home()) | {"TMPDIR": tempfile.gettempdir()}
            control = self._serving(now)
            try:
                hand_over(control, json.dumps(msgspec.to_builtins(job)).encode(), descriptors)
            except OSError as problem:
                raise StartError(f"the warm parent takes no job: {problem.strerror}") from None

    def stop(self) -> None:
        """Kill the zygote. Jobs still running end when their lifelines close."""
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.process is not None:
            self.process.kill()  # it may still be importing
            self.process.wait()
            self.process = None

    def _serving(self, now: dict[str, str]) -> socket.socket:
        """The socket to a zygote with this environment, which is started if there is none."""
        alive = self.process is not None and self.process.poll() is None
        if self.control is not None and alive and now == self.environment:
            return self.control
        self.stop()
        self.environment = now
        # the kernel limits a user's descriptors in flight between sockets to this; jobs send two each
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
                umask=0o022,  # the sandbox's user must be able to enter folders that root makes for it
            )
        self.control = control
        return control


def hand_over(control: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Send a message with descriptors. Raises OSError.

    Retries up to HAND_OVER_SECONDS while this user has too many descriptors in flight.
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
    """One started process with its children; its keeper is at the other end of the lifeline."""

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
            gpu=role == "executor",  # only the executor takes timings
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
        """Wait until the process is locked into its sandbox and about to enter its role's main.

        Raises StartError if it does not get there; then it is closed.
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
        """Release the sockets and the folder of a process that has ended or never started."""
        self.channel.close()
        self.lifeline.close()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def ended(self) -> str | None:
        """None while it runs, else how it ended: "exited 3", "killed by SIGSEGV", "killed (memory)"."""
        if not self.gone:
            self._listen(0)
        how = next((line.removeprefix("ended ") for line in self.said if line.startswith("ended")), None)
        return how or ("lost with its keeper" if self.gone else None)

    def processor_seconds(self) -> float:
        """The processor time of the whole tree, known once it is closed; 0 where nothing counts it."""
        return sum(float(line.removeprefix("used ")) for line in self.said if line.startswith("used "))

    def let_go(self) -> None:
        """Have the whole process tree killed, without waiting for that."""
        if self.lifeline.fileno() >= 0:
            self.channel.close()
            with contextlib.suppress(OSError):
                self.lifeline.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Kill the whole process tree and wait until all of it is gone. Idempotent. Raises StartError."""
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
        """Read the lines that the keeper writes to the lifeline within `seconds`."""
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

    isolation: a text stored with every grade. stopping: setting it makes waiting processes give up.
    """

    jailed, isolation = True, ""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def launch(self, role: str, limits: Limits, imports: tuple[str, ...] = ()) -> Running:
        """Start a process that runs its role's main(folder, channel descriptor); does not wait for it.

        role: a key of launcher.ROLES. imports: modules of launcher.OFTEN that it needs. Raises StartError.
        """
        return Running(role, limits, imports, self.jailed, self.stopping)


class SelfSandbox(Launcher):
    """The sandbox: namespaces, a restricted file system, seccomp, Landlock and limits."""

    name = "self-sandbox"

    def __init__(self) -> None:
        super().__init__()
        walls = ["namespaces", "seccomp", landlock.name(), cgroup.name()]
        self.isolation = f"sandboxed ({self.name}: {', '.join(walls)})"


class Unsafe(Launcher):
    """Limits only: enough against honest mistakes, not against attacks."""

    jailed, isolation = False, "unsafe: limits on time, memory and file size, no isolation"
