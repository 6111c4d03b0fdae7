"""Handlers of comparisons: setp, set and testp."""

from __future__ import annotations

from warplab.simt.engine import fp16
from warplab.simt.engine.arithmetic import flushed
from warplab.simt.ptx.parser import Vec
from warplab.simt.ptx.ptx_types import HALVES, TYPES, dtype_of, last_type, types_named

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
SIGNS_OF_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
OPERATORS = {name: f"({{x}} {sign} {{y}})" for name, sign in (SIGNS | SIGNS_OF_UNSIGNED).items()}
UNORDERED = "(np.isnan({x}) | np.isnan({y}))"
OF_FLOATS = OPERATORS | {f"{name}u": f"({OPERATORS[name]} | {UNORDERED})" for name in SIGNS}
OF_FLOATS |= {"neu": OPERATORS["ne"], "ne": f"({OPERATORS['ne']} & ~{UNORDERED})"}
OF_FLOATS |= {"num": f"(~{UNORDERED})", "nan": UNORDERED}
LOGIC = {"and": "&", "or": "|", "xor": "^"}


def _is_packed(instr) -> bool:
    """Whether the operands are packed pairs of floats."""
    kind = last_type(instr.mods)
    return kind in HALVES and TYPES[kind].count == 2


def _comparison(code, instr, a, b) -> str:
    """The expression of a comparison; for packed pairs its result has a column for each half."""
    kind = last_type(instr.mods)
    if kind in HALVES:
        x, y = (fp16.opened(code, instr, o, kind) for o in (a, b))
    else:
        dtype = dtype_of(instr.mods)
        x, y = (flushed(instr, code.use(o, dtype)) for o in (a, b))
    template = (OF_FLOATS if TYPES[kind].is_float else OPERATORS).get(instr.mods[0])
    if template is None:
        raise code.unsupported(instr)
    return template.format(x=x, y=y)


def setp(code, instr):
    """``setp``: one predicate, or two, the comparison and its opposite, each combined with a third one."""
    d, a, b, *combined = instr.operands
    result = _comparison(code, instr, a, b)
    if _is_packed(instr):
        if combined:
            raise code.unsupported(instr, "a second predicate")
        _one_for_each_half(code, d, result)
        return
    rest = f" {LOGIC[instr.mods[1]]} {code.use(combined[0], '?')}" if combined else ""
    if isinstance(d, Vec):
        code.emit(f"compared = {result}")
        code.emit(f"got = compared{rest}, ~compared{rest}")  # the third predicate may be one of the two
        code.define(d.items[0], "got[0]", "?")
        code.define(d.items[1], "got[1]", "?")
    else:
        code.define(d, f"{result}{rest}", "?")


def _one_for_each_half(code, d, expression: str) -> None:
    code.emit(f"compared = {expression}")
    for i, item in enumerate(d.items if isinstance(d, Vec) else (d,)):
        code.define(item, f"compared[:, {i}].copy()", "?")


def set_(code, instr):
    """``set``: all ones (integers) or 1.0 (floats) where the comparison holds, else 0."""
    d, a, b, *combined = instr.operands
    to = types_named(instr.mods)[0]
    result = _comparison(code, instr, a, b)
    if combined:
        operator = LOGIC[next(m for m in instr.mods if m in LOGIC)]
        result = f"({result} {operator} {code.use(combined[0], '?')})"
    if to in HALVES:
        code.define(d, f"fp16.close({result}.astype('f4'), {to!r})", TYPES[to].bits)
    elif to == "f32":
        code.define(d, f"{result}.astype('f4')", "f4")
    elif _is_packed(instr):
        code.define(d, f"(np.where({result}, np.uint16(0xFFFF), np.uint16(0))).view('u4').reshape(-1)", "u4")
    else:
        dtype = f"i{TYPES[to].bytes}"
        code.define(d, f"-{result}.astype('{dtype}')", dtype)


TESTS = {
    "finite": "np.isfinite({0})",
    "infinite": "np.isinf({0})",
    "number": "~np.isnan({0})",
    "notanumber": "np.isnan({0})",
    "normal": "np.isfinite({0}) & (np.abs({0}) >= np.finfo({0}.dtype).smallest_normal)",
    "subnormal": "({0} != 0) & (np.abs({0}) < np.finfo({0}.dtype).smallest_normal)",
}


def testp(code, instr):
    """``testp``: tests whether a float is finite, normal, NaN, ..."""
    d, a = instr.operands
    x = code.use(a, dtype_of(instr.mods))
    if instr.mods[0] not in TESTS:
        raise code.unsupported(instr)
    code.define(d, TESTS[instr.mods[0]].format(x), "?")
