"""Links PTX modules into one, as nvJitLink does: a definition resolves every ``.extern`` of its name."""

from __future__ import annotations

from dataclasses import replace

from warplab.simt.ptx.parser import Function, Instr, Module, Sym, mapped


def link(modules: list[Module]) -> Module:
    """One module with the functions and variables of all; version and target are those of the first, which
    has the kernel.

    A module's private names (without a linkage directive) get a suffix where they clash. File numbers are
    shifted, so that line numbers keep their files.
    """
    out = Module(modules[0].version, modules[0].target, {}, [], {})
    defined: dict[str, str] = {}
    wanted = []
    for number, module in enumerate(modules):
        shift = max(out.files, default=0) + 1 if number else 0
        out.files.update({n + shift: path for n, path in module.files.items()})
        own = {}
        for item in [*module.variables, *module.functions.values()]:
            private = item.linkage == "static" and not getattr(item, "is_entry", False)
            if private and item.name in defined:
                own[item.name] = f"{item.name}__{number}"
        for v in module.variables:
            name = own.get(v.name, v.name)
            if v.linkage == "extern":
                wanted.append(v)
            elif name not in defined:
                defined[name] = v.linkage
                addresses = tuple(replace(a, symbol=own.get(a.symbol, a.symbol)) for a in v.addresses)
                out.variables.append(replace(v, name=name, addresses=addresses))
        for fn in module.functions.values():
            name = own.get(fn.name, fn.name)
            if name not in defined or defined[name] == "weak" != fn.linkage:
                defined[name] = fn.linkage
                out.functions[name] = _moved(fn, name, own, shift)
    for v in wanted:  # dynamic shared memory is extern everywhere
        if v.name not in defined:
            defined[v.name] = v.linkage
            out.variables.append(v)
    return out


def _moved(fn: Function, name: str, own: dict[str, str], shift: int) -> Function:
    """A copy of ``fn`` named ``name``: ``shift`` is added to file numbers, names are mapped by ``own``."""

    def rename(op):
        return replace(op, name=own.get(op.name, op.name)) if isinstance(op, Sym) else op

    if not own and not shift:
        return fn
    body = []
    for item in fn.body:
        if isinstance(item, Instr):
            operands = item.operands
            if item.opcode == "call":
                text = operands[0]
                for old, new in own.items():
                    text = text.replace(f" {old},", f" {new},")
                operands = (text,)
            elif own:
                operands = tuple(mapped(op, rename) for op in operands)
            item = replace(item, operands=operands, file=item.file + shift)
        body.append(item)
    return replace(fn, name=name, body=body)
