"""Barriers: which waiting groups may pass, and the votes of ``bar.red``.

A plain barrier waits for every thread of a block that has not exited, a counted one (``bar.sync id, n``) for
n threads, and a grid barrier for every thread of the grid. The machine releases these only when no lane can
run, so that all lanes that have not exited wait somewhere. ``bar.warp.sync`` waits for the lanes of a warp
that its mask names. A cluster's barrier waits until every thread of its blocks has arrived (``clusters``).

If threads of a block wait at different places, the rules of the PTX ISA apply ("bar, barrier", "exit"). A
barrier is one of sixteen numbered resources of the block at which warps arrive, not a place in the program:
two ``bar.sync 0`` at different places meet, if each warp's threads are all at one of them (``bar`` is
``barrier.aligned``; threads at a ``barrier`` without ``.aligned`` need not be). Barriers with different
numbers do not meet, nor do barriers with and without a vote. Threads that have exited are not waited for.

CUDA C++ is stricter than PTX: all threads of a block must reach the same ``__syncthreads()``. So a barrier
before which some threads have left the kernel, and a barrier that meets another, pass with a warning in
``machine.sync_warnings``.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.clusters import barrier_of
from warplab.simt.errors import BarrierDivergence, ClusterMisuse, LaunchError, UnsupportedInstruction
from warplab.simt.ptx.parser import Imm, Reg

LEFT = (
    "threads of {} have left the kernel before this barrier, at which the others wait. Devices of compute "
    "capability 7.0 and later do not wait for those who left; CUDA C++ asks for a {} that all threads of the "
    "{} reach"
)


def release(machine, waiting):
    """Split ``waiting``, pairs (index of a basic block, group), into those that pass and those that stay.

    Raises BarrierDivergence if threads of one thread block wait at barriers that can never all be complete.
    """
    if _at(machine, waiting, "cluster"):
        return _cluster(machine, waiting)
    counted, for_all = _counted_and_others(machine, waiting)
    passing, staying = _complete(machine, counted)
    if passing:
        return passing, [*for_all, *staying]
    if _at(machine, waiting, "grid"):
        return _grid(machine, waiting)
    if counted and not for_all:
        _stuck(machine, waiting)
    return _all(machine, for_all, others=counted), counted


def release_early(machine, waiting, running):
    """As ``release``, while the groups ``running`` can still run, which may spin until others have passed.

    Releases thread blocks in which every thread waits, and counted barriers that are complete.
    """
    if _at(machine, waiting, "grid"):
        return [], waiting
    here = _at(machine, waiting, "cluster")
    if here:
        passing, staying, others = _complete_clusters(machine, waiting, running)
        if passing:
            report_met(machine, passing, all_of_them=False)
            return passing, [*others, *staying]
        passing, left = release_early(machine, others, [*running, *(g for _, g in here)])
        return passing, [*left, *here]
    counted, for_all = _counted_and_others(machine, waiting)
    passing, staying = _complete(machine, counted)
    if passing:
        waiting = [*staying, *for_all]
    else:
        whole, waiting = _of_other_blocks(machine, waiting, running)
        if not whole:
            return [], waiting
        passing, left = release(machine, whole)
        waiting = [*waiting, *left]
    report_met(machine, passing, all_of_them=False)
    return passing, waiting


def _at(machine, waiting, whose: str):
    """The waiting groups that are at a barrier of the "grid" or of their "cluster"."""
    return [(i, g) for i, g in waiting if whose in machine.program.blocks[i].branch.mods]


def _counted_and_others(machine, waiting):
    counted = [(i, g) for i, g in waiting if _count(machine.program, i, g) is not None]
    return counted, [(i, g) for i, g in waiting if _count(machine.program, i, g) is None]


def _apart(waiting, masks):
    """Split each group by its mask: (parts where it is true, parts where it is false)."""
    parts = [(i, g, mask) for (i, g), mask in zip(waiting, masks)]
    true = [(i, _part(g, mask)) for i, g, mask in parts if mask.any()]
    return true, [(i, _part(g, ~mask)) for i, g, mask in parts if not mask.all()]


def _of_other_blocks(machine, waiting, groups):
    """Split ``waiting`` into the threads of blocks that have no thread in ``groups``, and the others."""
    here = np.zeros(machine.blocks, bool)
    here[machine.block_of_lane[np.concatenate([g.lanes for g in groups])]] = True
    return _apart(waiting, [~here[machine.block_of_lane[g.lanes]] for _, g in waiting])


def _part(group, mask):
    """The lanes of a waiting group where ``mask`` is true, with all their registers."""
    return group if mask.all() else group.split(mask, frozenset(group.regs))


def release_warps(machine, gathering, others):
    """Split ``gathering``, pairs (index of a basic block, group) at ``bar.warp.sync``, into those that pass
    and those that stay.

    A lane passes once all lanes of its member mask that have not exited wait at a ``bar.warp.sync`` with
    the same mask, at any place. The masks are in the pseudo-register "$mask". ``others``: groups that run or
    wait elsewhere.
    """
    lanes = np.concatenate([g.lanes for _, g in gathering])
    mask = np.concatenate([np.broadcast_to(g.regs["$mask"], g.lanes.shape) for _, g in gathering])
    mask = mask.astype(np.int64)
    living = _bits(machine, np.concatenate([lanes, *(g.lanes for g in others)]))
    warp = machine.warp_of_lane[lanes]
    pairs, which = np.unique(np.stack([warp, mask]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    here = np.zeros(pairs.shape[1], np.int64)
    np.bitwise_or.at(here, which, np.int64(1) << machine.column_of_lane[lanes])
    complete = (mask & living[warp] & ~here[which]) == 0
    ends = np.cumsum([g.size for _, g in gathering])[:-1]
    passing, staying = _apart(gathering, np.split(complete, ends))
    if passing:
        order = np.argsort(lanes[complete])
        for o in machine.observers:
            o.met(machine, lanes[complete][order], which[complete][order])
    return passing, staying


def _bits(machine, lanes):
    """For each warp a mask of the lanes in ``lanes``."""
    bits = np.zeros(machine.warps, np.int64)
    np.bitwise_or.at(bits, machine.warp_of_lane[lanes], np.int64(1) << machine.column_of_lane[lanes])
    return bits


def warp_deadlock(machine, gathering, waiting):
    """Raise BarrierDivergence: lanes at a ``bar.warp.sync`` wait for lanes that wait elsewhere."""
    program = machine.program
    index, group = gathering[0]
    masks = [np.broadcast_to(g.regs["$mask"], g.lanes.shape) for _, g in gathering]
    warp, mask = group.warp[0], masks[0][0]
    mine = group.lanes[(group.warp == warp) & (masks[0] == mask)]
    absent = [
        (int(lane), place)
        for (place, other), own in zip([*gathering, *waiting], [*masks, *[~mask] * len(waiting)])
        for lane in other.lanes[(other.warp == warp) & (own != mask) & (mask >> other.column & 1 == 1)]
    ]
    first, place = absent[0]
    more = f" and {mine.size - 1} more" if mine.size > 1 else ""
    text = (
        f"{machine.thread_name(int(mine[0]))}{more} at a syncwarp: its mask, {mask:#010x}, names "
        f"{machine.thread_name(first)}, and that one waits at {program.line_of_block(place)}"
    )
    hint = "the mask, which must name the threads that come and no others, or the if around the syncwarp"
    raise _error(machine, index, text, hint, (mine[0], index), (first, place))


def _error(
    machine, index: int, text: str, hint: str, *who, kind: type[LaunchError] = BarrierDivergence
) -> LaunchError:
    """An error at a barrier; ``who``: pairs (lane, index of a basic block) that wait, for its drawing."""
    program = machine.program
    acts = tuple(machine.act(lane, program.blocks[i].branch, "waits", "a barrier") for lane, i in who)
    return kind(text, kernel=program.name, where=program.line_of_block(index), hint=hint, acts=acts)


def report_met(machine, passing, all_of_them: bool) -> None:
    """Tell the observers that all threads pass a barrier of their block, or else which threads have met."""
    program = machine.program
    if here := _at(machine, passing, "cluster"):
        lanes = np.sort(np.concatenate([g.lanes for _, g in here]))
        if machine.cluster_barrier.passed(lanes):
            _warn(machine, here[0][0], LEFT.format("a cluster", "cluster.sync()", "cluster"))
        return  # all of ``passing`` are at the cluster's barrier
    if all_of_them and all(_count(program, i, g) is None for i, g in passing):
        for o in machine.observers:
            o.barrier(machine, program.blocks[passing[0][0]])
        return
    lanes = np.concatenate([g.lanes for _, g in passing])
    numbers = [_number(program, i, g) for i, g in passing]
    number = np.repeat(numbers, [g.size for _, g in passing])
    order = np.argsort(lanes)
    together = (machine.block_of_lane[lanes] * 16 + number)[order]
    for o in machine.observers:
        o.met(machine, lanes[order], together)


def _all(machine, waiting, others=()):
    """Whole-block barriers: the threads of a block must wait at barriers of the same number, and the threads
    of a warp at the same place. Raises BarrierDivergence.
    """
    program, per_block = machine.program, machine.warps // machine.blocks
    everyone = [*waiting, *others]
    arrived: dict[int, np.ndarray] = {}  # warps, by place
    for index, group in everyone:
        warps = np.unique(group.warp)
        for other, theirs in arrived.items():
            blocks = np.intersect1d(warps // per_block, theirs // per_block)
            if other == index or not blocks.size:
                continue
            if not _meet(program, other, index):
                _diverged(machine, int(blocks[0]), other, index, everyone)
            split = np.intersect1d(warps, theirs)
            if split.size and _aligned(program.blocks[index].branch, program.blocks[other].branch):
                _diverged(machine, int(split[0]) // per_block, other, index, everyone)
            _warn_of_two(machine, index, other)
        arrived[index] = np.union1d(warps, arrived.get(index, warps))
    _vote(machine, waiting)
    warn_of_left(machine, waiting[0][0], [group for _, group in waiting])
    return waiting


def _meet(program, one: int, other: int) -> bool:
    """Whether barriers at two places are the same one: both plain, without vote or count, of one number."""
    first, second = program.blocks[one].branch, program.blocks[other].branch
    plain = all("red" not in b.mods and len(b.operands) == 1 for b in (first, second))
    return plain and first.operands == second.operands and isinstance(first.operands[0], Imm)


def _aligned(*barriers) -> bool:
    """Whether one of the barriers needs all threads of a warp at the same place."""
    return any(b.opcode == "bar" or "aligned" in b.mods for b in barriers)


def _warn_of_two(machine, index: int, other: int) -> None:
    program = machine.program
    here, there = program.line_of_block(index), program.line_of_block(other)
    if here != there:
        doubt = (
            f"threads of a block meet here and at another barrier, {there}. PTX lets them pass, as both "
            "have one number and each warp is at one of them; CUDA C++ asks for one syncthreads() that all "
            "threads of the block reach"
        )
        _warn(machine, index, doubt)


def warn_of_left(machine, index: int, groups) -> None:
    """Warn of a barrier that some threads of a block pass after others have left the kernel."""
    if index in machine.sync_warnings:
        return
    here = np.bincount(machine.block_of_lane[np.concatenate([g.lanes for g in groups])])
    if ((here > 0) & (here < machine.launch.threads)).any():
        _warn(machine, index, LEFT.format("a block", "syncthreads()", "block"))


def _warn(machine, index: int, doubt: str) -> None:
    if index in machine.sync_warnings:
        return
    program, barrier = machine.program, machine.program.blocks[index].branch
    text = (
        f"barrier in kernel {program.name}, {program.place(barrier)}: {doubt}\n  Look at: the return or the "
        "if before it; let all threads reach the barrier, and put the condition around the work"
    )
    machine.sync_warnings[index] = text, program.file_of(barrier.file) or program.name, barrier.line


def _grid(machine, waiting):
    """``release`` where some groups wait at a grid barrier: blocks without a thread there are released
    first.
    """
    here = _at(machine, waiting, "grid")
    first, others = _of_other_blocks(machine, waiting, [g for _, g in here])
    if first:
        passing, left = release(machine, first)
        return passing, [*others, *left]
    for index, group in waiting:
        if index != here[0][0]:
            _diverged(machine, int(machine.block_of_lane[group.lanes[0]]), here[0][0], index, waiting)
    return waiting, []


def _complete_clusters(machine, waiting, running=()):
    """(groups that pass their cluster's barrier, groups that stay there, groups that wait elsewhere).

    Raises ClusterMisuse if a thread waits there without having arrived.
    """
    here = _at(machine, waiting, "cluster")
    barrier = barrier_of(machine)
    for index, group in here:
        idle = barrier.arrived[group.lanes] == barrier.waited[group.lanes]
        if idle.any():
            who = machine.thread_name(group.lanes[np.argmax(idle)])
            text = f"{who} waits at its cluster's barrier, at which it has not arrived"
            hint = "an arrival before each wait: cluster.sync() is both"
            raise _error(machine, index, text, hint, kind=ClusterMisuse)
    complete = barrier.complete([g for _, g in here], [*(g for _, g in waiting), *running])
    passing, staying = _apart(here, complete)
    return passing, staying, [(i, g) for i, g in waiting if (i, g) not in here]


def _cluster(machine, waiting):
    """``release`` where some groups wait at a cluster's barrier: other barriers may still be complete.

    Raises BarrierDivergence if no barrier is.
    """
    passing, here, others = _complete_clusters(machine, waiting)
    if passing:
        return passing, [*here, *others]
    first, later = _of_other_blocks(machine, others, [g for _, g in here])
    if first:
        passing, left = release(machine, first)
        return passing, [*here, *later, *left]
    counted, for_all = _counted_and_others(machine, later)
    passing, staying = _complete(machine, counted)
    if passing:
        return passing, [*here, *for_all, *staying]
    index, group = here[0]
    arrived, size = machine.cluster_barrier.arrived, machine.cluster_size
    sought = machine.block_of_lane[group.lanes[0]] // size
    place, late = next(
        (place, int(lane))
        for place, other in waiting
        for lane in other.lanes[arrived[other.lanes] < arrived[group.lanes[0]]]
        if machine.block_of_lane[lane] // size == sought
    )
    program, first_lane = machine.program, int(group.lanes[0])
    text = (
        f"{machine.thread_name(first_lane)} waits at its cluster's barrier for {machine.thread_name(late)}, "
        f"which has not arrived there and waits at {program.line_of_block(place)}"
    )
    hint = "a cluster.sync() or a __syncthreads() inside an if that not all threads of the cluster take"
    raise _error(machine, index, text, hint, (first_lane, index), (late, place))


def _complete(machine, counted):
    """Split groups at counted barriers into (those whose barrier is complete in their block, the others)."""
    program = machine.program
    tally: dict[int, np.ndarray] = {}
    for index, group in counted:
        here = np.bincount(machine.block_of_lane[group.lanes], minlength=machine.blocks)
        number = _number(program, index, group)
        tally[number] = tally.get(number, 0) + here
    complete = []
    for index, group in counted:
        has_all = tally[_number(program, index, group)] == _count(program, index, group)
        complete.append(has_all[machine.block_of_lane[group.lanes]])
    passing, staying = _apart(counted, complete)
    _vote(machine, passing)
    return passing, staying


def _vote(machine, groups) -> None:
    """``bar.red``: gives each thread the block's number of true predicates (popc), or whether all (and) or
    any (or) are true.
    """
    for index in {i for i, _ in groups if "red" in machine.program.blocks[i].branch.mods}:
        instr = machine.program.blocks[index].branch
        mine = [g for i, g in groups if i == index]
        true, present = np.zeros(machine.blocks, np.int64), np.zeros(machine.blocks, np.int64)
        for g in mine:
            block = machine.block_of_lane[g.lanes]
            votes = np.broadcast_to(g.regs["$vote"], block.shape)
            true += np.bincount(block[votes], minlength=machine.blocks)
            present += np.bincount(block, minlength=machine.blocks)
        result = true > 0
        if "popc" in instr.mods:
            result = true.astype(np.uint32)
        elif "and" in instr.mods:
            result = true == present
        for g in mine:
            g.regs[instr.operands[0].name] = result[machine.block_of_lane[g.lanes]]


def _operands(program, index: int) -> tuple:
    """The operands of a barrier that are its number and its count of threads, if it has them."""
    instr = program.blocks[index].branch
    return instr.operands[1:-1] if "red" in instr.mods else instr.operands


def _number(program, index: int, group) -> int:
    operands = _operands(program, index)
    return _value(program, operands[0], group) if operands else 0


def _count(program, index: int, group) -> int | None:
    operands = _operands(program, index)
    return _value(program, operands[1], group) if len(operands) == 2 else None


def _value(program, operand, group) -> int:
    if isinstance(operand, Imm):
        return int(operand.value)
    if isinstance(operand, Reg):
        values = np.unique(group.regs[operand.name])
        if values.size == 1:
            return int(values[0])
    raise UnsupportedInstruction(
        "the SIMT engine needs one barrier number for all threads that arrive together", kernel=program.name
    )


def _stuck(machine, waiting):
    index, group = waiting[0]
    block = machine.block_name(int(machine.block_of_lane[group.lanes[0]]))
    text = (
        f"{group.size} threads wait at a barrier for {_count(machine.program, index, group)} "
        f"(block {block}), and no other thread can still come"
    )
    hint = "the thread count of the named barrier: it must be the number of threads that reach it"
    raise _error(machine, index, text, hint)


def _diverged(machine, block: int, one: int, other: int, waiting):
    program = machine.program

    def first(place: int) -> tuple[str, int]:
        """(which threads of the block wait at a place, the first of their lanes)."""
        lanes = np.concatenate([g.lanes for i, g in waiting if i == place])
        mine = lanes[machine.block_of_lane[lanes] == block]
        lane = int((mine if mine.size else lanes).min())
        who = machine.thread_name(lane) if mine.size else "other blocks"  # those at the grid's barrier
        more = f" and {mine.size - 1} more" if mine.size > 1 else ""
        return f"{who}{more} at {program.line_of_block(place)}", lane

    (who, lane), (others, other_lane) = first(one), first(other)
    text = f"threads of block {machine.block_name(block)} wait at two different barriers: {who}, and {others}"
    hint = (
        "a syncthreads() inside an if or a loop that not all threads of the block take; "
        "move it out of the branch"
    )
    raise _error(machine, other, text, hint, (lane, one), (other_lane, other))
