"""Counters of launches by Nsight Compute on a GPU, beside the engine's of the same launches: counted.yml.

Metrics have Nsight Compute's names. A launch is one of ``bench_engine`` (tests), or a case of ``profiled``.
"""

import csv
import functools
from dataclasses import dataclass
from typing import Any

import yaml

import warplab
from warplab.evidence.measure import RESULTS
from warplab.figures.held import grown, square
from warplab.figures.profiled import CASES, LARGE, matmul_naive, tiled
from warplab.timing.bounds import Bounds, LaunchWork, bounds

FILE = RESULTS / "counted.yml"
AGREE = [  # counts that do not depend on PTX or machine code: a difference is an error of one of the two
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "smsp__inst_executed_op_shared_atom.sum",
    "launch__registers_per_thread",
    "sm__maximum_warps_per_active_cycle_pct",
]
DIFFER = [  # counts that the engine takes of PTX, and Nsight Compute of machine code
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__sass_average_branch_targets_threads_uniform.pct",
]
WHY = {
    AGREE[3]: "on the H200 only, and we do not know why",
    AGREE[8]: "the driver's assembler is another version, and took 32 registers for 46",
    AGREE[9]: "follows from the registers",
    DIFFER[0]: "the assembler joins loads (LDS.128)",
    DIFFER[1]: "the assembler joins loads",
    DIFFER[2]: "the assembler joins loads",
    DIFFER[3]: "one instruction of PTX is more or fewer of machine code",
    DIFFER[4]: "what PTX branches around is predicated in machine code",
    DIFFER[5]: "branches become predicates; where no branch is left Nsight Compute prints 0, and we say 100",
}
STORED = AGREE[3]
NEARLY = 0.009  # relative: an H200 counted up to this many more or fewer store sectors, an H100 did not
# The driver's assembler took 32 registers where ours took 46.
OTHER_ASSEMBLER = {("convolution", AGREE[8]), ("convolution", AGREE[9])}
TIME, PASSES = "gpu__time_duration.sum", "SM_A.TriageCompute.l1tex__data_pipe_lsu_wavefronts.avg"
MEASURED = [  # metrics that only a GPU has
    TIME,
    PASSES,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_lookup_miss.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_ltcfabric.sum",
    "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum",
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
]
# Of these as many blocks run on the engine as fit an hour, all blocks do the same, and the distinct sectors
# are those of smaller products, continued: kernel, width of a block, size.
SAMPLED = {
    "tiles of 32, 2048": (tiled(32), 32, 1024),
    "tiles of 32, 1024": (tiled(32), 32, 1024),
    "product, whole 1024": (matmul_naive, 16, 1024),
    "product, whole 2048": (matmul_naive, 16, 2048),
    "tiles of 16, whole 1024": (tiled(16), 16, 1024),
    "tiles of 32, whole 2048": (tiled(32), 32, 2048),
    "tiles of 32, whole 4096": (tiled(32), 32, 4096),
}

# What a launch is, where profiled.yml does not say it; the engine's benchmark has its own names.
WHAT = {
    "strips, 2048": "product of 1,024 x 1,024, blocks in strips of four columns, once more",
    "tiles of 32, 1024": "product of 1,024 x 1,024 through tiles of 32 x 32",
    "tiles of 32, 2048": "product of 1,024 x 1,024 through tiles of 32 x 32, once more",
    "tiles of 32, whole 2048": "product of 2,048 x 2,048 through tiles of 32 x 32",
    "tiles of 32, whole 4096": "product of 4,096 x 4,096 through tiles of 32 x 32",
    "tiles of 16, whole 1024": "product of 1,024 x 1,024 through tiles of 16 x 16",
    "product, whole 1024": "product of 1,024 x 1,024, a thread an element, blocks of 16 x 16",
    "product, whole 2048": "product of 2,048 x 2,048, a thread an element, blocks of 16 x 16",
}


def launch_of(name: str):
    """(launcher, arguments) of a case of ``profiled``."""
    return LARGE[name]() if name in LARGE else CASES[name][1]()


def on_engine(name: str, launcher, args, arch: str = "sm_90") -> dict[str, Any]:
    """The engine's counts of a launch that counted.yml keeps."""
    profile = warplab.profile(launcher, *args, arch=arch, sample_blocks=4 if name in SAMPLED else None)
    if name in SAMPLED:
        kernel, side, n = SAMPLED[name]
        work = grown(square(kernel, side), (64, 96, 128), (3, 2), n, equal=True)
    else:
        work = LaunchWork.of(profile)
    ncu = profile.ncu()
    joined = {kind: profile.assembled.get(kind, 0) for kind in ("shared_load", "shared_store")}
    return {
        "counts": [ncu[metric] for metric in (*AGREE, *DIFFER)],
        "estimated": {kind: round(n) for kind, n in joined.items() if n},
        "work": {**vars(work), "wavefronts": round(work.wavefronts)},
    }


def read_csv(text: str) -> list[dict[str, float]]:
    """[{metric that counted.yml keeps: value}] of the launches in the output of ``ncu --csv --page raw``."""
    head, _, *rows = csv.reader(text[text.index('"ID"') :].splitlines())
    found = [dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)]
    return [{m: _number(row[m]) for m in (*AGREE, *DIFFER, *MEASURED)} for row in found]


def _number(text: str) -> float:
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


@dataclass(frozen=True)
class LaunchOnGpu:
    """A launch on a GPU: its metrics by Nsight Compute, and the engine's counts of the same launch."""

    name: str
    card: str
    sms: int
    there: dict[str, float]
    here: dict[str, float]
    estimated: dict[str, int]
    work: LaunchWork

    @property
    def bounds(self) -> Bounds:
        return bounds(self.work, self.card)

    @property
    def ratio(self) -> float:
        """The measured time over the longest bound."""
        return self.there[TIME] * 1e-9 / self.bounds.at_least


@functools.cache
def cards() -> list[dict]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))["cards"]


@functools.cache
def counted() -> tuple[LaunchOnGpu, ...]:
    """Every launch of every card."""
    engine = yaml.safe_load(FILE.read_text(encoding="utf-8"))["engine"]
    return tuple(
        LaunchOnGpu(
            name,
            card["card"],
            card["sms"],
            dict(zip(card["metrics"], values, strict=True)),
            dict(zip((*AGREE, *DIFFER), engine[name]["counts"], strict=True)),
            engine[name]["estimated"],
            LaunchWork(**engine[name]["work"]),
        )
        for card in cards()
        for name, values in card["launches"].items()
    )


def pairs(metric: str) -> list[tuple[float, float]]:
    """[(the engine's value, Nsight Compute's value)] of a metric, for each launch that has both."""
    found = [(c.here[metric], c.there[metric]) for c in counted() if metric in c.there]
    return [(here, there) for here, there in found if here or there]


def differences(name: str, here: dict[str, float], there: dict[str, float]) -> list[str]:
    """The metrics of AGREE in which a launch's two counts differ by more than the page states."""
    nearly = {metric: NEARLY if metric == STORED else 0 for metric in AGREE}
    return [
        metric
        for metric in AGREE
        if metric in there
        and abs(here[metric] - there[metric]) > nearly[metric] * here[metric]
        and (name, metric) not in OTHER_ASSEMBLER
    ]
