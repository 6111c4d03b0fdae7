"""System calls that Python 3.11 does not wrap, each as a function that raises OSError.

Linux only, x86-64 and aarch64.
"""

import ctypes
import errno
import os
import platform
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = platform.machine()

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 16384, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8

# mallopt(3): bytes kept free at the heap's end before they are returned; size from which memory is mmapped
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, KEPT, MAPPED = -1, -3, 64 << 20, 4 << 20

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, os.O_CLOEXEC, 4
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # from 424 on numbers are the same on all machines

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 23, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 36, 38, 39
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITY_VERSION_3 = 0x20080522


def syscall(number: int, *arguments: Any) -> int:
    """Raw system call. Returns its result; raises OSError.

    bytes and ctypes' references are passed by address, None as 0.
    """
    return _checked(LIBC.syscall(ctypes.c_long(number), *map(_register, arguments)))


def _register(value: Any) -> Any:
    """An argument for ctypes: an int becomes a c_long, as ctypes would cut a plain int to 32 bits."""
    return ctypes.c_long(value or 0) if value is None or isinstance(value, int) else value


def prctl(option: int, *arguments: int) -> int:
    """prctl(2); missing arguments are 0."""
    return _checked(LIBC.prctl(option, *(ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4])))


def unshare(flags: int) -> None:
    """Give this process new namespaces."""
    _checked(LIBC.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2); kind "" where a call needs none."""
    type_ = kind.encode() if kind else None
    result = LIBC.mount(source.encode(), os.fsencode(target), type_, ctypes.c_ulong(flags), options.encode())
    _checked(result, target)


def detach(target: str) -> None:
    """Unmount `target` and everything below it, at once for new look-ups."""
    _checked(LIBC.umount2(os.fsencode(target), MNT_DETACH), target)


def clone_tree(path: str) -> int:
    """A detached copy of the mounts at and below `path`, as a file descriptor."""
    try:
        flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
        return syscall(OPEN_TREE, AT_FDCWD, os.fsencode(path), flags)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from None


def restrict_tree(tree: int, attributes: int, path: bytes = b"", recursive: bool = True) -> None:
    """Add mount attributes (ATTR_*) to the mounts of a descriptor, or of `path` with tree=AT_FDCWD."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = (0 if path else AT_EMPTY_PATH) | (AT_RECURSIVE if recursive else 0)
    syscall(MOUNT_SETATTR, tree, path, flags, ctypes.byref(wanted), ctypes.sizeof(wanted))


def attach_tree(tree: int, target: str) -> None:
    """Put a detached copy where `target` is and close its descriptor."""
    syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def pivot_to(folder: str) -> None:
    """Make `folder`, a mount point, the root of this mount namespace.

    Nothing of the old root can be reached afterwards.
    """
    os.chdir(folder)
    syscall(PIVOT_ROOT[MACHINE], b".", b".")
    detach(".")
    os.chdir("/")


def become(user: int) -> None:
    """Become an ordinary user (and group) without capabilities, which no later exec can regain."""
    for capability in range(64):
        try:
            if prctl(PR_CAPBSET_READ, capability):
                prctl(PR_CAPBSET_DROP, capability)
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # EINVAL: the kernel has no capability of this number
                raise
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if os.getuid() != user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    header, nothing = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _checked(LIBC.capset(header, nothing))


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory for the next allocation.

    The engine allocates and frees arrays of lanes all the time, and each page returned to the kernel would
    cost a page fault when it is used again.
    """
    if hasattr(LIBC, "mallopt"):  # glibc
        LIBC.mallopt(M_TRIM_THRESHOLD, KEPT)
        LIBC.mallopt(M_MMAP_THRESHOLD, MAPPED)


def _checked(result: int, name: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), *([str(name)] if name else []))
    return result
