"""Launchers that fork from a warm parent: `SelfSandbox` behind our own walls, `Unsafe` without any."""

import atexit
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path

from autograder.sandbox import bubblewrap, cgroup, landlock, view
from autograder.sandbox.launch import ROLES, LaunchError, environment

END_SECONDS = 60.0


class WarmParent:
    """The zygote as the grader sees it: started at the first job, again if it died or the environment changed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = self.control = self.environment = None
        atexit.register(self.stop)

    def start(self, job, descriptors):
        """Hand one job over."""
        with self.lock:
            now = environment(Path.home()) | {"TMPDIR": tempfile.gettempdir()}
            if self.process is None or self.process.poll() is not None or now != self.environment:
                self._restart(now)
            try:
                socket.send_fds(self.control, [json.dumps(job).encode()], descriptors)
            except OSError as problem:
                raise LaunchError(f"the warm parent is gone: {problem.strerror}") from None

    def stop(self):
        """End it; jobs that still run end with their lifelines."""
        if self.process is not None:
            self.control.close()
            self.process.kill()  # it may still be importing
            self.process.wait()
            self.process = None

    def _restart(self, now):
        self.stop()
        self.environment = now
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "autograder.sandbox.zygote", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=now,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C at the terminal reaches the grader alone
            )


PARENT = WarmParent()


class Forked:
    """Running: one job whose keeper is at the other end of a lifeline."""

    def __init__(self, role, limits, imports, walls, stopping):
        self.limits, self.stopping = limits, stopping
        self.said, self.rest, self.gone = [], b"", False
        self.scratch = tempfile.mkdtemp(prefix="submission-") if walls == "none" else None
        folder = self.scratch or view.JOB
        if self.scratch:
            os.mkdir(f"{folder}/home")
        job = {"module": ROLES[role], "walls": walls, "limits": asdict(limits), "folder": folder, "environment": environment(f"{folder}/home")}
        job |= {"imports": imports, "gpu": role == "executor"}  # the only one that times anything
        self.channel, theirs = socket.socketpair()
        self.lifeline, end = socket.socketpair()
        try:
            with theirs, end:
                PARENT.start(job, [theirs.fileno(), end.fileno()])
        except LaunchError:
            self._forget()
            raise

    def stand(self):
        try:
            self._wait_for_start(self.limits.start_seconds)
        except LaunchError:
            self._forget()
            raise

    def _wait_for_start(self, seconds):
        deadline = time.monotonic() + seconds
        while not self.said:
            if self.stopping.is_set():
                raise LaunchError("stopped")
            if time.monotonic() > deadline:
                raise LaunchError(f"the process did not start in {seconds:g} s")
            self._listen(0.2)
            if self.gone and not self.said:
                raise LaunchError("its keeper ended before the process began")
        if self.said[0] != "started":
            raise LaunchError(self.said[0].removeprefix("failed "))

    def _forget(self):
        """Let go of a process that is gone or never stood."""
        self.channel.close()
        self.lifeline.close()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def ended(self):
        if not self.gone:
            self._listen(0)
        how = next((line.removeprefix("ended ") for line in self.said if line.startswith("ended")), None)
        return how or ("lost with its keeper" if self.gone else None)

    def let_go(self):
        if self.lifeline.fileno() >= 0:
            self.channel.close()
            with contextlib.suppress(OSError):
                self.lifeline.shutdown(socket.SHUT_WR)

    def close(self):
        if self.lifeline.fileno() < 0:
            return
        self.let_go()
        deadline = time.monotonic() + END_SECONDS
        while not self.gone and "reaped" not in self.said and time.monotonic() < deadline:
            self._listen(1.0)
        self._forget()
        if "reaped" in self.said or self.gone and self.said[:1] and self.said[0].startswith("failed"):
            return
        if not self.gone:
            raise LaunchError(f"a process could not be killed within {END_SECONDS:g} s")
        raise LaunchError("its keeper is gone, so that nobody knows whether all of it ended")

    def _listen(self, seconds):
        """Take in what the keeper says within `seconds`."""
        if select.select([self.lifeline], [], [], seconds)[0]:
            try:
                data = self.lifeline.recv(4096)
            except ConnectionResetError:
                data = b""
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.said += [line.decode(errors="replace") for line in lines]
            self.gone = not data


class SelfSandbox:
    """The warm parent's children behind our own walls: namespaces, a view of the file system, seccomp, Landlock, limits."""

    name = "self-sandbox"

    def __init__(self):
        self.stopping = threading.Event()
        self.isolation = f"sandboxed ({self.name}: namespaces, seccomp, {landlock.name()}{', cgroup' if cgroup.place() else ''})"

    def launch(self, role, limits, imports=()):
        return Forked(role, limits, imports, "own", self.stopping)


class Bubblewrap(SelfSandbox):
    """The same walls, but it is bwrap that makes the namespaces and the view; starts cold."""

    name = "bubblewrap"

    def launch(self, role, limits, imports=()):
        if not bubblewrap.program():
            raise LaunchError("bwrap is not installed (Debian and Ubuntu: apt-get install bubblewrap)")
        return Forked(role, limits, (), "bubblewrap", self.stopping)


class Unsafe:
    """The warm parent's children with limits and nothing else: keeps honest mistakes apart, not attacks."""

    isolation = "unsafe: limits on time, memory and file size, no isolation"

    def __init__(self):
        self.stopping = threading.Event()

    def launch(self, role, limits, imports=()):
        return Forked(role, limits, imports, "none", self.stopping)
