"""A seccomp filter: system calls that a student's process has no use for are refused.

That is before the kernel looks at them. A list of refusals, as in Docker's default profile, and not of
permissions: the CUDA driver's calls are not documented. Socket families other than AF_UNIX are refused here
too, because AF_VSOCK reaches the host past a network namespace.
"""

import ctypes
import errno
import socket
import struct

from autograder.sandbox import linux
from autograder.sandbox.linux import MACHINE, prctl

PR_SET_SECCOMP, MODE_FILTER = 22, 2
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000
NAMESPACES = (
    linux.CLONE_NEWNS
    | linux.CLONE_NEWCGROUP
    | linux.CLONE_NEWUTS
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUSER
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
)
TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into the instructor's terminal

# name: (x86-64, aarch64); None where the machine has no such call
REFUSED: dict[str, tuple[int, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    # another view of the file system
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    # the kernel itself
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "acct": (163, 89),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    # memory that no process's limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    # words to another jail through the files that both may read: locks, and news of who opens them
    "flock": (73, 32),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
}
SOCKET, CLONE, CLONE3, IOCTL, FCNTL = {
    "x86_64": (41, 56, 435, 16, 72),
    "aarch64": (198, 220, 435, 29, 25),
}.get(MACHINE, (0,) * 5)  # program() refuses any other machine
LOCKS = (
    5,
    6,
    7,
    36,
    37,
    38,
    1024,
    1026,
)  # F_GETLK, F_SETLK, F_SETLKW, those of open files, F_SETLEASE, F_NOTIFY

LOAD, EQUAL, ANY_BIT, AT_LEAST, RETURN = (
    0x20,
    0x15,
    0x45,
    0x35,
    0x06,
)  # BPF_LD|W|ABS, BPF_JMP|JEQ, JSET, JGE, BPF_RET
NUMBER, ARCH, ARGUMENT_0, ARGUMENT_1 = 0, 4, 16, 24  # offsets in struct seccomp_data, little-endian low words
ALLOW, KILL = 0x7FFF0000, 0x80000000


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def refuse(number: int) -> int:
    """The filter's verdict "fail with this errno"."""
    return 0x00050000 | number


def program() -> bytes:
    """The filter as the bytes of its BPF instructions.

    Raises ValueError on a machine that it has no numbers for.
    """
    column = ("x86_64", "aarch64").index(MACHINE)
    code = [
        (LOAD, 0, 0, ARCH),
        (EQUAL, 1, 0, AUDIT_ARCH[MACHINE]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    if MACHINE == "x86_64":
        code += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, refuse(errno.ENOSYS))]
    for number in (numbers[column] for numbers in REFUSED.values()):
        if number is not None:
            code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse(errno.EPERM))]
    permit, forbid = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, refuse(errno.EPERM))
    # glibc falls back to clone, whose flags a filter can read
    code += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, refuse(errno.ENOSYS))]
    code += [(EQUAL, 0, 4, CLONE), (LOAD, 0, 0, ARGUMENT_0), (ANY_BIT, 0, 1, NAMESPACES), forbid, permit]
    code += [(EQUAL, 0, 4, SOCKET), (LOAD, 0, 0, ARGUMENT_0), (EQUAL, 1, 0, socket.AF_UNIX), forbid, permit]
    code += [(EQUAL, 0, 5, IOCTL), (LOAD, 0, 0, ARGUMENT_1)]
    code += [(EQUAL, 1, 0, TERMINAL[0]), (EQUAL, 0, 1, TERMINAL[1]), forbid, permit]
    code += [(EQUAL, 0, 3 + len(LOCKS), FCNTL), (LOAD, 0, 0, ARGUMENT_1)]
    code += [(EQUAL, len(LOCKS) - place, 0, command) for place, command in enumerate(LOCKS)]
    code += [permit, forbid, permit]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def install() -> None:
    """Filter this process and all its children from now on. Needs no_new_privs.

    Raises OSError where the kernel has no seccomp.
    """
    code = program()
    filter_ = FilterProgram(len(code) // 8, code)
    prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(filter_))
