"""Barriers: who waits where, who may pass, and the votes that ``bar.red`` takes on the way.

A plain barrier takes every thread of a block that has not exited. A counted one (``bar.sync id, n``) takes n
threads. A grid barrier takes every thread of the grid. The machine asks only when no lane can run, so all
living lanes wait somewhere.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.errors import BarrierDivergence, UnsupportedInstruction
from warplab.simt.ptx.parser import Imm, Reg


def release(machine, waiting):
    """Split ``waiting`` (block index, group) into those that pass and those that stay.

    Raises BarrierDivergence if threads of one block wait at barriers that cannot all be met.
    """
    program = machine.program
    if any("grid" in program.blocks[i].branch.mods for i, _ in waiting):
        return _grid(machine, waiting)
    counted = [(i, g) for i, g in waiting if _count(program, i, g) is not None]
    if counted:
        passing = _counted(machine, counted)
        if not passing and len(counted) == len(waiting):
            _stuck(machine, waiting)
        if passing:
            gone = {id(g) for _, g in passing}
            return passing, [(i, g) for i, g in waiting if id(g) not in gone]
        waiting_for_all = [(i, g) for i, g in waiting if _count(program, i, g) is None]
        return _all(machine, waiting_for_all, others=counted), counted
    return _all(machine, waiting), []


def _all(machine, waiting, others=()):
    """Barriers for whole thread blocks: each block's threads must wait at one and the same."""
    place = np.full(machine.blocks, -1)
    for index, group in [*waiting, *others]:
        blocks = np.unique(machine.block_of_lane[group.lanes])
        clash = (place[blocks] >= 0) & (place[blocks] != index)
        if clash.any():
            _diverged(
                machine, int(blocks[clash][0]), int(place[blocks[clash][0]]), index, [*waiting, *others]
            )
        place[blocks] = index
    _vote(machine, waiting)
    return waiting


def _grid(machine, waiting):
    program = machine.program
    here = [(i, g) for i, g in waiting if "grid" in program.blocks[i].branch.mods]
    for index, group in waiting:
        if index != here[0][0]:
            _diverged(machine, int(machine.block_of_lane[group.lanes[0]]), here[0][0], index, waiting)
    return waiting, []


def _counted(machine, counted):
    """Groups whose counted barrier has its number of threads, block by block."""
    program = machine.program
    tally: dict[tuple[int, int], int] = {}
    for index, group in counted:
        name = _value(program, program.blocks[index].branch.operands[0], group)
        blocks, lanes = np.unique(machine.block_of_lane[group.lanes], return_counts=True)
        for block, n in zip(blocks.tolist(), lanes.tolist()):
            tally[block, name] = tally.get((block, name), 0) + n
    passing = []
    for index, group in counted:
        name = _value(program, program.blocks[index].branch.operands[0], group)
        want = _count(program, index, group)
        if all(
            tally[block, name] == want for block in np.unique(machine.block_of_lane[group.lanes]).tolist()
        ):
            passing.append((index, group))
    _vote(machine, passing)
    return passing


def _vote(machine, groups) -> None:
    """``bar.red``: the block's number of true predicates (popc), whether all (and) or any (or) were,
    given to each thread.
    """
    for index in {i for i, _ in groups if "red" in machine.program.blocks[i].branch.mods}:
        instr = machine.program.blocks[index].branch
        mine = [g for i, g in groups if i == index]
        true, present = np.zeros(machine.blocks, np.int64), np.zeros(machine.blocks, np.int64)
        for g in mine:
            block = machine.block_of_lane[g.lanes]
            true += np.bincount(block, np.broadcast_to(g.regs["$vote"], block.shape), machine.blocks).astype(
                np.int64
            )
            present += np.bincount(block, minlength=machine.blocks)
        result = (
            true.astype(np.uint32)
            if "popc" in instr.mods
            else true == present
            if "and" in instr.mods
            else true > 0
        )
        for g in mine:
            g.regs[instr.operands[0].name] = result[machine.block_of_lane[g.lanes]]


def _count(program, index: int, group) -> int | None:
    instr = program.blocks[index].branch
    operands = instr.operands[1:] if "red" in instr.mods else instr.operands
    if "red" in instr.mods:
        return _value(program, operands[1], group) if len(operands) == 3 else None
    return _value(program, operands[1], group) if len(operands) == 2 else None


def _value(program, operand, group) -> int:
    if isinstance(operand, Imm):
        return int(operand.value)
    if isinstance(operand, Reg):
        values = np.unique(group.regs[operand.name])
        if values.size == 1:
            return int(values[0])
    raise UnsupportedInstruction(
        "the SIMT engine wants one barrier number for all threads that arrive together", kernel=program.name
    )


def _stuck(machine, waiting):
    index, group = waiting[0]
    block = machine.block_name(int(machine.block_of_lane[group.lanes[0]]))
    raise BarrierDivergence(
        f"{group.size} threads wait at a barrier for {_count(machine.program, index, group)} "
        f"(block {block}), and no other thread can still come",
        kernel=machine.program.name,
        where=machine.program.line_of_block(index),
        hint="the thread count of the named barrier: it must be the number of threads that reach it",
    )


def _diverged(machine, block: int, one: int, other: int, waiting):
    program = machine.program

    def who(place: int) -> str:
        lanes = np.concatenate([g.lanes for i, g in waiting if i == place])
        mine = lanes[machine.block_of_lane[lanes] == block]
        if not mine.size:  # a barrier of the grid, at which this block has not arrived
            return f"other blocks at {program.line_of_block(place)}"
        more = f" and {mine.size - 1} more" if mine.size > 1 else ""
        return f"{machine.thread_name(int(mine.min()))}{more} at {program.line_of_block(place)}"

    raise BarrierDivergence(
        f"threads of block {machine.block_name(block)} wait at two different barriers: "
        f"{who(one)}, and {who(other)}",
        kernel=program.name,
        where=program.line_of_block(other),
        hint="a syncthreads() inside an if or a loop that not all threads of the block take; "
        "move it out of the branch",
    )
