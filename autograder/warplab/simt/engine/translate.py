"""Translates basic blocks to Python functions: a NumPy statement for each PTX instruction, lanes in arrays.

``translate`` returns a function ``run(memory, group, registers) -> guard array or None`` for each basic
block: ``memory`` is the machine's LoadStoreUnit, ``group`` the lanes. PTX registers are Python variables
inside a block; between blocks ``registers`` holds them as arrays in the register's own dtype, with one
element a lane of the group, or one element if all lanes agree (so loop counters and parameters cost nothing).

The generated code calls the engine's modules by their names. Variables of registers begin with ``v_``, of
special registers with ``special_`` and constants with ``c_`` (dtype and value follow), so that no name hides
another.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.simt.engine import (
    async_copies,
    bulk_copies,
    bulk_watch,
    clusters,
    cp_async,
    external,
    fp8,
    fp16,
    matrix_moves,
    mbarrier,
    numeric,
    packed,
    rounding,
    tensor,
    warp,
    wgmma,
)
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.wrapped import modules_for_wrapped
from warplab.simt.errors import UnsupportedInstruction
from warplab.simt.ptx.blocks import BasicBlock, is_special, successors
from warplab.simt.ptx.parser import Function, Imm, Instr, Mem, Reg, Sym
from warplab.simt.ptx.ptx_types import TYPES, last_type

NAMES = {  # the globals of generated code, besides constants
    "np": np,
    **modules_for_wrapped(
        async_copies,
        bulk_copies,
        bulk_watch,
        clusters,
        cp_async,
        external,
        fp16,
        fp8,
        matrix_moves,
        mbarrier,
        numeric,
        packed,
        rounding,
        tensor,
        warp,
    ),
    "wgmma": wgmma,  # handles wrapped arrays itself
}
SPECIAL_DTYPE = "u4"
DTYPES = {name: np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")}
# dtypes by name in generated code are replaced by objects, which saves NumPy looking them up
NAMED_DTYPE = re.compile(rf"\.(view|astype)\('({'|'.join(DTYPES)})'\)")

_handlers: dict[tuple, Callable] = {}  # a cache, by opcode and modifiers


class Translator:
    """Emits the body of one block. The handlers of instructions call ``use``, ``define`` and ``emit``."""

    def __init__(self, fn: Function, symbols: dict[str, int], kernel: str, place_of: Callable[[Instr], str]):
        self.fn, self.symbols, self.kernel, self.place_of = fn, symbols, kernel, place_of
        self.of_products = wgmma.registers_of(fn) if "wgmma" in fn.opcodes else frozenset()
        self.constants: dict[str, object] = {}
        # whether blocks may reach each other's shared memory
        self.in_clusters = any(isinstance(i, Instr) and _is_of_clusters(i) for i in fn.body)
        self.memory_sites: list[Instr] = []  # every load, store and atomic; a site is an index in it

    def block(self, block: BasicBlock, live_out: set[str]) -> str:
        """Python source of a block's body. Only registers in ``live_out`` are kept for following blocks."""
        self.lines: list[str] = []
        self.local: dict[str, tuple[str, str]] = {}  # register -> (python name, dtype now)
        self.defined: set[str] = set()
        self.specials: set[str] = set()
        for instr in block.instrs:
            self.instr = instr
            self._handler(instr)(self, instr)
        guard = None
        if block.branch is not None:
            self.instr = branch = block.branch
            self._handler(branch)  # refuses an unknown one; the machine executes it
            if block.end == "branch" and branch.guard is not None:
                guard = self.use(Reg(branch.guard.name, branch.guard.negated), "?")
            elif block.end == "syncwarp":
                guard = self.use(branch.operands[0], "u4")
            elif block.end == "barrier" and "red" in branch.mods:
                guard = self.use(branch.operands[-1], "?")
        for name in sorted(self.defined & live_out):
            variable, dtype = self.local[name]
            self.emit(f"registers[{name!r}] = {self.cast_view(variable, dtype, self.canonical(name))}")
        if guard is not None:
            self.emit(f"return {guard}")
        return "\n    ".join(self.lines or ["pass"])

    def _handler(self, instr: Instr):
        handler = _handlers.get((instr.opcode, instr.mods))
        if handler is None:
            handler = _handlers[instr.opcode, instr.mods] = self._find_handler(instr)
        return handler

    def _find_handler(self, instr: Instr):
        row = INSTRUCTIONS.get(instr.opcode)
        if row is None:
            raise self.unsupported(instr)
        form = row.form(instr)
        if form is None:
            kind = last_type(instr.mods)
            raise self.unsupported(instr, f"type .{kind}" if kind else "no type")
        if unknown := row.unknown(instr):
            raise self.unsupported(instr, f"modifier .{unknown[0]}")
        return form.handler

    def unsupported(self, instr: Instr, why: str = "") -> UnsupportedInstruction:
        """Make the error for an instruction that the engine does not execute, for the caller to raise."""
        name = ".".join((instr.opcode, *instr.mods))
        reason = f" ({why})" if why else ""
        return UnsupportedInstruction(
            f"the SIMT engine does not execute `{name}`{reason}; the statement is `{instr.text};`",
            kernel=self.kernel,
            where=self.place_of(instr),
            hint="run this kernel on a CUDA GPU, or write the line without this operation",
        )

    def canonical(self, name: str) -> str:
        """The dtype that a register has between basic blocks."""
        kind = self.fn.regs.get(name)
        if kind is None:
            raise self.unsupported(self.instr, f"it has no register {name}")
        kept_as = TYPES[kind].register
        if kept_as is None:
            raise self.unsupported(self.instr, f"a register of type .{kind}")
        return kept_as

    @staticmethod
    def cast_view(variable: str, have: str, want: str) -> str:
        """An expression for the same bits in another dtype of the same width, which is not bool."""
        return variable if have == want else f"{variable}.view('{want}')"

    def use(self, op, dtype: str) -> str:
        """Python expression for an operand as ``dtype``; a wider register gives its low bytes."""
        if isinstance(op, Imm):
            value = op.value
            if isinstance(value, float) and dtype[0] in "iu":  # mov.b32 %r1, 0f3F800000 takes its bits
                if dtype[1] not in "48":
                    raise self.unsupported(self.instr, f"a float as {8 * int(dtype[1])} bits")
                value = int(np.array(value, f"f{dtype[1]}").view(f"u{dtype[1]}"))
            return self.constant(value, dtype)
        if isinstance(op, Sym):
            return self._address(op, dtype)
        if not isinstance(op, Reg):
            raise self.unsupported(self.instr, f"operand {op}")
        if is_special(op.name):
            return self._special(op.name, dtype)
        variable, have = self._local(op.name)
        if op.name in self.of_products:
            variable = wgmma.read(self, variable)
        if have == "?" or dtype == "?":
            if have != dtype:
                raise self.unsupported(self.instr, "a predicate used as a number")
            return f"(~{variable})" if op.negated else variable
        have_size, want_size = int(have[1]), int(dtype[1])
        if have_size == want_size:
            return self.cast_view(variable, have, dtype)
        low = f"{self.cast_view(variable, have, f'u{have_size}')}.astype('u{want_size}')"
        return low if dtype == f"u{want_size}" else f"{low}.view('{dtype}')"

    def _address(self, symbol: Sym, dtype: str) -> str:
        """The address of a variable; a recursive function's is in the frame of the running call."""
        address = self.constant(self.address_of(symbol.name) + symbol.offset, dtype)
        if symbol.name in self.fn.framed:
            return f"({address} + group.machine.frame.astype('{dtype}'))"
        return address

    def _special(self, name: str, dtype: str) -> str:
        variable = f"special_{_identifier(name.lstrip('%'))}"
        if variable not in self.specials:
            self.specials.add(variable)
            self.emit(f"{variable} = group.special({name!r})")
        if dtype == SPECIAL_DTYPE:
            return variable
        same_size = np.dtype(dtype).itemsize == np.dtype(SPECIAL_DTYPE).itemsize
        return f"{variable}.view('{dtype}')" if same_size else f"{variable}.astype('{dtype}')"

    def _local(self, register: str) -> tuple[str, str]:
        """(variable of a register, its present dtype); its first use in a block emits code to fetch it."""
        if register not in self.local:
            variable = self.python_name(register)
            kind = self.canonical(register)
            # read before it is written: a float is NaN, so that an uninitialised sum shows
            unset = self.constant(float("nan") if kind[0] == "f" else 0, kind)
            self.emit(f"{variable} = registers.get({register!r}, {unset})")
            self.local[register] = (variable, kind)
        return self.local[register]

    def python_name(self, register: str) -> str:
        return f"v_{_identifier(register)}"

    def constant(self, value, dtype: str) -> str:
        """The name of a constant, made of dtype and value: ``c_u4_7``, ``c_i4_minus_1``, ``c_f4_0_5``."""
        key, array = _constant(repr(value), value, dtype)
        self.constants.setdefault(key, array)
        return key

    def address_of(self, symbol: str) -> int:
        if symbol == "WARP_SZ":
            return 32
        if symbol not in self.symbols:
            raise self.unsupported(self.instr, f"unknown symbol {symbol}")
        return self.symbols[symbol]

    def define(self, op, expression: str, dtype: str) -> None:
        """Emit ``op = expression``; the register has the expression's ``dtype`` until the block ends."""
        if not isinstance(op, Reg):
            raise self.unsupported(self.instr, f"destination {op}")
        if op.name == "_":
            self.emit(expression)
            return
        want = self.canonical(op.name)
        if want != "?" and np.dtype(dtype).itemsize != np.dtype(want).itemsize:
            if np.dtype(dtype).kind == "f":  # a float in a wider register: its bits, zeros above them
                expression, dtype = f"({expression}).view('u{dtype[1]}')", f"u{dtype[1]}"
            sign = "i" if np.dtype(dtype).kind == "i" else "u"
            dtype = f"{sign}{np.dtype(want).itemsize}"
            expression = f"({expression}).astype('{dtype}')"
        variable = self.python_name(op.name)
        if op.name in self.of_products:
            expression = wgmma.written(self, op.name, expression)
        self.emit(f"{variable} = {expression}")
        self.local[op.name] = (variable, dtype)
        self.defined.add(op.name)

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def site(self, instr: Instr) -> int:
        """The site number of a memory instruction, for counters and error messages."""
        self.memory_sites.append(instr)
        return len(self.memory_sites) - 1

    def place(self, instr: Instr, opcode: str, space: str = "generic") -> int:
        """A site number for a part of an instruction, which counters and checks see as a plain ``opcode`` of
        words in ``space``, or for an instruction without an access of its own.
        """
        mods = ("b32",) if space == "generic" else (space, "b32")
        return self.site(Instr(opcode, mods, instr.operands, None, instr.line, instr.file, instr.text))

    def base_and_offset(self, mem: Mem) -> tuple[str, int]:
        """(expression of the base addresses as u8, constant byte offset) of an address operand."""
        if isinstance(mem.base, Reg) and self.canonical(mem.base.name) == "u4":  # 32-bit shared addresses
            return f"{self.use(mem.base, 'u4')}.astype('u8')", mem.offset
        return self.use(mem.base, "u8"), mem.offset


def _is_of_clusters(instr: Instr) -> bool:
    return instr.opcode == "mapa" or (instr.opcode == "barrier" and "cluster" in instr.mods)


@functools.lru_cache(maxsize=4096)
def _constant(text: str, value, dtype: str) -> tuple[str, np.ndarray]:
    """(name, array) of a constant. ``text``, a part of the cache's key, tells 0.0, -0.0 and 0 apart."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        bits = np.array([int(value) & ((1 << 8 * kind.itemsize) - 1)], dtype=f"u{kind.itemsize}")
        array = bits.view(kind)
        name = str(array[0])
    elif kind.kind == "b":
        array = np.array([bool(value)])
        name = str(array[0])
    else:
        array = np.array([value], dtype=kind)
        bits = array.view(f"u{kind.itemsize}")
        name = f"nan_{bits[0]:x}" if np.isnan(array[0]) else str(array[0])
    name = name.replace("-", "minus_").replace("+", "").replace(".", "_")
    array.setflags(write=False)
    return f"c_{'p' if dtype == '?' else dtype}_{name}", array


@functools.lru_cache(maxsize=4096)
def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def translate(
    fn: Function,
    blocks: list[BasicBlock],
    symbols: dict[str, int],
    kernel: str,
    place_of: Callable[[Instr], str],
) -> tuple[list[Callable[..., Any]], list[Instr]]:
    """Compile every basic block.

    Returns (functions, memory_sites): one Python function for each block, and the loads, stores and atomics
    by site number. Raises UnsupportedInstruction, with the instruction, the kernel and the source line.
    """
    translator = Translator(fn, symbols, kernel, place_of)
    sources = []
    for block in blocks:
        live_out = set().union(*(blocks[i].live_in for i in successors(block)))
        body = translator.block(block, live_out)
        sources.append(f"def block_{block.index}(memory, group, registers):\n    {body}\n")
    namespace: dict[str, Any] = NAMES | DTYPES | translator.constants
    code = NAMED_DTYPE.sub(r".\1(\2)", "\n".join(sources))
    exec(compile(code, f"<simt {kernel}>", "exec"), namespace)
    return [namespace[f"block_{b.index}"] for b in blocks], translator.memory_sites
