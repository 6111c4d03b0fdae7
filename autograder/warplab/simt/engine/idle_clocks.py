"""Clocks: the engine has none. A kernel that reads one is refused, unless the value affects only how long a
thread sleeps; then the clock reads 0.

The library behind ``cuda::barrier`` and ``cuda::pipeline`` polls with such a back-off: it reads
``%globaltimer`` and sleeps longer the more time has passed. The results of the kernel do not depend on it.
"""

from __future__ import annotations

from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.blocks import BasicBlock, registers_read, registers_written, successors
from warplab.simt.ptx.dataflow import backward, register_facts
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.parser import Instr

ELSEWHERE = {"call", "extern", "mbarrier", "recurse", "results", "trap"}  # have other effects than registers


def is_clock(register: str) -> bool:
    return register.lstrip("%").startswith(("clock", "globaltimer"))


def only_sleeps(blocks: list[BasicBlock]) -> bool:
    """Whether values of clocks affect only how long threads sleep."""
    instrs = [i for b in blocks for i in (*b.instrs, *([b.branch] if b.branch is not None else []))]
    facts = register_facts(
        (registers_written(i, INSTRUCTIONS), registers_read(i, INSTRUCTIONS), frozenset([_reads_clock(i)]))
        for i in instrs
    )
    timed = {register for register, found in facts.items() if True in found}
    for block in blocks:
        if not all(_computes(i) for i in block.instrs if _is_timed(i, timed)):
            return False
        if block.branch is not None and _is_timed(block.branch, timed):
            if block.end != "branch" or not _meets_again(blocks, block):
                return False
    return True


def _reads_clock(instr: Instr) -> bool:
    return any(map(is_clock, registers_read(instr, INSTRUCTIONS)))


def _is_timed(instr: Instr, timed: set[str]) -> bool:
    return _reads_clock(instr) or not timed.isdisjoint(registers_read(instr, INSTRUCTIONS))


def _computes(instr: Instr) -> bool:
    """Whether an instruction only writes its registers, or only sleeps."""
    row = effects_of(instr, INSTRUCTIONS)
    quiet = row.memory == "none" and instr.opcode in INSTRUCTIONS and instr.opcode not in ELSEWHERE
    return quiet and (row.writes(instr) or instr.opcode == "nanosleep")


def _meets_again(blocks: list[BasicBlock], block: BasicBlock) -> bool:
    """Whether both ways of a branch lead to one basic block, on paths without a loop that only compute and
    sleep, whose results are not used from that block on.
    """
    after = _always_after(blocks)
    later = after[block.index] - {block.index}
    if not later:
        return False
    join = max(later, key=lambda index: len(after[index]))
    between: set[int] = set()
    ahead = successors(block)
    while ahead:
        index = ahead.pop()
        if index != join and index not in between:
            between.add(index)
            ahead += successors(blocks[index])
    written: set[str] = set()
    for index in between:
        b = blocks[index]
        if b.end in ("barrier", "exit") or not all(map(_computes, b.instrs)):
            return False
        written = written.union(*(registers_written(i, INSTRUCTIONS) for i in b.instrs))
    goes_back = any(to <= i for i in between for to in successors(blocks[i]) if to != join)
    return not goes_back and block.index not in between and not written & blocks[join].live_in


def _always_after(blocks: list[BasicBlock]) -> list[set[int]]:
    """The postdominators of each block, itself included: the blocks on every path from it to an exit."""
    everything = set(range(len(blocks)))

    def transfer(block: int, after: list[set[int]]) -> set[int]:
        return (set.intersection(*after) if after else set()) | {block}

    return backward([successors(b) for b in blocks], [everything] * len(blocks), transfer)
