"""Tensor Core instructions for all warps at once: ``wmma.load``, ``wmma.mma``, ``wmma.store``, ``mma.sync``.

Numbers: every product is exact in float64, the products and the accumulator are summed in float64, and the
result is rounded once to the accumulator's type (to nearest even). A GPU's Tensor Core aligns the products of
a few k to the largest, truncates low bits and adds such groups one after the other, so its last bits differ
from these, and between generations. tf32 operands lose their low 13 bits, as on a GPU. Integers wrap at 32
bits, or clamp with ``.satfinite``.

Layouts: those of ``mma.sync`` are the PTX manual's (groupID = lane / 4, threadID_in_group = lane % 4). Those
of ``wmma`` are not published and differ between GPUs; here lane l holds the l-th piece of the tile in memory
order (accumulators: row by row), so a ``wmma.load`` is one coalesced request for the tile's sectors alone.
Fragments have as many elements as in mma.h, so a 16 x 16 f16 operand is held twice.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from warplab.simt.engine.arithmetic import direction_of
from warplab.simt.engine.fp16 import open_
from warplab.simt.engine.loadstore import SeveralPlaces
from warplab.simt.errors import UnsupportedInstruction, WarpWide
from warplab.simt.ptx.parser import Instr, Vec
from warplab.simt.ptx.ptx_types import TYPES

ELEMENTS = frozenset({"f16", "bf16", "tf32", "f32", "s32", "s8", "u8", "f64"})
WMMA = {"f16": {"m16n16k16", "m32n8k16", "m8n32k16"}, "tf32": {"m16n16k8"}, "f64": {"m8n8k4"}}
WMMA |= dict.fromkeys(("bf16", "s8", "u8"), WMMA["f16"])
MMA = {
    "f16": {"m16n8k8", "m16n8k16"},
    "tf32": {"m16n8k4", "m16n8k8"},
    "s8": {"m8n8k16", "m16n8k16", "m16n8k32"},
}
MMA |= {"bf16": MMA["f16"], "u8": MMA["s8"], "f64": {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}}
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True)
class Tile:
    """A tile in memory: ``outer`` lines of ``inner`` contiguous elements of dtype ``bits``. ``turned``: the
    fragment is row-major and memory is not.
    """

    outer: int
    inner: int
    bits: str
    turned: bool

    @property
    def width(self) -> int:
        """Bytes of each lane's piece."""
        return self.outer * self.inner // 32 * np.dtype(self.bits).itemsize


@dataclass(frozen=True)
class Product:
    """D = A x B + C: the shape, the four types, and the ``layouts`` ("row" or "col") of wmma's A and B in
    memory; None for the layout of mma.sync.
    """

    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    c: str
    layouts: tuple[str, str] | None
    clamps: bool


def shape_of(instr: Instr) -> tuple[int, int, int] | None:
    """(M, N, K) of a tensor instruction."""
    found = next((m for m in map(SHAPE.fullmatch, instr.mods) if m), None)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def flops(instr: Instr) -> int:
    """Floating-point operations that one lane counts: a 32nd of the warp's 2 M N K."""
    shape = shape_of(instr)
    if shape is None or {"s32", "load", "store"} & set(instr.mods):
        return 0  # operations on integers do not count
    return 2 * math.prod(shape) // 32


def wmma(code, instr):
    """``wmma.load.{a,b,c}``, ``wmma.store.d`` and ``wmma.mma``."""
    if instr.mods[0] == "mma":
        _product(code, instr, WMMA, tuple(m for m in instr.mods if m in ("row", "col")))
    elif instr.mods[0] in ("load", "store"):
        _move_tile(code, instr)
    else:
        raise code.unsupported(instr)


def mma(code, instr):
    """``mma.sync`` in the shapes of sm_80 and later, which are all ``.row.col``."""
    if _is_sparse_or_scaled(instr):
        raise code.unsupported(instr, "sparse or scaled operands")
    _product(code, instr, MMA, None)


def _is_sparse_or_scaled(instr: Instr) -> bool:
    return any(mod == "sp" or mod.startswith(("kind", "block_scale", "sp::")) for mod in instr.mods)


def _product(code, instr, known, layouts):
    shape = shape_of(instr)
    types = [m for m in instr.mods if m in ELEMENTS]
    if len(types) == 2:  # wmma's f16 form names the accumulators only
        types = [types[0], "f16", "f16", types[1]]
    name = next((m for m in instr.mods if SHAPE.fullmatch(m)), "")
    has_shape = len(types) == 4 and name in known.get(types[1], ())
    if shape is None or not has_shape or direction_of(instr):
        raise code.unsupported(instr, "shape or type")
    d_type, a_type, b_type, c_type = types
    product = Product(*shape, d_type, a_type, b_type, c_type, layouts, "satfinite" in instr.mods)
    d, a, b, c = (o.items if isinstance(o, Vec) else (o,) for o in instr.operands)
    given = ", ".join(together(code, *fragment) for fragment in zip((a, b, c), types[1:], strict=True))
    site = code.place(instr, "mma")
    code.emit(f"got = tensor.multiply(memory, group, {site}, {keep(code, product)}, {given})")
    for i, target in enumerate(d):
        code.define(target, f"got[{i}]", register(types[0]))


def _move_tile(code, instr):
    storing = instr.mods[0] == "store"
    (m, n, k), kind = shape_of(instr) or (0, 0, 0), instr.mods[-1]
    role = instr.mods[1]
    known = {shape for shapes in WMMA.values() for shape in shapes}
    if kind not in ELEMENTS or not known & set(instr.mods):
        raise code.unsupported(instr, "shape or type")
    lines, across = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    columns = "col" in instr.mods
    outer, inner = (across, lines) if columns else (lines, across)
    tile = Tile(outer, inner, TYPES[kind].bits, columns and role in "cd")
    operands = list(instr.operands)
    fragment = operands.pop(1 if storing else 0)
    base, offset = code.base_and_offset(operands[0])
    stride = code.use(operands[1], "u4") if len(operands) > 1 else code.constant(tile.inner, "u4")
    space = next((s for s in ("global", "shared") if s in instr.mods), "generic")
    site = code.place(instr, "st" if storing else "ld", space)
    at = f"memory, group, {site}, {space!r}, {base}, {offset}, {stride}, {keep(code, tile)}"
    regs = fragment.items if isinstance(fragment, Vec) else (fragment,)
    if storing:
        code.emit(f"tensor.store_tile({at}, {together(code, regs, kind)})")
        return
    code.emit(f"got = tensor.load_tile({at}, {register(kind)!r}, {len(regs)})")
    for i, target in enumerate(regs):
        code.define(target, f"got[{i}]", register(kind))


def keep(code, value) -> str:
    """The name by which generated code can use ``value``."""
    name = f"kept_{len(code.constants)}"
    code.constants[name] = value
    return name


def together(code, registers, kind: str) -> str:
    """The expression of a tuple of registers."""
    return f"({''.join(code.use(r, register(kind)) + ', ' for r in registers)})"


def register(kind: str) -> str:
    """The dtype of a register that holds elements of a type (packed below 32 bits)."""
    return {"f32": "f4", "f64": "f8"}.get(kind, "u4")


def whole_warps(memory, group, site) -> int:
    """The number of warps in the group. Raises WarpWide unless all 32 lanes of each are there."""
    if group.full and group.machine.regular:
        return group.warps
    return whole(memory, group, site, group.row, 32, "a warp", "the warp")


def whole(memory, group, site, number: np.ndarray, size: int, a_unit: str, the_unit: str) -> int:
    """The number of units of ``size`` threads in the group; ``number`` is the unit of each lane. Raises
    WarpWide unless all threads of each unit are there.
    """
    _, first, counts = np.unique(number, return_index=True, return_counts=True)
    if (counts != size).any():
        at = int((counts != size).argmax())
        who = memory.machine.thread_name(group.lanes[first[at]])
        raise memory.program.error(
            WarpWide,
            site,
            f"{int(counts[at])} of the {size} threads of {a_unit} are here (the first is {who})",
            f"an if or loop around this line that only some threads of {the_unit} take, "
            f"and a block of other than a multiple of {size} threads",
        )
    return counts.size


def stacked(registers, size: int) -> np.ndarray:
    """Registers as the columns of an array (size, count), contiguous for each lane."""
    return np.stack([np.broadcast_to(r, (size,)) for r in registers], axis=1)


def _access(memory, group, site, space, base, offset, stride, tile, what, values=None):
    """The access to each lane's piece of the tile, checked and told to the observers."""
    warps = whole_warps(memory, group, site)
    base, stride = (np.broadcast_to(v, (group.size,)).reshape(warps, 32) for v in (base, stride))
    if (base != base[:, :1]).any() or (stride != stride[:, :1]).any():
        why = "the threads of a warp give different addresses or leading dimensions for one tile"
        hint = "the pointer: it may depend on the warp's number and not on the thread's"
        raise memory.program.error(WarpWide, site, why, hint)
    itemsize = np.dtype(tile.bits).itemsize
    start = np.arange(32) * (tile.outer * tile.inner // 32)
    line, column = start // tile.inner, start % tile.inner
    steps = (line * stride.astype(np.int64) + column) * itemsize + offset
    address = (base.view(np.int64) + steps).reshape(-1).view(np.uint64)
    grain = min(tile.width, 16)
    try:
        return memory.access(group, site, space, address, 0, tile.width, what, values, grain)[0]
    except SeveralPlaces:
        why = "the SIMT engine does not execute one instruction on tiles in different memory spaces or arrays"
        raise memory.program.error(UnsupportedInstruction, site, why) from None


def load_tile(memory, group, site, space, base, offset, stride, tile: Tile, dtype: str, count: int):
    """``wmma.load``: ``count`` registers, which repeat the lane's piece if they are more than it fills."""
    access = _access(memory, group, site, space, base, offset, stride, tile, "read")
    words = access.region.view("u4")[access.index(2)[:, None] + np.arange(tile.width // 4)]
    if tile.turned:
        words = _turn(words, tile.outer, tile.inner, tile.bits)
    held = words.view(dtype)
    return [np.ascontiguousarray(held[:, i % held.shape[1]]) for i in range(count)]


def store_tile(memory, group, site, space, base, offset, stride, tile: Tile, registers):
    """``wmma.store``."""
    words = stacked(registers, group.size).view("u4")
    if tile.turned:
        words = _turn(words, tile.inner, tile.outer, tile.bits)
    values = tuple(np.ascontiguousarray(words.T))
    access = _access(memory, group, site, space, base, offset, stride, tile, "write", values)
    access.region.view("u4")[access.index(2)[:, None] + np.arange(tile.width // 4)] = words


def _turn(words: np.ndarray, lines: int, across: int, bits: str) -> np.ndarray:
    """The lanes' pieces of (lines, across) tiles, as pieces of the transposed tiles."""
    turned = words.view(bits).reshape(-1, lines, across).transpose(0, 2, 1)
    return np.ascontiguousarray(turned).reshape(words.shape[0], -1).view("u4")


def multiply(memory, group, site, p: Product, a, b, c):
    """D = A x B + C, as registers."""
    warps = whole_warps(memory, group, site)
    a, b, c = ((stacked(r, group.size).view(TYPES[kind].bits)) for r, kind in ((a, p.a), (b, p.b), (c, p.c)))
    if p.layouts:
        x = _tile(a, warps, p.m, p.k, p.layouts[0])
        y = _tile(b, warps, p.k, p.n, p.layouts[1])
        z = _tile(c, warps, p.m, p.n, "row")
    else:
        halves = p.m // 8  # a lane's registers: rows g and g + 8, then the same further along k
        e = max(1, 4 // a.itemsize)  # elements in a register
        x = a.reshape(warps, 8, 4, -1, halves, e).transpose(0, 4, 1, 3, 2, 5).reshape(warps, p.m, p.k)
        y = b.reshape(warps, 8, 4, -1, e).transpose(0, 3, 2, 4, 1).reshape(warps, p.k, p.n)
        z = c.reshape(warps, 8, 4, halves, 2).transpose(0, 3, 1, 2, 4).reshape(warps, p.m, p.n)
    out = encode(np.matmul(decode(x, p.a), decode(y, p.b)), decode(z, p.c), p)
    if not p.layouts:
        out = out.reshape(warps, halves, 8, 4, 2).transpose(0, 2, 3, 1, 4)
    lanes = np.ascontiguousarray(out).reshape(group.size, -1).view(register(p.d))
    return [np.ascontiguousarray(lanes[:, i]) for i in range(lanes.shape[1])]


def _tile(lanes: np.ndarray, warps: int, rows: int, columns: int, layout: str) -> np.ndarray:
    """The tiles (warps, rows, columns) from the lanes' pieces; repeated elements are taken once."""
    held = lanes[:, : rows * columns // 32]
    if layout == "row":
        return held.reshape(warps, rows, columns)
    return held.reshape(warps, columns, rows).transpose(0, 2, 1)


def decode(bits: np.ndarray, kind: str) -> np.ndarray:
    """Elements as float64, which holds all of these types exactly."""
    bits = np.ascontiguousarray(bits)
    if kind == "bf16":
        return open_(bits, kind).astype("f8")
    if kind == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view("f4").astype("f8")
    return bits.view(TYPES[kind].value).astype("f8")


def encode(product: np.ndarray, c: np.ndarray, p: Product) -> np.ndarray:
    """Product plus accumulator in the result's type, as bit patterns."""
    total = product + c
    if p.d != "s32":
        return total.astype(TYPES[p.d].value).view(TYPES[p.d].bits)
    whole = total.astype("i8")  # exact: far below 2**53
    if p.clamps:
        whole = np.clip(whole, -(1 << 31), (1 << 31) - 1)
    return whole.astype("u4")


def convert(code, instr):
    """``cvt.rna.tf32.f32`` and ``cvt`` to tf32 with other roundings."""
    rounding = next((m for m in instr.mods if m in ("rna", "rn", "rz")), None)
    if rounding is None or "satfinite" in instr.mods:
        raise code.unsupported(instr)
    d, a = instr.operands
    value = f"fp16.relu({code.use(a, 'f4')}).view('u4')" if "relu" in instr.mods else code.use(a, "u4")
    code.define(d, f"tensor.to_tf32({value}, {rounding!r})", "u4")


def to_tf32(bits: np.ndarray, rounding: str) -> np.ndarray:
    """float32 bits rounded to 10 fraction bits: to nearest with ties away from zero (``rna``) or to even
    (``rn``), or towards zero (``rz``).
    """
    up = {"rna": np.uint32(0x1000), "rz": np.uint32(0)}.get(rounding)
    if up is None:
        up = np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)  # also one whose payload would be cut off
    rounded = np.where(special, bits, bits + up)
    return np.where(nan, np.uint32(0x7FFFE000), rounded & np.uint32(0xFFFFE000))
