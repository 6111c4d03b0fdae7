"""The life of one job, in processes forked from the warm parent.

keeper      outside the jail's pid namespace: watches memory and the lifeline to the grader, and kills the job
  init      process 1 of the jail: builds the file system, starts the worker, reaps, reports how it ended
    worker  runs a role: locked in by jail.py, then its main(folder, channel)

Lines on the lifeline: "started", "failed WHAT" (a protection could not be set up; nothing of the job ran),
"ended HOW", "used SECONDS" of processor time (only in the sandbox), "reaped".
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Generator
from typing import NoReturn

import psutil

from autograder.sandbox import cgroup, held_memory, jail, linux, share, view
from autograder.sandbox.job import JailedJob
from autograder.sandbox.processor_time import ProcessorTime

NAMESPACES = {
    "mount": linux.CLONE_NEWNS,
    "pid": linux.CLONE_NEWPID,
    "network": linux.CLONE_NEWNET,
    "ipc": linux.CLONE_NEWIPC,
    "uts": linux.CLONE_NEWUTS,
}
TICK = 0.1  # seconds between two checks of memory and processor time


class WallMissing(Exception):
    """A protection of the sandbox could not be set up; the text names it."""


@contextlib.contextmanager
def building(wall: str) -> Generator[None, None, None]:
    """Turn an OSError in the block into WallMissing, with the name of the protection in front."""
    try:
        yield
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        raise WallMissing(f"{wall}: {problem.strerror}{where}") from None


def keep(job: JailedJob, channel: int, lifeline: int, mapper: socket.socket) -> None:
    """Run one job to its end, as its keeper.

    channel, lifeline: descriptors. mapper: a socket to the warm parent, which writes this user namespace's
    id maps.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    reports, report = os.pipe()
    group = None
    try:
        if job.jailed:
            with building("cgroup"):
                group = cgroup.for_job(job.limits)
            with building("user namespace"):
                linux.prctl(linux.PR_SET_DUMPABLE, 1)  # the warm parent may now write our maps
                linux.unshare(linux.CLONE_NEWUSER)
                mapper.send(b"unshared")
                if (answer := mapper.recv(400)) != b"mapped":
                    raise WallMissing(f"user namespace: {answer.decode() or 'the warm parent is gone'}")
                linux.prctl(linux.PR_SET_DUMPABLE, 0)
            for name, flag in NAMESPACES.items():
                with building(f"{name} namespace"):
                    linux.unshare(flag)
        else:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        init = os.fork()
        if init == 0:
            if group:
                with building("cgroup"):
                    group.enter()
            channel, report = _keep_only(channel, report)
            _guarded(report, become_init, job, channel, report)
    except WallMissing as problem:
        _say(lifeline, f"failed {problem}")
        if group:
            group.remove()
        return
    os.close(report)
    os.close(channel)
    _watch(job, reports, lifeline, group)
    if not job.jailed:
        kill_descendants()
    else:
        with contextlib.suppress(ProcessLookupError):
            # killing process 1 makes the kernel kill its whole namespace before waitpid() returns
            os.kill(init, signal.SIGKILL)
        os.waitpid(init, 0)
    if group:
        group.remove()
    _say(lifeline, "reaped")


def become_init(job: JailedJob, channel: int, report: int) -> NoReturn:
    """As process 1 of the jail (without a sandbox, as a reaping parent) start the worker, report its end."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if job.jailed:
        with building("cgroup namespace"):
            linux.unshare(linux.CLONE_NEWCGROUP)
        with building("view of the file system"):
            view.build(job.limits.disk_mib, job.student, job.gpu)
    worker = os.fork()
    if worker == 0:
        _guarded(report, become_worker, job, channel, report)
    os.close(channel)
    if job.jailed:
        nice = os.getpriority(os.PRIO_PROCESS, 0) + jail.NICE
        signal.signal(signal.SIGALRM, share.evens_out(job.student, nice))
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    while True:
        pid, status = os.wait()
        if pid == worker:
            break
    code = os.waitstatus_to_exitcode(status)
    how = f"exited {code}" if code >= 0 else f"killed by {signal_name(-code)}"
    os.write(report, f"ended {how}\n".encode())
    os._exit(0)


def become_worker(job: JailedJob, channel: int, report: int) -> NoReturn:
    """Lock this process into the sandbox and run its role."""
    role = importlib.import_module(job.module)
    os.setsid()
    jail.settle(f"{job.folder}/home", job.environment)
    with building("limits"):
        jail.limit(job.limits)
    if job.jailed:
        jail.lock(job.student, job.limits, job.gpu)
        if not view.has_gpu(job.gpu):
            jail.without_refused_calls()
        with building("view of the libraries, which the jail's user must be able to read"):
            for file in (os.__file__, str(view.WARPLAB / "__init__.py")):
                open(file).close()
    os.write(report, b"started\n")
    os.close(report)
    role.main(job.folder, channel)
    os._exit(0)


def _guarded(report: int, become: Callable[..., NoReturn], *arguments: object) -> NoReturn:
    """Run a function that never returns, and report "failed" for an exception before the worker starts.

    Later exceptions are not reported, as `report` is closed by then.
    """
    try:
        become(*arguments)
    except BaseException as problem:  # noqa: BLE001 - the process ends here, and the grader must learn why
        text = str(problem) if isinstance(problem, WallMissing) else f"{type(problem).__name__}: {problem}"
        with contextlib.suppress(OSError):
            os.write(report, f"failed {text}\n".encode())
    finally:
        os._exit(1)


def _keep_only(*kept: int) -> list[int]:
    """Close every descriptor but 0, 1, 2 and `kept`. Returns those, renumbered to 3, 4, ..."""
    high = [os.dup2(descriptor, 200 + number) for number, descriptor in enumerate(kept)]
    low = [os.dup2(descriptor, 3 + number, inheritable=False) for number, descriptor in enumerate(high)]
    os.closerange(3 + len(low), 65536)
    return low


def _watch(job: JailedJob, reports: int, lifeline: int, group: cgroup.Cgroup | None) -> None:
    """Pass init's reports on to the lifeline, until the job ends, is let go, or exceeds a limit."""
    poll = select.poll()
    poll.register(reports, select.POLLIN)
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    used = ProcessorTime("/proc")  # the jail's /proc, as the keeper is in its mount namespace
    pending, stands, ended, checked = b"", False, False, 0.0
    while True:
        ready = dict(poll.poll(TICK * 1000))
        if lifeline in ready:
            break
        if reports in ready:
            data = os.read(reports, 4096)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                stands = True  # until the first report, /proc may still be the machine's
                ended = ended or line.startswith((b"ended", b"failed"))
                _say(lifeline, line.decode())
            if not data and not ended:
                out_of_memory = group is not None and group.ran_out()
                _say(lifeline, "ended killed (memory)" if out_of_memory else "ended killed by SIGKILL")
            if ended or not data:
                break
        if stands and job.jailed and time.monotonic() - checked >= TICK:
            checked = time.monotonic()
            if held_memory.over(job.limits.memory_mib << 20):
                _say(lifeline, "ended killed (memory)")
                break
            if used.seconds() > job.limits.processor_seconds:
                _say(lifeline, "ended killed (processor time)")
                break
    if stands and job.jailed:
        _say(lifeline, f"used {group.processor_seconds() if group else used.seconds():.2f}")


def kill_descendants() -> None:
    """Kill every descendant of this process until none is left; as a subreaper it inherits orphans."""
    while True:
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)
        except ChildProcessError:
            return


def signal_name(number: int) -> str:
    """ "SIGKILL", or "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _say(lifeline: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(lifeline, f"{text}\n".encode())
