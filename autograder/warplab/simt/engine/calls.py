"""Handlers of the calls that ``ptx.inline`` leaves: recursive ones run on the machine, others are refused.

``recurse.<name> {results}, arguments...`` and ``results`` are pseudo-instructions that ``ptx.inline`` makes.
"""

from __future__ import annotations


def call(code, instr):
    raise code.unsupported(instr, "a call to a device function that was not inlined")


def recurse(code, instr):
    """A call of a recursive function, which the machine runs for the group's lanes (``Machine.call``)."""
    target, *arguments = instr.operands
    name = instr.mods[0]
    parameters, results_ = code.fn.routines[name]
    pairs = zip(arguments, parameters, strict=True)
    given = "".join(f"{code.use(argument, code.canonical(parameter))}, " for argument, parameter in pairs)
    called = f"{name!r}, {parameters!r}, ({given}), {results_!r}"
    code.emit(f"got = group.machine.call(group, {called}, {code.site(instr)})")
    for i, item in enumerate(target.items):
        code.define(item, f"got[{i}]", code.canonical(item.name))


def results(code, instr):
    """The end of a recursive function: keeps its results in registers, where ``Machine.call`` takes them."""
    for register in instr.operands:
        code.emit(f"registers[{register.name!r}] = {code.use(register, code.canonical(register.name))}")
