"""PTX's types as NumPy dtypes, and what the opcode handlers share."""

from __future__ import annotations

from ..ptx.parser import WIDTH, Instr

NUMPY = {
    "s8": "i1",
    "u8": "u1",
    "b8": "u1",
    "s16": "i2",
    "u16": "u2",
    "b16": "u2",
    "s32": "i4",
    "u32": "u4",
    "b32": "u4",
    "s64": "i8",
    "u64": "u8",
    "b64": "u8",
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "pred": "?",
}
ROUNDINGS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna")


def type_of(t, instr: Instr) -> str:
    """The last type modifier, as a NumPy dtype; an unknown one (bf16, f16x2 ...) is unsupported by name."""
    for mod in reversed(instr.mods):
        if mod in NUMPY:
            return NUMPY[mod]
        if mod in WIDTH:
            raise t.unsupported(instr, f"type .{mod}")
    raise t.unsupported(instr, "no type")


def unsigned(dtype: str) -> str:
    return f"u{dtype[1:]}" if dtype[0] in "iu" else dtype


def saturated(t, instr: Instr, expression: str, dtype: str) -> str:
    if "sat" in instr.mods:
        return f"n.saturate({expression})"
    return expression


def directed(t, instr: Instr, dtype: str) -> str | None:
    """The directed rounding of a float instruction, None for to-nearest; float64 has no wider type to round from."""
    rounding = next((m for m in instr.mods if m in ("rz", "rm", "rp")), None)
    if rounding and dtype != "f4":
        raise t.unsupported(instr, "directed rounding")
    return rounding


def rounded(template: str, operands: list[str], rounding: str) -> str:
    """A float32 operation done in float64 and rounded once in the given direction."""
    wide = [f"{o}.astype('f8')" for o in operands]
    return f"n.float_to_float({template.format(*wide)}, 'f4', {rounding!r})"
