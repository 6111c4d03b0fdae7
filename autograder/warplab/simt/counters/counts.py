"""The counters of a kernel or a source line: plain numbers, and ratios computed from them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field, fields

PASSES = "global_load", "global_store", "global_atomic", "shared_load", "shared_store", "shared_atomic"


@dataclass
class Summed:
    """Counters of one kind, added up number by number."""

    def __add__(self, other):
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass
class Global(Summed):
    """Accesses to global memory: warp ``requests``, 32-byte ``sectors``; ``bytes`` = 32 x sectors.

    ``passes``: a lower bound of the passes through L1, of 128 bytes each.
    """

    requests: int = 0
    sectors: int = 0
    passes: float = 0.0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def bytes(self) -> int:
        return 32 * self.sectors


@dataclass
class Tma(Global):
    """Copies by TMA to or from global memory: one request and the distinct ``sectors`` of each copy.

    ``shared_bytes``: the bytes written to or read from shared memory; a multicast counts in each block that
    receives it. ``sectors_saved``: the sectors that multicast saves, compared with one copy for each block.
    """

    shared_bytes: int = 0
    sectors_saved: int = 0


@dataclass
class Shared(Summed):
    """Accesses to shared memory: warp ``requests`` and ``wavefronts``.

    ``bank_conflicts``: the wavefronts beyond the fewest possible.
    """

    requests: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0


@dataclass
class Distributed(Shared):
    """Accesses to the shared memory of other blocks of a cluster; ``bytes`` is what lanes asked for."""

    bytes: int = 0


@dataclass
class Atomics:
    """Atomics in global and shared memory: warp ``requests``, the ``lanes`` that took part, and the distinct
    ``addresses`` of each request, summed over requests.

    Lanes of a request that share an address are serialised: ``lanes_per_address`` of them on average, at
    worst ``most_lanes_on_one_address``.
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
    """The counters of a kernel or of one source line.

    Every access is of one kind, whatever its form: a ``load`` (``ld`` of any width, cache operator and state
    space, ``ldmatrix``, ``wmma.load``, the first half of ``cp.async``; constants are in global memory), a
    ``store`` (``st``, ``stmatrix``, ``wmma.store``, the second half of ``cp.async``), or an ``atomic``
    (``atom`` and ``red``), which Nsight Compute counts apart from both. Copies by TMA are counted apart
    (a reduction is a ``tma_store``), and also in ``_read``, ``_write`` and ``_memory``.

    Bounds on a kernel's work use the sums, so that one kind of access cannot replace another uncounted:
    ``_read`` is loads and atomics, ``_write`` is stores and atomics, and ``_memory`` is their sum, in which
    an atomic counts as the load and the store that it does. In these sums, shared memory is that of all
    blocks; ``shared_load``, ``shared_store`` and ``shared_atomic`` are a block's accesses to its own,
    ``distributed_load``, ``distributed_store`` and ``distributed_atomic`` those to other blocks of its
    cluster.

    ``operand_bytes``: the bytes of A and B that the Tensor Cores read from shared memory for ``wgmma``, for
    each warp group. They are not counted as requests. ``operand_bytes_alone``: those of the products that
    start while no copy by TMA to their block is under way.
    """

    global_load: Global = field(default_factory=Global)
    global_store: Global = field(default_factory=Global)
    global_atomic: Global = field(default_factory=Global)
    shared_load: Shared = field(default_factory=Shared)
    shared_store: Shared = field(default_factory=Shared)
    shared_atomic: Shared = field(default_factory=Shared)
    distributed_load: Distributed = field(default_factory=Distributed)
    distributed_store: Distributed = field(default_factory=Distributed)
    distributed_atomic: Distributed = field(default_factory=Distributed)
    atomics: Atomics = field(default_factory=Atomics)
    tma_load: Tma = field(default_factory=Tma)
    tma_store: Tma = field(default_factory=Tma)
    local_requests: int = 0
    warp_instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent_branches: int = 0
    flops: int = 0
    operand_bytes: int = 0
    operand_bytes_alone: int = 0

    @property
    def global_read(self) -> Global:
        return self.global_load + self.global_atomic + self.tma_load

    @property
    def global_write(self) -> Global:
        return self.global_store + self.global_atomic + self.tma_store

    @property
    def global_memory(self) -> Global:
        return self.global_read + self.global_write

    @property
    def shared_read(self) -> Shared:
        return self.shared_load + self.shared_atomic + self.distributed_load + self.distributed_atomic

    @property
    def shared_write(self) -> Shared:
        return self.shared_store + self.shared_atomic + self.distributed_store + self.distributed_atomic

    @property
    def shared_memory(self) -> Shared:
        return self.shared_read + self.shared_write

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
    """The counters of one source line: ``line`` is its number in ``file``, ``source`` its text.

    ``estimate`` returns the estimate of its accesses in machine code (``AssembledCode.estimate``).
    """

    file: str = ""
    line: int = 0
    estimate: Callable[[], dict[str, float]] = field(default=dict, repr=False, compare=False)

    def passes(self, kind: str) -> float:
        """A lower bound of the passes through L1 and shared memory for ``kind``, one of PASSES.

        It is estimated for the machine code if that is known, else counted on PTX. An atomic counts as one
        pass a request, however many lanes share an address.
        """
        part = getattr(self, kind)
        if kind.endswith("atomic"):
            return part.requests
        counted = part.wavefronts if isinstance(part, Shared) else part.passes
        return self.estimate().get(f"{kind}_passes", counted)

    def conflicts(self, kind: str) -> float:
        """A lower bound of the machine code's bank conflicts; ``kind``: "shared_load" or "shared_store"."""
        part = getattr(self, kind)
        return max(0, self.passes(kind) - (part.wavefronts - part.bank_conflicts))

    @property
    def source(self) -> str:
        """The line's text, read when asked for: an executor must not open the file that a PTX text names."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def assembled(self) -> dict[str, float]:
        """``Profile.assembled`` for this line alone."""
        return {kind: n for kind, n in self.estimate().items() if not kind.endswith("_passes")}


def scale(counts, factor: float) -> None:
    """Multiply every count, as if all blocks had done what the sample did."""
    for f in fields(counts):
        value = getattr(counts, f.name)
        if isinstance(value, Global | Shared | Atomics):
            scale(value, factor)
        elif f.name in SCALED:
            setattr(counts, f.name, round(value * factor))


SCALED = {f.name for kind in (Counts, Global, Tma, Distributed, Atomics) for f in fields(kind)} - {
    "most_lanes_on_one_address"
}
