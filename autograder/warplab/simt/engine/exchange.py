"""Matrix-shaped moves of a warp (ldmatrix, stmatrix, movmatrix), and cp.async.

An 8 x 8 matrix of 16-bit elements lies in a warp as ``mma.sync`` wants it: lane l holds the elements 2 (l % 4) and the one
after it of row l / 4, in one register.

``cp.async`` copies at once, and the sanitizer refuses reads that come before the copier's wait, or before a barrier where
another thread reads. It counts as a global load and a shared store, each one request a warp.
"""

from __future__ import annotations

import numpy as np

from ..ptx.parser import Imm, Vec
from ..sanitizer.async_copies import AsyncCopies
from .tensor import place, stacked, whole_warps


def _matrices(t, instr) -> tuple[int, str]:
    count = next((int(m[1]) for m in instr.mods if m in ("x1", "x2", "x4")), 0)
    if not count or "m8n8" not in instr.mods or instr.mods[-1] != "b16":
        raise t.unsupported(instr, "shape or type")
    return count, "shared" if {"shared", "shared::cta"} & set(instr.mods) else "generic"


def ldmatrix(t, instr):
    """``ldmatrix.m8n8.x1/x2/x4{.trans}``: lane i of the first 8, 16 or 32 gives the address of one row of 16 bytes."""
    count, space = _matrices(t, instr)
    target, address = instr.operands
    base, offset = t.base_and_offset(address)
    t.emit(f"got = E.load(M, G, {place(t, instr, 'ld', space)}, {space!r}, {base}, {offset}, {count}, {'trans' in instr.mods})")
    for i, d in enumerate(target.items if isinstance(target, Vec) else (target,)):
        t.define(d, f"got[{i}]", "u4")


def stmatrix(t, instr):
    """``stmatrix``, the way back."""
    count, space = _matrices(t, instr)
    address, source = instr.operands
    base, offset = t.base_and_offset(address)
    values = "".join(t.use(v, "u4") + ", " for v in (source.items if isinstance(source, Vec) else (source,)))
    t.emit(f"E.store(M, G, {place(t, instr, 'st', space)}, {space!r}, {base}, {offset}, {count}, {'trans' in instr.mods}, ({values}))")


def movmatrix(t, instr):
    """``movmatrix.trans``: transpose an 8 x 8 matrix across the warp."""
    if "m8n8" not in instr.mods or "trans" not in instr.mods:
        raise t.unsupported(instr)
    d, a = instr.operands
    t.define(d, f"E.turn(M, G, {place(t, instr, 'mma')}, {t.use(a, 'u4')})", "u4")


def cp(t, instr):
    """``cp.async`` of 4, 8 or 16 bytes, its commits and waits; the bulk copies of the TMA are refused."""
    kind = instr.mods[1:2]
    if instr.mods[0] == "async" and kind == ("commit_group",):
        t.emit("E.copies(M).commit(G)")
        return
    if instr.mods[0] == "async" and kind in (("wait_group",), ("wait_all",)):
        t.emit(f"E.copies(M).wait(G, {int(instr.operands[0].value) if instr.operands else -1})")
        return
    if instr.mods[0] != "async" or kind not in (("ca",), ("cg",)):
        raise t.unsupported(instr)
    to, source, size, *rest = instr.operands
    if not isinstance(size, Imm) or len(rest) > 1 or any("cache_hint" in m for m in instr.mods):
        raise t.unsupported(instr)
    (there, offset), (here, start) = t.base_and_offset(to), t.base_and_offset(source)
    sites = place(t, instr, "ld", "global"), place(t, instr, "st", "shared")
    given = t.use(rest[0], "u4") if rest else "None"
    t.emit(f"E.copy(M, G, {sites}, {there}, {offset}, {here}, {start}, {int(size.value)}, {given})")


# --- execution --------------------------------------------------------------------------------------------------------
def _rows(M, group, site, address, count):
    """The lanes that give addresses, as a group of their own, and these addresses."""
    whole_warps(M, group, site)
    mask = group.column < 8 * count
    part = group if count == 4 else group.split(mask, frozenset())
    address = np.broadcast_to(address, (group.size,))
    return part, np.ascontiguousarray(address) if count == 4 else address[mask]


def load(M, group, site, space, address, offset, count: int, trans: bool):
    part, address = _rows(M, group, site, address, count)
    reader = M.load_shared if space == "shared" else M.load_generic
    rows = np.stack(reader(part, site, address, offset, "u4", 4), axis=1).reshape(-1, count, 8, 4)
    if trans:
        rows = _transposed(rows)
    return [np.ascontiguousarray(rows[:, i]).reshape(-1) for i in range(count)]


def store(M, group, site, space, address, offset, count: int, trans: bool, values):
    part, address = _rows(M, group, site, address, count)
    rows = np.stack([np.broadcast_to(v, (group.size,)).reshape(-1, 8, 4) for v in values], axis=1)
    if trans:
        rows = _transposed(rows)
    words = rows.reshape(-1, 4)
    writer = M.store_shared if space == "shared" else M.store_generic
    writer(part, site, address, offset, "u4", tuple(np.ascontiguousarray(words[:, i]) for i in range(4)))


def turn(M, group, site, value):
    whole_warps(M, group, site)
    return _transposed(stacked((value,), group.size).reshape(-1, 8, 4)).reshape(-1)


def _transposed(rows: np.ndarray) -> np.ndarray:
    """(..., 8, 4) words as 8 x 8 halves, transposed, as words again."""
    return np.ascontiguousarray(np.ascontiguousarray(rows).view("u2").swapaxes(-1, -2)).view("u4")


def copies(M) -> AsyncCopies:
    """The machine's watch over asynchronous copies, set up at the first of them."""
    found = next((o for o in M.observers if isinstance(o, AsyncCopies)), None)
    if found is None:
        found = AsyncCopies()
        M.observers.append(found)
    return found


def copy(M, group, sites, there, offset, here, start, size: int, given):
    """``size`` bytes a lane from global to shared memory; where ``given`` bytes are fewer, zeros fill the rest and only they are read."""
    words = size // 4
    if given is None or (given == size).all():
        values = M.load_global(group, sites[0], here, start, "u4", words)
        values = values if words > 1 else [values]
    else:
        values = _read_some(M, group, sites[0], here, start, size, given)
    M.store_shared(group, sites[1], there, offset, "u4", tuple(values))
    target = M._prepare(group, "shared", there)
    copies(M).copied(M.machine, group, sites[1], target.offset + offset, size)


def _read_some(M, group, site, here, start: int, size: int, given):
    """Words of which each lane reads only the first ``given`` bytes; zeros fill the rest."""
    data = np.zeros((group.size, size), np.uint8)
    given = np.minimum(np.broadcast_to(given, (group.size,)), size)
    reads = given > 0
    if reads.any():
        part = group.split(reads, frozenset())
        data[reads] = _bytes(M, part, site, np.broadcast_to(here, (group.size,))[reads], start, size, given[reads])
    return np.ascontiguousarray(data.view("u4").T)


def _bytes(M, group, site, address, start: int, size: int, given):
    """The first ``given`` of ``size`` bytes of each lane, zeros behind them; one request, as the bytes share an aligned piece."""
    access = M._prepare(group, "global", address)
    at = access.offset + start
    end = access.region.size if access.region else 0
    if (at < 0).any() or (at + given > end).any():
        M._fault(group, site, access, start, int(given.max()), end, "global", "read")
    if (at & (size - 1)).any():
        M._misaligned(group, site, access, start, size, "global", "read")
    for o in M.observers:
        o.accessed(M.machine, group, site, access, start, size, "global", "read", None)
    byte = np.arange(size)
    found = access.region.data[np.minimum(at[:, None] + byte, end - 1)]
    return np.where(byte < given[:, None], found, np.uint8(0))
