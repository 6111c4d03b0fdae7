"""Warp-wide moves of matrices: ldmatrix, stmatrix and movmatrix.

An 8 x 8 matrix of 16-bit elements has the layout of ``mma.sync`` in a warp: one register of lane l holds the
elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.tensor import stacked, whole_warps
from warplab.simt.ptx.parser import Vec


def _matrices(code, instr) -> tuple[int, str]:
    count = next((int(m[1]) for m in instr.mods if m in ("x1", "x2", "x4")), 0)
    if not count or "m8n8" not in instr.mods or instr.mods[-1] != "b16":
        raise code.unsupported(instr, "shape or type")
    return count, "shared" if "shared" in instr.mods else "generic"


def ldmatrix(code, instr):
    """``ldmatrix.m8n8.x1/x2/x4{.trans}``: each of the first 8, 16 or 32 lanes gives the address of a row of
    16 bytes.
    """
    count, space = _matrices(code, instr)
    target, address = instr.operands
    base, offset = code.base_and_offset(address)
    where = f"{code.place(instr, 'ld', space)}, {space!r}, {base}, {offset}"
    code.emit(f"got = matrix_moves.load(memory, group, {where}, {count}, {'trans' in instr.mods})")
    for i, d in enumerate(target.items if isinstance(target, Vec) else (target,)):
        code.define(d, f"got[{i}]", "u4")


def stmatrix(code, instr):
    """``stmatrix``, the store that corresponds to ``ldmatrix``."""
    count, space = _matrices(code, instr)
    address, source = instr.operands
    base, offset = code.base_and_offset(address)
    parts = source.items if isinstance(source, Vec) else (source,)
    values = "".join(f"{code.use(part, 'u4')}, " for part in parts)
    where = f"{code.place(instr, 'st', space)}, {space!r}, {base}, {offset}"
    code.emit(f"matrix_moves.store(memory, group, {where}, {count}, {'trans' in instr.mods}, ({values}))")


def movmatrix(code, instr):
    """``movmatrix.trans``: transpose an 8 x 8 matrix across the warp."""
    if "m8n8" not in instr.mods or "trans" not in instr.mods:
        raise code.unsupported(instr)
    d, a = instr.operands
    site = code.place(instr, "mma")
    code.define(d, f"matrix_moves.turn(memory, group, {site}, {code.use(a, 'u4')})", "u4")


def _rows(memory, group, site, address, count):
    """(the group of the lanes that give addresses, these addresses)."""
    whole_warps(memory, group, site)
    mask = group.column < 8 * count
    part = group if count == 4 else group.split(mask, frozenset())
    address = np.broadcast_to(address, (group.size,))
    return part, np.ascontiguousarray(address) if count == 4 else address[mask]


def load(memory, group, site, space, address, offset, count: int, trans: bool):
    part, address = _rows(memory, group, site, address, count)
    rows = np.stack(memory.load(part, site, space, address, offset, "u4", 4), axis=1).reshape(-1, count, 8, 4)
    if trans:
        rows = _transposed(rows)
    return [np.ascontiguousarray(rows[:, i]).reshape(-1) for i in range(count)]


def store(memory, group, site, space, address, offset, count: int, trans: bool, values):
    part, address = _rows(memory, group, site, address, count)
    rows = np.stack([np.broadcast_to(v, (group.size,)).reshape(-1, 8, 4) for v in values], axis=1)
    if trans:
        rows = _transposed(rows)
    words = rows.reshape(-1, 4)
    values = tuple(np.ascontiguousarray(words[:, i]) for i in range(4))
    memory.store(part, site, space, address, offset, "u4", values)


def turn(memory, group, site, value):
    whole_warps(memory, group, site)
    return _transposed(stacked((value,), group.size).reshape(-1, 8, 4)).reshape(-1)


def _transposed(rows: np.ndarray) -> np.ndarray:
    """The transposes of 8 x 8 matrices of 16-bit elements, given and returned as words (..., 8, 4)."""
    return np.ascontiguousarray(np.ascontiguousarray(rows).view("u2").swapaxes(-1, -2)).view("u4")
