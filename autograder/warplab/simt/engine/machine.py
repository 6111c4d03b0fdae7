"""The machine: runs a kernel's basic blocks over lanes, lowest first, so that diverged lanes reconverge.

A *lane* is one CUDA thread. The lanes of as many thread blocks as fit into a *chunk* run together, as NumPy
arrays. A *group* is a set of lanes at the same place in the program, with their registers; a divergent branch
splits a group, and groups that reach the same basic block are merged. For each warp this is the schedule of a
GPU that always issues the lowest program counter. Observers (counters, sanitizer) are told of every execution
of a basic block and of every memory access.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from warplab.simt.engine import clusters
from warplab.simt.engine.absent_lanes import AbsentLanes
from warplab.simt.engine.address_space import UNMAPPED, AddressSpace, Region
from warplab.simt.engine.barriers import warn_of_left
from warplab.simt.engine.bulk_watch import BulkWatch
from warplab.simt.engine.groups import Group, joined
from warplab.simt.engine.idle_clocks import is_clock
from warplab.simt.engine.loadstore import LoadStoreUnit
from warplab.simt.engine.program import MAX_CALLS, Program
from warplab.simt.engine.schedule import Schedule
from warplab.simt.engine.wrapped import WrappedArray
from warplab.simt.errors import Act, InvalidLaunch, LaunchError, NoProgress, OutOfTime, StackOverflow, Wording
from warplab.simt.observer import Observer
from warplab.simt.ptx.blocks import BasicBlock

CHUNK_LANES = 1 << 15
# bytes of memory in a chunk; the checks of shared memory need some 12 times as much again
CHUNK_SHARED, CHUNK_LOCAL = 1 << 24, 1 << 28
STEP_BUDGET = 1_000_000


def _along(i: np.ndarray, sizes: tuple[int, int, int], axis: str) -> np.ndarray:
    """The index along ``axis`` of each number in ``i``, counted x first; a single 0 if it is 0 for all."""
    x, y, z = sizes
    if (y, z) == (1, 1):
        return i if axis == "x" else np.zeros(1)
    return i % x if axis == "x" else i // x % y if axis == "y" else i // (x * y)


def _lane_mask(which: str, lane: np.ndarray) -> np.ndarray:
    """``%lanemask_eq``, ``lt``, ``le``, ``gt`` or ``ge``: a bit for each lane that compares so with one."""
    own, below = np.int64(1) << lane, (np.int64(1) << lane) - 1
    return {"eq": own, "lt": below, "le": below | own, "ge": ~below, "gt": ~(below | own)}[which] & 0xFFFFFFFF


@dataclass
class Launch:
    """One launch: grid and block (x, y, z), bytes of dynamic shared memory, parameters by name, blocks of a
    cluster (x, y, z); ``explicit_cluster``: the launch or the kernel gives the cluster's size.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    params: dict[str, np.ndarray]
    cluster: tuple[int, int, int] = (1, 1, 1)
    explicit_cluster: bool = False

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


@lru_cache(maxsize=8)
def _lanes(blocks: int, threads: int) -> tuple[np.ndarray, ...]:
    """For each lane of a chunk of ``blocks``: its number, block, thread, warp and lane number in the warp.

    Cached, because programs with small launches repeat launches of the same size.
    """
    block, thread = np.repeat(np.arange(blocks), threads), np.tile(np.arange(threads), blocks)
    warp = block * -(-threads // 32) + thread // 32
    kept = np.arange(block.size), block, thread, warp, thread % 32
    for array in kept:
        array.setflags(write=False)
    return kept


def _unwritten(size: int) -> np.ndarray:
    memory = np.empty(size, np.uint8)
    memory.fill(0xFF)
    return memory


class Machine:
    """Executes one launch of a program. ``observers`` are told of its events (``simt/observer.py``)."""

    def __init__(
        self, program: Program, space: AddressSpace, launch: Launch, observers=(), sample: int | None = None
    ):
        """``sample``: how many blocks to run, rounded up to whole clusters and spread evenly over the grid.

        Raises InvalidLaunch for a sample of a kernel whose blocks wait for each other.
        """
        self.program, self.space, self.launch = program, space, launch
        self.conflicts: list = []
        # (text, file, line) of warnings, by the basic block of a barrier or by ("lanes", site of an exchange)
        self.sync_warnings: dict[object, tuple[str, str, int]] = {}
        size = self.cluster_size = math.prod(launch.cluster)
        # the blocks of a sample; the order of the blocks that run, if it is not that of their numbers
        self.sample: np.ndarray | None = None
        self.order = clusters.order(launch.grid, launch.cluster) if size > 1 else None
        if sample is not None:
            count = -(-sample // size)
            which = ((np.arange(count) + 0.5) * (launch.blocks // size) / count).astype(np.int64)
            self.sample = which if self.order is None else self.order.reshape(-1, size)[which].reshape(-1)
            self.order = self.sample
        if sample is not None and program.grid_barrier:
            raise InvalidLaunch(
                "a kernel whose blocks wait for each other cannot run in a sample of its blocks",
                kernel=program.name,
            )
        self.observers = list(observers)
        self.yields = False  # a group has polled an mbarrier without success: the others run first
        self.shared_size = program.shared_static + launch.dynamic_shared
        # bytes from one block's shared memory to the next one's: a multiple of 128 keeps alignment and banks
        self.shared_stride = -(-self.shared_size // 128) * 128

    @cached_property
    def memory(self) -> LoadStoreUnit:
        """Made at the first use: it refers back to the machine, a cycle that costs garbage collection."""
        return LoadStoreUnit(self)

    def run(self) -> None:
        """Run the whole grid, a chunk of thread blocks at a time.

        Raises LaunchError subclasses for the faults of memory, barriers and progress.
        """
        threads, local = self.launch.threads, self.program.local_size
        wanted = [o.blocks_at_once(self) for o in self._told("blocks_at_once")]
        fit = (
            min(wanted, default=CHUNK_LANES // threads),
            CHUNK_SHARED // max(1, self.shared_stride),
            CHUNK_LOCAL // max(1, local * threads),
        )
        per_chunk = max(1, min(fit) // self.cluster_size) * self.cluster_size
        if self.program.grid_barrier:  # all blocks meet: they run as one chunk
            per_chunk = self.launch.blocks
        self.printed: list[str] = []
        self.grid_workspace = self.parameters = None
        try:
            blocks = self.launch.blocks if self.sample is None else self.sample.size
            for start in range(0, blocks, per_chunk):
                self._start_chunk(start, min(per_chunk, blocks - start))
                with np.errstate(all="ignore"):
                    self._run_chunk()
                for o in [*self.observers]:  # a copy: an observer may remove itself
                    o.done(self)
        finally:
            for region in (self.grid_workspace, self.parameters):
                if region is not None:
                    self.space.remove(region)
            if self.printed:
                print("".join(self.printed), end="", flush=True)

    def _start_chunk(self, first: int, count: int) -> None:
        self.first_block, self.blocks = first, count
        t = self.launch.threads
        lanes = count * t
        if getattr(self, "lanes", None) != lanes:
            self.lanes = lanes
            self.all_lanes, self.block_of_lane, self.thread_of_lane, *of_warp = _lanes(count, t)
            self.warp_of_lane, self.column_of_lane = of_warp
            self.warps = -(-t // 32) * count
            self.regular = t % 32 == 0  # every warp is whole: lanes reshape to (warps, 32)
            self.shared_base = self.block_of_lane * self.shared_stride
            self.local_base = self.all_lanes * self.program.local_size
        self._special: dict[str, np.ndarray] = {}
        self.living = np.full(count, t)  # threads of each block that have not left the kernel
        self.cluster_barrier: clusters.ClusterBarrier | None = None
        self.absent = AbsentLanes(self)
        # uninitialised memory reads as NaN or -1, so that a missing initialisation shows
        self.shared = Region(0, _unwritten(count * self.shared_stride + 128), "shared memory")
        self.local = Region(0, _unwritten(lanes * self.program.local_size + 16), "local memory")
        if self.program.uses_async_proxy:
            self.memory.watch(BulkWatch)

    def special(self, name: str) -> np.ndarray:
        """A special register such as ``%tid.x`` as uint32; one element if all lanes have the same value."""
        v = self._special.get(name)
        if v is None:
            v = self._special[name] = np.ascontiguousarray(
                self._make_special(name.lstrip("%")), dtype=np.uint32
            )
        return v

    def _make_special(self, name: str) -> np.ndarray:
        stem, _, axis = name.partition(".")
        grid, block = self.launch.grid, self.launch.block
        if stem in ("ntid", "nctaid"):
            return np.array([(block if stem == "ntid" else grid)["xyz".index(axis)]])
        if stem == "tid":
            return _along(self.thread_of_lane, block, axis)
        if stem == "ctaid":
            i = self.first_block + np.arange(self.blocks)
            of_block = _along(i if self.order is None else self.order[i], grid, axis)
            several = of_block.size > 1
            return np.repeat(of_block.astype(np.uint32), self.launch.threads) if several else of_block
        if stem == "laneid":
            return self.column_of_lane
        if stem == "warpid":
            return self.thread_of_lane // 32
        if stem == "nwarpid":
            return np.array([-(-self.launch.threads // 32)])
        if stem.startswith("lanemask_"):
            return _lane_mask(stem.removeprefix("lanemask_"), self.column_of_lane)
        if (of_cluster := clusters.special(self, stem, axis)) is not None:
            return of_cluster
        if stem == "dynamic_smem_size":
            return np.array([self.launch.dynamic_shared])
        if stem in ("envreg1", "envreg2"):  # halves of the address of cooperative_groups' grid barrier
            if self.grid_workspace is None:
                label = "the grid barrier of cooperative_groups"
                self.grid_workspace = self.space.add(np.zeros(64, np.uint8), label)
            address = self.grid_workspace.base
            return np.array([address >> 32 if stem == "envreg1" else address & 0xFFFFFFFF])
        if is_clock(name) and self.program.clock_is_idle:
            return np.zeros(1)
        raise self.program.unsupported_register(name)

    def _told(self, event: str) -> list[Observer]:
        """The observers that override an event: of one that is frequent, the others are not told."""
        return [o for o in self.observers if getattr(type(o), event) is not getattr(Observer, event)]

    def _run_chunk(self) -> None:
        self.depth, self.called, self.frame = 0, 0, np.zeros(1, np.uint64)
        self.of_blocks = self._told("executed")
        try:
            self._run(0, Group(self, self.all_lanes, {}, True))
        except OutOfTime as stop:
            place = self.program.line_of_block(self.running.index) if self.running else ""
            stop.where = f" in kernel {self.program.name}, {place}"
            raise

    def call(self, group: Group, name: str, parameters, arguments, results, site: int) -> list[np.ndarray]:
        """Run a recursive function for the lanes of ``group`` and return its results, an array each.

        Raises StackOverflow where calls nest deeper than MAX_CALLS, NoProgress after too many calls.
        """
        self.depth, self.called = self.depth + 1, self.called + 1
        if self.depth > MAX_CALLS:
            message = f"calls nest deeper than {MAX_CALLS} in {self.thread_name(group.lanes[0])}"
            raise self.program.error(StackOverflow, site, message, "the condition that ends the recursion")
        if self.called > STEP_BUDGET // 10:
            message = f"stopped after {self.called:,} recursive calls; {self._spinning(group)}"
            raise self.program.error(NoProgress, site, message, "a loop in the place of the recursion")
        start = Group(self, group.lanes, dict(zip(parameters, arguments)), group.full)
        outer, self.frame = self.frame, np.array([(self.depth - 1) * self.program.frame_size], np.uint64)
        done = self._run(self.program.routines[name], start)
        self.depth, self.frame = self.depth - 1, outer
        end = done[0] if len(done) == 1 else self._merge(done, frozenset(results))
        return [end.regs[r] for r in results]

    def _run(self, first: int, start: Group) -> list[Group]:
        """Run ``start`` from basic block ``first`` until all its lanes have left. Returns the groups that
        left a recursive function, with their registers.
        """
        blocks, functions = self.program.blocks, self.program.functions
        schedule = Schedule(self, first, start)
        steps = 0
        while schedule:
            index, groups = schedule.next()
            group = groups[0] if len(groups) == 1 else self._merge(groups, blocks[index].live_in)
            while True:  # the group goes on as long as no other group comes first
                steps += 1
                if steps > STEP_BUDGET:
                    raise self._no_progress(index, group)
                block = blocks[index]
                schedule.step(block)
                self.running = block
                guard = functions[index](self.memory, group, group.regs)
                if isinstance(guard, WrappedArray):
                    guard = guard.decides(group, block)
                if self.absent.changes:
                    self.absent.check(index, group, schedule.standing)
                if self.yields:
                    schedule.yield_turn()
                    self.yields = False
                for o in self.of_blocks:
                    o.executed(self, group, block)
                if block.end == "fall":
                    index = block.next
                elif block.end == "jump":
                    index = block.target
                elif block.end == "branch":
                    index = self._branch(schedule, block, group, guard)
                else:
                    index = self._stop(schedule, block, group, guard)
                if index < 0:
                    break
                if not schedule.runs_on(index, group):
                    schedule.put(index, group)
                    break
        return schedule.done

    def _branch(self, schedule: Schedule, block: BasicBlock, group: Group, guard: np.ndarray) -> int:
        """The basic block that all lanes go to; -1 if they diverge."""
        if guard.size > 1:
            taken = int(np.count_nonzero(guard))
            uniform = taken in (0, group.size)
            goes = taken == group.size
        else:
            uniform, goes = True, bool(guard[0])
        for o in self.of_blocks:
            o.branched(self, group, block, guard, uniform)
        if uniform:
            return block.target if goes else block.next
        schedule.polls = 0  # a lane may have left the loop that polls
        for to, mask in ((block.target, guard), (block.next, ~guard)):
            schedule.put(to, group.split(mask, self.program.blocks[to].live_in))
        return -1

    def _stop(self, schedule: Schedule, block: BasicBlock, group: Group, guard: np.ndarray) -> int:
        """At a barrier or at the end of the kernel: the next basic block, -1 if the group does not go on."""
        everybody = group.size == schedule.alive
        if block.end == "exit":
            schedule.leave(group)
            if (self.cluster_size > 1 or self.program.uses_async_proxy) and not self.depth:
                self._leave(group)
        elif block.end == "syncwarp":
            self.absent.outside(group, guard, block.index, block.branch)
            if (everybody or self._has_whole_warps(group)) and (guard == guard[0]).all():
                self.memory.warp_barrier(group, guard)
                return block.next
            schedule.gather(block.index, group, guard)
        elif everybody and block.plain_barrier:
            if schedule.alive < schedule.started:
                warn_of_left(self, block.index, [group])
            for o in self.observers:
                o.barrier(self, block)
            return block.next
        else:
            schedule.wait(block.index, group, guard)
        return -1

    def _leave(self, group: Group) -> None:
        blocks, gone = np.unique(self.block_of_lane[group.lanes], return_counts=True)
        self.living[blocks] -= gone
        ended = blocks[self.living[blocks] == 0]
        for o in self.observers if ended.size else ():
            o.left(self, ended)

    def _no_progress(self, index: int, group: Group) -> NoProgress:
        return NoProgress(
            f"stopped after {STEP_BUDGET:,} steps; {self._spinning(group)}: "
            "a loop does not end, or threads wait for each other",
            kernel=self.program.name,
            where=self.program.line_of_block(index),
            hint="the loop's condition; threads that spin on a lock or flag "
            "that another thread of the same warp must set",
        )

    def _has_whole_warps(self, group: Group) -> bool:
        """Whether all threads of each of the group's warps are in it."""
        full = np.minimum(32, self.launch.threads - (self.thread_of_lane[group.lanes[group.firsts]] & ~31))
        return bool((np.diff(group.firsts, append=group.size) == full).all())

    def _merge(self, groups: list[Group], live: frozenset[str]) -> Group:
        lanes, full, places = self._together(groups)
        held = [g.regs for g in groups]
        names = live & set().union(*held)
        regs = {name: joined([h.get(name) for h in held], places, lanes.size) for name in names}
        return Group(self, lanes, regs, full)

    def _together(self, groups: list[Group]) -> tuple[np.ndarray, bool, list]:
        """(lanes of all groups, whether they are the whole chunk, the indices of each group's lanes)."""
        lanes = np.concatenate([g.lanes for g in groups])
        if lanes.size == self.lanes:
            return self.all_lanes, True, [g.lanes for g in groups]
        ends = np.cumsum([g.size for g in groups])
        places: list = [slice(end - g.size, end) for g, end in zip(groups, ends)]
        if np.any(lanes[1:] < lanes[:-1]):
            order = np.argsort(lanes, kind="stable")
            rank = np.empty(order.size, np.int64)
            rank[order] = np.arange(order.size)
            places, lanes = [rank[place] for place in places], lanes[order]
        return lanes, False, places

    def _spinning(self, group: Group) -> str:
        """Which threads are still running, and the memory that they accessed last, in words."""
        others = group.size - 1
        who = self.thread_name(group.lanes[0]) + (f" and {others} more are" if others else " is")
        last = next(reversed(group.accesses.values()), None)
        if last is None or last.region is UNMAPPED:
            return f"{who} still running"
        space = {id(self.shared): "shared", id(self.local): "local"}.get(id(last.region), "global")
        return f"{who} still running, last at {self.memory.place(space, last.region, int(last.within[0]), 4)}"

    def block_name(self, block: int) -> str:
        x, y, z = self._block_index(block)
        return f"({x}, {y}, {z})"

    def _block_index(self, block: int) -> tuple[int, int, int]:
        i, (gx, gy, _) = self.first_block + block, self.launch.grid
        i = i if self.order is None else int(self.order[i])
        return i % gx, i // gx % gy, i // (gx * gy)

    def refuse(
        self, kind: type[LaunchError], group, site: int, bad: np.ndarray, does: Wording, hint: str
    ) -> None:
        """Raise an error of a ``kind`` at a site if a lane of the group is ``bad`` (one value a lane, or one
        for all). ``does``: the sentence after the first such thread's name, or a function that makes it from
        the thread's index in the group.
        """
        if bad.any():
            i = int(np.broadcast_to(bad, group.lanes.shape).argmax())
            said = does if isinstance(does, str) else does(i)
            raise self.program.error(kind, site, f"{self.thread_name(group.lanes[i])} {said}", hint)

    def thread_name(self, lane: int) -> str:
        return self.name_of(self.first_block * self.launch.threads + int(lane))

    def name_of(self, thread: int) -> str:
        """The name of a thread, numbered through the whole grid."""
        (tx, ty, tz), (bx, by, bz) = self._indices(thread)
        return f"thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})"

    def _indices(self, thread: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """threadIdx and blockIdx of a thread numbered through the whole grid."""
        block, i = divmod(thread, self.launch.threads)
        bx, by, _ = self.launch.block
        return (i % bx, i // bx % by, i // (bx * by)), self._block_index(block - self.first_block)

    def act(self, lane: int, instr, does: str, what: str) -> Act:
        """An Act of a lane's thread at an instruction."""
        return self.act_of(self.first_block * self.launch.threads + int(lane), instr, does, what)

    def act_of(self, thread: int, instr, does: str, what: str) -> Act:
        """An Act of a thread, numbered through the whole grid."""
        file = self.program.file_of(instr.file).rpartition("/")[2]
        return Act(*self._indices(int(thread)), does, what, file, instr.line)
