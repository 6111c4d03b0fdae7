"""The role that tries to get out: `autograder doctor` and the tests run it in a real jail and hold every attempt against it.

An attempt returns "" if nothing came of it, else what it could do. `given` is what the grader said first on the channel.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import sys
from pathlib import Path

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
NOBODY = 2**22 + 1  # one more than the highest process id


def main(folder, fd):
    """Read one JSON line from the channel, make the attempts that it names, answer with a JSON line: what each could do."""
    channel = socket.socket(fileno=fd)
    given = json.loads(channel.makefile().readline())
    if shared := namespaces(given):
        raise SystemExit(f"still in the grader's {shared} namespaces: nothing is attempted outside a jail")
    answer = {name: globals()[name](given, folder) for name in given["attempts"]}
    channel.sendall(json.dumps(answer).encode() + b"\n")
    channel.recv(1)  # the grader lets go when it has seen enough


def namespaces(given, *_):
    """Which of the grader's namespaces this process is still in."""
    return " ".join(name for name in NAMESPACES if os.readlink(f"/proc/self/ns/{name}") == given["namespaces"][name])


def privileges(*_):
    """Being root, holding a capability, or being able to gain one."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    held = {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[name], 16)}
    found = [f"uid {os.getuid()}"] if os.getuid() == 0 else []
    return ", ".join([*found, *held, *([] if status["NoNewPrivs"].strip() == "1" else ["may gain privileges by exec"])])


def system_calls(*_):
    """Calls that the filter must refuse at once. With these arguments a kernel that did look at them would fail in another way."""
    libc = ctypes.CDLL(None, use_errno=True)
    calls = {
        "unshare": lambda: libc.unshare(1),
        "mount": lambda: libc.mount(None, None, None, 0, None),
        "chroot": lambda: libc.chroot(None),
        "ptrace": lambda: libc.ptrace(2, NOBODY, None, None),
        "process_vm_readv": lambda: libc.process_vm_readv(NOBODY, None, 0, None, 0, 0),
        "memfd_create": lambda: libc.memfd_create(None, 0),
    }
    through = []
    for name, call in calls.items():
        ctypes.set_errno(0)
        if call() >= 0 or ctypes.get_errno() != errno.EPERM:
            through.append(f"{name} ({os.strerror(ctypes.get_errno())})")
    return ", ".join(through)


def sockets(given, _):
    """Any way to a network, to the grader's machine, or to the host under a virtual machine."""
    through = []
    for name in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                socket.socket(getattr(socket, name), kind).close()
                through.append(name)
                break
            except OSError:
                pass
    return ", ".join([*through, *_reached("the grader's abstract socket", given["abstract"])])


def _reached(what, name):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect("\0" + name)
            return [what]
        except OSError:
            return []


def reading(given, _):
    """Reading what was planted outside, by its own path, or, for a name that nothing else has, by walking everything in view."""
    found = []
    for path in given["canaries"]:
        try:
            found.append(f"{path}: {Path(path).read_text()[:40]!r}")
        except OSError:
            pass
    names = {Path(path).name for path in given["canaries"] if "canary-" in path}
    for top in ("/tmp", "/root", "/home", "/work", "/var", "/mnt", "/media", "/srv", "/opt", "/run", "/etc", "/job"):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in ("site-packages", "lib")]
            found += [f"{folder}/{name}" for name in files if name in names]
    return ", ".join(found)


def secrets(given, _):
    """The grader's environment, another process's environment or memory, a descriptor that was left open."""
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
    descriptors = [name for name in os.listdir("/proc/self/fd") if int(name) > 3 and os.path.exists(f"/proc/self/fd/{name}")]
    return ", ".join([*found, *(f"descriptor {name}" for name in descriptors)])


def processes(given, _):
    """Seeing or signalling a process outside."""
    found = []
    if len([name for name in os.listdir("/proc") if name.isdigit()]) > 3:  # itself, process 1, and behind bubblewrap its parent
        found.append("sees other processes")
    try:
        os.kill(given["pid"], 0)
        found.append(f"could signal {given['pid']}")
    except OSError:
        pass
    return ", ".join(found)


def writing(given, folder):
    """Making or changing a file anywhere but in home/ and the private temporary folders."""
    found = []
    for place in ("/", "/usr", "/etc", "/proc/sys/kernel", "/sys", "/dev", folder, sys.prefix, given["warplab"]):
        if place.startswith("/tmp/"):  # a course below /tmp: the folders above its files belong to the private /tmp
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


def landlock(*_):
    """Writing /proc/self/comm, which only Landlock forbids."""
    try:
        os.close(os.open("/proc/self/comm", os.O_WRONLY))
        return "could write /proc/self/comm"
    except OSError:
        return ""


def forks(given, _):
    """More processes than the limit."""
    children = []
    try:
        while len(children) <= given["processes"]:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
        return f"{len(children)} processes, the limit is {given['processes']}"
    except OSError:
        return ""
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def disk(given, folder):
    """More on disk than the limit, in many files."""
    written, block = 0, bytes(1 << 20)
    most = given["disk_mib"]
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


def one_file(given, folder):
    """One file over its limit, sparse so that no disk is needed."""
    file = Path(folder, "home", "sparse")
    try:
        with open(file, "wb") as handle:
            handle.truncate((given["file_mib"] << 20) + 1)
        return f"a file of more than {given['file_mib']} MiB"
    except OSError:
        return ""
    finally:
        file.unlink(missing_ok=True)


def memory(given, _):
    """More memory in one process than the limit; `memory_of_many` does it with several processes, and is killed if all is well."""
    try:
        block = bytearray(given["memory_mib"] << 20)
        return f"allocated {len(block) >> 20} MiB, the limit is {given['memory_mib']} MiB"
    except MemoryError:
        return ""


def memory_of_many(given, _):
    """Three processes with half of the limit each, written to."""
    import mmap

    for _ in range(3):
        if os.fork() == 0:
            block, chunk = mmap.mmap(-1, given["memory_mib"] << 19), bytes(1 << 20)
            while block.tell() < len(block):
                block.write(chunk)
            signal.pause()
    signal.sigtimedwait([], 10)
    return f"three processes wrote {given['memory_mib'] * 3 // 2} MiB, the limit is {given['memory_mib']} MiB"


def offspring(given, _):
    """Leave children behind: sessions of their own, twice forked, deaf to SIGTERM, each holding the channel open."""
    for _ in range(given["children"]):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)  # the one that goes on has no parent but process 1
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            while True:
                signal.pause()
    return ""
