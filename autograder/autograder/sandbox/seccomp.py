"""A seccomp filter that allows the system calls of system_calls.yml and refuses all others.

The list began as that of container engines. The filter is compiled here, as the Python binding of libseccomp
on PyPI (pyseccomp) was last released in 2021 and needs the system's library. It finds a call by binary search
through the allowed ranges; from Linux 5.11 on the kernel caches verdicts that do not depend on arguments in a
bitmap and does not run the filter for them.
"""

import ctypes
import errno
import functools
import itertools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from autograder.sandbox.linux import MACHINE, prctl

PR_SET_SECCOMP, MODE_FILTER = 22, 2
MACHINES = ("x86_64", "aarch64")  # the columns of system_calls.yml
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
YOUNG = 424  # calls from this number on (Linux 5.1) are refused with ENOSYS, for which programs fall back
LOAD, AND, GO, RETURN = 0x20, 0x54, 0x05, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND|K, BPF_JMP|JA, BPF_RET
# BPF_JMP|JEQ, JGE: skip the first number of instructions if the test holds, else the second number
EQUAL, AT_LEAST = 0x15, 0x35
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; an argument's low word comes first
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000  # REFUSE is combined with an error number

Instruction = tuple[int, int, int, int]


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


@functools.cache
def calls() -> dict[str, Any]:
    """system_calls.yml: "always", "gpu", "conditional" are {name: numbers}, the others {name: conditions}."""
    return yaml.safe_load(Path(__file__).with_name("system_calls.yml").read_text(encoding="utf-8"))


def verdicts(gpu: bool) -> dict[int, list[Instruction]]:
    """{number of a call on this machine: code that decides about it}, for every call that may be allowed.

    Raises ValueError on a machine that system_calls.yml has no numbers for.
    """
    column = MACHINES.index(MACHINE)
    names: dict[str, list[int | None]] = calls()["always"] | calls()["conditional"]
    names = names | calls()["gpu"] if gpu else names
    conditions = calls()["gpu_conditions" if gpu else "conditions"]
    return {
        number: held(conditions.get(name, ()), errno.EAGAIN if name == "futex" else errno.EPERM)
        for name, numbers in names.items()
        if (number := numbers[column]) is not None
    }


def answer(verdict: int) -> list[Instruction]:
    """The instruction that ends the filter."""
    return [(RETURN, 0, 0, verdict)]


def refusal(number: int) -> list[Instruction]:
    """Code that refuses the call of this number with EPERM, or from YOUNG on with ENOSYS."""
    return answer(REFUSE | (errno.ENOSYS if number >= YOUNG else errno.EPERM))


def held(
    conditions: Sequence[tuple[int, int, Sequence[int]]], otherwise: int = errno.EPERM
) -> list[Instruction]:
    """Code that allows a call if for every (argument, mask, values) the masked argument is one of the values.

    otherwise: the error of a refused call. For futex it is EAGAIN, "look at the value again": with any other,
    glibc aborts a process that joins a thread.
    """
    code: list[Instruction] = []
    for argument, mask, values in conditions:
        code += [(LOAD, 0, 0, ARGUMENTS + 8 * argument), (AND, 0, 0, mask)]
        code += [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
        code += answer(REFUSE | otherwise)
    return code + answer(ALLOW)


@functools.cache
def program(gpu: bool) -> bytes:
    """The filter as the bytes of its BPF instructions. Raises ValueError on a machine without numbers."""
    allowed = verdicts(gpu)
    starts = {0, YOUNG, *allowed, *(number + 1 for number in allowed)}
    every = [(number, allowed.get(number, refusal(number))) for number in sorted(starts)]
    ranges = [next(same) for _, same in itertools.groupby(every, key=lambda start: start[1])]
    code = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, AUDIT_ARCH[MACHINE]), *answer(KILL), (LOAD, 0, 0, NUMBER)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in (*code, *search(ranges)))


def search(ranges: Sequence[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Code for a binary search in sorted (first number, code): runs the last not above the call's number."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = search(ranges[:middle]), search(ranges[middle:])
    return [(AT_LEAST, 0, 1, ranges[middle][0]), (GO, 0, 0, len(below)), *below, *above]


def install(gpu: bool) -> None:
    """Filter this process and all its children from now on. Needs no_new_privs.

    gpu: also allow the calls that a GPU's driver makes. Raises OSError where the kernel has no seccomp.
    """
    code = program(gpu)
    filter_ = FilterProgram(len(code) // 8, code)
    prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(filter_))
