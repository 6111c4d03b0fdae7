"""The mutants of a task's reference solution, each with an identity that does not depend on other lines."""

import ast
import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst import matchers as m

from warplab.tasks import registry
from workshop.mutants import cpp_operators, operators
from workshop.mutants.notebook_cells import bare, cells_for


@dataclass(frozen=True)
class Mutant:
    """A reference solution changed in one place.

    identity: the change, "line => changed line", under which equivalent.yml lists it. operator: the mutation
    operator that made it. source: the whole cell.
    """

    task: str
    identity: str
    operator: str
    source: str


def mutants_of(name: str, notebook: Path) -> list[Mutant]:
    """All different mutants of the task `name`, in the order of their lines. notebook: its solution file."""
    base = "\n".join(bare(cells_for(notebook, name.split("/")[1])[-1])) + "\n"
    base = ast_without_docstrings(base)
    found: list[Mutant] = []
    texts, identities = {normal(base)}, Counter[str]()
    for operator, source in _sources(name, base):
        key = normal(source)
        if key is None or key in texts:
            continue
        texts.add(key)
        what = changed(base, source) if operator != "serialised" else f"serialised {len(found)}"
        if operator == "serialised":
            what = (
                "one block does the work of all" if "_block_y" in source else "one thread does a block's work"
            )
        identities[what] += 1
        if identities[what] > 1:
            what += f" ({identities[what]})"
        found.append(Mutant(name, what, operator, source))
    return found


def _sources(name: str, base: str) -> Iterator[tuple[str, str]]:
    yield from operators.mutated(base)
    yield from fixed_parameters(name, base)
    module = cst.parse_module(base)
    for literal in m.findall(module, m.SimpleString()):
        if isinstance(literal, cst.SimpleString) and "__global__" in literal.value:
            for operator, text in cpp_operators.mutated(literal.value):
                yield operator, base.replace(literal.value, text)


def fixed_parameters(name: str, base: str) -> Iterator[tuple[str, str]]:
    """Yield mutants in which a numeric parameter is fixed to its value in the task's first case."""
    task = registry.get(name)
    first = task.cases(0)[0].inputs
    module = cst.parse_module(base)
    for function in m.findall(module, m.FunctionDef(name=m.Name(task.entry))):
        if not isinstance(function, cst.FunctionDef):
            continue
        for parameter in function.params.params:
            value = first.get(parameter.name.value)
            if type(value) in (int, float):
                line = cst.parse_statement(f"{parameter.name.value} = {value!r}")
                body = function.body.with_changes(body=[line, *function.body.body])
                other = function.with_changes(body=body)
                wrong = cst.ensure_type(module.deep_replace(function, other), cst.Module)
                yield "fixed_parameter", wrong.code


def changed(base: str, source: str) -> str:
    """The lines that differ, as "old => new" in one line."""
    old, new = [], []
    for line in difflib.ndiff(base.splitlines(), source.splitlines()):
        if line.startswith("- "):
            old.append(line[2:].strip())
        elif line.startswith("+ "):
            new.append(line[2:].strip())
    return f"{' | '.join(old)} => {' | '.join(new)}"


def normal(source: str) -> str | None:
    """A form of the program that does not depend on its layout; None if it has a syntax error."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return None


def ast_without_docstrings(source: str) -> str:
    """The source with the texts of its docstrings replaced, so that nothing in them is mutated."""
    return re.sub(r'^([ \t]+)"""(?:(?!""").)*?"""', r'\1"""Told."""', source, flags=re.S | re.M)
