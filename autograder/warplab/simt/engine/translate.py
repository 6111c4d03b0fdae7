"""Basic blocks to Python functions: one NumPy statement per PTX instruction, lanes in arrays.

``translate`` returns ``run(machine, group, regs) -> guard array or None``. Registers are Python locals inside a block;
``regs`` holds them between blocks as arrays in the register's own type, of one element per lane of the group or of
length 1 where all lanes agree (so loop counters and parameters cost nothing).
"""

from __future__ import annotations

import numpy as np

from ..errors import UnsupportedInstruction
from ..ptx.blocks import Block, is_special, successors
from ..ptx.parser import Function, Imm, Instr, Mem, Reg, Sym
from . import directed, eighths, exchange, external, halves, numeric, packed, tensor, warp

CANONICAL = {
    "pred": "?",
    "b8": "u1",
    "u8": "u1",
    "s8": "u1",
    "b16": "u2",
    "u16": "u2",
    "s16": "u2",
    "f16": "u2",
    "bf16": "u2",
    "b32": "u4",
    "u32": "u4",
    "s32": "u4",
    "f32": "f4",
    "f16x2": "u4",
    "bf16x2": "u4",
    "b64": "u8",
    "u64": "u8",
    "s64": "u8",
    "f64": "f8",
}

SPECIAL_DTYPE = "u4"


class Translator:
    """Emits the body of one block. Opcode handlers (``opcodes.py``) call ``use``, ``define`` and ``emit``."""

    def __init__(self, fn: Function, symbols: dict[str, int], kernel: str, files: dict[int, str]):
        self.fn, self.symbols, self.kernel, self.files = fn, symbols, kernel, files
        self.constants: dict[str, object] = {}
        self.memory_sites: list[Instr] = []  # every load, store and atomic, numbered across the function

    def block(self, block: Block, live_out: set[str]) -> str:
        """Python source of a block's body; only registers in ``live_out`` are kept for the blocks that follow."""
        self.lines: list[str] = []
        self.local: dict[str, tuple[str, str]] = {}  # register -> (python name, dtype now)
        self.defined: dict[str, str] = {}
        self.counter = 0
        from .opcodes import HANDLERS  # the table needs the Translator type: imported when first used

        for instr in block.instrs:
            handler = HANDLERS.get(instr.opcode)
            self.instr = instr
            if handler is None:
                raise self.unsupported(instr)
            handler(self, instr)
        guard = None
        if block.branch is not None and block.end == "branch":
            self.instr = block.branch
            guard = self.use(Reg(block.branch.guard.name), "?")
            if block.branch.guard.negated:
                guard = f"~{guard}"
        elif block.end == "barrier" and "red" in block.branch.mods:
            self.instr = block.branch
            self.emit(f"R['$vote'] = {self.use(block.branch.operands[-1], '?')}")
        for name in sorted(self.defined.keys() & live_out):
            var, dtype = self.local[name]
            want = self.canonical(name)
            self.lines.append(f"R[{name!r}] = {self.cast_view(var, dtype, want)}")
        if guard is not None:
            self.lines.append(f"return {guard}")
        return "\n    ".join(self.lines or ["pass"])

    # --- errors ---------------------------------------------------------------------------------------------------
    def where(self, instr: Instr) -> str:
        path = self.files.get(instr.file, "")
        return f"{path.rsplit('/', 1)[-1]}:{instr.line}" if path else f"line {instr.line}"

    def unsupported(self, instr: Instr, why: str = "") -> UnsupportedInstruction:
        name = ".".join((instr.opcode, *instr.mods))
        return UnsupportedInstruction(
            f"the SIMT engine does not execute `{name}`{' (' + why + ')' if why else ''}; the statement is `{instr.text};`",
            kernel=self.kernel,
            where=self.where(instr),
            hint="run this kernel on a CUDA GPU, or write the line without this operation",
        )

    # --- operands -------------------------------------------------------------------------------------------------
    def canonical(self, name: str) -> str:
        kind = self.fn.regs.get(name)
        if kind is None:
            raise self.unsupported(self.instr, f"register {name} is not declared")
        return CANONICAL[kind]

    @staticmethod
    def cast_view(var: str, have: str, want: str) -> str:
        """Same bits, other type; a bool or another width never gets here."""
        return var if have == want else f"{var}.view('{want}')"

    def use(self, op, dtype: str) -> str:
        """Python expression for an operand as ``dtype``; a wider register gives its low bytes."""
        if isinstance(op, Imm):
            return self.constant(op.value, dtype)
        if isinstance(op, Sym):
            address = self.constant(self.address_of(op.name) + op.offset, dtype)
            return f"({address} + M.machine.frame.astype('{dtype}'))" if op.name in self.fn.framed else address
        if isinstance(op, Reg) and is_special(op.name):
            self.counter += 1
            var = f"s{self.counter}"
            self.emit(f"{var} = G.special({op.name!r})")
            return (
                var
                if dtype == SPECIAL_DTYPE
                else (f"{var}.view('{dtype}')" if np.dtype(dtype).itemsize == 4 else f"{var}.astype('{dtype}')")
            )
        if not isinstance(op, Reg):
            raise self.unsupported(self.instr, f"operand {op}")
        if op.name not in self.local:
            var = self.python_name(op.name)
            kind = self.canonical(op.name)
            unset = self.constant(float("nan") if kind[0] == "f" else 0, kind)  # a sum that nobody cleared must not look right
            self.emit(f"{var} = R.get({op.name!r}, {unset})")
            self.local[op.name] = (var, kind)
        var, have = self.local[op.name]
        if have == "?" or dtype == "?":
            if have != dtype:
                raise self.unsupported(self.instr, "a predicate used as a number")
            return f"(~{var})" if op.negated else var
        have_size, want_size = np.dtype(have).itemsize, np.dtype(dtype).itemsize
        if have_size == want_size:
            return self.cast_view(var, have, dtype)
        low = f"{self.cast_view(var, have, f'u{have_size}')}.astype('u{want_size}')"
        return low if dtype == f"u{want_size}" else f"{low}.view('{dtype}')"

    def python_name(self, register: str) -> str:
        return "v_" + "".join(c if c.isalnum() else "_" for c in register)

    def constant(self, value, dtype: str) -> str:
        kind = np.dtype(dtype)
        if kind.kind in "iu":
            width = kind.itemsize * 8
            array = np.array([int(value) & ((1 << width) - 1)], dtype=f"u{kind.itemsize}").view(kind)
        elif kind.kind == "b":
            array = np.array([bool(value)])
        else:
            array = np.array([value], dtype=kind)
        key = f"k{len(self.constants)}"
        for name, known in self.constants.items():
            if isinstance(known, np.ndarray) and known.dtype == array.dtype and known.tobytes() == array.tobytes():
                return name
        array.setflags(write=False)
        self.constants[key] = array
        return key

    def address_of(self, symbol: str) -> int:
        if symbol == "WARP_SZ":
            return 32
        if symbol not in self.symbols:
            raise self.unsupported(self.instr, f"unknown symbol {symbol}")
        return self.symbols[symbol]

    def define(self, op, expression: str, dtype: str) -> None:
        """``op = expression``; the expression has ``dtype``, the register keeps it until the block ends."""
        if not isinstance(op, Reg):
            raise self.unsupported(self.instr, f"destination {op}")
        if op.name == "_":
            self.emit(expression)
            return
        want = self.canonical(op.name)
        if want != "?" and np.dtype(dtype).itemsize != np.dtype(want).itemsize:
            size, have = np.dtype(want).itemsize, np.dtype(dtype)
            expression = f"({expression}).astype('{'i' if have.kind == 'i' else 'u'}{size}')"
            dtype = f"{'i' if have.kind == 'i' else 'u'}{size}"
        var = self.python_name(op.name)
        self.emit(f"{var} = {expression}")
        self.local[op.name] = (var, dtype)
        self.defined[op.name] = dtype

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def site(self, instr: Instr) -> int:
        """Number a memory instruction, for counters and error messages."""
        self.memory_sites.append(instr)
        return len(self.memory_sites) - 1

    def base_and_offset(self, mem: Mem) -> tuple[str, int]:
        """Address operand as (expression of u8 bases, constant byte offset)."""
        if isinstance(mem.base, Sym):
            return self.use(mem.base, "u8"), mem.offset
        if isinstance(mem.base, Reg) and self.canonical(mem.base.name) == "u4":  # 32-bit shared addresses
            return f"{self.use(mem.base, 'u4')}.astype('u8')", mem.offset
        return self.use(mem.base, "u8"), mem.offset


def translate(fn: Function, blocks: list[Block], symbols: dict[str, int], kernel: str, files: dict[int, str]):
    """Compile every block.

    Returns (functions, memory_sites): one Python function per block, and the loads, stores and atomics by site number.
    Raises UnsupportedInstruction naming instruction, kernel and source line.
    """
    translator = Translator(fn, symbols, kernel, files)
    sources = []
    for block in blocks:
        live_out = set().union(*(blocks[i].live_in for i in successors(block)))
        body = translator.block(block, live_out)
        sources.append(f"def b{block.index}(M, G, R):\n    {body}\n")
    modules = {
        "np": np,
        "n": numeric,
        "h": halves,
        "e": eighths,
        "w": warp,
        "x": external,
        "T": tensor,
        "E": exchange,
        "P": packed,
        "D": directed,
    }
    namespace = modules | translator.constants
    code = "\n".join(sources)
    exec(compile(code, f"<simt {kernel}>", "exec"), namespace)
    return [namespace[f"b{b.index}"] for b in blocks], translator.memory_sites
