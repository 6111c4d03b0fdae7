"""Parses PTX text into modules, functions and instructions. It knows the grammar, not what opcodes do.

Grammar: PTX ISA, https://docs.nvidia.com/cuda/parallel-thread-execution/; versions 7.0 to 9.x.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from warplab.simt.ptx.ptx_types import TYPES


@dataclass(frozen=True)
class Reg:
    """A register by name, such as ``%r1``; ``negated`` for a predicate written ``!%p1``."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Imm:
    """A literal: a Python int, or a float with its bit pattern kept exactly."""

    value: int | float


@dataclass(frozen=True)
class Sym:
    """The address of a variable, a label or a function, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Mem:
    """``[base + offset]``; base is a Reg, a Sym or an Imm."""

    base: Reg | Sym | Imm
    offset: int = 0


@dataclass(frozen=True)
class Vec:
    """``{a, b, ...}`` of a vector access."""

    items: tuple


@dataclass
class Instr:
    """One instruction: ``@guard opcode.modifiers operands`` and the source line it came from."""

    opcode: str
    mods: tuple[str, ...]
    operands: tuple
    guard: Reg | None
    line: int
    file: int
    text: str


@dataclass(frozen=True)
class Address:
    """An address in an initialiser, to be filled in when addresses are known.

    It is that of ``symbol`` plus ``addend`` bytes, goes to byte ``at`` of the variable and is ``width`` bytes
    wide. ``generic``: the generic address is meant; ``shift``: the number of bits it is shifted right by.
    """

    at: int
    width: int
    symbol: str
    addend: int = 0
    generic: bool = False
    shift: int = 0


@dataclass
class Variable:
    """A variable in a state space: ``size`` in bytes, initial ``data`` or None, and the ``addresses`` among
    the initial values, for which ``data`` has zeros.
    """

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None
    addresses: tuple[Address, ...] = ()
    # "extern" (declared here, defined elsewhere) | "visible" | "weak" | "common" | "static"
    linkage: str = "static"


@dataclass
class Param:
    """A kernel parameter at byte ``offset`` of the parameter space."""

    name: str
    type: str
    size: int
    offset: int
    align: int = 1


@dataclass
class Function:
    """An entry or device function: parameters, register types, variables,
    and a body of instructions and labels.
    """

    name: str
    is_entry: bool
    params: list[Param]
    regs: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list = field(default_factory=list)  # Instr | str (label)
    max_threads: int | None = None
    cluster: tuple[int, ...] = ()  # blocks along each axis of a cluster (.reqnctapercluster), if declared
    explicit_cluster: bool = False  # the kernel or the launch must give a cluster's size
    max_cluster: int | None = None
    linkage: str = "static"
    # recursive functions: the registers of their parameters and of their results
    routines: dict[str, tuple] = field(default_factory=dict)
    # local variables of recursive functions: each call has its own copy
    framed: frozenset[str] = frozenset()

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """Those of its whole body: not asked before that is complete."""
        return frozenset(item.opcode for item in self.body if isinstance(item, Instr))


@dataclass
class Module:
    """A parsed PTX file; ``files`` maps the .file number to a path."""

    version: str
    target: str
    functions: dict[str, Function]
    variables: list[Variable]
    files: dict[int, str]


class PTXSyntaxError(ValueError):
    """The text is not PTX that this parser reads; the message quotes the statement."""


_NAME = r"[A-Za-z_$%][\w$]*"
_VAR = re.compile(
    r"\.(?P<space>shared|global|const|local|param)\s*(?P<attrs>(?:\.(?!b\d|u\d|s\d|f\d|pred)\w+\s*(?:\d+\s*)?)*)"
    r"\.(?P<type>\w+)\s+(?P<name>" + _NAME + r")(?P<dims>(?:\[[^\]]*\])*)\s*(?:=\s*(?P<init>.*))?$",
    re.S,
)
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)
_PART = re.compile(  # of a function's body
    r"\s*(?:(?P<place>\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:[^\n;]*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n;]*)"
    r"|(?P<label>" + _NAME + r")\s*:(?!:)|(?P<brace>[{}])|(?P<statement>[^;]*);)"
)
_GUARDED = re.compile(r"@(!?)\s*(%?[\w$]+)\s+(.*)$")
# opcodes and modifiers become part of a generated Python program, so other characters are refused
_HEAD = re.compile(r"[a-z][\w.:]*", re.ASCII)
MAX_REGISTERS = 1 << 20  # of one .reg directive: the largest unrolled kernels declare some ten thousand
# sub-qualifiers that are left out: ::cta is the default, and the symbol tells ::entry from ::func
SUB_QUALIFIED = ("shared::cta", "param::entry", "param::func")
PSEUDO_OPCODES = ("extern", "recurse", "results")  # pseudo-instructions of ptx.inline, refused in PTX text
_FILE = re.compile(r'\n\s*\.file\s+(\d+)\s+"([^"]*)"')


def uses_grid_barrier(ptx: str) -> bool:
    """Whether ``ptx`` (a module's text, or an instruction's) uses the grid barrier of cooperative_groups,
    whose address is in %envreg1 and %envreg2.

    The blocks of such a kernel wait for each other, so all of them must run at once.
    """
    return "%envreg2" in ptx


_INTEGER = re.compile(r"([+-]?)(?:0x([0-9a-f]+)|0b([01]+)|(0[0-7]*)|([1-9]\d*))u?")


def parse_number(text: str) -> int | float:
    """The value of a PTX literal. ``0f``/``0d`` hexadecimal floats keep their bits; a leading 0 is octal, as
    in C. Raises PTXSyntaxError.
    """
    t = text.strip()
    low = t.lower()
    if re.fullmatch(r"0f[0-9a-f]{8}", low):
        return struct.unpack(">f", bytes.fromhex(low[2:]))[0]
    if re.fullmatch(r"0d[0-9a-f]{16}", low):
        return struct.unpack(">d", bytes.fromhex(low[2:]))[0]
    if m := _INTEGER.fullmatch(low):
        sign, hexadecimal, binary, octal, decimal = m.groups()
        digits = ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10))
        return next(int(f"{sign}{text}", base) for text, base in digits if text is not None)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=e))(e[+-]?\d+)?", low):
        return float(low)
    raise PTXSyntaxError(f"not a PTX literal: {text!r}")


_AT_COMMA_OR_BRACKET = re.compile(r"[\[{(\]}),]")
_COMMA_IN_BRACKETS = re.compile(r"\[[^\]]*,")


def _split(text: str) -> list[str]:
    """``text`` split at its commas, except those inside brackets."""
    if "{" not in text and "(" not in text and not _COMMA_IN_BRACKETS.search(text):
        parts = [part.strip() for part in text.split(",")]
        return parts if parts[-1] else parts[:-1]
    parts, depth, start = [], 0, 0
    for found in _AT_COMMA_OR_BRACKET.finditer(text):
        c = found.group()
        if c != ",":
            depth += 1 if c in "[{(" else -1
        elif depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    last = text[start:].strip()
    return parts + [last] if last else parts


@functools.lru_cache(maxsize=1 << 14)
def parse_operand(text: str):
    """One operand: register, literal, address, vector, symbol or parenthesised list."""
    t = text.strip()
    if t.startswith("["):
        if "," in t:  # a tensor map and the index of a box: [%rd1, {%r1, %r2}]
            place, *index = _split(t[1:-1])
            return Vec((parse_operand(f"[{place}]"), *map(parse_operand, index)))
        base, offset = t[1:-1].strip(), 0
        m = re.fullmatch(r"(.+?)\s*\+\s*(-?\w+)", base)
        if m:
            base, offset = m.group(1), int(parse_number(m.group(2)))
        inner = parse_operand(base)
        return Mem(inner, offset)
    if t[0] in "{(":
        return Vec(tuple(parse_operand(p) for p in _split(t[1:-1])))
    if t.startswith("!"):
        return Reg(t[1:].strip(), negated=True)
    if "|" in t:
        return Vec(tuple(parse_operand(p) for p in t.split("|")))
    if t.startswith("%"):
        return Reg(t)
    if t[0].isdigit() or t[0] in "+-":
        return Imm(parse_number(t))
    m = re.fullmatch(r"(" + _NAME + r")\s*\+\s*(\d+)", t)
    if m:
        return Sym(m.group(1), int(m.group(2)))
    if t == "_":
        return Reg("_")
    if re.fullmatch(_NAME, t):
        return Sym(t)
    raise PTXSyntaxError(f"cannot read operand {text!r}")


def _variable(statement: str) -> Variable | None:
    m = _VAR.match(statement)
    if not m:
        return None
    align = re.search(r"\.align\s+(\d+)", m["attrs"] or "")
    if m["type"] not in TYPES:
        return None
    width = TYPES[m["type"]].bytes
    vector = re.search(r"\.v([24])", m["attrs"] or "")
    shape = [int(parse_number(dim)) if dim.strip() else 0 for dim in re.findall(r"\[([^\]]*)\]", m["dims"])]
    shape += [int(vector[1])] if vector else []
    data, addresses = None, ()
    if m["init"]:
        values = list(_placed(m["init"].strip(), shape, 0))
        if shape and not shape[0]:  # ``[] = {...}``: the initialiser gives the length
            shape[0] = -(-(values[-1][0] + 1) // prod(shape[1:]))
        data, addresses = _initial(values, prod(shape), m["type"])
    size = prod(shape) * width
    align = int(align.group(1)) if align else width * (int(vector[1]) if vector else 1)
    return Variable(m["name"], m["space"], align, size, data, addresses)


def _placed(text: str, shape: list[int], at: int):
    """(index in the flattened array of ``shape``, text) of each item of an initialiser.

    An inner brace begins a new row, which it need not fill.
    """
    if not text.startswith("{"):
        yield at, text
        return
    row = prod(shape[1:])
    for item in _split(text[1:-1]):
        if item.startswith("{"):
            at = -(-at // row) * row
            yield from _placed(item, shape[1:], at)
            at += row
        else:
            yield at, item
            at += 1


_SYMBOL = re.compile(r"(generic\s*\(\s*)?(" + _NAME + r")(?(1)\s*\))\s*(?:([+-])\s*(\w+))?")
_MASK = re.compile(r"0x(ff(?:00)*)\s*\((.*)\)", re.I | re.S)


def _initial(values, count: int, kind: str) -> tuple[bytes, tuple[Address, ...]]:
    """The initial bytes of a variable of ``count`` values of type ``kind``, and the addresses among them.

    Raises PTXSyntaxError for an item that is neither a literal nor an address, and for too many items.
    """
    width = TYPES[kind].bytes
    data, addresses = bytearray(count * width), []
    for place, text in values:
        at, shift = place * width, 0
        if place >= count:
            raise PTXSyntaxError(f"more values than the variable has: {text!r}")
        if mask := _MASK.fullmatch(text):  # 0xFF00(foo): the second byte of foo's address
            shift, text = 4 * (len(mask[1]) - 2), mask[2].strip()
        if symbol := _SYMBOL.fullmatch(text):
            generic, name, sign, addend = symbol.groups()
            distance = int(parse_number(f"{sign or ''}{addend or 0}"))
            addresses.append(Address(at, width, name, distance, bool(generic), shift))
            continue
        value = parse_number(text)
        if TYPES[kind].is_float or isinstance(value, float):
            if width not in (4, 8):
                raise PTXSyntaxError(f"a floating-point value in a variable of type .{kind}: {text!r}")
            data[at : at + width] = struct.pack("<f" if width == 4 else "<d", value)
        else:
            data[at : at + width] = (value >> shift & (1 << 8 * width) - 1).to_bytes(width, "little")
    return bytes(data), tuple(addresses)


_POINTER = re.compile(r"\.(ptr|noalias)\b(\s*\.(global|shared|const|local))?(\s*\.align\s+\d+)?")
_WORDS = frozenset(f".{name}" for name in TYPES if re.fullmatch(r"[busf]\d+", name))


def _params(text: str) -> list[Param]:
    params, offset = [], 0
    for part in _split(text):
        words = part.split()
        if len(words) == 3 and words[1] in _WORDS and "[" not in part:  # the common case, read faster
            kind, name = words[1][1:], words[2]
            size = align = TYPES[kind].bytes
        else:
            plain = _POINTER.sub("", part)
            v = _variable(plain)
            if v is None:
                raise PTXSyntaxError(f"cannot read parameter {plain!r}")
            typed = re.search(r"\.(pred|[busf]\d+|bf16)\b(?=\s+[A-Za-z_$%])", plain)
            kind, name, size, align = typed.group(1) if typed else "b8", v.name, v.size, v.align
        offset = -(-offset // align) * align
        params.append(Param(name, kind, size, offset, align))
        offset += size
    return params


@functools.lru_cache(maxsize=1 << 12)
def _opcode(head: str) -> tuple[str, tuple[str, ...]]:
    """An opcode and its modifiers; ("", ()) for text that is not the head of an instruction."""
    if not _HEAD.fullmatch(head) or head.startswith(PSEUDO_OPCODES):
        return "", ()
    opcode, *mods = head.split(".")
    return opcode, tuple(m.partition("::")[0] if m in SUB_QUALIFIED else m for m in mods if m)


def parse_instruction(statement: str, line: int, file: int) -> Instr:
    """Parse one instruction, given without its semicolon. Raises PTXSyntaxError."""
    rest = t = " ".join(statement.split())
    guard = None
    if t[0] == "@" and (m := _GUARDED.match(t)):
        guard, rest = Reg(m.group(2), bool(m.group(1))), m.group(3)
    head, _, tail = rest.partition(" ")
    opcode, mods = _opcode(head)
    if not opcode:
        raise PTXSyntaxError(f"not a PTX instruction: {t[:80]!r}")
    operands = (tail,) if opcode == "call" else tuple(map(parse_operand, _split(tail)))
    return Instr(opcode, mods, operands, guard, line, file, t)


def _body(text: str, fn: Function) -> None:
    """Parse the body of ``fn`` into its registers, variables, labels and instructions.

    Code inlined from another file (a library's) gets the line of the kernel's own file that called it.
    """
    home = file = line = end = 0
    scopes: list[dict[str, str]] = []
    path, opened = (), 0  # the numbers of the open braces, outermost first; how many have been opened
    paths: dict[int, tuple[int, ...]] = {}  # by index of an instruction or label inside braces: its path
    called_from: dict[tuple, tuple] = {}
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        end, kind = part.end(), part.lastgroup
        if opened:
            paths[len(fn.body)] = path
        if kind == "statement":
            statement = part["statement"].strip()
            if statement.startswith("."):
                _declare(statement, fn, scopes)
            elif statement:
                instr = parse_instruction(statement, line, file)
                if any(scopes) and instr.opcode != "call":
                    _shadow(instr, {old: new for scope in scopes for old, new in scope.items()})
                fn.body.append(instr)
        elif kind == "label":
            fn.body.append(part["label"])
        elif part["brace"] == "{":
            scopes.append({})
            path, opened = (*path, opened), opened + 1
        elif kind == "brace":
            del scopes[-1:]
            path = path[:-1]
        else:
            place = tuple(map(int, part.group(2, 3, 4)))
            home = home or place[0]
            if part[5]:
                called_from[place] = tuple(map(int, part.group(5, 6, 7)))
            place = _call_in(home, place, called_from)
            if place[1]:  # line 0 is compiler-made code: it belongs to the line before it
                file, line = place[:2]
    if rest := text[end:].strip():
        raise PTXSyntaxError(f"statement without a semicolon in {fn.name}: {rest[:60]!r}")
    labels = [item for item in fn.body if isinstance(item, str)]
    if len({*labels}) < len(labels):
        _tell_labels_apart(fn, paths)


def _call_in(home: int, place: tuple, called_from: dict[tuple, tuple]) -> tuple:
    """The place in file ``home`` from which the code at ``place`` was called, before it was inlined.

    A place is (file, line, column). ``called_from``: the known calls; where they do not lead to ``home``, the
    outermost one. A ``place`` in ``home`` is returned as it is.
    """
    seen = set()
    while place[0] != home and place in called_from and place not in seen:
        seen.add(place)
        place = called_from[place]
    return place


def _tell_labels_apart(fn: Function, paths: dict[int, tuple[int, ...]]) -> None:
    """Rename labels that occur several times, each in a scope (braces) of its own: every copy of a piece of
    inline assembly repeats its labels.
    """
    own: dict[tuple, str] = {}
    for i, item in enumerate(fn.body):
        if isinstance(item, str):
            own[paths.get(i, ()), item] = fn.body[i] = ".".join([item, *map(str, paths.get(i, ()))])
    for i, item in enumerate(fn.body):
        if isinstance(item, Instr) and item.opcode == "bra" and isinstance(item.operands[0], Sym):
            path = paths.get(i, ())
            outward = (path[:depth] for depth in range(len(path), -1, -1))
            name = item.operands[0].name
            item.operands = (Sym(next((own[p, name] for p in outward if (p, name) in own), name)),)


def _declare(statement: str, fn: Function, scopes: list[dict[str, str]]) -> None:
    """Registers or a variable of ``fn``, in the innermost of the open ``scopes``."""
    if not statement.startswith(".reg"):
        variable = _variable(statement)
        if variable is not None:
            fn.variables.append(variable)
        return
    declared = _REG.match(statement)
    if declared is None:
        raise PTXSyntaxError(f"not a declaration of registers: {statement[:80]!r}")
    kind, names = declared.groups()
    for name in _split(names):
        m = re.fullmatch(r"(%?[\w$]+)<(\d+)>", name)
        if m and int(m.group(2)) > MAX_REGISTERS:
            raise PTXSyntaxError(f"{m.group(2)} registers {m.group(1)}; the limit is {MAX_REGISTERS:,}")
        for each in [f"{m.group(1)}{i}" for i in range(int(m.group(2)))] if m else [name]:
            if scopes and each in fn.regs:  # an inner scope declares a register whose name is used outside
                scopes[-1][each] = each = f"{each}_s{len(fn.regs)}"
            fn.regs[each] = kind


def mapped(op: Any, change: Callable) -> Any:
    """An operand with ``change`` applied to each register, symbol and literal in it."""
    if isinstance(op, Mem):
        return Mem(mapped(op.base, change), op.offset)
    return Vec(tuple(mapped(item, change) for item in op.items)) if isinstance(op, Vec) else change(op)


def leaves(*operands: Any) -> Iterator:
    """The registers, symbols and literals in operands."""
    for op in operands:
        if isinstance(op, Mem):
            yield from leaves(op.base)
        elif isinstance(op, Vec):
            yield from leaves(*op.items)
        else:
            yield op


def _shadow(instr: Instr, names: dict[str, str]) -> None:
    """Rename registers that an inner scope has declared anew; ``names``: old name -> new name."""

    def renamed(op: Any) -> Any:
        return replace(op, name=names.get(op.name, op.name)) if isinstance(op, Reg | Sym) else op

    instr.operands = tuple(mapped(op, renamed) for op in instr.operands)
    instr.guard = renamed(instr.guard)


def _linkage(before: str) -> str:
    """The linkage directive at the end of the text before a definition."""
    m = re.search(r"\.(extern|visible|weak|common)\s*$", before)
    return m.group(1) if m else "static"


_ENTRY = re.compile(
    r"\.(?P<kind>entry|func)\s*(?P<ret>\([^)]*\))?\s*(?P<name>" + _NAME + r")\s*(?:\((?P<params>[^)]*)\))?"
    r"(?P<attrs>[^{;]*)(?P<end>[{;])",
    re.S,
)
_BRACE = re.compile(r"[{}]")


_REMOVED = (  # parts of a module's text that are not parsed, removed in this order
    re.compile(r"//[^\n]*"),
    re.compile(r"\n\s*\.file\b[^\n]*"),
    re.compile(r"(?s)\.section\s+\.?\w+\s*\{.*?\n\}"),
    re.compile(r'\.pragma\s+"[^"]*"\s*;'),
    re.compile(r"\.attribute\(\.managed\)"),  # on the engine every variable can be reached by the host
)


def parse(ptx: str) -> Module:
    """Parse a whole PTX file. Raises PTXSyntaxError, which quotes the statement that cannot be parsed."""
    text = re.sub(r"/\*.*?\*/", " ", f"\n{ptx}", flags=re.S)
    files = {int(n): path for n, path in _FILE.findall(text)}
    for removed in _REMOVED:
        text = removed.sub("", text)
    version = re.search(r"\.version\s+(\S+)", text)
    target = re.search(r"\.target\s+(\w+)", text)
    if not version or not target:
        raise PTXSyntaxError("no .version or .target directive: this is not a PTX file")
    module = Module(version.group(1), target.group(1), {}, [], files)
    pos, outside = 0, []
    while m := _ENTRY.search(text, pos):
        # ";" separates a function's linkage directive from a variable that follows the function
        outside += [text[pos : m.start()], ";"]
        pos = m.end()
        if m["end"] == "{":  # else a declaration
            pos = _end_of_body(text, m)
            fn = module.functions[m["name"]] = _function(m, text[m.end() : pos - 1])
            fn.linkage = _linkage(text[max(0, m.start() - 20) : m.start()])
    for statement in "".join([*outside, text[pos:]]).split(";"):
        start = re.search(r"\.(shared|global|const|local)\b", statement)
        v = _variable(statement[start.start() :].strip()) if start else None
        if start and v is not None:
            v.linkage = _linkage(statement[: start.start()])
            module.variables.append(v)
    return module


def _end_of_body(text: str, head: re.Match) -> int:
    """The index after the brace that closes the body of the function that begins at ``head``."""
    depth = 1
    for brace in _BRACE.finditer(text, head.end()):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.end()
    raise PTXSyntaxError(f"the body of {head['name']} has no end")


def _function(head: re.Match, body: str) -> Function:
    fn = Function(head["name"], head["kind"] == "entry", _params(head["params"] or ""))
    if limit := re.search(r"\.maxntid\s+(\d+(?:\s*,\s*\d+)*)", head["attrs"] or ""):
        fn.max_threads = prod(map(int, limit.group(1).split(",")))
    if dims := re.search(r"\.reqnctapercluster\s+(\d+(?:\s*,\s*\d+)*)", head["attrs"] or ""):
        fn.cluster = tuple(map(int, dims.group(1).split(",")))
    if limit := re.search(r"\.maxclusterrank\s+(\d+)", head["attrs"] or ""):
        fn.max_cluster = int(limit.group(1))
    fn.explicit_cluster = ".explicitcluster" in (head["attrs"] or "")
    _body(body, fn)
    if any(not name.startswith("%") for name in fn.regs):

        def as_register(op):  # inline assembly declares registers without a percent sign
            return Reg(op.name) if isinstance(op, Sym) and op.name in fn.regs else op

        for item in fn.body:
            if isinstance(item, Instr) and item.opcode not in ("bra", "call"):
                item.operands = tuple(mapped(op, as_register) for op in item.operands)
    return fn
