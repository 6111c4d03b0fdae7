"""The observer behind ``warplab.step``: one warp's instructions, with their lanes and memory accesses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warplab.simt.counters.watch import WarpRequest, request_of
from warplab.simt.engine.indices import array_at
from warplab.simt.errors import InvalidLaunch
from warplab.simt.observer import Observer


@dataclass(frozen=True)
class NamedRequest:
    """One request of the warp, and the array that it accesses: its ``name``, its ``shape`` where known, and
    the byte ``start`` at which it begins. ``lanes`` has a bit for each lane. ``cost``: actual and fewest
    possible sectors (global memory) or wavefronts (shared memory).
    """

    kind: str
    space: str
    width: int
    lanes: int
    offsets: tuple[int, ...]
    name: str
    shape: tuple[int, ...]
    order: str
    itemsize: int
    start: int
    cost: tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One instruction issued to the warp: its ``place`` in the listing, the ``lanes`` that took part and, for
    a branch, those that take it in ``jumps`` (a bit for each of the 32), and its requests.
    """

    place: int
    lanes: int
    jumps: int | None = None
    accesses: tuple[NamedRequest, ...] = ()


class OneWarp(Observer):
    """Observer of one warp: its first ``most`` ``steps`` in issue order, and the ``listing`` that they index.

    An entry of the listing is (basic block, instruction). A basic block that ends the kernel is its own last
    instruction, as its ``ret`` is not kept as one.
    """

    def __init__(self, block: tuple[int, int, int], warp: int, most: int):
        self.block, self.warp, self.most = block, warp, most
        self.steps: list[Step] = []
        self.issued = self.threads = 0
        self.places: dict[int, int] = {}  # id of an instruction -> its index in the listing
        self.listing: list[tuple] = []
        self._accesses: dict[int, list[NamedRequest]] = {}

    def executed(self, machine, group, block):
        lanes = self._lanes(machine, group)
        if not lanes:
            return
        asked, self._accesses = self._accesses, {}
        code = [*block.instrs, *([block.branch] if block.branch is not None else [])]
        for instr in [*code, *([block] if block.end == "exit" else [])]:
            self.issued += 1
            if len(self.steps) < self.most:
                accesses = tuple(asked.get(id(instr), ()))
                self.steps.append(Step(self._place(block, instr), lanes, None, accesses))

    def branched(self, machine, group, block, guard, uniform):
        lanes = self._lanes(machine, group)
        if lanes and self.issued <= self.most:
            jumps = (group.warp == self._number(machine)) & guard
            self.steps[-1] = replace(self.steps[-1], jumps=_mask(group.column[jumps]))

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if self.issued >= self.most or not self._lanes(machine, group):
            return
        row = int(group.row[group.warp == self._number(machine)][0])
        request = request_of(machine, group, row, site, access, offset, width, space, what)
        instr = machine.program.sites[site]
        self._accesses.setdefault(id(instr), []).append(_named(machine, access, request))

    def _number(self, machine) -> int:
        """The warp's number in the chunk of blocks that runs; out of range if it is in another chunk."""
        (x, y, z), (gx, gy, _) = self.block, machine.launch.grid
        block = x + gx * (y + gy * z) - machine.first_block
        return block * (machine.warps // machine.blocks) + self.warp

    def _lanes(self, machine, group) -> int:
        if not self.threads:
            self._check(machine)
        number = self._number(machine)
        if not 0 <= number < machine.warps:
            return 0
        return _mask(group.column[group.warp == number])

    def _check(self, machine) -> None:
        grid, threads = machine.launch.grid, machine.launch.threads
        if any(not 0 <= i < size for i, size in zip(self.block, grid, strict=True)):
            raise InvalidLaunch(
                f"block_index={self.block} is not in the grid, which is {grid} blocks",
                kernel=machine.program.name,
                hint="an index from 0 to one less than the grid's size, in each dimension",
            )
        if not 0 <= self.warp < -(-threads // 32):
            raise InvalidLaunch(
                f"warp={self.warp}: a block of {threads} threads has warps 0 to {-(-threads // 32) - 1}",
                kernel=machine.program.name,
            )
        self.threads = min(32, threads - 32 * self.warp)

    def _place(self, block, instr) -> int:
        if id(instr) not in self.places:
            self.places[id(instr)] = len(self.listing)
            self.listing.append((block, instr))
        return self.places[id(instr)]


def _mask(columns: np.ndarray) -> int:
    return int(np.bitwise_or.reduce(np.left_shift(1, columns.astype(np.int64)), initial=0))


def _named(machine, access, request: WarpRequest) -> NamedRequest:
    name, shape, order, itemsize, start = request.label, (), "C", 0, 0
    if request.space == "shared":
        array = array_at(machine.program.shared_arrays, request.offsets[0])
        if array:
            name, shape = array.name or "shared memory", array.shape
            itemsize, start = array.itemsize, array.start
    elif request.space == "global":
        region = access.region
        shape, order, itemsize, start = region.shape, region.order, region.itemsize, region.start
        name = name.partition("'")[2].partition("'")[0] or name
    else:
        name = "local memory"
    return NamedRequest(
        request.kind,
        request.space,
        request.width,
        _mask(np.array(request.lanes)),
        request.offsets,
        name,
        tuple(shape),
        order,
        itemsize or request.width,
        start,
        request.cost if request.space != "local" else (0, 0),
    )
