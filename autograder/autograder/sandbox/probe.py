"""The role that tries to break out: `autograder doctor` and the tests run it in a real sandbox.

Each attempt returns "" if it failed, else what it could do.
"""

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.sandbox import linux

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
NOBODY = 2**22 + 1  # one more than the highest process id
TOPS = ("/tmp", "/root", "/home", "/work", "/var", "/mnt", "/media", "/srv", "/opt", "/run", "/etc", "/job")


# The grader's first message on the channel. attempts: names of the attempts to make. namespaces: {kind: the
# grader's}. canaries: paths of planted files. secret: a text in the grader's environment. abstract: the name
# of its abstract socket. pid: the grader's. warplab: the package's folder. seconds: how long the processes of
# memory_of_many may take to fill their memory. limits: as in sandbox.limits. children: how many daemons
# `offspring` leaves behind.
Given = dict[str, Any]


def main(folder: str, fd: int) -> None:
    """Read one JSON line, make the attempts that it names, answer with a JSON line: what each could do."""
    channel = socket.socket(fileno=fd)
    given: Given = json.loads(channel.makefile().readline())
    if shared := namespaces(given):
        raise SystemExit(f"still in the grader's {shared} namespaces: nothing is attempted outside a jail")
    answer = {name: BY_NAME[name](given, folder) for name in given["attempts"]}
    channel.sendall(json.dumps(answer).encode() + b"\n")
    channel.recv(1)  # until the grader closes the channel


def namespaces(given: Given, *_: str) -> str:
    """Being in a namespace of the grader's."""
    own = {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES}
    return " ".join(name for name in NAMESPACES if own[name] == given["namespaces"][name])


def privileges(*_: object) -> str:
    """Being root, holding a capability, or being able to gain one."""
    found = ["uid 0"] if os.getuid() == 0 else []
    header, sets = (ctypes.c_uint32 * 2)(linux.CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if linux.LIBC.capget(header, sets) or any(sets):
        found.append("holds capabilities")
    with contextlib.suppress(OSError):  # past the last capability that this kernel knows
        found += [
            f"may gain capability {one}" for one in range(64) if linux.prctl(linux.PR_CAPBSET_READ, one)
        ]
    if not linux.prctl(linux.PR_GET_NO_NEW_PRIVS):
        found.append("may gain privileges by exec")
    return ", ".join(found)


def system_calls(*_: object) -> str:
    """System calls that the filter must refuse with EPERM.

    With these arguments an unfiltered kernel would fail with another error.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    calls = {
        "unshare": lambda: libc.unshare(1),
        "mount": lambda: libc.mount(None, None, None, 0, None),
        "chroot": lambda: libc.chroot(None),
        "ptrace": lambda: libc.ptrace(2, NOBODY, None, None),
        "process_vm_readv": lambda: libc.process_vm_readv(NOBODY, None, 0, None, 0, 0),
        "memfd_create": lambda: libc.memfd_create(None, 0),
    }
    through: list[str] = []
    for name, call in calls.items():
        ctypes.set_errno(0)
        if call() >= 0 or ctypes.get_errno() != errno.EPERM:
            through.append(f"{name} ({os.strerror(ctypes.get_errno())})")
    return ", ".join(through)


def sockets(given: Given, _: str) -> str:
    """Any way to a network, to the grader's machine, or to the host under a virtual machine."""
    through: list[str] = []
    for name in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                socket.socket(getattr(socket, name), kind).close()
                through.append(name)
                break
            except OSError:
                pass
    return ", ".join([*through, *_reached("the grader's abstract socket", given["abstract"])])


def _reached(what: str, name: str) -> list[str]:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect("\0" + name)
            return [what]
        except OSError:
            return []


def reading(given: Given, _: str) -> str:
    """Reading planted files: by path, and canaries, whose names are unique, also by searching everywhere."""
    found: list[str] = []
    for path in given["canaries"]:
        try:
            found.append(f"{path}: {Path(path).read_text()[:40]!r}")
        except OSError:
            pass
    names = {Path(path).name for path in given["canaries"] if "canary-" in path}
    for top in TOPS:
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in ("site-packages", "lib")]
            found += [f"{folder}/{name}" for name in files if name in names]
    return ", ".join(found)


def secrets(given: Given, _: str) -> str:
    """Reading the grader's environment, another process's environment or memory, an inherited descriptor."""
    found = [name for name, value in os.environ.items() if given["secret"] in value]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for name in ("environ", "mem", "maps"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as handle:
                    handle.read(1)
                found.append(f"/proc/{pid}/{name}")
            except OSError:
                pass
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 3 and os.path.exists(f"/proc/self/fd/{name}"):
            found.append(f"descriptor {name}")
    return ", ".join(found)


def processes(given: Given, _: str) -> str:
    """Seeing or signalling a process outside."""
    found: list[str] = []
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    if len(seen) > 2:  # itself and process 1
        found.append("sees other processes")
    if str(given["pid"]) not in seen:  # in a container the grader may be process 1, a number also used here
        with contextlib.suppress(OSError):
            os.kill(given["pid"], 0)
            found.append(f"could signal {given['pid']}")
    return ", ".join(found)


def writing(given: Given, folder: str) -> str:
    """Making or changing a file anywhere but in home/ and the private temporary folders."""
    found: list[str] = []
    system = ("/", "/usr", "/etc", "/proc/sys/kernel", "/sys", "/dev")
    for place in (*system, folder, sys.prefix, given["warplab"]):
        if place.startswith("/tmp/"):  # a course installed below /tmp: folders above it are private here
            continue
        try:
            Path(place, "written").write_text("x")
            found.append(place)
        except OSError:
            pass
    for file in (f"{given['warplab']}/__init__.py", sys.executable):
        try:
            os.close(os.open(file, os.O_WRONLY))
            found.append(file)
        except OSError:
            pass
    return ", ".join(found)


def landlock(*_: object) -> str:
    """Writing /proc/self/comm, which only Landlock forbids."""
    try:
        os.close(os.open("/proc/self/comm", os.O_WRONLY))
        return "could write /proc/self/comm"
    except OSError:
        return ""


def forks(given: Given, _: str) -> str:
    """Forking more processes than the limit."""
    children: list[int] = []
    try:
        while len(children) <= given["limits"]["processes"]:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
        return f"{len(children)} processes, the limit is {given['limits']['processes']}"
    except OSError:
        return ""
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def disk(given: Given, folder: str) -> str:
    """Writing more than the limit, in many files."""
    written, block = 0, bytes(1 << 20)
    most = given["limits"]["disk_mib"]
    try:
        for number in range(most + 1):
            Path(f"{folder}/home" if number % 2 else "/tmp", f"fill-{number}").write_bytes(block)
            written += 1
    except OSError:
        pass
    finally:
        for number in range(written + 1):
            Path(f"{folder}/home" if number % 2 else "/tmp", f"fill-{number}").unlink(missing_ok=True)
    return f"wrote {written} MiB, the limit is {most} MiB" if written > most else ""


def one_file(given: Given, folder: str) -> str:
    """Making one file larger than the limit, sparse so that no disk is needed."""
    file = Path(folder, "home", "sparse")
    try:
        with open(file, "wb") as handle:
            handle.truncate((given["limits"]["file_mib"] << 20) + 1)
        return f"a file of more than {given['limits']['file_mib']} MiB"
    except OSError:
        return ""
    finally:
        file.unlink(missing_ok=True)


def memory(given: Given, _: str) -> str:
    """Allocating more memory in one process than the limit."""
    try:
        block = bytearray(given["limits"]["memory_mib"] << 20)
        return f"allocated {len(block) >> 20} MiB, the limit is {given['limits']['memory_mib']} MiB"
    except MemoryError:
        return ""


def memory_of_many(given: Given, _: str) -> str:
    """Twelve processes that each fill an eighth of the limit; the job should be killed for it.

    Only an eighth, since the memory that a process was forked with counts towards its own limit.
    """
    import mmap

    told, tell = socket.socketpair()
    told.settimeout(given["seconds"])
    for _child in range(12):
        if os.fork() == 0:
            block, chunk = (
                mmap.mmap(-1, given["limits"]["memory_mib"] << 17, mmap.MAP_PRIVATE),
                bytes(1 << 20),
            )
            while block.tell() < len(block):
                block.write(chunk)
            tell.send(b"x")
            signal.pause()
    for came in range(12):
        try:
            told.recv(1)
        except TimeoutError:
            return f"not tried: in {given['seconds']:g} s only {came} of twelve processes had their memory"
    signal.sigtimedwait([], 2)  # the keeper checks ten times a second
    limit = given["limits"]["memory_mib"]
    return f"twelve processes wrote {limit * 3 // 2} MiB, the limit is {limit} MiB"


def offspring(given: Given, _: str) -> str:
    """Leaving daemons behind: forked twice, ignoring SIGTERM, in own process groups, with an open channel."""
    for _child in range(given["children"]):
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork():
                os._exit(0)  # so that process 1 becomes the child's parent
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            while True:
                signal.pause()
    return ""


ATTACKS: tuple[Callable[[Given, str], str], ...] = (
    namespaces, privileges, system_calls, sockets, reading, secrets, processes, writing, landlock, forks,
    disk, one_file, memory, memory_of_many, offspring,
)  # fmt: skip
BY_NAME = {attack.__name__: attack for attack in ATTACKS}
