"""``report(kernel[grid, block], *args)``: a page about a launch, like Nsight Compute's details page.

It has bounds instead of throughputs, counts of PTX and estimates of machine code instead of counters, and the
cache model's hit rates, each marked as such; it has no times. Names and order of sections are those of Nsight
Compute (kernel_report.yml); findings come first, all together. Values that Nsight Compute measured on a GPU
can be shown beside ours.
"""

from __future__ import annotations

import csv
import html
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from warplab.hardware import specs
from warplab.plots.kernel_rules import WORDS, KernelRules, Residency, size
from warplab.rendering import render
from warplab.simt.counters.counts import PASSES
from warplab.simt.engine.indices import SHARED_SYMBOL
from warplab.simt.frontends.triton_hook import is_triton_launch
from warplab.simt.profile import NCU, profile
from warplab.simt.toolchain.ptxas import OLDEST, number_of
from warplab.timing.bench import seconds
from warplab.timing.bounds import L1, L2, WAVEFRONT, bounds, memory_of

SECTIONS = specs.load(Path(__file__).with_name("kernel_report.yml"))


@dataclass(frozen=True)
class KernelReport(KernelRules):
    """The report of a launch: as text by ``print(report)``, as a page in a notebook or by ``save(path)``.

    ``findings``: the rules' findings as data (KernelFinding). ``measured``: {metric: value with unit} from
    Nsight Compute. ``text``: the kernel's source if it is not in a file.
    """

    measured: dict[str, str]
    text: list[str]

    def rows(self, section: str) -> list[tuple[str, str, str, str, str]]:
        """[(label, our value, how it is known, metric, measured value)] of one section's table.

        Memories that the kernel does not use and rows without any value are left out.
        """
        rows, p = [], self.profile
        more, atomics = {"ncu": p.ncu(), **vars(self)}, p.global_atomic.sectors
        more["tma_received"] = p.tma_load.sectors + p.tma_load.sectors_saved  # by each block of a multicast
        if p.caches:  # Nsight Compute counts atomics apart from both
            more |= {"l2_loads": p.caches.l2_reads - atomics, "l2_stores": p.caches.l2_writes - atomics}
        for label, metric, known, words in SECTIONS[section]:
            unknown = known == "modelled" and p.caches is None
            ours = "" if unknown else words.format(**more)
            measured = self.measured.get(metric, "")
            if measured or ours not in ("", "0") or (known == "modelled" and ours):
                rows.append((label, ours, known, metric, measured))
        return rows

    @cached_property
    def made(self) -> dict[str, str]:
        """{metric: estimate for the machine code}, which Nsight Compute counts. Never graded."""
        p, found = self.profile, {}
        if p.machine is None:
            return {}
        for metric, name in NCU.items():
            if n := p.assembled.get(kind := name.removesuffix(".requests")):
                forms = ", ".join(f"{n} {form}" for form, n in p.machine.forms(kind).items())
                found[metric] = f"{n:,.0f} ({forms})"
        passes = p.l1_passes["shared_load"] + p.l1_passes["shared_store"]
        if p.shared_load.requests:
            found["memory_l1_wavefronts_shared"] = f"at least {passes:,.0f}"
        found["smsp__inst_executed.sum"] = f"{p.assembled_instructions:,.0f}"
        if not p.machine.branches:
            found["smsp__sass_average_branch_targets_threads_uniform.pct"] = "no branch left: ncu prints 0"
        return found

    @cached_property
    def estimates(self) -> list[tuple[str, str, float]]:
        """[(what, amount, seconds)]: estimated times that are not lower bounds.

        For instructions: four a clock and SM, one a scheduler (CUDA C++ Programming Guide). For L2: the
        sectors that the cache model sends there.
        """
        spec, p, found = self.device, self.profile, []
        busy = min(1, self.residency.blocks / self.residency.sms)
        if (n := p.assembled_instructions) and "l1_bandwidth" in spec:
            clocks = spec["l1_bandwidth"].si / WAVEFRONT * busy  # of all SMs in use, a second
            found.append(("Issue slots", f"{n:,.0f} instructions of machine code", n / 4 / clocks))
        rate = next((fact for fact in ("l2_bandwidth", "l2_measured") if fact in spec), "")
        if p.caches and p.caches.l2_bytes and rate:
            of = f"{size(p.caches.l2_bytes)}, modelled" + ", at a measured rate" * (rate == "l2_measured")
            found.append((L2, of, p.caches.l2_bytes / spec[rate].si))
        return found

    @property
    def ptx(self) -> dict[tuple[str, int], list[tuple[int, str]]]:
        """{(file, line) of the source: [(warps that it was issued to, PTX)]}."""
        program, code = self.profile.program, {}
        for block in program.blocks:
            done = self.profile.execution.get(block.index)
            for instr in [*block.instrs, *([block.branch] if block.branch else [])]:
                words = SHARED_SYMBOL.sub(lambda found: found[1] or found[0], instr.text)
                words = " ".join(words.replace(f"{program.entry}_param", "param").split())
                place = program.file_of(instr.file), instr.line
                code.setdefault(place, []).append((done.warps if done else 0, words))
        return code

    def save(self, path: str | Path) -> None:
        """Write the page as one self-contained HTML file."""
        Path(path).write_text(self._filled("html", alone=True), encoding="utf-8")

    def __str__(self) -> str:
        return html.unescape(self._filled("txt"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._filled("html", alone=False)

    def _filled(self, form: str, **more) -> str:
        more |= {"l1": L1, "words": WORDS, "sections": SECTIONS, "memory": memory_of(self.device)}
        more["wavefronts"] = lambda line: sum(map(line.passes, PASSES))
        more["hopper"] = number_of(self.profile.arch) >= 90
        template = f"kernel_report.{form}.j2"
        return render("warplab.plots", template, report=self, size=size, seconds=seconds, **more)


MADE_BY = "Write it with: ncu --csv --page raw --print-units base ... > file.csv"


def report(
    launcher, *args, device: str = "h100-sxm", ncu_csv: str | Path | None = None, **constants
) -> KernelReport:
    """Run ``launcher(*args)`` once on the engine and report it for a device of the registry.

    ``launcher``, ``args`` and ``constants`` are those of ``profile``: numba, CUDA C++ or Triton. The kernel
    is compiled for the device's architecture, Triton's for sm_80. Bounds are those of ``warplab.bounds``,
    occupancy that of CUDA's occupancy calculator, a wave as in Nsight Compute's Kernel Profiling Guide.
    ``ncu_csv``: the output of ``ncu --csv --page raw --print-units base`` for the same kernel, to be shown
    beside ours. Raises what ``profile`` raises, SpecError for a device that is unknown or has no CUDA
    architecture, ValueError for an ncu file without this kernel.
    """
    spec = specs.get(device)
    arch = None if is_triton_launch(launcher) else max(spec.arch, OLDEST, key=number_of)
    modelled = "l2_cache" in spec and "unified_cache_per_sm" in spec
    p = profile(launcher, *args, arch=arch, caches=device if modelled else None, **constants)
    where = Residency.of(p, spec)
    try:
        least = bounds(p, device)
    except ValueError:
        least = None
    measured = read_ncu(ncu_csv, p.kernel) if ncu_csv else {}
    text = getattr(getattr(launcher, "kernel", None), "source", "").splitlines()
    return KernelReport(p, spec, least, where, measured, text)


def read_ncu(path: str | Path, kernel: str) -> dict[str, str]:
    """{metric: value with unit} of the first launch of ``kernel`` in a CSV file of ncu's raw page.

    Raises ValueError if it is not in the file, and FileNotFoundError with the command that makes a file.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"ncu_csv: there is no file {path} in {Path.cwd()}. {MADE_BY}") from None
    units, *rows = csv.DictReader(text[text.find('"ID"') :].splitlines()) if '"ID"' in text else [{}]
    for row in rows:
        if kernel in row["Kernel Name"]:
            return {key: f"{value} {units[key]}".strip() for key, value in row.items() if value}
    raise ValueError(
        f"{path} has no kernel {kernel}; it has {', '.join(row['Kernel Name'] for row in rows) or 'none'}. "
        f"{MADE_BY}"
    )
