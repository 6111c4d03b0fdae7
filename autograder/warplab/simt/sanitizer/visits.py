"""Visits: accesses to the shared memory of other blocks of a cluster, and whether it exists at that time.

A block's shared memory exists from the block's beginning until its last thread leaves. So the beginning of
the block must happen before a visit, and the visit must happen before the block's end (CUDA C++ Programming
Guide, "Distributed Shared Memory"). A barrier of the cluster orders both, even with relaxed arrivals, with
which compilers end such kernels.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.errors import ClusterMisuse
from warplab.simt.sanitizer.vector_clocks import Clocks


class Visits:
    """The visits in a chunk of blocks: for each thread, the last one to each rank of its cluster."""

    def __init__(self, machine, clocks: Clocks):
        self.machine, self.clocks = machine, clocks
        self.time, self.round = np.zeros((2, machine.cluster_size, machine.lanes), np.int64)
        self.site_at: dict[int, int] = {}

    def add(self, group, site: int, access, lasts=True) -> None:
        """Record the visits of a group's access. ``lasts``: a visited block must not leave before the visit.

        Raises ClusterMisuse if a visited block has left, or its beginning does not happen before the visit.
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
            heard = clocks.knows_begin_of(lanes + first * machine.launch.threads, hosts + first)
            heard |= hosts == machine.block_of_lane[lanes]
            if not heard.all():
                i = int(np.flatnonzero(~heard)[0])
                self._refuse(lanes[i], int(hosts[i]), site, "which may not have begun yet")

    def leave(self, blocks) -> None:
        """Blocks end. Raises ClusterMisuse if a visit to one of them does not happen before its end."""
        machine, size = self.machine, self.machine.cluster_size
        for block in blocks.tolist():
            start = (block - block % size) * machine.launch.threads
            when = self.time[block % size, start : start + size * machine.launch.threads]
            guests = np.flatnonzero(when)
            if not guests.size:
                continue
            threads = guests + start + machine.first_block * machine.launch.threads
            known = self.clocks.known_of_block(machine.first_block + block, threads)
            late = known < when[guests]
            if (barrier := machine.cluster_barrier) is not None:
                passed = barrier.waited[machine.block_of_lane == block].max()
                late &= passed <= self.round[block % size, guests + start]
            late = np.flatnonzero(late)
            if late.size:
                guest = int(guests[late[0]])
                said = "which may leave the kernel before this access"
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
