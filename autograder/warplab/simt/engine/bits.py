"""Handlers of instructions on bits (shifts, fields, permutations, counts), or functions that make one."""

from __future__ import annotations

from warplab.simt.ptx.parser import Imm
from warplab.simt.ptx.ptx_types import dtype_of, unsigned


def lop3(code, instr):
    """``lop3``: any function of three bits, as an or of ands, one for each set bit of its table of eight."""
    d, a, b, c, table = instr.operands
    x, y, z = (code.use(o, "u4") for o in (a, b, c))
    terms = []
    for row in range(8):
        if int(table.value) >> row & 1:
            factors = (v if row >> place & 1 else f"~{v}" for v, place in ((x, 2), (y, 1), (z, 0)))
            terms.append(f"({' & '.join(factors)})")
    code.define(d, " | ".join(terms) or f"{x} & ~{x}", "u4")


def shift(direction: str):
    """The handler of ``shl`` ("left") or ``shr`` ("right", which fills signed types with the sign)."""
    operator = {"left": "<<", "right": ">>"}[direction]

    def handler(code, instr):
        dtype = dtype_of(instr.mods)
        d, a, b = instr.operands
        if direction == "left":
            dtype = unsigned(dtype)
        source = code.use(a, dtype)
        width = int(dtype[1]) * 8
        if isinstance(b, Imm) and 0 <= b.value < width:  # the common case needs no clamping
            code.define(d, f"{source} {operator} {code.constant(b.value, dtype)}", dtype)
        else:
            code.define(d, f"numeric.shift_{direction}({source}, {code.use(b, 'u4')})", dtype)

    return handler


def shf(code, instr):
    """``shf``: a shift of two registers joined to 64 bits; the amount is wrapped or clamped."""
    d, low, high, amount = instr.operands
    if "wrap" in instr.mods:
        distance = f"({code.use(amount, 'u4')} & np.uint32(31))"
    else:
        distance = f"np.minimum({code.use(amount, 'u4')}, np.uint32(32))"
    joined = f"(({code.use(high, 'u4')}.astype('u8') << np.uint64(32)) | {code.use(low, 'u4')})"
    if "l" in instr.mods:
        code.define(d, f"(({joined} << {distance}.astype('u8')) >> np.uint64(32)).astype('u4')", "u4")
    else:
        code.define(d, f"({joined} >> {distance}.astype('u8')).astype('u4')", "u4")


def bfind(code, instr):
    """``bfind``: the number of the highest set bit (of a negative number, the highest clear bit), or all ones
    if there is none. ``.shiftamt`` counts from the top.
    """
    d, a = instr.operands
    code.define(d, f"numeric.bfind({code.use(a, dtype_of(instr.mods))}, {'shiftamt' in instr.mods})", "u4")


def bmsk(code, instr):
    """``bmsk``: a mask of ``length`` ones from bit ``start`` on, both clamped to 32 or taken modulo 32."""
    if instr.mods[0] not in ("clamp", "wrap"):
        raise code.unsupported(instr)
    d, *sources = instr.operands
    limit = "np.minimum({}, np.uint32(32))" if instr.mods[0] == "clamp" else "({} & np.uint32(31))"
    start, length = (f"{limit.format(code.use(source, 'u4'))}.astype('u8')" for source in sources)
    ones = f"((np.uint64(1) << {length}) - np.uint64(1))"
    code.define(d, f"({ones} << {start}).astype('u4')", "u4")


def prmt(code, instr):
    d, a, b, selector = instr.operands
    chosen = code.use(selector, "u4")
    if len(instr.mods) > 1:
        chosen = f"numeric.PRMT[{instr.mods[1]!r}][{chosen} & np.uint32(3)]"
    code.define(d, f"numeric.prmt({code.use(a, 'u4')}, {code.use(b, 'u4')}, {chosen})", "u4")
