"""The counters of a kernel or a source line: plain numbers, and the ratios that are read off them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field, fields


@dataclass
class Global:
    """Loads or stores of global memory: warp ``requests``, 32-byte ``sectors``; ``bytes`` = 32 x sectors."""

    requests: int = 0
    sectors: int = 0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def bytes(self) -> int:
        return 32 * self.sectors


@dataclass
class Shared:
    """Loads or stores of shared memory: warp ``requests`` and ``wavefronts``.

    ``bank_conflicts``: the wavefronts beyond the fewest possible.
    """

    requests: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0


@dataclass
class Atomics:
    """Atomic operations: warp ``requests``, ``lanes`` that took part, distinct ``addresses``.

    Addresses are summed over the requests.
    Lanes of a request that share an address wait for each other: ``lanes_per_address`` on average, at worst
    ``most_lanes_on_one_address``.
    """

    requests: int = 0
    lanes: int = 0
    addresses: int = 0
    most_lanes_on_one_address: int = 0

    @property
    def lanes_per_address(self) -> float:
        return self.lanes / self.addresses if self.addresses else 0.0


@dataclass
class Counts:
    """The counters of a kernel or of one source line."""

    global_load: Global = field(default_factory=Global)
    global_store: Global = field(default_factory=Global)
    shared_load: Shared = field(default_factory=Shared)
    shared_store: Shared = field(default_factory=Shared)
    atomics: Atomics = field(default_factory=Atomics)
    local_requests: int = 0
    warp_instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent_branches: int = 0
    flops: int = 0

    @property
    def warp_execution_efficiency(self) -> float:
        """Mean share of a warp's 32 lanes that are active in an instruction, 0 to 1."""
        return self.thread_instructions / (32 * self.warp_instructions) if self.warp_instructions else 1.0

    @property
    def branch_efficiency(self) -> float:
        """Share of conditional branches, counted by warp, at which all active lanes agree, 0 to 1."""
        return 1 - self.divergent_branches / self.branches if self.branches else 1.0


@dataclass
class LineCounts(Counts):
    """The counters of one source line: ``line`` is its number in ``file``, ``source`` its text."""

    file: str = ""
    line: int = 0
    estimate: Callable[[], dict[str, float]] = field(default=dict, repr=False, compare=False)

    @property
    def source(self) -> str:
        """Read when it is asked for: `file` is what the PTX says, and in an executor nobody asks."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def assembled(self) -> dict[str, float]:
        """As ``Profile.assembled``, of this line."""
        return self.estimate()


def scale(counts, factor: float) -> None:
    """Multiply every count, as if all blocks had done what the sample did."""
    for f in fields(counts):
        value = getattr(counts, f.name)
        if isinstance(value, Global | Shared | Atomics):
            scale(value, factor)
        elif f.name in SCALED:
            setattr(counts, f.name, round(value * factor))


SCALED = {f.name for kind in (Counts, Global, Shared, Atomics) for f in fields(kind) if f.type == "int"} - {
    "most_lanes_on_one_address"
}
