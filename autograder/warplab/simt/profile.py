"""``profile(kernel[grid, block], *args)``: run a kernel once on the SIMT engine and count what it did.

It always runs on the engine, even where there is a GPU, so that a submission has the same counts everywhere.
The numbers are counts of the PTX that the compiler made, never times.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warplab.hardware.target import Target
from warplab.rendering import render
from warplab.simt.counters.assembled import AssembledCode, assembled, spins
from warplab.simt.counters.caches import CacheModel, ModelledCaches
from warplab.simt.counters.collect import Counters, Execution, Traffic, access_of, flops_of, unit_of
from warplab.simt.counters.counts import PASSES, Counts, LineCounts, scale
from warplab.simt.counters.footprint import DistinctSectors, Footprint
from warplab.simt.counters.watch import FirstWarp, TraceStep, WarpRequest
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.wgmma import operand_bytes
from warplab.simt.ptx.blocks import registers_read, registers_written
from warplab.simt.toolchain.ptxas import assemble, blocks_per_sm
from warplab.simt.watched import ProfileError, watched

KINDS = ("load", "store", "atomic", "read", "write", "memory")
MEMORY = {  # part of a Profile -> its numbers, as as_dict() names them
    **{f"global_{kind}": ("requests", "sectors", "sectors_per_request", "bytes") for kind in KINDS},
    **{f"shared_{kind}": ("requests", "wavefronts", "bank_conflicts") for kind in KINDS},
    **{
        f"tma_{kind}": ("requests", "sectors", "bytes", "shared_bytes", "sectors_saved") for kind in KINDS[:2]
    },
}
OTHERS = {  # likewise; no bound of a task uses these
    **{f"distributed_{kind}": ("requests", "bytes") for kind in KINDS[:3]},
    "atomics": ("requests", "lanes", "addresses", "most_lanes_on_one_address"),
}
_GLOBAL = (
    "{0.requests:,} requests, {0.sectors:,} sectors ({0.sectors_per_request:.2f} a request), "
    "{0.bytes:,} bytes"
)
_SHARED = "{0.requests:,} requests, {0.wavefronts:,} wavefronts, {0.bank_conflicts:,} bank conflicts"
_DISTRIBUTED = "{0.requests:,} requests, {0.bytes:,} bytes, in shared memory of other blocks"
_TMA = (
    "{0.requests:,} requests, {0.sectors:,} sectors, {0.bytes:,} bytes, "
    "{0.shared_bytes:,} bytes in shared memory"
)
_ATOMICS = (
    "{0.requests:,} requests, {0.lanes:,} lanes on {0.addresses:,} addresses "
    "({0.lanes_per_address:.2f} on each, at most {0.most_lanes_on_one_address})"
)
ACCESSES = {  # a row of the table -> the part of a Profile that it shows, and its words
    "global loads": ("global_load", _GLOBAL),
    "global stores": ("global_store", _GLOBAL),
    "shared loads": ("shared_load", _SHARED),
    "shared stores": ("shared_store", _SHARED),
    **{f"distributed {kind}s": (f"distributed_{kind}", _DISTRIBUTED) for kind in KINDS[:3]},
    "TMA loads": ("tma_load", _TMA),
    "TMA stores": ("tma_store", _TMA),
    "atomics": ("atomics", _ATOMICS),
}
SUMMARY = {  # the last rows of the table
    "instructions": "{0.warp_instructions:,} issued by warps, {0.busiest_warp_instructions:,} of them by the "
    "busiest; {0.warp_execution_efficiency:.1%} of lanes active",
    "branches": "{0.branches:,}, of which {0.divergent_branches:,} diverge "
    "({0.branch_efficiency:.1%} efficient)",
    "floating point": "{0.flops:,} operations (an FMA is 2)",
    "resources": "{0.registers} registers a thread and {0.spill_bytes} bytes spilled, both of the machine "
    "code, {0.shared_bytes:,} bytes of shared memory a block",
    "occupancy": "{0.occupancy:.0%} of an SM's warps, limited by {0.occupancy_limit}",
}
TOTALS = (
    "warp_instructions busiest_warp_instructions thread_instructions warp_execution_efficiency branches "
    "divergent_branches branch_efficiency flops operand_bytes operand_bytes_alone registers shared_bytes "
    "spill_bytes occupancy ptx_instructions"
).split()
NCU = {  # our counters under Nsight Compute's names (Kernel Profiling Guide, metrics reference)
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global_load.requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load.sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global_store.requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store.sectors",
    "smsp__sass_inst_executed_op_shared_ld.sum": "shared_load.requests",
    "smsp__sass_inst_executed_op_shared_st.sum": "shared_store.requests",
    **{
        f"l1tex__t_{number}_pipe_lsu_mem_dshared_op_{op}.sum": f"distributed_{kind}.{number}"
        for op, kind in (("ld", "load"), ("st", "store"), ("atom", "atomic"))
        for number in ("requests", "bytes")
    },
    "smsp__inst_executed.sum": "warp_instructions",
    "smsp__thread_inst_executed.sum": "thread_instructions",
}
NCU_ATOMICS = {  # by memory, and by whether the old value is returned (atom) or not (red)
    ("global", "atom"): "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    ("global", "red"): "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    ("shared", "atom"): "smsp__inst_executed_op_shared_atom.sum",
    ("shared", "red"): "smsp__inst_executed_op_shared_atom.sum",
}


@dataclass
class Profile(Counts):
    """Counters of one launch.

    Sizes in bytes; ``occupancy`` is theoretical, 0 to 1, limited by ``occupancy_limit``.

    ``busiest_warp_instructions``: instructions of the warp that issued most, the launch's longest chain. A
    total hides it where one warp does the work of all. Nsight Compute has no such number (its
    ``smsp__inst_executed.max`` is the busiest quarter of an SM). It is not scaled if only a sample ran.

    ``footprints``: the distinct sectors of each buffer in global memory; empty for a sample of blocks.
    ``unit_flops``: ``flops`` by the unit that does them: the name of the registry's peak without "peak_", or
    "half_lanes" for 16-bit operations on CUDA cores. ``caches``: the result of the cache model, if one was
    asked for. ``execution`` is keyed by the index of a basic block of ``program``, ``traffic`` by the number
    of a memory instruction and the space that it reached; neither is scaled for a sample.
    """

    kernel: str = ""
    arch: str = ""
    grid: tuple = ()
    block: tuple = ()
    registers: int = 0
    shared_bytes: int = 0
    spill_bytes: int = 0
    occupancy: float = 0.0
    occupancy_limit: str = ""
    ptx_instructions: int = 0
    busiest_warp_instructions: int = 0
    lines: list[LineCounts] = field(default_factory=list)
    ptx: str = field(default="", repr=False)
    samples: list[WarpRequest] = field(default_factory=list, repr=False)
    timeline: list[TraceStep] = field(default_factory=list, repr=False)
    atomic_requests: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(NCU_ATOMICS.values(), 0), repr=False
    )
    warnings: list[str] = field(default_factory=list, repr=False)
    footprints: dict[str, Footprint] = field(default_factory=dict, repr=False)
    unit_flops: dict[str, int] = field(default_factory=dict, repr=False)
    caches: ModelledCaches | None = field(default=None, repr=False)
    # blocks that ran and blocks of the grid, where the counts are scaled from a sample
    sampled: tuple[int, int] | None = None
    traffic: dict[tuple[int, str], Traffic] = field(default_factory=dict, repr=False, compare=False)
    execution: dict[int, Execution] = field(default_factory=dict, repr=False, compare=False)
    program: Any = field(default=None, repr=False, compare=False)
    disassemble: Callable[[], AssembledCode | None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def footprint(self) -> Footprint | None:
        """The distinct sectors of all buffers together, in bytes; None if only a sample of blocks ran."""
        return None if self.sampled else sum(self.footprints.values(), Footprint())

    @property
    def l1_passes(self) -> dict[str, float]:
        """A lower bound of passes through an SM's L1 and shared memory, 128 bytes each, by kind of access.

        The passes that the banks need, less those that ptxas saves by joining requests of PTX
        (``warplab.simt.counters.assembled``). An atomic counts as one pass a request, however many lanes
        share an address.
        """
        return {kind: sum(line.passes(kind) for line in self.lines) for kind in PASSES}

    @property
    def l1_wavefronts(self) -> float:
        """``l1_passes`` of all kinds together."""
        return sum(self.l1_passes.values())

    @cached_property
    def machine(self) -> AssembledCode | None:
        """The machine code, disassembled at the first use, as that takes a moment; None without nvdisasm."""
        return self.disassemble()

    @cached_property
    def machine_instructions(self) -> int:
        """How many instructions the machine code has, executed or not; 0 without nvdisasm."""
        return len(self.machine.code) if self.machine else 0

    @cached_property
    def assembled_instructions(self) -> float:
        """Estimated instructions of the machine code that warps execute; 0 without nvdisasm. Never graded."""
        static = Counter(
            (self.program.file_of(i.file), i.line)
            for block in self.program.blocks
            for i in [*block.instrs, *([block.branch] if block.branch else [])]
        )
        issued = {(line.file, line.line): line.warp_instructions for line in self.lines}
        return self.machine.issued(issued, static) if self.machine else 0.0

    @cached_property
    def assembled_lines(self) -> dict[tuple[int, int], dict[str, float]]:
        """``assembled`` by file number and line."""
        ran, of = self.sampled or (1, 1)
        found = self.machine.estimate(self.traffic) if self.machine else {}
        return {place: {kind: n * of / ran for kind, n in kinds.items()} for place, kinds in found.items()}

    @cached_property
    def assembled(self) -> dict[str, float]:
        """Estimated requests of the machine code by kind, {"shared_load": 320.0, ...}. Never graded.

        "atomic" counts requests of atomics, and "atomic_lanes" the lanes in them: fewer than PTX's where
        ptxas elects one lane of a warp to act for all. ``warplab.simt.counters.assembled`` says how each is
        estimated. Empty without nvdisasm.
        """
        out: dict[str, float] = {}
        for line in self.lines:
            for kind, requests in line.assembled.items():
                out[kind] = out.get(kind, 0) + requests
        return out

    def as_dict(self) -> dict[str, int | float | str]:
        """Flat and JSON-able: {"global_load.requests": 128, ...}."""
        out: dict[str, int | float | str] = {}
        for name, numbers in (MEMORY | OTHERS).items():
            part = getattr(self, name)
            out |= {f"{name}.{number}": getattr(part, number) for number in numbers}
        out |= {name: getattr(self, name) for name in TOTALS}
        return out | {f"{unit}_flops": self.unit_flops.get(unit, 0) for unit in ("fp64", "fp32", "tf32")}

    def ncu(self) -> dict[str, int | float]:
        """The counters under Nsight Compute's metric names.

        They are counted on PTX, where Nsight Compute counts machine code: ``assembled`` estimates the latter.
        """
        flat = self.as_dict()
        out = {metric: number for metric, name in NCU.items() if not isinstance(number := flat[name], str)}
        out["smsp__thread_inst_executed_per_inst_executed.ratio"] = 32 * self.warp_execution_efficiency
        out["smsp__sass_average_branch_targets_threads_uniform.pct"] = 100 * self.branch_efficiency
        wavefronts = self.shared_load.wavefronts + self.shared_store.wavefronts
        conflicts = self.shared_load.bank_conflicts + self.shared_store.bank_conflicts
        out["memory_l1_wavefronts_shared"] = wavefronts
        out["memory_l1_wavefronts_shared_ideal"] = wavefronts - conflicts
        out |= self.atomic_requests
        out["launch__registers_per_thread"] = max(16, self.registers)  # a driver gives no thread fewer
        out["sm__maximum_warps_per_active_cycle_pct"] = 100 * self.occupancy
        return out

    def rows(self) -> list[tuple[str, str, str]]:
        """(label, value counted on PTX, what is known of the machine code) as the table shows them.

        Memories that the kernel does not use are left out.
        """
        rows = [("launch", f"grid {_dims(self.grid)}, block {_dims(self.block)}")]
        if self.sampled:
            ran, of = self.sampled
            ran_of = f"{ran:,} of {of:,} blocks ran; counts are scaled by {of / ran:.4g}, an estimate"
            rows.append(("SAMPLE", ran_of))
        rows += [*self._memories(), *self._levels()]
        rows += [(label, words.format(self)) for label, words in SUMMARY.items()]
        rows += [("warning", text) for text in self.warnings]
        return [(label, value, self._assembled(label)) for label, value in rows]

    def _memories(self) -> list[tuple[str, str]]:
        """The rows of accesses."""
        rows = []
        for label, (name, words) in ACCESSES.items():
            part = getattr(self, name)
            saved = getattr(part, "sectors_saved", 0)
            if part.requests:
                more = f"; multicast saves {saved:,} sectors" if saved else ""
                rows.append((label, words.format(part) + more))
        if self.operand_bytes:
            alone = f", {self.operand_bytes_alone:,} of them while no copy by TMA is under way"
            rows.append(("wgmma", f"{self.operand_bytes:,} bytes of operands from shared memory{alone}"))
        return rows

    def _levels(self) -> list[tuple[str, str]]:
        """The rows of L2 and HBM: the distinct sectors, a lower bound, and the result of the cache model."""
        least = self.footprint
        if least is None or not least.touched:
            return []
        known = f"{least.fetched:,} bytes to fetch and {least.written:,} to store, each sector once"
        rows = [("distinct sectors", known)]
        if self.caches is not None:
            m = self.caches
            modelled = (
                f"hit rates {m.l1_hit_rate:.1%} of L1 and {m.l2_hit_rate:.1%} of L2, stores counted; "
                f"{m.l2_bytes:,} bytes to and from L2, {m.hbm_bytes:,} to and from HBM"
            )
            rows.append((f"MODELLED, {m.device}", modelled))
        return rows

    def _assembled(self, label: str) -> str:
        """What the table says of the machine code in the row ``label``, or ""."""
        if self.machine is None:
            return ""
        if label == "instructions":
            made, of = self.machine_instructions, self.ptx_instructions
            return f"{made:,} in the code where PTX has {of:,}; how often each runs is not known"
        kind = label.replace(" ", "_").removesuffix("s")
        requests = self.assembled.get(kind)
        if requests is None:
            return ""
        forms = self.machine.forms(kind)
        there = ", ".join(f"{n} {form}" for form, n in forms.items())
        if kind != "atomic":
            return f"estimated {requests:,.0f} requests; in the code {there}"
        lanes = self.assembled["atomic_lanes"]
        least = "at least " if spins(forms) else ""
        one = ", one acting for its warp where it can" if lanes < self.atomics.lanes else ""
        return f"estimated {least}{requests:,.0f} requests of {lanes:,.0f} lanes{one}; in the code {there}"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, *_ in rows)
        body = "\n".join(
            f"  {a:<{width}}  {b}" + (f"\n  {'':<{width}}  - machine code: {c}" if c else "")
            for a, b, c in rows
        )
        return (
            f"{self.kernel}: PTX for {self.arch}, counted on the SIMT engine - not machine code, not times\n"
            f"{body}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render("warplab.simt", "profile.html.j2", profile=self)


def _dims(dims) -> str:
    """(4, 2, 1) as "4 x 2"."""
    used = list(dims)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return " x ".join(f"{d:,}" for d in used)


def profile(
    launcher,
    *args,
    arch: str | None = None,
    sample_blocks: int | None = None,
    caches: str | None = None,
    **constants,
) -> Profile:
    """Run ``launcher(*args)`` once on the SIMT engine and return its counters.

    ``launcher``: a configured kernel, which is ``kernel[grid, block]`` of numba or ``cuda_kernel``, or
    ``kernel[grid]`` of Triton. ``args``: arrays and tensors may be on the host, on the engine's device or on
    a GPU; they hold the kernel's results afterwards, as after a launch. ``constants``: arguments by name,
    such as ``BLOCK=1024``, which only Triton's kernels take.
    ``arch``: the architecture to compile for (default WARPLAB_ARCH or sm_90; for Triton WARPLAB_TRITON_ARCH
    or sm_80).
    ``sample_blocks``: for a launch that is too large for the engine, how many blocks to run, spread evenly
    over the grid; the counts are scaled. They run on copies of the arrays, so the arrays stay unchanged. The
    table says that the counts are an estimate: they are good for a look, not for a grade.
    ``caches``: a device of the registry, such as "h100-sxm", whose caches are modelled as well
    (``warplab.simt.counters.caches``). It takes about twice as long.

    Raises ProfileError for another object, for a launch of more than 67,108,864 threads, for a sample of a
    kernel whose blocks wait for each other, or for ``caches`` together with ``sample_blocks``; LaunchError
    for an error in the launch itself.
    """
    if caches and sample_blocks is not None:
        raise ProfileError(
            "a sample of the blocks leaves the caches without the others' data: ask for one of the two"
        )
    counters, lens, distinct = Counters(), FirstWarp(), DistinctSectors()
    model = [CacheModel(caches)] if caches else []
    machine, target = watched(
        launcher, args, constants, arch, (counters, lens, distinct, *model), sample_blocks
    )
    p = summary(machine, counters, target, lens)
    p.footprints = {} if p.sampled else distinct.by_buffer()
    p.caches = model[0].result() if model else None
    return p


def summary(
    machine, counters: Counters, target: Target, lens: FirstWarp | None = None, resources: bool = True
) -> Profile:
    """The Profile of a launch that ``machine`` has run under ``counters``.

    ``resources=False`` leaves out what only ptxas knows: registers, spills and occupancy.
    """
    program = machine.program
    p = Profile(
        kernel=program.name,
        arch=target.arch,
        grid=tuple(machine.launch.grid),
        block=tuple(machine.launch.block),
        ptx=program.ptx,
    )
    if lens is not None:
        p.samples, p.timeline = list(lens.samples.values()), lens.timeline
    p.warnings = [str(c) for c in machine.conflicts]
    p.busiest_warp_instructions = counters.busiest
    _fill(p, program, counters)
    p.traffic, p.disassemble = counters.traffic, functools.partial(assembled, program)
    p.execution, p.program = counters.execution, program
    if machine.sample is not None:
        p.sampled = machine.sample.size, machine.launch.blocks
        for counts in (p, *p.lines):
            scale(counts, p.sampled[1] / p.sampled[0])
        for numbers in (p.atomic_requests, p.unit_flops):
            numbers |= {name: round(n * p.sampled[1] / p.sampled[0]) for name, n in numbers.items()}
    p.shared_bytes = machine.shared_size
    if not resources:
        return p
    report = assemble(program.ptx, program.entry, target.arch)
    p.registers, p.spill_bytes = report.registers, report.spill_bytes
    limit = target.limits
    fits = blocks_per_sm(p.registers, p.shared_bytes, machine.launch.threads, limit)
    p.occupancy_limit = min(fits, key=lambda name: fits[name])
    p.occupancy = min(
        1.0, fits[p.occupancy_limit] * -(-machine.launch.threads // 32) / limit.max_warps_per_sm
    )
    return p


@functools.lru_cache(maxsize=8)
def _registers_read(program) -> set[str]:
    """All registers that a program reads. ptxas turns an ``atom`` whose result is not read into a ``red``."""
    return {
        name
        for item in program.function.body
        if not isinstance(item, str)
        for name in registers_read(item, INSTRUCTIONS)
    }


def _fill(p: Profile, program, counters: Counters) -> None:
    lines: dict[tuple[int, int], LineCounts] = {}

    def line_of(instr) -> LineCounts:
        key = (instr.file, instr.line)
        if key not in lines:
            path = program.file_of(instr.file)
            lines[key] = LineCounts(
                file=path, line=instr.line, estimate=lambda: p.assembled_lines.get(key, {})
            )
        return lines[key]

    for block in program.blocks:
        p.ptx_instructions += block.size
        done = counters.execution.get(block.index)
        if done is None:
            continue
        for instr in [*block.instrs, *([block.branch] if block.branch is not None else [])]:
            for c in (p, line_of(instr)):
                c.warp_instructions += done.warps
                c.thread_instructions += done.threads
                c.flops += flops_of(instr) * done.threads
                c.operand_bytes += operand_bytes(instr) * done.threads
            if flops_of(instr):
                unit = unit_of(instr)
                p.unit_flops[unit] = p.unit_flops.get(unit, 0) + flops_of(instr) * done.threads
        if block.branch is not None:
            for c in (p, line_of(block.branch)):
                c.branches += done.branches
                c.divergent_branches += done.divergent
        elif block.end == "exit":
            p.warp_instructions += done.warps
            p.thread_instructions += done.threads
    for (site, space), traffic in counters.traffic.items():
        instr = program.sites[site]
        kind = access_of(instr)
        for c in (p, line_of(instr)):
            _add(c, kind, space, traffic)
        if kind == "atomic" and space in ("global", "shared"):
            wanted = registers_written(instr, INSTRUCTIONS) & _registers_read(program)
            p.atomic_requests[NCU_ATOMICS[space, "atom" if wanted else "red"]] += traffic.requests
    for site, alone in counters.alone.items():
        for c in (p, line_of(program.sites[site])):
            c.operand_bytes_alone += alone
    p.lines = sorted(lines.values(), key=lambda entry: (entry.file, entry.line))


def _add(c: Counts, kind: str, space: str, traffic: Traffic) -> None:
    """Add one instruction's traffic in one state space to ``c``."""
    if space == "local":
        c.local_requests += traffic.requests
        return
    if space == "tma":
        part = c.tma_load if kind == "load" else c.tma_store
        part.requests += traffic.requests
        part.sectors += traffic.sectors
        part.shared_bytes += int(traffic.moved)
        part.sectors_saved += traffic.saved
        return
    part = getattr(c, f"{'distributed' if space == 'cluster' else space}_{kind}")
    part.requests += traffic.requests
    if space == "cluster":
        part.bytes += traffic.bytes
    if space != "global":
        part.wavefronts += traffic.wavefronts
        part.bank_conflicts += traffic.wavefronts - traffic.ideal
    else:
        part.sectors += traffic.sectors
        part.passes += traffic.passes
    if kind == "atomic":
        c.atomics.requests += traffic.requests
        c.atomics.lanes += traffic.lanes
        c.atomics.addresses += traffic.addresses
        c.atomics.most_lanes_on_one_address = max(c.atomics.most_lanes_on_one_address, traffic.most)
