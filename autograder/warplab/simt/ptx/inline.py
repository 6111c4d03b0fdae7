"""Calls to device functions, replaced by the callee's body: every call site gets its own copy of registers and labels.

PTX passes arguments through ``.param`` variables; a copy turns each into a register: ``st.param``/``ld.param`` become ``mov``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .blocks import is_special
from .parser import Function, Instr, Mem, Module, Reg, Sym, Vec

MAX_DEPTH = 16


class CannotInline(Exception):
    """A call that has no body to copy (an extern such as vprintf, a function pointer) or recurses; carries the instruction."""

    def __init__(self, instr: Instr, why: str):
        super().__init__(why)
        self.instr, self.why = instr, why


def inline_calls(module: Module, entry: Function) -> Function:
    """A copy of ``entry`` without call instructions; the same function when it makes none.

    Raises CannotInline, which names the call, for externs, function pointers and recursion.
    """
    if not any(isinstance(i, Instr) and i.opcode == "call" for i in entry.body):
        return entry
    out = replace(entry, regs=dict(entry.regs), variables=list(entry.variables), body=[])
    _Copier(module, out).copy(entry, suffix="", arguments={}, result="", depth=0)
    return out


class _Copier:
    def __init__(self, module: Module, out: Function):
        self.module, self.out, self.calls = module, out, 0

    def copy(self, fn: Function, suffix: str, arguments: dict[str, str], result: str, depth: int) -> None:
        """Append ``fn``'s body. ``arguments`` maps its parameter names to register stems, ``result`` is the return's stem."""
        own = {v.name: f"{v.name}{suffix}" for v in fn.variables}
        if suffix:
            self.out.regs.update({f"{name}{suffix}": kind for name, kind in fn.regs.items()})
            self.out.variables.extend(replace(v, name=own[v.name]) for v in fn.variables)
        labels = {item for item in fn.body if isinstance(item, str)}
        passed: dict[str, dict[int, str]] = {}  # .param variable of a pending call -> offset -> type
        returned = ""

        def rename(op):
            if isinstance(op, Reg):
                return op if is_special(op.name) or op.name == "_" else Reg(f"{op.name}{suffix}", op.negated)
            if isinstance(op, Sym):
                name = f"{op.name}{suffix}" if op.name in labels else own.get(op.name, op.name)
                return Sym(name, op.offset)
            if isinstance(op, Mem):
                return Mem(rename(op.base), op.offset)
            if isinstance(op, Vec):
                return Vec(tuple(rename(i) for i in op.items))
            return op

        for item in fn.body:
            if isinstance(item, str):
                self.out.body.append(f"{item}{suffix}")
            elif item.opcode == "call":
                returned = self._call(item, passed, suffix, depth)
                passed = {}
            elif item.opcode == "st" and "param" in item.mods:
                address, value = item.operands
                name, offset = address.base.name, address.base.offset + address.offset
                stem = result if name.startswith("func_retval") else f"%call{suffix}_{name}"
                if stem != result:
                    passed.setdefault(name, {})[offset] = item.mods[-1]
                self._move(item, Reg(f"{stem}_{offset}"), rename(value), declare=True)
            elif item.opcode == "ld" and "param" in item.mods and isinstance(item.operands[1].base, Sym):
                base, offset = item.operands[1].base, item.operands[1].base.offset + item.operands[1].offset
                stem = arguments.get(base.name) or (returned if base.name.startswith("retval") else None)
                if stem is None:
                    self.out.body.append(replace(item, operands=tuple(rename(o) for o in item.operands)))
                    continue
                if f"{stem}_{offset}" not in self.out.regs:
                    raise CannotInline(item, f"part of the argument at byte {offset} is read but was not passed as such")
                self._move(item, rename(item.operands[0]), Reg(f"{stem}_{offset}"))
            elif item.opcode == "ret" and suffix:
                self.out.body.append(
                    replace(
                        item, opcode="bra", mods=(), operands=(Sym(f"$return{suffix}"),), guard=rename(item.guard) if item.guard else None
                    )
                )
            else:
                self.out.body.append(
                    replace(item, operands=tuple(rename(o) for o in item.operands), guard=rename(item.guard) if item.guard else None)
                )
        if suffix:
            self.out.body.append(f"$return{suffix}")

    def _move(self, item: Instr, target, source, declare: bool = False) -> None:
        kind = item.mods[-1]
        if declare:
            self.out.regs.setdefault(target.name, kind)
        if isinstance(target, Vec) or isinstance(source, Vec):
            raise CannotInline(item, "a vector argument")
        self.out.body.append(Instr("mov", (kind,), (target, source), item.guard, item.line, item.file, item.text))

    def _call(self, item: Instr, passed: dict[str, dict[int, str]], suffix: str, depth: int) -> str:
        m = re.fullmatch(r"\s*(?:\(\s*([\w$]+)\s*\)\s*,)?\s*([\w$%]+)\s*(?:,\s*\(([^)]*)\))?\s*(?:,.*)?", item.operands[0], re.S)
        name = m.group(2) if m else item.operands[0]
        callee = self.module.functions.get(name)
        if m is None or callee is None:
            raise CannotInline(item, f"a call to {name}, which has no body here")
        if depth >= MAX_DEPTH:
            raise CannotInline(item, f"calls nested deeper than {MAX_DEPTH}: recursion")
        self.calls += 1
        inner = f"__{self.calls}"
        arguments = {}
        for param, given in zip(callee.params, [a.strip() for a in (m.group(3) or "").split(",") if a.strip()]):
            stem = arguments[param.name] = f"%arg{inner}_{param.name}"
            for offset, kind in passed.get(given, {}).items():
                self.out.regs[f"{stem}_{offset}"] = kind
                source = Reg(f"%call{suffix}_{given}_{offset}")
                self.out.body.append(Instr("mov", (kind,), (Reg(f"{stem}_{offset}"), source), None, item.line, item.file, item.text))
        self.copy(callee, inner, arguments, f"%ret{inner}", depth + 1)
        return f"%ret{inner}"
