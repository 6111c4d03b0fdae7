"""`autograder doctor`: which of the sandbox's protections hold on this machine.

Each is tested by an attempt to break it from inside a real sandbox.
"""

import json
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

import warplab
from autograder.judge.timed_rows import gpu_problem
from autograder.sandbox import cgroup, share
from autograder.sandbox.choose import next_step, problem_of
from autograder.sandbox.forked import Launcher, Running, SelfSandbox
from autograder.sandbox.launcher import StartError
from autograder.sandbox.limits import Limits
from autograder.sandbox.probe import NAMESPACES, Given
from autograder.sandbox.view import cuda_obstacle, gpu_devices
from autograder.user_error import tell, tell_table

LIMITS = Limits(start_seconds=60, total_seconds=60, memory_mib=512, file_mib=16, disk_mib=32, processes=40)
CHILDREN = 50
ATTEMPTS = {
    "namespaces": "user, mount, pid, network, ipc, uts and cgroup namespaces of its own",
    "privileges": "no root, no capability, no_new_privs",
    "system_calls": "seccomp filter: unshare, mount, chroot, ptrace, process_vm_readv, memfd_create refused",
    "sockets": "no network, no vsock, no abstract socket of ours",
    "reading": "files outside its view do not exist for it",
    "secrets": "no environment, memory or descriptor of ours",
    "processes": "sees and signals no process of ours",
    "writing": "writes nowhere but in its home and private temporary folders",
    "landlock": "Landlock",
    "forks": f"at most {LIMITS.processes} processes",
    "disk": f"at most {LIMITS.disk_mib} MiB on disk",
    "one_file": f"no file over {LIMITS.file_mib} MiB",
    "memory": f"no process over {LIMITS.memory_mib} MiB of memory",
}
NOT_NEEDED = ("landlock",)  # a second protection behind the restricted file system; old kernels lack it


@dataclass(frozen=True)
class Finding:
    """One protection, and whether it holds. detail: where it does not, what the attempt could do."""

    name: str
    protection: str
    holds: bool
    detail: str = ""

    @property
    def needed(self) -> bool:
        return self.name not in NOT_NEEDED


def examine(launcher: Launcher, planted: Iterable[str | Path] = ()) -> list[Finding]:
    """Try every protection from inside a process that `launcher` starts.

    planted: further files that the process must not be able to read.
    Returns a Finding per protection. Raises StartError where the launcher cannot start a process.
    """
    with tempfile.TemporaryDirectory() as scratch:
        canary = Path(scratch, f"canary-{secrets.token_hex(8)}")
        canary.write_text("planted outside")
        found, _ = attack(launcher, list(ATTEMPTS), [str(canary), *map(str, planted)])
    if not isinstance(found, dict):
        raise StartError(f"the process that makes the attempts {found}")
    findings = [Finding(name, text, not found[name], found[name]) for name, text in ATTEMPTS.items()]
    could = _memory_of_many(launcher)
    protection = f"no more than {LIMITS.memory_mib} MiB of memory in all its processes"
    findings.append(Finding("memory_of_many", protection, not could, could))
    left = _offspring(launcher)
    protection = f"the whole tree dies: of {CHILDREN} daemons, deaf to SIGTERM, none survives"
    findings.append(Finding("offspring", protection, not left, left))
    return findings


def _memory_of_many(launcher: Launcher) -> str:
    """What processes could do that together exceed the memory limit; "" if they were killed for it."""
    found, _ = attack(launcher, ["memory_of_many"])
    if isinstance(found, dict):
        return found["memory_of_many"]
    return "" if found == "killed (memory)" else found


def _offspring(launcher: Launcher) -> str:
    """What survives of many child processes once their sandbox is closed; "" for nothing."""
    found, gone = attack(launcher, ["offspring"], children=CHILDREN)
    return "" if isinstance(found, dict) and gone else "a process that it started still holds its channel"


def attack(
    launcher: Launcher, attempts: Sequence[str], canaries: Iterable[str] = (), children: int = 0
) -> tuple[dict[str, str] | str, bool]:
    """Run attempts (names of ATTEMPTS) in one sandbox.

    canaries: files that must stay unreadable. children: how many daemons the attempt "offspring" starts.
    Returns {attempt: what it could do, "" for nothing}, or how the process ended if it did not answer; and
    whether every process that the attempts started is gone once the sandbox is closed.
    """
    os.environ["AUTOGRADER_CANARY"] = secret = secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0autograder-{secret}")
        listener.listen()
        given: Given = {
            "attempts": list(attempts),
            "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES},
            "canaries": list(canaries),
            "secret": secret,
            "abstract": f"autograder-{secret}",
            "pid": os.getpid(),
            "warplab": warplab.__path__[0],
            "seconds": LIMITS.total_seconds * 5 / 6,
            "limits": vars(LIMITS),
            "children": children,
        }
        running = launcher.launch("probe", replace(LIMITS, processes=LIMITS.processes + 3 * children))
        running.stand()
        watch = socket.socket(fileno=os.dup(running.channel.fileno()))
        try:
            watch.settimeout(LIMITS.total_seconds)
            watch.sendall(json.dumps(given).encode() + b"\n")
            answer = watch.makefile().readline()
            found = json.loads(answer) if answer else _end_of(running)
        finally:
            running.close()
            del os.environ["AUTOGRADER_CANARY"]
        with watch:
            watch.settimeout(5)
            return found, _all_gone(watch)


def _end_of(running: Running) -> str:
    """Wait for a process that has closed its channel, and say how it ended."""
    while not (how := running.ended()):
        time.sleep(0.01)
    return how


def _all_gone(watch: socket.socket) -> bool:
    """Whether the channel's other end closes, as it does when the last process that inherited it is dead."""
    try:
        return watch.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def diagnose(console: Console) -> bool:
    """Print which protections hold and how students' code would be run. Returns whether grading can start."""
    works, sandbox = False, SelfSandbox()
    if problem := problem_of():
        tell(console, f"the sandbox does not work here ({problem})")
    else:
        findings = examine(sandbox)
        rows = ((one.protection, _yes_or_no(one), one.detail) for one in findings)
        headings = ("protection", "holds", "what the attempt could do")
        tell_table(console, headings, rows, sandbox.isolation)
        works = all(finding.holds for finding in findings if finding.needed)
    tell(console, f"GPU devices passed to the executor: {', '.join(gpu_devices()) or 'none on this machine'}")
    if problem := cuda_obstacle() or (gpu_problem(sandbox) if works and gpu_devices() else ""):
        tell(console, f"CUDA will not start there: {problem}.")
    where = cgroup.place()
    at_once = (
        f"and a cgroup in {where} holds it at once"
        + ("" if cgroup.name() == "cgroup" else f", but shares out no processors. {cgroup.next_step()}")
        if where
        else f"for no cgroup of version 2 can be made here. {cgroup.next_step()}"
    )
    tell(
        console,
        "The limits are lowered for these attempts. The kernel limits each process's memory; a keeper adds "
        f"up all of a job's ten times a second, {at_once}.",
    )
    if problem := share.at_risk():
        tell(console, f"{problem}.")
    title = "What one submission may use, in all attempts together"
    tell_table(console, ("of", "at most"), Limits().described().items(), title)
    if works:
        tell(console, f"`autograder grade` runs students' code {sandbox.isolation}")
    else:
        tell(console, f"the sandbox does not work here. {next_step()}")
    return works


def _yes_or_no(finding: Finding) -> str:
    if finding.holds:
        return "yes"
    return "NO" if finding.needed else "no (not required)"
