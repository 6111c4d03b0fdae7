"""Small integers packed in 32 bits: dp4a, dp2a, video instructions (vabsdiff4 ...), 16-bit pairs."""

from __future__ import annotations

import numpy as np

from warplab.simt.ptx.ptx_types import TYPES, last_type


def _sign(mod: str) -> str:
    return "i" if mod[0] == "s" else "u"


def dot(code, instr):
    """``dp4a.atype.btype`` and ``dp2a.lo/hi.atype.btype``: a dot product of bytes (dp2a: of 16-bit values and
    bytes) plus c.
    """
    a_type, b_type = (m for m in instr.mods if m in ("s32", "u32"))
    d, a, b, c = instr.operands
    pairs = "hi" if "hi" in instr.mods else "lo" if instr.opcode == "dp2a" else None
    a_part = f"{_sign(a_type)}{2 if pairs else 1}"
    operands = ", ".join(code.use(operand, "u4") for operand in (a, b, c))
    code.define(d, f"packed.dot_of({operands}, {a_part!r}, '{_sign(b_type)}1', {pairs!r})", "u4")


def dot_of(a, b, c, a_part, b_part, pairs):
    x, y = _parts(a, a_part), _parts(b, b_part)
    if pairs:
        y = y[:, 2:] if pairs == "hi" else y[:, :2]
    return ((x.astype("i8") * y).sum(axis=1) + c).astype("u4")


def _parts(x, dtype: str):
    return np.ascontiguousarray(x).view(dtype).reshape(x.size, -1)


VIDEO = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda x, y: np.abs(x - y),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda x, y: (x + y + 1) >> 1,
}


def video(code, instr):
    """``vadd2``, ``vabsdiff4`` ...: an operation on two halves or four bytes; with ``.add``, the sum of the
    results plus c.
    """
    name, lanes = instr.opcode[:-1], int(instr.opcode[-1])
    kinds = [m for m in instr.mods if m in ("s32", "u32")]
    if len(kinds) != 3:
        raise code.unsupported(instr)
    d, a, b, *c = instr.operands  # without .add, c only fills what a mask leaves out
    clamp = _sign(kinds[0]) if "sat" in instr.mods else None
    signs = f"{_sign(kinds[1])!r}, {_sign(kinds[2])!r}"
    total = code.use(c[0], "u4") if "add" in instr.mods else "None"
    operands = f"{code.use(a, 'u4')}, {code.use(b, 'u4')}, {total}"
    code.define(d, f"packed.in_parts({operands}, {name!r}, {4 // lanes}, {signs}, {clamp!r})", "u4")


def in_parts(a, b, c, name: str, width: int, a_sign: str, b_sign: str, clamp: str | None):
    """A video instruction on parts of ``width`` bytes. ``c``: the sum of the results is added to it (None:
    no sum); ``clamp``: "i" or "u", the kind of integer to clamp to.
    """
    x, y = np.broadcast_arrays(
        _parts(a, f"{a_sign}{width}").astype("i8"), _parts(b, f"{b_sign}{width}").astype("i8")
    )
    out = VIDEO[name](x, y)
    if c is not None:
        return (out.sum(axis=1) + c).astype("u4")
    if clamp:
        info = np.iinfo(f"{clamp}{width}")
        out = np.clip(out, info.min, info.max)
    return np.ascontiguousarray(out.astype(f"u{width}")).view("u4").reshape(-1)


def in_pairs(function: str):
    """The handler of ``add``, ``min`` or ``max`` of pairs of 16-bit integers, by a ``function`` of NumPy."""

    def handler(code, instr):
        dtype = TYPES[last_type(instr.mods)].value
        d, a, b = instr.operands
        values = f"{code.use(a, 'u4')}, {code.use(b, 'u4')}"
        code.define(d, f"packed.pairs({values}, np.{function}, {dtype!r}, {'relu' in instr.mods})", "u4")

    return handler


def pairs(a, b, function, dtype: str, relu: bool):
    out = function(*np.broadcast_arrays(_parts(a, dtype), _parts(b, dtype)))
    if relu:
        out = np.maximum(out, 0)
    return np.ascontiguousarray(out).view("u4").reshape(-1)
