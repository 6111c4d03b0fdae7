"""Thread block clusters: blocks that run together, access each other's shared memory and have a barrier.

In an address of shared memory the bits from 24 on are 0 for the thread's own block, else a block's rank in
the cluster plus one; only ``mapa`` makes such an address. In a kernel that uses clusters a generic address
always holds the rank, even of the thread's own block, so that it means the same in all blocks of the cluster,
as on an H100. An address of the own block that is not generic is valid in that block only.

At the cluster's barrier a thread arrives, may go on, and waits until all threads of the cluster that have not
left the kernel have arrived as often as itself (PTX ISA, "barrier.cluster"). For the sanitizer each round of
a cluster's barrier is a phase, like one of an mbarrier.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.address_space import Access
from warplab.simt.engine.generic_addresses import SPACE_SHIFT, WINDOW
from warplab.simt.engine.movement import space_of
from warplab.simt.errors import ClusterMisuse, OutOfBounds

RANK_SHIFT, WITHIN = np.uint64(24), np.uint64((1 << 24) - 1)
NO_RANK = np.uint32(254)  # replaces ranks that are too large: addresses of shared memory have 32 bits
OTHERS = np.uint64(1 << 24)  # addresses from here on are in other blocks
WINDOWS = np.uint64((1 << 60) - 1)
SHARED, CLUSTER = np.uint64(WINDOW["shared"]), np.uint64(WINDOW["cluster"])
MEMORIES = "shared", "cluster"  # the shared memory of the own block, and of other blocks
ROUNDS = 3  # rounds of a cluster's barrier with different numbers: no thread is further ahead


def order(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> np.ndarray:
    """The numbers of a grid's blocks, cluster by cluster, each block at its rank."""
    (gx, gy, gz), (cx, cy, cz) = grid, cluster
    blocks = np.arange(gx * gy * gz).reshape(gz // cz, cz, gy // cy, cy, gx // cx, cx)
    return blocks.transpose(0, 2, 4, 1, 3, 5).reshape(-1)


def special(machine, stem: str, axis: str) -> np.ndarray | None:
    """A special register of clusters, None for other registers. A launch without clusters has clusters of one
    block.
    """
    launch, size = machine.launch, machine.cluster_size
    if stem == "is_explicit_cluster":
        return np.array([launch.explicit_cluster])
    if stem == "cluster_nctarank":
        return np.array([size])
    if stem == "cluster_ctarank":
        return machine.block_of_lane % size if size > 1 else np.zeros(1)
    if stem not in ("cluster_nctaid", "nclusterid", "cluster_ctaid", "clusterid"):
        return None
    blocks = launch.cluster["xyz".index(axis)]
    if stem == "cluster_nctaid":
        return np.array([blocks])
    if stem == "nclusterid":
        return np.array([launch.grid["xyz".index(axis)] // blocks])
    of_grid = machine.special(f"%ctaid.{axis}")
    return of_grid % blocks if stem == "cluster_ctaid" else of_grid // blocks


# addresses


def mapa(code, instr):
    """``mapa``: the address of the same place in the shared memory of another block of the cluster."""
    target, address, rank = instr.operands
    where = f"{code.site(instr)}, {code.use(address, 'u8')}, {code.use(rank, 'u4')}"
    generic = space_of(instr) == "generic"
    code.define(target, f"clusters.mapped(memory, group, {where}, {generic})", "u8")


def mapped(memory, group, site: int, address, rank, generic: bool):
    own = group.special("%cluster_ctarank")
    rank = np.minimum(rank, NO_RANK)  # no error yet: compilers move mapa before the check of the rank
    outside = (address >> SPACE_SHIFT) & ~np.uint64(2) != 1 if generic else address >> SPACE_SHIFT != 0
    text = "maps an address that is not in shared memory"
    group.machine.refuse(OutOfBounds, group, site, outside, text, "a __shared__ variable or a pointer to one")
    there = address & WITHIN | rank.astype("u8") + np.uint64(1) << RANK_SHIFT
    return there | CLUSTER if generic else np.where(rank == own, address & WITHIN, there)


def getctarank(code, instr):
    code.define(instr.operands[0], f"clusters.rank_of(group, {code.use(instr.operands[1], 'u8')})", "u4")


def rank_of(group, address):
    """The rank of the block in whose shared memory each address is."""
    rank = (address & WINDOWS) >> RANK_SHIFT
    return np.where(rank == 0, group.special("%cluster_ctarank"), rank.astype("u4") - np.uint32(1))


def are_own(group, address):
    """Whether each address, generic or not, is in the lane's own block."""
    rank = (address & WINDOWS) >> RANK_SHIFT
    return (rank == 0) | (rank == group.special("%cluster_ctarank") + np.uint32(1))


def to_generic(group, address):
    """Generic addresses; they hold the rank even of the own block, so that other blocks can use them."""
    own = group.special("%cluster_ctarank").astype("u8") + np.uint64(1) << RANK_SHIFT
    return CLUSTER | address | np.where(address < OTHERS, own, np.uint64(0))


def from_generic(group, address):
    """Addresses in shared memory of generic ones, without the rank of the own block. A generic address that
    is not of shared memory does not become a valid one.
    """
    inside = np.where(are_own(group, address), address & WITHIN, address & WINDOWS)
    return np.where(address >> SPACE_SHIFT & ~np.uint64(2) == 1, inside, address - SHARED)


def lies_there(group, address, own: bool):
    """Whether a generic address is in the cluster's shared memory; ``own``: in that of the own block."""
    inside = address >> SPACE_SHIFT & ~np.uint64(2) == 1
    return inside & are_own(group, address) if own else inside


def blocks_of(machine, lanes: np.ndarray, rank) -> np.ndarray:
    """The number, in the chunk, of the block with a rank in each lane's cluster."""
    block = machine.block_of_lane[lanes]
    return block - block % machine.cluster_size + rank


def reached(machine, group, address) -> Access:
    """The Access of addresses in a cluster's shared memory; bounds hold within each block."""
    within, rank = (address & WITHIN).view(np.int64), (address >> RANK_SHIFT).view(np.int64) - 1
    # a rank that is too large: far out of bounds, so that ``LoadStoreUnit.fault`` refuses it
    within = within + np.where(rank >= machine.cluster_size, 1 << 40, 0)
    rank = np.minimum(rank, machine.cluster_size - 1)
    own = machine.block_of_lane[group.lanes]
    block = np.where(rank < 0, own, blocks_of(machine, group.lanes, rank))
    return Access(
        address, machine.shared, within + block * machine.shared_stride, within, machine.shared_stride
    )


# the barrier


class ClusterBarrier:
    """How often each thread of a chunk has arrived at its cluster's barrier, and has passed it."""

    def __init__(self, machine):
        self.machine = machine
        self.arrived, self.waited = np.zeros((2, machine.lanes), np.int64)

    def phases(self, lanes: np.ndarray, rounds: np.ndarray) -> np.ndarray:
        """The number of each lane's phase, from its cluster and round; negative, unlike an mbarrier's."""
        machine = self.machine
        cluster = (machine.first_block + machine.block_of_lane[lanes]) // machine.cluster_size
        return -1 - (cluster * ROUNDS + rounds[lanes] % ROUNDS)

    def complete(self, waiting: list, living: list) -> list[np.ndarray]:
        """For each group of ``waiting``, which lanes may pass; ``living``: all groups that have not left."""
        cluster = self.machine.block_of_lane // self.machine.cluster_size
        least = np.full(int(cluster[-1]) + 1, np.iinfo(np.int64).max)
        for group in living:
            np.minimum.at(least, cluster[group.lanes], self.arrived[group.lanes])
        return [least[cluster[group.lanes]] >= self.arrived[group.lanes] for group in waiting]

    def passed(self, lanes: np.ndarray) -> bool:
        """Threads pass the barrier. Returns whether a thread of their clusters left without arriving."""
        phases, machine = self.phases(lanes, self.waited), self.machine
        self.waited[lanes] += 1
        for o in machine.observers:
            o.waited(machine, lanes, phases)
        least = self.arrived.reshape(-1, machine.cluster_size * machine.launch.threads).min(axis=1)
        return bool((least[machine.block_of_lane[lanes] // machine.cluster_size] < self.waited[lanes]).any())


def arrive(memory, group, site: int, relaxed: bool):
    """``barrier.cluster.arrive``; ``relaxed``: it releases only what a fence of the thread has released."""
    machine, barrier = memory.machine, barrier_of(memory.machine)
    again = barrier.arrived[group.lanes] > barrier.waited[group.lanes]
    text = "arrives at its cluster's barrier again, and has not waited since its arrival before"
    hint = "a wait after each arrival: cluster.sync() is both"
    machine.refuse(ClusterMisuse, group, site, again, text, hint)
    phases = barrier.phases(group.lanes, barrier.arrived)
    barrier.arrived[group.lanes] += 1
    for o in machine.observers:
        o.arrived(machine, group.lanes, phases, relaxed)


def barrier_of(machine) -> ClusterBarrier:
    """The chunk's cluster barrier, made at its first use."""
    if machine.cluster_barrier is None:
        machine.cluster_barrier = ClusterBarrier(machine)
    return machine.cluster_barrier
