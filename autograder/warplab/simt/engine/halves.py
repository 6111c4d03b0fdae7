"""f16, bf16 and their packed pairs: opened to float32, computed there, and rounded once back to 16 bits.

One float32 operation followed by one rounding gives the correctly rounded 16-bit result of add, sub, mul, min and max
(float32 has more than twice the bits); fma is computed in float64.
"""

from __future__ import annotations

import numpy as np

from ..ptx.parser import Vec

BITS = {"f16": "u2", "bf16": "u2", "f16x2": "u4", "bf16x2": "u4"}
U2, U4, F2, F4, F8 = (np.dtype(d) for d in ("u2", "u4", "f2", "f4", "f8"))


def open_(bits, kind: str):
    """16-bit patterns as float32: shape (lanes,), or (lanes, 2) for a packed pair, the low half first."""
    if kind.endswith("x2"):
        bits = np.ascontiguousarray(bits).view(U2).reshape(-1, 2)
    if kind.startswith("bf16"):
        return (bits.astype(U4) << np.uint32(16)).view(F4)
    return bits.view(F2).astype(F4)


def close(values, kind: str, rounding: str = "rn"):
    """Floats back to bit patterns, rounded to nearest even (``rn``), towards zero (``rz``), up (``rp``) or down (``rm``)."""
    if kind.startswith("bf16"):
        bits = np.ascontiguousarray(values, dtype=F4).view(U4)
        if rounding == "rn":
            bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        elif rounding != "rz":  # cut off, and one step away from zero where that is the direction
            away = (bits & np.uint32(0xFFFF)).astype(bool) & ((values > 0) if rounding == "rp" else (values < 0))
            bits = bits + np.where(away, np.uint32(0x10000), np.uint32(0))
        out = np.where(np.isnan(values), np.uint32(0x7FFF), bits >> np.uint32(16)).astype(U2)
    else:
        out = values.astype(F2)
        if rounding != "rn":
            wide = out.astype(F8)
            wrong = {"rz": np.abs(wide) > np.abs(values), "rp": wide < values, "rm": wide > values}[rounding]
            towards = {"rz": 0, "rp": np.inf, "rm": -np.inf}[rounding]
            out = np.where(wrong, np.nextafter(out, F2.type(towards)), out)
        out = out.view(U2)
    return np.ascontiguousarray(out).view(U4).reshape(-1) if kind.endswith("x2") else out


def pack(high, low, kind: str, rounding: str = "rn"):
    """Two float32 to a packed pair: PTX names the high half first."""
    high, low = np.broadcast_arrays(high, low)
    return close(np.stack([low, high], axis=1), kind, rounding)


def relu(x):
    """``.relu``: negative values and -0 become +0, NaN stays."""
    return np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))


def saturate(x):
    """``.sat``: clamp to [0, 1]; NaN becomes +0."""
    return np.where(np.isnan(x), x.dtype.type(0), np.clip(x, 0, 1))


def kind_of(instr) -> str | None:
    """The last 16-bit float type that an instruction names, None if it names none."""
    return next((m for m in reversed(instr.mods) if m in BITS), None)


TEMPLATES = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "fma": "{0}.astype('f8') * {1} + {2}",
    "min": "np.fmin({0}, {1})",
    "max": "np.fmax({0}, {1})",
    "ex2": "np.exp2({0}.astype('f8'))",
    "tanh": "np.tanh({0}.astype('f8'))",
}
WHOLE = {"rni": "np.rint", "rzi": "np.trunc", "rmi": "np.floor", "rpi": "np.ceil"}
SIGN = {"neg": "^ {}", "abs": "& ~{}"}


def half_or(plain):
    """The handler of an opcode that also has 16-bit forms: ``plain`` takes all the others."""

    def handler(t, instr):
        kind = kind_of(instr)
        if kind is None:
            plain(t, instr)
            return
        d, *sources = instr.operands
        bits = BITS[kind]
        if instr.opcode in SIGN:  # of the bit pattern, so that a NaN's sign changes too
            mask = t.constant(0x8000 if bits == "u2" else 0x80008000, bits)
            t.define(d, f"{t.use(sources[0], bits)} {SIGN[instr.opcode].format(mask)}", bits)
            return
        template = TEMPLATES[instr.opcode]
        if "NaN" in instr.mods:
            template = template.replace("fmin", "minimum").replace("fmax", "maximum")
        if "xorsign" in instr.mods or "oob" in instr.mods:
            raise t.unsupported(instr)
        body = template.format(*(f"h.open_({t.use(s, bits)}, {kind!r})" for s in sources))
        for mod, function in (("relu", "h.relu"), ("sat", "h.saturate")):
            if mod in instr.mods:
                body = f"{function}({body})"
        t.define(d, f"h.close({body}, {kind!r})", bits)

    return handler


def convert(t, instr) -> bool:
    """``cvt`` to or from a 16-bit float; False where the instruction has none but f16 alone, which NumPy knows."""
    types = [m for m in instr.mods if m in BITS or m[0] in "sufb" and m[1:].isdigit()]
    if not any(m in BITS and m != "f16" for m in types):
        return False
    d, *sources = instr.operands
    rounding = next((m for m in instr.mods if m in ("rz", "rp", "rm")), "rn")
    to, source = types[0], types[-1]
    if "satfinite" in instr.mods or "tf32" in instr.mods:
        raise t.unsupported(instr)
    if to.endswith("x2") and source == "f32" and len(sources) == 2:
        high, low = (t.use(s, "f4") for s in sources)
        if "relu" in instr.mods:
            high, low = f"h.relu({high})", f"h.relu({low})"
        t.define(d, f"h.pack({high}, {low}, {to!r}, {rounding!r})", "u4")
        return True
    value = f"h.open_({t.use(sources[0], BITS[source])}, {source!r})" if source in BITS else None
    if value is None:
        dtype = {"f": "f", "s": "i", "u": "u"}[source[0]] + str(int(source[1:]) // 8)
        value = t.use(sources[0], dtype) + ("" if source == "f32" else ".astype('f8')")
    if "relu" in instr.mods:
        value = f"h.relu({value})"
    whole = next((WHOLE[m] for m in instr.mods if m in WHOLE), None)
    if whole and (to in BITS or to[0] == "f"):
        value = f"{whole}({value})"
    if to in BITS:
        t.define(d, f"h.close({value}, {to!r}, {rounding!r})", BITS[to])
    elif to[0] == "f":
        t.define(d, f"{value}.astype('f{int(to[1:]) // 8}')", f"f{int(to[1:]) // 8}")
    else:
        dtype = ("i" if to[0] == "s" else "u") + str(int(to[1:]) // 8)
        mode = next((m for m in instr.mods if m in ("rni", "rzi", "rmi", "rpi")), "rzi")
        t.define(d, f"n.float_to_int({value}, {dtype!r}, {mode!r})", dtype)
    return True


def both(t, d, expression: str) -> None:
    """``p|q``: one predicate for each half of a packed comparison."""
    t.emit(f"cmp = {expression}")
    for i, item in enumerate(d.items if isinstance(d, Vec) else (d,)):
        t.define(item, f"cmp[:, {i}].copy()", "?")
