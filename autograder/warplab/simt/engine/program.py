"""A kernel ready to run: parsed, split into basic blocks, translated, with its memory laid out."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from warplab.simt.engine.absent_lanes import WARP_WIDE, is_quiet
from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.generic_addresses import PARAMETERS
from warplab.simt.engine.idle_clocks import is_clock, only_sleeps
from warplab.simt.engine.indices import SharedArray, array_at, last_index, shared_array
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.schedule import warps_needed
from warplab.simt.engine.translate import translate
from warplab.simt.errors import InvalidLaunch, LaunchError, UnsupportedInstruction
from warplab.simt.ptx.blocks import registers_read, split, successors
from warplab.simt.ptx.dataflow import backward, register_facts
from warplab.simt.ptx.inline import CannotInline, inline_calls
from warplab.simt.ptx.link import link
from warplab.simt.ptx.parser import (
    Address,
    Function,
    Instr,
    Module,
    Reg,
    Sym,
    Variable,
    leaves,
    parse,
    uses_grid_barrier,
)
from warplab.simt.ptx.ptx_types import TYPES
from warplab.simt.ptx.stored import Origin, written_through

Error = TypeVar("Error", bound=LaunchError)
MAX_CALLS = 150  # depth of recursive calls
CODE = 1 << 20  # addresses of functions: nothing is ever mapped there


class Program:
    """One entry of a PTX module, translated, with the PTX modules that are ``linked`` to it.

    ``name`` is the kernel's name in the student's source. Raises UnsupportedInstruction for PTX that the
    engine does not execute, InvalidLaunch if the module has no such entry.
    """

    def __init__(
        self,
        ptx: str,
        entry: str,
        name: str,
        space: AddressSpace,
        linked: tuple[str, ...] = (),
        variables: dict[tuple, Region] | None = None,
    ):
        self.ptx, self.entry, self.name = ptx, entry, name
        modules = [parse(text) for text in (ptx, *linked)]
        self.module: Module = link(modules) if linked else modules[0]
        if entry not in self.module.functions:
            known = ", ".join(self.module.functions) or "none"
            raise InvalidLaunch(f"the compiled module has no kernel {entry!r}; it has {known}")
        fn = self.module.functions[entry]
        try:
            fn = inline_calls(self.module, fn) if "call" in fn.opcodes else fn
        except CannotInline as error:
            instr = error.instr
            raise UnsupportedInstruction(
                f"the SIMT engine does not execute `{' '.join(instr.text.split())};`: {error.why}",
                kernel=name,
                where=self.place(instr),
                hint="run this kernel on a CUDA GPU",
            ) from None
        self.function = fn
        self.max_threads = fn.max_threads
        self.parameters = {p.name: p.size for p in fn.params}
        self.symbols = symbols = self._lay_out(space, {} if variables is None else variables)
        self.blocks = split(fn, INSTRUCTIONS)
        self.routines = {b.routine: b.index for b in self.blocks if b.routine}
        for b in self.blocks[min(self.routines.values(), default=len(self.blocks)) :]:
            if b.end == "barrier":
                raise UnsupportedInstruction(
                    "the SIMT engine does not execute a barrier inside a recursive function",
                    kernel=name,
                    where=self.place(b.branch),
                )
        self.instrs = [i for b in self.blocks for i in b.instrs]  # without those that end a basic block
        self.grid_barrier = any(
            b.end == "barrier" and b.branch is not None and "grid" in b.branch.mods for b in self.blocks
        ) or any(uses_grid_barrier(i.text) for i in self.instrs)
        self.functions, self.sites = translate(fn, self.blocks, symbols, name, self.place)
        self.launches = 0  # without observers of the caller's
        self.repeats: Any = None  # traces of its launches: see ``engine.repeats``
        self.checked: tuple | None = None  # the configuration that was last checked against a Target's limits
        self.key = hashlib.sha256(ptx.encode()).hexdigest()

    def _lay_out(self, space: AddressSpace, shared: dict[tuple, Region]) -> dict[str, int]:
        """Lay out the module's and the kernel's variables; returns the address of each symbol.

        ``shared``: variables that earlier programs of the same source have laid out, by name and initial
        contents. Programs share them, except those that hold addresses of functions, which differ.
        """
        symbols: dict[str, int] = {p.name: PARAMETERS + p.offset for p in self.function.params}
        self.shared_static = self.local_size = 0
        self.dynamic_symbols: list[str] = []
        self.shared_arrays: list[SharedArray] = []
        self.regions = []
        framed, fresh = [], []
        self.globals: dict[str, Region] = {}
        for number, function in enumerate(self.module.functions):
            symbols[function] = CODE + 16 * number  # what a function pointer holds
        for v in (variables := self.module.variables + self.function.variables):
            if v.space == "shared":
                if v.size == 0:
                    self.dynamic_symbols.append(v.name)
                    continue
                self.shared_static = _up(self.shared_static, v.align)
                symbols[v.name] = self.shared_static
                self.shared_arrays.append(shared_array(v.name, self.shared_static, v.size))
                self.shared_static += v.size
            elif v.space == "local" and v.name in self.function.framed:
                framed.append(v)
            elif v.space == "local":
                self.local_size = _up(self.local_size, v.align)
                symbols[v.name] = self.local_size
                self.local_size += v.size
            elif v.space in ("global", "const") and v.linkage != "extern":  # an extern one is defined nowhere
                if (v.name, v.size, v.data) not in shared or self._holds_functions(v):
                    shared[v.name, v.size, v.data] = _mapped(v, space)
                    fresh.append(v)
                region = self.globals[v.name] = shared[v.name, v.size, v.data]
                self.regions.append(region)
                symbols[v.name] = region.base
        if self.dynamic_symbols:
            self.shared_static = _up(self.shared_static, max(16, *(v.align for v in variables if not v.size)))
            named = _named_in(self.function) & {*self.dynamic_symbols}
            for name in self.dynamic_symbols:
                symbols[name] = self.shared_static
                if name in named or not named:  # names that only other kernels of the source use are left out
                    self.shared_arrays.append(shared_array(name, self.shared_static, 0))
        self.local_size = _up(self.local_size, 16)
        self.frame_size = 0  # bytes of local memory that each call of a recursive function takes
        for v in framed:
            self.frame_size = _up(self.frame_size, v.align)
            symbols[v.name] = self.local_size + self.frame_size
            self.frame_size += v.size
        self.frame_size = _up(self.frame_size, 16)
        self.local_size += MAX_CALLS * self.frame_size
        for v in fresh:
            for address in v.addresses:
                self._put_address(v, address, symbols)
        return symbols

    def _holds_functions(self, variable: Variable) -> bool:
        return any(address.symbol in self.module.functions for address in variable.addresses)

    def _put_address(self, variable: Variable, address: Address, symbols: dict[str, int]) -> None:
        """Write the address of a symbol into a variable whose initialiser names it. Only variables in global
        memory can be named there, whose addresses are also their generic addresses.
        """
        if address.symbol not in symbols or variable.name not in self.globals:
            raise UnsupportedInstruction(
                f"the SIMT engine does not know the address of {address.symbol}, "
                f"with which {variable.name} is initialised",
                kernel=self.name,
                hint="define it in the same source, or link the file that does",
            )
        value = (symbols[address.symbol] + address.addend) >> address.shift
        data = (value & (1 << 8 * address.width) - 1).to_bytes(address.width, "little")
        region = self.globals[variable.name].data
        region[address.at : address.at + address.width] = np.frombuffer(data, np.uint8)

    @cached_property
    def written_through(self) -> list[frozenset[Origin]] | None:
        """The origins of the addresses of stores and atomics (``ptx.stored``)."""
        return written_through(self.function, INSTRUCTIONS)

    @cached_property
    def clock_is_idle(self) -> bool:
        """Whether clock values affect only how long the kernel sleeps (``only_sleeps``)."""
        return only_sleeps(self.blocks)

    @cached_property
    def plain_sites(self) -> set[int]:
        """The sites of whole instructions; others stand for a part of one (``Translator.place``)."""
        own = {id(i) for i in self.instrs}
        return {site for site, i in enumerate(self.sites) if id(i) in own}

    @cached_property
    def narrowest(self) -> int:
        """Bytes of the kernel's narrowest access, at most 8."""
        kinds = [m for i in self.sites if i.opcode not in WARP_WIDE for m in i.mods[-1:] if m in TYPES]
        return min([8, *(TYPES[m].bytes for m in kinds)])

    @cached_property
    def warps_needed(self) -> list[int]:
        return warps_needed(self.blocks)

    @cached_property
    def quiet(self) -> list[bool]:
        """For each block: whether it has no effect that other lanes can see."""
        return [is_quiet(block) for block in self.blocks]

    @cached_property
    def fences(self) -> bool:
        """Whether the kernel has a fence, or an access with release semantics."""
        fences = "fence", "membar"
        return any(
            i.opcode in fences or {"release", "acq_rel"} & set(i.mods) for i in (*self.sites, *self.instrs)
        )

    @cached_property
    def uses_async_proxy(self) -> bool:
        """Whether the kernel has copies by TMA, stores that complete at an mbarrier (st.async), or products
        whose operands are read from shared memory asynchronously (wgmma).
        """
        there = {("cp", "bulk"), ("st", "async")}
        return any(i.opcode == "wgmma" or there & {(i.opcode, mod) for mod in i.mods} for i in self.instrs)

    @cached_property
    def guesses(self) -> frozenset[int]:
        """The ids of loads whose value is, maybe through copies, the expected operand of a later
        compare-and-swap.
        """
        facts = register_facts(map(_loaded_or_copied, self.instrs))
        expected = [i.operands[2] for i in self.instrs if "cas" in i.mods]
        sought = frozenset().union(*(facts.get(o.name, ()) for o in expected if isinstance(o, Reg)))
        swaps = {b.index for b in self.blocks if any("cas" in i.mods for i in b.instrs)}
        after = [successors(b) for b in self.blocks]
        none: list[set[int]] = [set() for _ in after]
        later = backward(after, none, lambda b, states: {*after[b]}.union(*states))
        found: set[int] = set()
        for block in self.blocks if sought else ():
            ahead = not swaps.isdisjoint(later[block.index])
            for i in reversed(block.instrs):
                if ahead and id(i) in sought:
                    found.add(id(i))
                ahead = ahead or "cas" in i.mods
        return frozenset(found)

    def shared_place(self, byte: int, width: int) -> str:
        """The element of a shared array to which a byte of shared memory belongs: ``tile[3, 16]``."""
        array = array_at(self.shared_arrays, byte)
        return array.place(byte, width) if array else f"shared memory at byte {byte}"

    def shared_extent(self, byte: int, total: int) -> str:
        """The size of the shared array at ``byte`` in words, for an access beyond the block's ``total``."""
        array = array_at(self.shared_arrays, byte)
        if array and array.shape and array.size:
            return f"whose last element is {last_index(array.shape)}"
        return f"and the block has {total:,} bytes of shared memory"

    def file_of(self, number: int) -> str:
        return self.module.files.get(number, "")

    def place(self, instr) -> str:
        """``file:line`` of an instruction, ``cell:line`` in a notebook; its text if it has no line."""
        path = self.file_of(instr.file)
        short = path.rsplit("/", 1)[-1]
        if "ipykernel" in path or short.startswith("<ipython"):
            short = "cell"
        line = f"line {instr.line}" if instr.line else instr.text or "line 0"  # PTX by hand may have no lines
        return f"{short}:{instr.line}" if short else line

    def line_of_site(self, site: int) -> str:
        return self.place(self.sites[site])

    def line_of_block(self, index: int) -> str:
        block = self.blocks[index]
        instr = block.branch or (block.instrs[0] if block.instrs else None)
        return self.place(instr) if instr else ""

    def error(self, kind: type[Error], site: int, message: str, hint: str = "", acts: tuple = ()) -> Error:
        """Make an error of a ``kind`` at a site, for the caller to raise."""
        return kind(message, kernel=self.name, where=self.line_of_site(site), hint=hint, acts=acts)

    def unsupported_register(self, name: str) -> UnsupportedInstruction:
        """Make the error for a special register that the engine does not have, with what to use instead."""
        readers = [i for i in self.instrs if f"%{name}" in registers_read(i, INSTRUCTIONS)]
        why, hint = "", "SM numbers have no meaning on the engine: run on a CUDA GPU"
        if name.startswith("reserved_smem"):
            why = ": shared memory that CUDA keeps for cooperative tiles of more than a warp"
            hint = "cg::tiled_partition<32>(block) and a sum of the warps' results in shared memory"
        if is_clock(name):
            why = ": it has no clock, and its counts are not times"
            hint = (
                "warplab.bench on a GPU for how long a launch takes, warplab.profile for what it does; "
                "a thread that waits for another looks at what that one writes"
            )
        return UnsupportedInstruction(
            f"the SIMT engine does not provide the register %{name}{why}",
            kernel=self.name,
            where=self.place(readers[0]) if readers else "",
            hint=hint,
        )


def _mapped(v: Variable, space: AddressSpace) -> Region:
    """A new region for a global or constant variable, with its initial contents."""
    data = np.frombuffer(bytearray(v.data or bytes(max(v.size, 1))), np.uint8)
    region = space.add(data, f"{v.space} variable {v.name}", writable=v.space == "global")
    region.unset = v.space == "const" and v.data is None
    return region


def _up(size: int, to: int) -> int:
    """``size`` rounded up to a multiple of ``to``."""
    return -(-size // to) * to


def _loaded_or_copied(instr: Instr) -> tuple[set[str], set[str], frozenset[int]]:
    """A step for ``register_facts``: the facts are the ids of the loads that a value may come from."""
    is_load, is_copy = instr.opcode == "ld", instr.opcode in ("mov", "selp")
    written = {operand.name for operand in instr.operands[:1] if isinstance(operand, Reg)}
    read = {operand.name for operand in instr.operands[1:] if isinstance(operand, Reg)}
    return written if is_load or is_copy else set(), read, frozenset([id(instr)] * is_load)


def _named_in(function: Function) -> set[str]:
    """The symbols that a function's instructions name."""
    instrs = [item for item in function.body if isinstance(item, Instr)]
    return {op.name for i in instrs for op in leaves(*i.operands) if isinstance(op, Sym)}
