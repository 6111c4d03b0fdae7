"""Inlines calls of device functions: each call is replaced by a copy of the callee's body with its own
registers and labels.

PTX passes arguments through ``.param`` variables; a copy keeps each in a register, so that ``st.param`` and
``ld.param`` become ``mov``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import Any

from warplab.simt.ptx.blocks import ROUTINE, is_special, loads_parameter
from warplab.simt.ptx.parser import Function, Imm, Instr, Module, Reg, Sym, Vec, leaves, mapped
from warplab.simt.ptx.ptx_types import TYPES

MAX_DEPTH = 16
EXTERNAL = {  # functions that the engine provides: the type of the result, "" for none
    "vprintf": "b32",
    "malloc": "b64",
    "free": "",
    "__assertfail": "",
    "cudaCGGetIntrinsicHandle": "b64",
    "cudaCGSynchronize": "b32",
}

# "(result), name, (arguments), prototype"; the groups are the name and the arguments
_CALL = re.compile(r"\s*(?:\(\s*[\w$]+\s*\)\s*,)?\s*([\w$%]+)\s*(?:,\s*\(([^)]*)\))?\s*(?:,.*)?", re.S)


class CannotInline(Exception):
    """A call cannot be inlined: its function has no body, or calls are nested too deeply, or its arguments
    are not passed as they are read. ``instr`` is the call, ``why`` the reason.
    """

    def __init__(self, instr: Instr, why: str):
        super().__init__(why)
        self.instr, self.why = instr, why


def inline_calls(module: Module, entry: Function) -> Function:
    """A copy of ``entry`` without call instructions.

    Raises CannotInline, which names the call, for functions that have no body and are not in EXTERNAL.
    """
    out = replace(entry, regs=dict(entry.regs), variables=list(entry.variables), body=[], routines={})
    copier = _Copier(module, out)
    copier.copy(entry, suffix="", arguments={}, result="", depth=0)
    copier.append_routines()
    return out


def _parts(value, offset: int, kind: str):
    """[(element, (byte offset, type)), ...] of a scalar or a vector of ``kind`` at ``offset``."""
    items = value.items if isinstance(value, Vec) else (value,)
    return [(item, (offset + i * TYPES[kind].bytes, kind)) for i, item in enumerate(items)]


class _Copier:
    """Copies the bodies of a kernel and of the functions that it calls into the function ``out``."""

    def __init__(self, module: Module, out: Function):
        self.module, self.out, self.calls, self.suffix = module, out, 0, ""
        self.inside: list[str] = []  # functions being copied: a call of one of them is recursive
        self.pending: list[tuple] = []  # recursive functions whose code is to be appended

    def copy(self, fn: Function, suffix: str, arguments: dict[str, str], result: str, depth: int) -> None:
        """Append ``fn``'s body, with ``suffix`` added to its names.

        ``arguments`` maps the names of its parameters to the stems of the registers that hold them;
        ``result`` is the stem for its return value. A register's name is its stem and "_<byte offset>".
        """
        own = {v.name: f"{v.name}{suffix}" for v in fn.variables}
        if suffix:
            self.out.regs.update({f"{name}{suffix}": kind for name, kind in fn.regs.items()})
            self.out.variables.extend(replace(v, name=own[v.name]) for v in fn.variables)
        labels = {item for item in fn.body if isinstance(item, str)}
        # arguments stored for the next call: .param variable -> byte offset -> (type, register)
        passed: dict[str, dict[int, tuple[str, Reg]]] = {}
        returned = ""

        def rename(op):
            return mapped(op, lambda leaf: _renamed(leaf, suffix, labels, own))

        def copied(item: Instr, **changes) -> None:
            guard = rename(item.guard) if item.guard else None
            changes = {"operands": tuple(map(rename, item.operands)), "guard": guard} | changes
            self.out.body.append(replace(item, **changes))

        for item in fn.body:
            if isinstance(item, str):
                self.out.body.append(f"{item}{suffix}")
            elif item.opcode == "call":
                self.suffix = suffix
                returned = self._call(item, passed, depth)
                passed = {}
            elif item.opcode == "st" and "param" in item.mods:
                address, value = item.operands
                name, offset = address.base.name, address.base.offset + address.offset
                stem = result if name.startswith("func_retval") else f"%call{self.calls}_{name}"
                for part, (at, kind) in _parts(value, offset, item.mods[-1]):
                    if stem != result:
                        passed.setdefault(name, {})[at] = kind, Reg(f"{stem}_{at}")
                    self.out.regs.setdefault(f"{stem}_{at}", item.mods[-1])
                    self._put(item, "mov", (item.mods[-1],), (Reg(f"{stem}_{at}"), rename(part)), item.guard)
            elif loads_parameter(item):
                base, offset = item.operands[1].base, item.operands[1].base.offset + item.operands[1].offset
                stem = arguments.get(base.name) or (returned if base.name.startswith("retval") else None)
                if stem is None:
                    copied(item)
                    continue
                for part, (at, kind) in _parts(item.operands[0], offset, item.mods[-1]):
                    source = Reg(f"{stem}_{at}")
                    if source.name not in self.out.regs:
                        if stem != returned:
                            why = f"part of the argument at byte {at} is read but was not passed as such"
                            raise CannotInline(item, why)
                        source = Imm(0)  # the caller reads a result that the callee never sets: numba's None
                    self._put(item, "mov", (kind,), (rename(part), source), item.guard)
            elif item.opcode == "ret" and suffix:
                copied(item, opcode="bra", mods=(), operands=(Sym(f"$return{suffix}"),))
            else:
                copied(item)
        if suffix:
            self.out.body.append(f"$return{suffix}")

    def _call(self, item: Instr, passed: dict[str, dict[int, tuple]], depth: int) -> str:
        m = _CALL.fullmatch(item.operands[0])
        name = m.group(1) if m else item.operands[0]
        given = (
            [argument.strip() for argument in (m.group(2) or "").split(",") if argument.strip()] if m else []
        )
        callee = self.module.functions.get(name)
        if m and callee is None and name in EXTERNAL:
            return self._external(item, name, given, passed)
        if m and name.startswith("%"):
            return self._through_pointer(item, name, given, passed, depth)
        if m is None or callee is None:
            raise CannotInline(item, f"a call to {name}, which has no body here")
        return self._copy_callee(item, callee, given, passed, depth)

    def _copy_callee(self, item, callee: Function, given, passed, depth: int, result: str = "") -> str:
        if callee.name in self.inside:
            return self._recurse(item, callee, given, passed)
        if depth >= MAX_DEPTH:
            raise CannotInline(item, f"calls nested deeper than {MAX_DEPTH}")
        self.calls += 1
        inner = f"__{self.calls}"
        arguments = {}
        for param, value in zip(callee.params, given):
            stem = arguments[param.name] = f"%arg{inner}_{param.name}"
            for offset, (kind, source) in passed.get(value, {}).items():
                self.out.regs[f"{stem}_{offset}"] = kind
                self._put(item, "mov", (kind,), (Reg(f"{stem}_{offset}"), source))
        result = result or f"%ret{inner}"
        self.inside.append(callee.name)
        self.copy(callee, inner, arguments, result, depth + 1)
        self.inside.pop()
        return result

    def _recurse(self, item, callee: Function, given, passed) -> str:
        """A recursive call becomes ``recurse.<name> {results}, arguments...``, which runs the function's code
        that ``append_routines`` adds once.
        """
        pairs = [(p.name, passed.get(value, {})) for p, value in zip(callee.params, given)]
        parts = [(name, offset, *what) for name, found in pairs for offset, what in sorted(found.items())]
        if callee.name not in self.out.routines:
            stem, results = f"%routine{len(self.out.routines)}", {}
            for i in callee.body:
                if isinstance(i, Instr) and i.opcode == "st" and "param" in i.mods:
                    (address, value), base = i.operands, i.operands[0].base
                    if base.name.startswith("func_retval"):
                        results |= dict(
                            at for _, at in _parts(value, base.offset + address.offset, i.mods[-1])
                        )
            registers = {f"{stem}_{name}_{offset}": kind for name, offset, kind, _ in parts}
            returned = {f"{stem}_result_{offset}": results[offset] for offset in sorted(results)}
            self.out.regs |= registers | returned
            self.out.routines[callee.name] = tuple(registers), tuple(returned)
            self.pending.append((item, callee, stem))
        self.calls += 1
        stem, targets = f"%ret__{self.calls}", []
        for register in self.out.routines[callee.name][1]:
            name = f"{stem}_{register.rsplit('_', 1)[1]}"
            self.out.regs[name] = self.out.regs[register]
            targets.append(Reg(name))
        self._put(item, "recurse", (callee.name,), (Vec(tuple(targets)), *(source for *_, source in parts)))
        return stem

    def append_routines(self) -> None:
        """Append the code of each recursive function once, after the kernel's own."""
        for item, callee, stem in self.pending:  # the list grows while routines are copied
            number, before = stem.removeprefix("%"), len(self.out.variables)
            self.inside = [callee.name]
            self._put(item, "ret", (), ())
            self.out.body.append(f"{ROUTINE}{callee.name}")
            arguments = {p.name: f"{stem}_{p.name}" for p in callee.params}
            self.copy(callee, f"__{number}", arguments, f"{stem}_result", 1)
            self._put(item, "results", (), tuple(Reg(name) for name in self.out.routines[callee.name][1]))
            self._put(item, "ret", (), ())
            self.out.framed |= {v.name for v in self.out.variables[before:] if v.space == "local"}

    def _through_pointer(self, item: Instr, pointer: str, given, passed, depth: int) -> str:
        """A call through a function pointer becomes a copy of each function that it may point to (whose
        address is taken), under a comparison of the pointer with that address.
        """
        self.calls += 1
        number = self.calls
        where, result, over = Reg(f"{pointer}{self.suffix}"), f"%ret__{number}", f"$called__{number}"
        for index, name in enumerate(self.addresses):
            callee = self.module.functions[name]
            if len(callee.params) != len(given):
                continue
            test, skip = Reg(f"%is__{number}_{index}"), f"$not__{number}_{index}"
            self.out.regs[test.name] = "pred"
            self._put(item, "setp", ("ne", "u64"), (test, where, Sym(name)))
            self._put(item, "bra", (), (Sym(skip),), guard=test)
            suffix = self.suffix
            self._copy_callee(item, callee, given, passed, depth, result)
            self.suffix = suffix
            self._put(item, "bra", (), (Sym(over),))
            self.out.body.append(skip)
        self._put(item, "extern", ("bad_call",), (Reg("_"), where))
        self.out.body.append(over)
        return result

    @cached_property
    def addresses(self) -> list[str]:
        """Functions of the module whose address an instruction or a variable takes."""
        instrs = [i for fn in self.module.functions.values() for i in fn.body if isinstance(i, Instr)]
        operands = [op for i in instrs if i.opcode != "call" for op in leaves(*i.operands)]
        taken = {op.name for op in operands if isinstance(op, Sym)}
        taken |= {address.symbol for v in self.module.variables for address in v.addresses}
        return sorted(taken & self.module.functions.keys())

    def _put(self, item: Instr, opcode: str, mods: tuple, operands: tuple, guard=None) -> None:
        self.out.body.append(replace(item, opcode=opcode, mods=mods, operands=operands, guard=guard))

    def _external(self, item: Instr, name: str, given: list[str], passed: dict) -> str:
        """A call of a function in EXTERNAL becomes the pseudo-instruction ``extern.<name>``, or a barrier of
        the grid.
        """
        self.calls += 1
        stem = f"%ret__{self.calls}"
        result = Reg(f"{stem}_0") if EXTERNAL[name] else Reg("_")
        if EXTERNAL[name]:
            self.out.regs[result.name] = EXTERNAL[name]
        arguments = [passed[a][0][1] for a in given]
        if name.startswith("cudaCG"):
            if name == "cudaCGSynchronize":
                self._put(item, "barrier", ("grid",), ())
            self._put(item, "mov", (EXTERNAL[name],), (result, Imm(1 if "Handle" in name else 0)))
        else:
            self._put(item, "extern", (name.lstrip("_"),), (result, *arguments))
        return stem


def _renamed(op: Any, suffix: str, labels: set[str], own: dict[str, str]) -> Any:
    """A register, label or variable of an inlined function, renamed for this copy."""
    if isinstance(op, Reg):
        return op if is_special(op.name) or op.name == "_" else replace(op, name=f"{op.name}{suffix}")
    if isinstance(op, Sym):
        return replace(op, name=f"{op.name}{suffix}" if op.name in labels else own.get(op.name, op.name))
    return op
