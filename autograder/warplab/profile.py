"""``profile(kernel[grid, block], *args)``: run a kernel once on the SIMT engine and count what it did.

Always the engine, also where there is CUDA, so that the same submission gives the same counts everywhere. The numbers
are counts of the PTX that the compiler made, never times.
"""

from __future__ import annotations

import html
import linecache
from dataclasses import dataclass, field

from .device import arch as default_arch
from .device import capability, limits
from .simt.counters.collect import Counters, flops_of
from .simt.counters.watch import FirstWarp, Sample, Step
from .simt.frontends.arguments import host_array
from .simt.frontends.cuda_cpp import Launcher
from .simt.frontends.launch import launch_on_engine, observed_by
from .simt.frontends.numba_hook import SPACE
from .simt.toolchain.ptxas import assemble, blocks_per_sm

MAX_THREADS = 1 << 26  # 67 million threads: minutes on one core


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
    """Loads or stores of shared memory: warp ``requests``, ``wavefronts``, and those beyond the fewest possible (``bank_conflicts``)."""

    requests: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0


@dataclass
class Atomics:
    """Atomic operations: warp ``requests``."""

    requests: int = 0


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
class Line(Counts):
    """The counters of one source line: ``line`` is its number in ``file``, ``source`` its text."""

    file: str = ""
    line: int = 0
    source: str = ""


NCU = {  # our counters under Nsight Compute's names (Kernel Profiling Guide, metrics reference)
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global_load.requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load.sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global_store.requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store.sectors",
    "smsp__sass_inst_executed_op_shared_ld.sum": "shared_load.requests",
    "smsp__sass_inst_executed_op_shared_st.sum": "shared_store.requests",
    "smsp__inst_executed.sum": "warp_instructions",
    "smsp__thread_inst_executed.sum": "thread_instructions",
}


@dataclass
class Profile(Counts):
    """Counters of one launch. Sizes in bytes; ``occupancy`` is theoretical, 0 to 1, limited by ``occupancy_limit``."""

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
    lines: list[Line] = field(default_factory=list)
    ptx: str = field(default="", repr=False)
    samples: list[Sample] = field(default_factory=list, repr=False)
    timeline: list[Step] = field(default_factory=list, repr=False)

    def as_dict(self) -> dict[str, int | float | str]:
        """Flat and JSON-able: {"global_load.requests": 128, ...}."""
        out: dict[str, int | float | str] = {}
        for space in ("global_load", "global_store"):
            part = getattr(self, space)
            out |= {f"{space}.{k}": getattr(part, k) for k in ("requests", "sectors", "sectors_per_request", "bytes")}
        for space in ("shared_load", "shared_store"):
            part = getattr(self, space)
            out |= {f"{space}.{k}": getattr(part, k) for k in ("requests", "wavefronts", "bank_conflicts")}
        out["atomics.requests"] = self.atomics.requests
        for name in (
            "warp_instructions",
            "thread_instructions",
            "warp_execution_efficiency",
            "branches",
            "divergent_branches",
            "branch_efficiency",
            "flops",
            "registers",
            "shared_bytes",
            "spill_bytes",
            "occupancy",
            "ptx_instructions",
        ):
            out[name] = getattr(self, name)
        return out

    def ncu(self) -> dict[str, int | float]:
        """The counters under Nsight Compute's metric names. Counted on PTX; the assembled code can differ."""
        flat = self.as_dict()
        out = {metric: flat[name] for metric, name in NCU.items()}
        out["smsp__thread_inst_executed_per_inst_executed.ratio"] = 32 * self.warp_execution_efficiency
        out["smsp__sass_average_branch_targets_threads_uniform.pct"] = 100 * self.branch_efficiency
        wavefronts = self.shared_load.wavefronts + self.shared_store.wavefronts
        conflicts = self.shared_load.bank_conflicts + self.shared_store.bank_conflicts
        out["memory_l1_wavefronts_shared"] = wavefronts
        out["memory_l1_wavefronts_shared_ideal"] = wavefronts - conflicts
        out["launch__registers_per_thread"] = self.registers
        out["sm__maximum_warps_per_active_cycle_pct"] = 100 * self.occupancy
        return out

    def rows(self) -> list[tuple[str, str]]:
        """(label, value) pairs as the table shows them; memories that the kernel does not use are left out."""
        rows = [("launch", f"grid {_dims(self.grid)}, block {_dims(self.block)}")]
        for label, part in (("global loads", self.global_load), ("global stores", self.global_store)):
            if part.requests:
                rows.append(
                    (
                        label,
                        f"{part.requests:,} requests, {part.sectors:,} sectors ({part.sectors_per_request:.2f} a request), {part.bytes:,} bytes",
                    )
                )
        for label, part in (("shared loads", self.shared_load), ("shared stores", self.shared_store)):
            if part.requests:
                rows.append((label, f"{part.requests:,} requests, {part.wavefronts:,} wavefronts, {part.bank_conflicts:,} bank conflicts"))
        if self.atomics.requests:
            rows.append(("atomics", f"{self.atomics.requests:,} requests"))
        rows += [
            ("instructions", f"{self.warp_instructions:,} issued to warps; {self.warp_execution_efficiency:.1%} of lanes active"),
            ("branches", f"{self.branches:,}, of which {self.divergent_branches:,} diverge ({self.branch_efficiency:.1%} efficient)"),
            ("floating point", f"{self.flops:,} operations (an FMA is 2)"),
            (
                "resources",
                f"{self.registers} registers a thread, {self.shared_bytes:,} bytes of shared memory a block, {self.spill_bytes} spilled",
            ),
            ("occupancy", f"{self.occupancy:.0%} of an SM's warps, limited by {self.occupancy_limit}"),
        ]
        return rows

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.rows())
        body = "\n".join(f"  {label:<{width}}  {value}" for label, value in self.rows())
        return f"{self.kernel}: counted on the SIMT engine for {self.arch}\n{body}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(a)}</th><td style='text-align:left'>{html.escape(b)}</td></tr>"
            for a, b in self.rows()
        )
        return (
            f"<table class='warplab-profile'><caption style='text-align:left;caption-side:top'><code>{html.escape(self.kernel)}</code> "
            f"counted on the SIMT engine for {self.arch} - counts, not times</caption><tbody>{rows}</tbody></table>"
        )


def _dims(dims) -> str:
    """(4, 2, 1) as "4 x 2"."""
    used = list(dims)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return " x ".join(f"{d:,}" for d in used)


class ProfileError(TypeError):
    """profile() was given something that is not a configured kernel, or a launch that is too large to count."""


def profile(launcher, *args, arch: str | None = None) -> Profile:
    """Run ``launcher(*args)`` once on the SIMT engine and return its counters.

    ``launcher`` is a configured numba kernel, ``kernel[grid, block]``; arrays are host arrays, CPU tensors or the
    engine's device arrays, and the kernel's results are in them afterwards, as after a launch. ``arch`` is the
    architecture compiled for (default WARPLAB_ARCH or sm_90).
    Raises ProfileError for another object or more than 67,108,864 threads, LaunchError for what goes wrong inside.
    """
    if not is_launcher(launcher):
        raise ProfileError(f"profile() takes a configured kernel, such as kernel[grid, block], and got {type(launcher).__name__}")
    threads = 1
    for size in (*launcher.griddim, *launcher.blockdim):
        threads *= size
    if threads > MAX_THREADS:
        raise ProfileError(
            f"{threads:,} threads are too many to count here; the cap is {MAX_THREADS:,}: profile a smaller problem of the same shape"
        )
    arch = arch or default_arch()
    counters, lens = Counters(), FirstWarp()
    with observed_by(counters, lens):
        if isinstance(launcher, Launcher):
            machine = launcher.run_on_engine(args, arch)
        else:
            machine = _run_numba(launcher, args, arch)
    program = machine.program
    p = Profile(kernel=program.name, arch=arch, grid=tuple(machine.launch.grid), block=tuple(machine.launch.block), ptx=program.ptx)
    p.samples, p.timeline = list(lens.samples.values()), lens.timeline
    _fill(p, program, counters)
    report = assemble(program.ptx, program.entry)
    p.registers, p.spill_bytes = report.registers, report.spill_bytes
    p.shared_bytes = machine.shared_size
    limit = limits(arch)
    fits = blocks_per_sm(p.registers, p.shared_bytes, machine.launch.threads, limit)
    p.occupancy_limit = min(fits, key=fits.get)
    p.occupancy = min(1.0, fits[p.occupancy_limit] * -(-machine.launch.threads // 32) / limit.max_warps_per_sm)
    return p


def is_launcher(value) -> bool:
    """True of ``kernel[grid, block]``, numba's and ``cuda_kernel``'s."""
    return type(value).__name__ == "_LaunchConfiguration" or isinstance(value, Launcher)


def _run_numba(launcher, args, arch: str):
    """Compile for these arguments and run on the engine, also where there is CUDA."""
    args = tuple(a if (v := host_array(a)) is None else v for a in args)
    kernel = launcher.dispatcher.compile(tuple(launcher.dispatcher.typeof_pyval(a) for a in args))
    major, minor = capability(arch)
    target = (major, minor, "a" if (major, minor) >= (9, 0) else "")
    return launch_on_engine(kernel, args, launcher.griddim, launcher.blockdim, launcher.sharedmem, SPACE, target)


def _fill(p: Profile, program, counters: Counters) -> None:
    lines: dict[tuple[int, int], Line] = {}

    def line_of(instr) -> Line:
        key = (instr.file, instr.line)
        if key not in lines:
            path = program.file_of(instr.file)
            lines[key] = Line(file=path, line=instr.line, source=linecache.getline(path, instr.line).rstrip("\n"))
        return lines[key]

    for block in program.blocks:
        p.ptx_instructions += len(block.instrs) + (block.branch is not None) + (block.end == "exit")
        done = counters.execution.get(block.index)
        if done is None:
            continue
        for instr in [*block.instrs, *([block.branch] if block.branch is not None else [])]:
            for c in (p, line_of(instr)):
                c.warp_instructions += done.warps
                c.thread_instructions += done.threads
                c.flops += flops_of(instr) * done.threads
        if block.branch is not None:
            for c in (p, line_of(block.branch)):
                c.branches += done.branches
                c.divergent_branches += done.divergent
        elif block.end == "exit":
            p.warp_instructions += done.warps
            p.thread_instructions += done.threads
    for site, traffic in counters.traffic.items():
        instr = program.sites[site]
        kind = "store" if instr.opcode == "st" else "load"
        for c in (p, line_of(instr)):
            if instr.opcode in ("atom", "red"):
                part = c.atomics
            elif traffic.space == "shared":
                part = getattr(c, f"shared_{kind}")
                part.wavefronts += traffic.wavefronts
                part.bank_conflicts += traffic.wavefronts - traffic.ideal
            elif traffic.space == "local":
                c.local_requests += traffic.requests
                continue
            else:
                part = getattr(c, f"global_{kind}")
                part.sectors += traffic.sectors
            part.requests += traffic.requests
    p.lines = sorted(lines.values(), key=lambda entry: (entry.file, entry.line))
