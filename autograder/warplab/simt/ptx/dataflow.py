"""Data flow: the fixpoints that compute properties of registers and of basic blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Fact = TypeVar("Fact")
State = TypeVar("State")


def register_facts(
    steps: Iterable[tuple[set[str], set[str], frozenset[Fact]]],
) -> dict[str, frozenset[Fact]]:
    """The facts that may hold of each register's value, in whatever order the instructions run.

    A step describes an instruction: the registers that it writes, the registers whose facts pass on to
    those, and the facts that it adds.
    """
    steps = [step for step in steps if step[0]]
    facts: dict[str, frozenset[Fact]] = {}
    nothing: frozenset[Fact] = frozenset()
    changed = True
    while changed:
        changed = False
        for written, read, own in steps:
            found = own.union(*(facts[register] for register in read if register in facts))
            for register in written:
                if register not in facts or not found <= facts[register]:
                    facts[register] = facts.get(register, nothing) | found
                    changed = True
    return facts


def backward(
    successors: Sequence[list[int]], states: list[State], transfer: Callable[[int, list[State]], State]
) -> list[State]:
    """The fixpoint of each basic block's state at its beginning, starting from ``states``; ``transfer``
    computes it from the block's index and the states at the beginnings of its successors.
    """
    states = list(states)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(states))):
            new = transfer(block, [states[i] for i in successors[block]])
            if new != states[block]:
                states[block], changed = new, True
    return states
