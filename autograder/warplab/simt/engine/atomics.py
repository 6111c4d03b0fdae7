"""Atomic operations: lanes with the same address are served in lane order, one of the orders on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from warplab.simt.engine.fp16 import close, open_
from warplab.simt.engine.movement import space_of
from warplab.simt.engine.warp import REDUCTIONS
from warplab.simt.ptx.parser import Reg
from warplab.simt.ptx.ptx_types import HALVES, TYPES, last_type


def _increment(old, value):
    return np.where(old >= value, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old, value):
    return np.where((old == 0) | (old > value), value, old - old.dtype.type(1))


STEP = {
    **REDUCTIONS,
    "exch": lambda old, value: value,
    "inc": _increment,
    "dec": _decrement,
}
STEP |= {
    f"add.{kind}": lambda old, value, kind=kind: close(open_(old, kind) + open_(value, kind), kind)
    for kind in HALVES
}


def turns(index: np.ndarray) -> np.ndarray:
    """For each lane, how many earlier lanes have the same element: 0 for the first, 1 for the second, ..."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    position = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    turn = np.empty(index.size, np.int64)
    turn[order] = position
    return turn


def update(
    view: np.ndarray,
    index: np.ndarray,
    operation: str,
    value: np.ndarray,
    compare: Any,
    wants_old: bool,
):
    """Apply ``operation`` at ``view[index]`` for every lane. Returns the old values if ``wants_old``, else
    None.

    ``index`` has one element a lane; ``value`` and ``compare`` have one a lane, or one for all.
    """
    if not wants_old and operation in REDUCTIONS:
        REDUCTIONS[operation].at(view, index, np.broadcast_to(value, index.shape))
        return None
    value = np.broadcast_to(value, index.shape)
    old = np.empty(index.shape, view.dtype)
    turn = turns(index)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    start = 0
    for end in ends:
        lanes = by_turn[start:end]
        found = view[index[lanes]]
        old[lanes] = found
        if operation == "cas":
            same = found == np.broadcast_to(compare, index.shape)[lanes]
            view[index[lanes]] = np.where(same, value[lanes], found)
        else:
            view[index[lanes]] = STEP[operation](found, value[lanes])
        start = end
    return old if wants_old else None


OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def atomic(code, instr):
    """The handler of ``atom``, which returns the old value, and ``red``, which does not."""
    operation = next((mod for mod in instr.mods if mod in OPERATIONS), None)
    kind, space = last_type(instr.mods), space_of(instr)
    if operation is None or (kind in HALVES and operation != "add"):
        raise code.unsupported(instr)
    dtype = TYPES[kind].bits if kind in HALVES else TYPES[kind].value
    if kind in HALVES:
        operation = f"add.{kind}"
    operands = list(instr.operands)
    target = operands.pop(0) if instr.opcode == "atom" else None
    base, offset = code.base_and_offset(operands.pop(0))
    sources = [code.use(operand, dtype) for operand in operands]
    compare, value = (sources[0], sources[1]) if operation == "cas" else ("None", sources[0])
    wanted = target is not None and not (isinstance(target, Reg) and target.name == "_")
    place = f"{code.site(instr)}, {space!r}, {base}, {offset}, '{dtype}'"
    expression = f"memory.atomic(group, {place}, {operation!r}, {value}, {compare}, {wanted})"
    if wanted:
        code.define(target, expression, dtype)
    else:
        code.emit(expression)
