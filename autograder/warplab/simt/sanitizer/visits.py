"""Visits: accesses to the shared memory of other blocks of a cluster, which must be there.

A block's shared memory exists from when the block begins until its last thread leaves. So whoever reaches for
it must know that the block has begun, and some thread of the block must know of the access before the block
ends (CUDA C++ Programming Guide, "Distributed Shared Memory"). A barrier of the cluster says both, also with
relaxed arrivals, as programs end with.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.errors import ClusterMisuse
from warplab.simt.sanitizer.vector_clocks import Clocks


class Visits:
    """The visits in a chunk of blocks, of each thread the last to each rank of its cluster."""

    def __init__(self, machine, clocks: Clocks):
        self.machine, self.clocks = machine, clocks
        self.time, self.round = np.zeros((2, machine.cluster_size, machine.lanes), np.int64)
        self.site_at: dict[int, int] = {}

    def add(self, group, site: int, access, offset: int, lasts=True) -> None:
        """The group's lanes visit where they access. ``lasts``: the block must know of it before it leaves.

        Raises ClusterMisuse if a block has left, or nothing says that it has begun.
        """
        machine, clocks, size = self.machine, self.clocks, self.machine.cluster_size
        clocks.now += 1
        host = np.broadcast_to(access.offset // machine.shared_stride, group.lanes.shape)
        away = host != machine.block_of_lane[group.lanes]
        if lasts:
            self.time[host % size, group.lanes] = np.where(away, clocks.now, 0)
            self.site_at[clocks.now] = site
        first = machine.first_block
        if (machine.living[host] == 0).any():
            i = int(np.flatnonzero(machine.living[host] == 0)[0])
            self._refuse(group.lanes[i], int(host[i]), site, "which has left the kernel")
        barrier = machine.cluster_barrier
        if barrier is not None and lasts:
            self.round[host % size, group.lanes] = barrier.arrived[group.lanes]
        new = np.ones(host.shape, bool) if barrier is None else barrier.waited[group.lanes] == 0
        if new.any():
            lanes, hosts = group.lanes[new], host[new]
            heard = clocks.has_heard_of(lanes + first * machine.launch.threads, hosts + first)
            heard |= hosts == machine.block_of_lane[lanes]
            if not heard.all():
                i = int(np.flatnonzero(~heard)[0])
                self._refuse(lanes[i], int(hosts[i]), site, "and nothing says that this block has begun")

    def leave(self, blocks) -> None:
        """Blocks end. Raises ClusterMisuse if one takes along memory that is in use."""
        machine, size = self.machine, self.machine.cluster_size
        for block in blocks.tolist():
            start = (block - block % size) * machine.launch.threads
            when = self.time[block % size, start : start + size * machine.launch.threads]
            guests = np.flatnonzero(when)
            if not guests.size:
                continue
            threads = guests + start + machine.first_block * machine.launch.threads
            known = self.clocks.known_of_block(machine.launch, machine.first_block + block, threads)
            late = known < when[guests]
            if (barrier := machine.cluster_barrier) is not None:
                passed = barrier.waited[machine.block_of_lane == block].max()
                late &= passed <= self.round[block % size, guests + start]
            late = np.flatnonzero(late)
            if late.size:
                guest = int(guests[late[0]])
                said = "which nothing keeps from leaving the kernel before"
                self._refuse(guest + start, block, self.site_at[int(when[guest])], said)

    def _refuse(self, lane: int, host: int, site: int, why: str):
        machine = self.machine
        raise machine.program.error(
            ClusterMisuse,
            site,
            f"{machine.thread_name(lane)} accesses shared memory of block {machine.block_name(host)}, {why}",
            "cluster.sync() before the first access to another block's shared memory, and again between the "
            "last one and the end of the kernel",
        )
