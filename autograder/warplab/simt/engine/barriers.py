"""Barriers: who waits where, who may pass, and the votes that ``bar.red`` takes on the way.

A plain barrier takes every thread of a block that has not exited. A counted one (``bar.sync id, n``) takes n
threads. A grid barrier takes every thread of the grid. The machine asks for these only when no lane can run,
so all lanes that have not exited wait somewhere. ``bar.warp.sync`` takes the lanes of a warp that its mask
names. The barrier of a cluster takes every thread of its blocks, once each has arrived (``clusters``).

Where threads of a block wait at different places, the PTX ISA decides ("bar, barrier", "exit"). A barrier is
one of sixteen numbered resources of the block at which warps arrive, not a place in the program: two
``bar.sync 0`` at different places meet, each warp's threads being at one of them. Within a warp the threads
must be at the same place, as ``bar`` is ``barrier.aligned``; those of ``barrier`` without ``.aligned`` need
not. Barriers with different numbers, or with and without a vote, do not meet. Threads that have exited are
not waited for. CUDA C++ is stricter than PTX: all threads of a block take part in one and the same
``__syncthreads()``. So a barrier that part of a block has left behind, and one that meets another, go on and
are noted in ``machine.doubts``.
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
    """Split ``waiting``, pairs (block index, group), into those that pass their barrier and those that stay.

    Raises BarrierDivergence if threads of one block wait at barriers that can never all be met.
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
    """As ``release``, while the groups ``running`` still run: they may spin until the waiting ones have
    passed.

    Releases blocks all of whose threads wait, and counted barriers that are complete.
    """
    if _at(machine, waiting, "grid"):
        return [], waiting
    here = _at(machine, waiting, "cluster")
    if here:
        passing, staying, others = _complete_clusters(machine, waiting, running)
        if passing:
            tell_who_met(machine, passing, all_of_them=False)
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
    tell_who_met(machine, passing, all_of_them=False)
    return passing, waiting


def _at(machine, waiting, whose: str):
    """Those of the waiting groups that are at a barrier of the "grid", or of their "cluster"."""
    return [(i, g) for i, g in waiting if whose in machine.program.blocks[i].branch.mods]


def _counted_and_others(machine, waiting):
    counted = [(i, g) for i, g in waiting if _count(machine.program, i, g) is not None]
    return counted, [(i, g) for i, g in waiting if _count(machine.program, i, g) is None]


def _apart(machine, waiting, masks):
    """Split each group by its mask: the parts where it is true, and the parts where it is false."""
    parts = [(i, g, mask) for (i, g), mask in zip(waiting, masks)]
    true = [(i, _part(g, mask)) for i, g, mask in parts if mask.any()]
    return true, [(i, _part(g, ~mask)) for i, g, mask in parts if not mask.all()]


def _of_other_blocks(machine, waiting, groups):
    """Split ``waiting`` into the threads of blocks that have none in ``groups``, and the others."""
    here = np.zeros(machine.blocks, bool)
    here[machine.block_of_lane[np.concatenate([g.lanes for g in groups])]] = True
    return _apart(machine, waiting, [~here[machine.block_of_lane[g.lanes]] for _, g in waiting])


def _part(group, mask):
    """Some of the lanes that wait at a barrier, with all their registers."""
    return group if mask.all() else group.split(mask, frozenset(group.regs))


def release_warps(machine, gathering, others):
    """Split ``gathering``, pairs (block index, group) at ``bar.warp.sync``, into those that pass and those
    that stay.

    A lane passes once all lanes of its member mask that have not exited wait at a ``bar.warp.sync`` with
    the same mask, at any place. The masks are in the register "$mask". others: groups that run or wait
    elsewhere.
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
    passing, staying = _apart(machine, gathering, np.split(complete, ends))
    if passing:
        order = np.argsort(lanes[complete])
        for o in machine.observers:
            o.met(machine, lanes[complete][order], which[complete][order])
    return passing, staying


def _bits(machine, lanes):
    """For each warp a bit for each of these lanes."""
    bits = np.zeros(machine.warps, np.int64)
    np.bitwise_or.at(bits, machine.warp_of_lane[lanes], np.int64(1) << machine.column_of_lane[lanes])
    return bits


def wait_in_vain(machine, gathering, waiting):
    """Raises BarrierDivergence: lanes at a ``bar.warp.sync`` wait for others that wait elsewhere."""
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
    """The error at a barrier; ``who``: pairs (lane, block index) that wait, for a drawing."""
    program = machine.program
    acts = tuple(machine.act(lane, program.blocks[i].branch, "waits", "a barrier") for lane, i in who)
    return kind(text, kernel=program.name, where=program.line_of_block(index), hint=hint, acts=acts)


def tell_who_met(machine, passing, all_of_them: bool) -> None:
    """Tell the observers that all threads pass one barrier a block, or else which threads have met."""
    program = machine.program
    if here := _at(machine, passing, "cluster"):
        lanes = np.sort(np.concatenate([g.lanes for _, g in here]))
        if machine.cluster_barrier.passed(lanes):
            _note(machine, here[0][0], LEFT.format("a cluster", "cluster.sync()", "cluster"))
        return  # all of them are at it
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
    """Barriers for whole thread blocks: each block's threads must wait at barriers of one number, and the
    threads of a warp at the same place.
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
            _note_two_places(machine, index, other)
        arrived[index] = np.union1d(warps, arrived.get(index, warps))
    _vote(machine, waiting)
    note_who_left(machine, waiting[0][0], [group for _, group in waiting])
    return waiting


def _meet(program, one: int, other: int) -> bool:
    """Whether plain barriers at two places are one: the same number, and neither votes nor counts."""
    first, second = program.blocks[one].branch, program.blocks[other].branch
    plain = all("red" not in b.mods and len(b.operands) == 1 for b in (first, second))
    return plain and first.operands == second.operands and isinstance(first.operands[0], Imm)


def _aligned(*barriers) -> bool:
    """Whether one of them needs all threads of a warp at the same place."""
    return any(b.opcode == "bar" or "aligned" in b.mods for b in barriers)


def _note_two_places(machine, index: int, other: int) -> None:
    program = machine.program
    here, there = program.line_of_block(index), program.line_of_block(other)
    if here != there:
        doubt = (
            f"threads of a block meet here and at another barrier, {there}. PTX lets them pass, as both "
            "have one number and each warp is at one of them; CUDA C++ asks for one syncthreads() that all "
            "threads of the block reach"
        )
        _note(machine, index, doubt)


def note_who_left(machine, index: int, groups) -> None:
    """Note a barrier that some threads of a block pass and others have left the kernel before."""
    if index in machine.doubts:
        return
    here = np.bincount(machine.block_of_lane[np.concatenate([g.lanes for g in groups])])
    if ((here > 0) & (here < machine.launch.threads)).any():
        _note(machine, index, LEFT.format("a block", "syncthreads()", "block"))


def _note(machine, index: int, doubt: str) -> None:
    if index in machine.doubts:
        return
    program, barrier = machine.program, machine.program.blocks[index].branch
    text = (
        f"barrier in kernel {program.name}, {program.place(barrier)}: {doubt}\n  Look at: the return or the "
        "if before it; let all threads reach the barrier, and put the condition around the work"
    )
    machine.doubts[index] = text, program.file_of(barrier.file) or program.name, barrier.line


def _grid(machine, waiting):
    """Some wait at a barrier of the grid: blocks that wait at other barriers as a whole pass these first."""
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
    """Of the groups at their cluster's barrier those that pass and those that stay, and the other groups."""
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
    passing, staying = _apart(machine, here, complete)
    return passing, staying, [(i, g) for i, g in waiting if (i, g) not in here]


def _cluster(machine, waiting):
    """Some wait at their cluster's barrier, and nobody runs: other barriers may still let threads pass."""
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
    """Split groups at counted barriers into those whose barrier is complete in their block and the others."""
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
    passing, staying = _apart(machine, counted, complete)
    _vote(machine, passing)
    return passing, staying


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
    """Those of a barrier that say its number and the count of its threads, as far as it has them."""
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
        "the SIMT engine wants one barrier number for all threads that arrive together", kernel=program.name
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
        """Who of the block waits at a place, and the first of them for a drawing."""
        lanes = np.concatenate([g.lanes for i, g in waiting if i == place])
        mine = lanes[machine.block_of_lane[lanes] == block]
        lane = int((mine if mine.size else lanes).min())
        who = machine.thread_name(lane) if mine.size else "other blocks"  # which have come to the grid's
        more = f" and {mine.size - 1} more" if mine.size > 1 else ""
        return f"{who}{more} at {program.line_of_block(place)}", lane

    (who, lane), (others, other_lane) = first(one), first(other)
    text = f"threads of block {machine.block_name(block)} wait at two different barriers: {who}, and {others}"
    hint = (
        "a syncthreads() inside an if or a loop that not all threads of the block take; "
        "move it out of the branch"
    )
    raise _error(machine, other, text, hint, (lane, one), (other_lane, other))
