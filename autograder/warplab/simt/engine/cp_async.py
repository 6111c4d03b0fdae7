"""``cp.async``: asynchronous copies from global to shared memory.

The engine copies at once; ``async_copies`` refuses reads before the wait of the thread that started the copy.
A copy counts as a global load and a shared store, each one request a warp.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine import bulk_copies, mbarrier
from warplab.simt.engine.async_copies import copies
from warplab.simt.engine.loadstore import slots_of
from warplab.simt.ptx.parser import Imm


def cp(code, instr):
    """The handler of ``cp.async`` (4, 8 or 16 bytes), its commits and waits, and of TMA (``bulk_copies``)."""
    if "bulk" in instr.mods:
        bulk_copies.bulk(code, instr)
        return
    form = instr.mods[1] if instr.mods[:1] == ("async",) and len(instr.mods) > 1 else ""
    if form == "commit_group":
        code.emit("async_copies.copies(memory).commit(group)")
    elif form in ("wait_group", "wait_all"):
        pending = int(instr.operands[0].value) if instr.operands else -1
        code.emit(f"async_copies.copies(memory).wait(group, {pending})")
    elif form == "mbarrier":
        where = mbarrier.place(code, instr, instr.operands[0])
        code.emit(f"mbarrier.track({where}, {'noinc' in instr.mods})")
    elif form in ("ca", "cg"):
        _start_copy(code, instr)
    else:
        raise code.unsupported(instr)


def _start_copy(code, instr) -> None:
    to, source, size, *rest = instr.operands
    hinted = any("cache_hint" in mod for mod in instr.mods)
    if hinted or len(rest) > 1 or not isinstance(size, Imm):
        raise code.unsupported(instr)
    (there, offset), (here, start) = code.base_and_offset(to), code.base_and_offset(source)
    sites = code.place(instr, "ld", "global"), code.place(instr, "st", "shared")
    given = code.use(rest[0], "u4") if rest else "None"
    where = f"{there}, {offset}, {here}, {start}"
    code.emit(f"cp_async.copy(memory, group, {sites}, {where}, {int(size.value)}, {given})")


def copy(memory, group, sites, there, offset, here, start, size: int, given):
    """Copy ``size`` bytes a lane from global to shared memory. If fewer bytes are ``given``, only these are
    read, and zeros fill the rest.
    """
    words = size // 4
    if given is None or (given == size).all():
        values = memory.load(group, sites[0], "global", here, start, "u4", words)
        values = values if words > 1 else [values]
    else:
        values = _read_some(memory, group, sites[0], here, start, size, given)
    memory.store(group, sites[1], "shared", there, offset, "u4", tuple(values))
    target = memory.prepare(group, "shared", there)
    copies(memory).copied(group, sites[1], target.offset + offset, size)


def _read_some(memory, group, site, here, start: int, size: int, given):
    """The words of which each lane reads only the first ``given`` bytes; zeros fill the rest."""
    data = np.zeros((group.size, size), np.uint8)
    given = np.minimum(np.broadcast_to(given, (group.size,)), size)
    here = np.broadcast_to(here, (group.size,))
    slots = slots_of(here + np.uint64(start))  # different lanes may read different arrays
    for slot in np.unique(slots[given > 0]):
        reads = (slots == slot) & (given > 0)
        part = group.split(reads, frozenset())
        data[reads] = _bytes(memory, part, site, here[reads], start, size, given[reads])
    return np.ascontiguousarray(data.view("u4").T)


def _bytes(memory, group, site, address, start: int, size: int, given):
    """The first ``given`` of ``size`` bytes of each lane, then zeros.

    One request, because a lane's bytes are in one aligned piece of ``size`` bytes.
    """
    access = memory.prepare(group, "global", address)
    at, end = access.offset + start, memory.size_of("global", access)
    if (at < 0).any() or (at + given > end).any():
        memory.fault(group, site, access, start, int(given.max()), end, "global", "read")
    if (at & (size - 1)).any():
        memory.misaligned(group, site, access, start, size, "global", "read")
    for o in memory.observers:
        o.accessed(memory.machine, group, site, access, start, size, "global", "read", None)
    byte = np.arange(size)
    found = access.region.data[np.minimum(at[:, None] + byte, end - 1)]
    return np.where(byte < given[:, None], found, np.uint8(0))
