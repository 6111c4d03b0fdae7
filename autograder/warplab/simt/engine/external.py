"""Functions of CUDA's device run-time library: printf, malloc, free, assert."""

from __future__ import annotations

import re

import numpy as np

from warplab.simt.engine.generic_addresses import resolve
from warplab.simt.errors import KernelAssertion, OutOfBounds

CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t|L)?([diouxXcsfFeEgGaAp%])")


def call(code, instr):
    """The handler of ``extern.<name> result, arguments...``, which ``ptx.inline`` makes of a call."""
    target, *arguments = instr.operands
    given = ", ".join(code.use(a, code.canonical(a.name)) for a in arguments)
    code.define(
        target,
        f"external.{instr.mods[0]}(memory, group, {code.site(instr)}, {given})",
        "u8" if instr.mods[0] == "malloc" else "u4",
    )


def stop(code, instr):
    """The handler of ``trap``."""
    code.emit(f"external.trap(memory, group, {code.place(instr, 'trap')})")


def memory_of(memory, lane: int, address: int) -> np.ndarray:
    """The memory from a lane's generic address to the end of its region. Raises OutOfBounds."""
    machine = memory.machine
    space, within = resolve(np.array([address], np.uint64))
    at = int(within[0])
    if space == "local":
        base = int(machine.local_base[lane])
        return machine.local.data[base + at : base + machine.program.local_size]
    if space == "shared":
        base = int(machine.shared_base[lane])
        return machine.shared.data[base + at : base + machine.shared_size]
    region = memory.space.find(address)
    if region is None or address - region.base >= region.size:
        message = f"a string or argument list at {address:#x}, where nothing is allocated"
        raise OutOfBounds(message, kernel=machine.program.name)
    return region.data[address - region.base :]


def text_at(memory, lane: int, address: int) -> str:
    """The C string at an address."""
    data = memory_of(memory, lane, address)
    end = np.flatnonzero(data == 0)
    return data[: int(end[0]) if end.size else data.size].tobytes().decode(errors="replace")


def vprintf(memory, group, site, template, arguments):
    """``printf``: formats a text for each lane, in order; the machine prints them when the launch ends."""
    template, arguments = np.broadcast_to(template, (group.size,)), np.broadcast_to(arguments, (group.size,))
    known: dict[int, str] = {}
    for lane, where, pointer in zip(group.lanes.tolist(), template.tolist(), arguments.tolist()):
        if where not in known:
            known[where] = text_at(memory, lane, where)
        reads = "%" in known[where] and pointer
        data = memory_of(memory, lane, pointer) if reads else np.empty(0, np.uint8)
        text, taken = _format(memory, lane, known[where], data)
        for o in memory.observers:
            o.printed(memory.machine, lane, site, pointer, taken)
        memory.machine.printed.append(text)
    return np.zeros(1, np.uint32)


def _format(memory, lane: int, template: str, data: np.ndarray) -> tuple[str, list[tuple[int, int]]]:
    """(formatted text, (offset, bytes) of each argument in ``data``)."""
    at, taken = 0, []

    def take(dtype: str):
        nonlocal at
        width = np.dtype(dtype).itemsize
        at = -(-at // width) * width
        value = data[at : at + width].view(dtype)[0]
        taken.append((at, width))
        at += width
        return value

    def put(m: re.Match) -> str:
        flags, width, precision, length, kind = m.groups()
        if kind == "%":
            return "%"
        width = str(int(take("i4"))) if width == "*" else width or ""
        precision = str(int(take("i4"))) if precision == "*" else precision
        style = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        word = "8" if length in ("l", "ll", "z", "j", "t") else "4"
        if kind in "di":
            return f"{style}d" % int(take(f"i{word}"))
        if kind in "ouxX":
            return (style + ("d" if kind == "u" else kind)) % int(take(f"u{word}"))
        if kind in "csp":
            value = int(take("i4" if kind == "c" else "u8"))
            text = {"c": lambda: chr(value & 0xFF), "s": lambda: text_at(memory, lane, value)}
            return f"{style}s" % text.get(kind, lambda: hex(value))()
        value = float(take("f8"))
        return f"{style}s" % value.hex() if kind in "aA" else (style + kind) % value

    return CONVERSION.sub(put, template), taken


def malloc(memory, group, site, size):
    """``malloc``: one region for the group's lanes, 16-byte aligned, unmapped when all parts are freed."""
    each = (np.broadcast_to(size, (group.size,)).astype(np.int64) + 15) // 16 * 16
    starts = np.cumsum(each) - each
    region = memory.space.add(
        np.full(max(int(each.sum()), 1), 0xFF, np.uint8), "memory from malloc() in the kernel"
    )
    memory.space.heap[region.base] = group.size
    memory.space.allocations += group.size
    return (starts + region.base).astype(np.uint64)


def free(memory, group, site, pointer):
    """``free``: the region of a ``malloc`` is unmapped when the parts of all its lanes are freed."""
    for base, count in zip(*np.unique(np.broadcast_to(pointer, (group.size,)), return_counts=True)):
        region = memory.space.find(int(base))
        if region is not None and region.base in memory.space.heap:
            memory.space.heap[region.base] -= int(count)
            memory.space.releases += int(count)
            if memory.space.heap[region.base] <= 0:
                del memory.space.heap[region.base]
                memory.space.remove(region)
    return np.zeros(1, np.uint32)


def assertfail(memory, group, site, message, file, line, function, charsize):
    """A failed ``assert`` in CUDA C++: raises KernelAssertion for the first lane."""
    lane = int(group.lanes[0])
    said, place = text_at(memory, lane, int(message[0])), text_at(memory, lane, int(file[0]))
    raise KernelAssertion(
        f"{memory.machine.thread_name(lane)} found `{said}` to be false",
        kernel=memory.program.name,
        where=f"{place.rsplit('/', 1)[-1]}:{int(line[0])}",
        hint="the values in the condition, in this thread",
    )


def trap(memory, group, site):
    """``__trap()``, also in library code that cannot go on: raises KernelAssertion."""
    who = memory.machine.thread_name(group.lanes[0])
    raise memory.program.error(KernelAssertion, site, f"{who} stops the kernel with a trap")


def bad_call(memory, group, site, pointer):
    """A call through a pointer that is not the address of a function: raises OutOfBounds."""
    who = memory.machine.thread_name(group.lanes[0])
    message = f"{who} calls a function by the pointer {int(pointer[0]):#x}, where there is no function"
    raise memory.program.error(OutOfBounds, site, message, "the function pointer was never set")
