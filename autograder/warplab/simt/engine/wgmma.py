"""``wgmma``: products of tiles that a warp group (four warps) starts together and waits for later (sm_90a).

A product D = A x B (+ D) has 64 rows of A and N columns of B; a row of A or B in one instruction has 32 bytes
along K. B is in shared memory, A there or in registers, D in registers. An operand in shared memory is given
by a descriptor of 64 bits (PTX ISA, "Matrix descriptor"): bits 0 to 13 are its address, 16 to 29 and 32 to 45
the leading and the stride byte offset, all three without their last four bits; 49 to 51 the base offset; 62
and 63 the swizzle (``swizzle``). The meaning of the two offsets depends on the swizzle and on which dimension
is contiguous (``_places``; the layouts are those of the manual and of CUTLASS's
``mma_traits_sm90_gmma.hpp``).

Sums of floats are Hopper's, bit for bit as far as is published: products and accumulator are aligned to the
largest sum of two factors' exponents (or the accumulator's), truncated after 25 fraction bits, added over the
instruction's K, and truncated to float32; with 8-bit floats 13 fraction bits are kept of each and of the sum.
A sum in float16 is rounded to nearest. The rule is that of MMA-Sim (Xie and others, arXiv:2511.10909), whose
authors compared it with the hardware; on an H200 we found the same bits for 16-bit and TF32 factors. The
layouts agree with an H100's for every swizzle, both major orders, base offsets 0 to 7 and start addresses
within the pattern.

The engine multiplies at once. On a GPU no thread may use the registers of a product, or overwrite its
operands in shared memory, before ``wgmma.wait_group``. So a register that a product can reach
(``registers_of``) is a ``HeldRegister``, which holds its value and its last user; the translator emits
``read`` and ``written`` for these registers only. Errors are: a thread uses a register of a product before
the wait; a product uses a register that a thread has used since the warp group's last ``wgmma.fence``; a
product accumulates in registers of a product of another shape without a fence; a warp group's first product
has no fence before it. A ``mov`` of a register or a constant does not count as a use here, though it does in
the manual, because compilers move both freely.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simt.engine import fp8, tensor
from warplab.simt.engine.async_copies import WORD, ChunkWatch
from warplab.simt.engine.bulk_watch import BulkWatch
from warplab.simt.engine.groups import Group, joined
from warplab.simt.engine.swizzle import PIECE, swizzled
from warplab.simt.engine.taint import Tainted
from warplab.simt.engine.tensor import Product, register, shape_of, stacked
from warplab.simt.engine.wrapped import WrappedArray
from warplab.simt.errors import WarpgroupMisuse, WarpWide
from warplab.simt.ptx.dataflow import register_facts
from warplab.simt.ptx.parser import Function, Imm, Instr, Reg, Vec, leaves
from warplab.simt.ptx.ptx_types import TYPES

LANES = 128  # threads of a warp group
FP8 = ("e4m3", "e5m2")
K_BYTES = 32  # bytes along K of a row of an operand, in one instruction
SUMS = {"f16": {"f16", "f32"}, "bf16": {"f32"}, "tf32": {"f32"}, "s8": {"s32"}, "u8": {"s32"}}
SUMS |= dict.fromkeys(FP8, SUMS["f16"])
SWIZZLES = (0, 128, 64, 32)  # bytes, by the number in a descriptor
SHAPES = " ".join(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32))
LEAST = {"f16": -14, "e5m2": -14, "e4m3": -6}  # least exponents of normal numbers; -126 for other types
THREAD, SUM, FACTOR = range(3)  # the last user of a register: a thread, or a product as its D or its A


@dataclass(frozen=True)
class TileProduct:
    """A product; ``turned``: whether A and B are contiguous along M and N, not along K, in shared memory;
    ``negated``: D = -A x B (+ D).
    """

    product: Product
    turned: tuple[bool, bool]
    negated: bool


def flops(instr: Instr) -> int:
    """Floating-point operations that one lane counts: a 128th of the warp group's 2 M N K."""
    return tensor.flops(instr) // 4


def operand_bytes(instr: Instr) -> int:
    """Bytes of shared memory that a product reads, divided by the lanes: B, and A if it is there."""
    if not _multiplies(instr):
        return 0
    _, n, _ = shape_of(instr) or (0, 0, 0)
    return K_BYTES * (n + 64 * (not isinstance(instr.operands[1], Vec))) // LANES


def registers_of(fn: Function) -> frozenset[str]:
    """The registers of a function that hold D or A of a product, also through copies."""
    body = [item for item in fn.body if isinstance(item, Instr)]
    copies = [{o.name for o in i.operands if isinstance(o, Reg)} for i in body if _copies(i)]
    products = [
        {o.name for o in leaves(*i.operands[:2]) if isinstance(o, Reg)} for i in body if _multiplies(i)
    ]
    marked = ((names, set(names), frozenset([True])) for names in products)
    both_ways = ((names, names, frozenset()) for names in copies)
    return frozenset(name for name, facts in register_facts([*marked, *both_ways]).items() if facts)


def _copies(instr: Instr) -> bool:
    return instr.opcode == "mov" and all(isinstance(o, Reg | Imm) for o in instr.operands)


def _multiplies(instr: Instr) -> bool:
    return instr.opcode == "wgmma" and instr.mods[0] == "mma_async"


def read(code, variable: str) -> str:
    """Emit the check of a read of a register in ``registers_of``; returns the expression of its value."""
    if code.instr.opcode == "wgmma" or _copies(code.instr):
        return variable
    site = code.place(code.instr, code.instr.opcode)
    code.emit(f"{variable} = wgmma.used(memory, group, {site}, {variable})")
    return f"{variable}.now"


def written(code, name: str, expression: str) -> str:
    """The expression of the new content of a register in ``registers_of``, with the check of the write."""
    if code.instr.opcode == "wgmma" or _copies(code.instr):
        return expression
    site, before = code.place(code.instr, code.instr.opcode), f"registers.get({name!r})"
    if name in code.local:
        before = code.local[name][0]
    return f"wgmma.replaced(memory, group, {site}, {expression}, {before})"


def wgmma(code, instr):
    """``wgmma.mma_async``, ``fence``, ``commit_group`` and ``wait_group``."""
    form = instr.mods[0]
    if form == "mma_async":
        _multiply(code, instr)
    elif form in ("fence", "commit_group"):
        code.emit(f"wgmma.products(memory).{'order' if form == 'fence' else 'commit'}(group)")
    elif form == "wait_group" and [o.value >= 0 for o in instr.operands if type(o) is Imm] == [True]:
        code.emit(f"wgmma.wait(memory, group, {int(instr.operands[0].value)})")
    else:
        raise code.unsupported(instr)


def _multiply(code, instr):
    shape = shape_of(instr)
    types = [m for m in instr.mods if m in SUMS or m in ("f32", "s32")]
    if shape is None or len(types) != 3:
        raise code.unsupported(instr, "shape or type")
    (m, n, k), (d_type, a_type, b_type) = shape, types
    alike = a_type == b_type or {a_type, b_type} <= {*FP8} or {a_type, b_type} == {"s8", "u8"}
    if not alike or d_type not in SUMS.get(a_type, ()) or k * _size(a_type) != K_BYTES or n % 8:
        raise code.unsupported(instr, "shape or type")
    whole, clamps = d_type == "s32", "satfinite" in instr.mods
    if (whole and n > 24 and n % 16) or (clamps and not whole):  # the manual's list of N for integers
        raise code.unsupported(instr, "shape or type")
    operands = [o.items if isinstance(o, Vec) else o for o in instr.operands]
    of_d, of_a = (o if isinstance(o, tuple) else () for o in (*operands, None, None)[:2])
    flags = [o.value if isinstance(o, Imm) else None for o in operands[4:]]
    signs, turned = flags[:2], flags[2:]
    expected = 0 if whole else 2 + (_size(a_type) == 2) * (1 if of_a else 2)
    registers = n * _size(d_type) // 8, 4 if of_a else 0
    if len(operands) != 4 + expected or (len(of_d), len(of_a)) != registers:
        raise code.unsupported(instr, f"number of operands or registers, and D has {registers[0]}")
    if not (set(signs) <= {1, -1} and set(turned) <= {0, 1}):
        raise code.unsupported(instr, "operands")
    turns = (not of_a and turned[:1] == [1], turned[-1:] == [1])
    product = Product(m, n, k, d_type, a_type, b_type, d_type, None, clamps)
    form = tensor.keep(code, TileProduct(product, turns, len(set(signs)) == 2))
    kind = register(d_type)
    sums, factors = tensor.together(code, of_d, d_type), tensor.together(code, of_a, a_type)
    first = "None" if of_a else code.use(operands[1], "u8")
    where = f"memory, group, {code.place(instr, 'wgmma', 'shared')}"
    code.emit(
        f"got = wgmma.multiply({where}, {form}, {sums}, {factors}, {first}, "
        f"{code.use(operands[2], 'u8')}, {code.use(operands[3], '?')})"
    )
    for i, target in enumerate((*of_d, *of_a)):
        code.define(target, f"got[{i}]", kind if i < len(of_d) else "u4")


def _size(kind: str) -> int:
    return TYPES[kind].bytes if kind in TYPES else 1


class HeldRegister(WrappedArray):
    """A register of products. ``now``: its elements (which may be wrapped arrays). ``by``: its last user, in
    rows for the kind of user, the number of a product's group, the time and the site, with a column a lane
    or one for all.
    """

    def __init__(self, now, by: np.ndarray):
        super().__init__(now)
        self.by = by

    def __getitem__(self, index):
        return HeldRegister(self.now[index], self.by if self.by.shape[1] == 1 else self.by[:, index])

    def call(self, function, args, settings):
        now = function(*(x.now if isinstance(x, HeldRegister) else x for x in args), **settings)
        return HeldRegister(now, self.by) if function is np.ndarray.view else now

    def through(self, function, args):
        return function(*(x.now if isinstance(x, HeldRegister) else x for x in args))

    def joined(self, parts, places, size):
        now = joined([x.now if isinstance(x, HeldRegister) else x for x in parts], places, size)
        by = np.zeros((4, size), np.int64)
        for part, place in zip(parts, places):
            if isinstance(part, HeldRegister):
                by[:, place] = part.by
        return HeldRegister(now if now.size == size else np.repeat(now, size), by)


@dataclass
class _Reading:
    """An operand in shared memory that a warp group's product reads: the ``addresses`` of its 16-byte pieces,
    in rows of one piece a lane, and their sorted numbers in the chunk's shared memory, ``pieces``.
    """

    lane: int  # the warp group's first lane
    number: int  # the product's group
    site: int
    addresses: np.ndarray
    pieces: np.ndarray


class Products(ChunkWatch):
    """The products of a chunk's warp groups, and an observer that refuses writes to shared memory that a
    product may still read.
    """

    def __init__(self, machine):
        super().__init__(machine)
        self.now = 0  # a time: counts products and fences
        self.fenced = np.zeros(machine.lanes, np.int64)
        self.reading: list[_Reading] = []

    def order(self, group):
        self.now += 1
        self.fenced[group.lanes] = self.now

    def wait(self, group, last: int) -> list[_Reading]:
        """Complete all groups of products except the last ``last`` ones. Returns what they have read."""
        self.wait_group(group, last)
        pending = [r.number >= self.finished[r.lane] for r in self.reading]
        done = [r for r, waits in zip(self.reading, pending) if not waits]
        self.reading = [r for r, waits in zip(self.reading, pending) if waits]
        return done

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Refuse a write to shared memory that a product may still read."""
        if space != "shared" or what == "read" or not self.reading:
            return
        first = np.broadcast_to(access.offset + offset, (group.size,))
        pieces = first[:, np.newaxis] // PIECE + np.arange(max(1, width // PIECE))
        low, high = pieces.min(), pieces.max()
        for reading in self.reading:
            if reading.pieces[0] > high or reading.pieces[-1] < low:
                continue
            hit = np.isin(pieces, reading.pieces).any(axis=1)
            if hit.any():
                i = int(np.flatnonzero(hit)[0])
                place = machine.program.shared_place(int(first[i]) % machine.shared_stride, width)
                whose = f"the warp group of {machine.thread_name(reading.lane)}"
                does = f"writes to {place}, an operand"
                raise _unfinished(machine, group.lanes[i], site, reading.site, does, whose)


def products(memory) -> Products:
    """The chunk's Products."""
    return memory.watch(Products)


def wait(memory, group, last: int) -> None:
    """``wgmma.wait_group``. The operands of complete products may now be overwritten, also by other threads
    that a thread of the warp group synchronises with. So observers are told that these reads end now, and
    that the threads of the warp group have met.
    """
    machine, done = memory.machine, products(memory).wait(group, last)
    if not done:
        return
    for reading in done:
        part = Group(machine, np.arange(reading.lane, reading.lane + LANES), {}, False)
        for address in reading.addresses:
            access = memory.prepare(part, "shared", address)
            for o in memory.observers:
                o.read_ended(machine, part, reading.site, access, PIECE)
    first = np.unique([reading.lane for reading in done])
    lanes = (first[:, np.newaxis] + np.arange(LANES)).reshape(-1)
    for o in memory.observers:
        o.met(machine, lanes, np.repeat(first, LANES))


def used(memory, group, site, value) -> HeldRegister:
    """Check that a thread may read a register; returns it with the thread as its last user."""
    return _by_thread(memory, group, site, value, value, "reads")


def replaced(memory, group, site, value, before) -> HeldRegister:
    """Check that a thread may overwrite ``before`` in a register; returns the register's new content."""
    return _by_thread(memory, group, site, value, before, "overwrites")


def _by_thread(memory, group, site, value, before, does: str) -> HeldRegister:
    found = products(memory)
    if isinstance(before, HeldRegister):
        _refuse_unfinished(found, group, site, before, does, (SUM, FACTOR))
    now = value.now if isinstance(value, HeldRegister) else value
    return HeldRegister(now, np.array([[THREAD], [-1], [found.now], [site]]))


def _refuse_unfinished(found: Products, group, site, value: HeldRegister, does: str, users: tuple) -> None:
    """Raise WarpgroupMisuse if a product that uses a register as one of ``users`` may not be complete."""
    who, number, _, by = np.broadcast_to(value.by, (4, group.size))
    pending = (number >= found.finished[group.lanes]) & np.isin(who, users)
    if pending.any():
        i = int(np.flatnonzero(pending)[0])
        what = "an accumulator" if who[i] == SUM else "a register of A"
        raise _unfinished(group.machine, group.lanes[i], site, int(by[i]), f"{does} {what}", "its warp group")


def _unfinished(machine, lane: int, site: int, by: int, does: str, whose: str) -> WarpgroupMisuse:
    line = machine.program.line_of_site
    return machine.program.error(
        WarpgroupMisuse,
        site,
        f"{machine.thread_name(lane)} {does} ({line(site)}) of the product at {line(by)}, "
        f"for which {whose} has not waited",
        "wgmma.commit_group after the products, then wgmma.wait_group n before this line: "
        "n is the number of later groups that may still be on their way",
    )


def _refuse_unfenced(found: Products, group, site, value: HeldRegister, is_sum: bool) -> None:
    """Raise WarpgroupMisuse if a product uses the register without the fence that it needs."""
    who, _, time, by = np.broadcast_to(value.by, (4, group.size))
    unfenced = time >= found.fenced[group.lanes]
    if not unfenced.any():
        return
    sums = np.unique(by[who == SUM]).tolist()
    texts = {
        s: group.machine.program.sites[s].text for s in (site, *sums)
    }  # a site's modifiers have no shape
    shapes = {s: m[0] for s, text in texts.items() if (m := tensor.SHAPE.search(text))}
    other_shape = [s for s in sums if shapes[s] != shapes[site]]
    bad = unfenced & ((who == THREAD) | is_sum & (who == SUM) & np.isin(by, other_shape))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        line = group.machine.program.line_of_site(int(by[i]))
        user = (
            f"it used itself at {line}" if who[i] == THREAD else f"a product of another shape used at {line}"
        )
        raise _unfenced(group.machine, group.lanes[i], site, f"uses a register that {user}")


def _unfenced(machine, lane: int, site: int, does: str) -> WarpgroupMisuse:
    return machine.program.error(
        WarpgroupMisuse,
        site,
        f"the product of {machine.thread_name(lane)} {does}, and there is no wgmma.fence before it",
        "wgmma.fence.sync.aligned before the first product, and again after threads have used its registers",
    )


def multiply(memory, group, site, form: TileProduct, sums, factors, first, second, keeps):
    """Compute a product. Returns the registers of D and of A, with the product as their last user."""
    groups, found, p = _whole_groups(memory, group, site), products(memory), form.product
    found.now += 1
    if not found.fenced[group.lanes].all():
        lane = group.lanes[np.flatnonzero(found.fenced[group.lanes] == 0)[0]]
        raise _unfenced(memory.machine, lane, site, "is the first of its warp group")
    seen: set[int] = set()
    for registers, is_sum in ((sums, True), (factors, False)):
        for value in registers:
            if not isinstance(value, HeldRegister) or id(value.by) in seen:
                continue
            seen.add(id(value.by))
            _refuse_unfenced(found, group, site, value, is_sum)
            does, users = "uses in a product", (FACTOR,) if is_sum else (SUM,)
            _refuse_unfinished(found, group, site, value, does, users)
    keeps = _same_in_groups(memory, site, keeps, group, groups, "whether it adds to the accumulators")
    added, own = (
        [_plain(memory, group, site, r) for r in regs] for regs in (sums if keeps.any() else (), factors)
    )
    if own:
        x = _of_registers(own, group.size, groups, p)
    else:
        x = _shared(memory, group, site, groups, first, 64, form, 0)
    y = _shared(memory, group, site, groups, second, p.n, form, 1)
    x = -x if form.negated else x
    c = np.zeros((groups, 64, p.n))
    if added:
        bits = stacked(added, group.size).view(TYPES[p.d].bits).reshape(groups, 4, 8, 4, p.n // 8, 2, 2)
        c = tensor.decode(bits.transpose(0, 1, 5, 2, 4, 3, 6).reshape(groups, 64, p.n), p.d)
        c = np.where(keeps[:, np.newaxis, np.newaxis], c, 0.0)
    out = _summed(x, y, c, p).reshape(groups, 4, 2, 8, p.n // 8, 4, 2)
    lanes = (
        np.ascontiguousarray(out.transpose(0, 1, 3, 5, 4, 2, 6)).reshape(group.size, -1).view(register(p.d))
    )
    number = found.committed[group.lanes]
    by = [np.stack(np.broadcast_arrays(who, number, found.now, site)) for who in (SUM, FACTOR)]
    of_d = [HeldRegister(np.ascontiguousarray(column), by[0]) for column in lanes.T]
    return of_d + [HeldRegister(np.broadcast_to(r, (group.size,)), by[1]) for r in own]


def _summed(x: np.ndarray, y: np.ndarray, c: np.ndarray, p: Product) -> np.ndarray:
    """C + X Y^T as bit patterns of the result's type, with the hardware's truncation (see the module)."""
    exact = np.matmul(x, y.transpose(0, 2, 1)) + c
    if p.d == "s32":
        return tensor.encode(exact, np.zeros(1), p)
    kept = 13 if p.a in FP8 else 25
    of_x, of_y, top = _exponents(x, p.a), _exponents(y, p.b), _exponents(c, p.d)
    for k in range(p.k):
        top = np.maximum(top, of_x[:, :, k, np.newaxis] + of_y[:, np.newaxis, :, k])
    unit = np.ldexp(1.0, kept - top)
    total = np.trunc(c * unit) + 0.0  # no negative zero
    for k in range(p.k):
        total += np.trunc(x[:, :, k, np.newaxis] * y[:, np.newaxis, :, k] * unit)
    total /= unit
    if p.d == "f32":
        last = np.ldexp(1.0, min(kept, 23) - _exponents(total, p.d))
        total = np.trunc(total * last) / last
    bits = tensor.encode(np.where(np.isfinite(exact), total, exact), np.zeros(1), p)
    return np.where(np.isnan(exact), np.iinfo(bits.dtype).max >> 1, bits).astype(bits.dtype)


def _exponents(values: np.ndarray, kind: str) -> np.ndarray:
    exponents = np.maximum(np.frexp(values)[1] - 1, LEAST.get(kind, -126))
    return np.where(values == 0, np.int32(-126), exponents)


def _plain(memory, group, site, value: Any) -> np.ndarray:
    """The elements of a register; refuses tainted ones."""
    value = value.now if isinstance(value, HeldRegister) else value
    if isinstance(value, Tainted):
        value.refuse(group, "multiplies it", memory.program.sites[site])
    return value


def _whole_groups(memory, group, site) -> int:
    """The number of warp groups in the group. Raises WarpWide unless all 128 lanes of each are there."""
    return tensor.whole(memory, group, site, group.four_warps, LANES, "a warp group", "the four warps")


def _same_in_groups(memory, site, value, group, groups: int, what: str) -> np.ndarray:
    """The value of each warp group. Raises WarpWide if the threads of one disagree."""
    value = np.broadcast_to(_plain(memory, group, site, value), (group.size,)).reshape(groups, LANES)
    if (value != value[:, :1]).any():
        why = f"the threads of a warp group disagree about {what}"
        raise memory.program.error(
            WarpWide, site, why, "what depends on the thread's number in its warp group"
        )
    return value[:, 0]


def _of_registers(registers, size: int, groups: int, p: Product) -> np.ndarray:
    """A from registers, (groups, 64, K): each warp has 16 rows, in the layout of ``mma``."""
    bits = stacked(registers, size).view(f"u{_size(p.a)}")
    each = 4 // bits.itemsize  # elements in a register
    lanes = bits.reshape(groups, 4, 8, 4, -1, 2, each)
    return _decoded(lanes.transpose(0, 1, 5, 2, 4, 3, 6).reshape(groups, 64, p.k), p.a)


def _decoded(bits: np.ndarray, kind: str) -> np.ndarray:
    return fp8.opened(bits, kind) if kind in FP8 else tensor.decode(bits, kind)


def _shared(
    memory, group, site, groups: int, descriptor, rows: int, form: TileProduct, which: int
) -> np.ndarray:
    """An operand from shared memory, (groups, rows, K). Observers see the lanes read its 16-byte pieces."""
    kind, turned = (form.product.a, form.product.b)[which], form.turned[which]
    what = "the descriptor of a tile in shared memory"
    code = _same_in_groups(memory, site, descriptor, group, groups, what).astype(np.int64)
    within = np.stack([_places(int(each), rows, turned) for each in code])
    count = within.shape[1]
    whole = np.pad(within, ((0, 0), (0, -count % LANES)), mode="wrap").reshape(groups, -1, LANES)
    whole = whole.astype(np.uint64)
    parts, pieces, by_proxy = [], [], memory.watch(BulkWatch).by_proxy
    for i in range(whole.shape[1]):
        address = np.ascontiguousarray(whole[:, i]).reshape(-1)
        access, _ = memory.access(group, site, "shared", address, 0, PIECE, "read")
        for part in range(PIECE // WORD):
            by_proxy(memory.machine, group.lanes, access.offset // WORD + part, site, "product", "wgmma")
        words = access.region.view("u4")[access.index(2)[:, np.newaxis] + np.arange(4)]
        parts.append(words.reshape(groups, LANES, 4))
        pieces.append(access.offset.reshape(groups, LANES) // PIECE)
    found = products(memory)
    for lane, own, mine in zip(group.lanes[::LANES].tolist(), whole, np.concatenate(pieces, axis=1)):
        found.reading.append(_Reading(lane, int(found.committed[lane]), site, own, np.unique(mine)))
    words = np.concatenate(parts, axis=1)[:, :count]
    if turned:  # pieces along M or N, one for each of 16 k
        bits = words.view("u2").reshape(groups, rows // 8, 16, 8)
        bits = bits.transpose(0, 1, 3, 2).reshape(groups, rows, 16)
    else:
        bits = words.reshape(groups, rows, -1).view(f"u{_size(kind)}")
    return _decoded(bits, kind)


@functools.lru_cache(maxsize=1024)
def _places(descriptor: int, rows: int, turned: bool) -> np.ndarray:
    """The byte addresses of an operand's 16-byte pieces: two for each row along K, row by row; if ``turned``,
    16 pieces (one for each k) for each eight rows.

    With L and S for the leading and the stride byte offset. Not turned: a row takes as many bytes as the
    swizzle spans (16 without one), eight rows are contiguous, S is the distance between groups of eight rows,
    and a row's two pieces are neighbours (L apart without a swizzle). Turned: a k takes as many bytes as the
    swizzle spans, eight k are contiguous, S is the distance between groups of eight k, and L that to the next
    elements along M or N (without a swizzle, S and L are exchanged).
    """
    start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    span, base = SWIZZLES[descriptor >> 62 & 3], (descriptor >> 49 & 7) << 7
    pitch = span or PIECE
    if turned:
        unit, k = np.divmod(np.arange(rows * 2), 16)
        each = pitch // PIECE
        along, across = (leading, stride) if span else (stride, leading)
        offset = unit % each * PIECE + unit // each * along + k % 8 * pitch + k // 8 * across
    else:
        row, half = np.divmod(np.arange(rows * 2), 2)
        offset = row % 8 * pitch + row // 8 * stride + half * (PIECE if span else leading)
    place = swizzled(start + offset - base, span) + base
    place.setflags(write=False)
    return place
