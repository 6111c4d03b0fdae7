"""Landlock: a process irrevocably restricts its own access to files, ports, signals and sockets.

Numbers are from include/uapi/linux/landlock.h; `abi()` tells how much of it this kernel supports.
"""

import ctypes
import os
from collections.abc import Iterable

from autograder.sandbox.linux import syscall

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1
EXECUTE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
WRITE_FILE, MAKE_DEVICES, TRUNCATE, IOCTL = 1 << 1, 1 << 6 | 1 << 11, 1 << 14, 1 << 15
TCP, SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # {ABI: number of access rights it handles}; 16 from ABI 5 on


class PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def abi() -> int:
    """The version of Landlock's ABI in this kernel, 0 without Landlock."""
    try:
        return syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
    except OSError:
        return 0


def name() -> str:
    """ "Landlock 7", with the ABI's version, or "no Landlock"."""
    return f"Landlock {abi()}" if abi() else "no Landlock"


def restrict(
    listable: Iterable[str], readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]
) -> int:
    """Restrict this process and its children from now on. Needs no_new_privs. Returns the ABI used.

    It may list folders below `listable`, read and execute below `readable`, do everything but make devices
    below `writable`, and read, write and ioctl below `devices`. It reaches no TCP port (ABI 4), and no signal
    or abstract socket of a process outside (ABI 6).
    """
    version = abi()
    if not version:
        return 0
    files = (1 << FILE_RIGHTS.get(version, 16)) - 1
    wanted = (ctypes.c_uint64 * 3)(files, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = syscall(CREATE_RULESET, ctypes.byref(wanted), size, 0)
    rules = (
        (listable, READ_FOLDER),
        (readable, EXECUTE | READ_FILE | READ_FOLDER),
        (writable, ~(MAKE_DEVICES | IOCTL)),
        (devices, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL),
    )
    for paths, rights in rules:
        for path in paths:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(PathRule(rights & files, folder)), 0)
            os.close(folder)
    syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return version
