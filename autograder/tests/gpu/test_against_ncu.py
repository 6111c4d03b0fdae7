"""The engine's counters against Nsight Compute's, metric by metric, on a CUDA machine that has ncu.

Counters are of PTX; ncu's are of the assembled code. Global requests and sectors must
agree exactly on these kernels; the others are printed side by side, because the
assembler may join shared loads (LDS.128) or predicate a branch away.
"""

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warplab

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_engine import cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu (Nsight Compute) is not on the PATH"),
]
MUST_AGREE = [
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
]
SHOWN = [
    *MUST_AGREE,
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__sass_average_branch_targets_threads_uniform.pct",
    "launch__registers_per_thread",
]


@pytest.fixture(scope="module")
def measured():
    """Kernel name -> metric -> value, as ncu prints them."""
    child = Path(__file__).with_name("kernels_under_ncu.py")
    command = [
        "ncu",
        "--csv",
        "--clock-control",
        "none",
        "--metrics",
        ",".join(SHOWN),
        sys.executable,
        str(child),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    start = run.stdout.find('"ID"')
    if run.returncode or start < 0:
        pytest.skip(f"ncu cannot read counters here: {(run.stdout + run.stderr).strip().splitlines()[-1:]}")
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(run.stdout[start:])):
        found.setdefault(row["Kernel Name"], {})[row["Metric Name"]] = float(
            row["Metric Value"].replace(",", "")
        )
    return found


@pytest.mark.parametrize("number", range(len(cases())), ids=[c[0].py_func.__name__ for c in cases()])
def test_global_requests_and_sectors_agree(measured, number, record_property):
    kernel, grid, block, args = cases()[number]
    name = kernel.py_func.__name__
    ncu = next((values for full, values in measured.items() if name in full), None)
    assert ncu is not None, f"ncu saw no kernel {name}; it saw {sorted(measured)}"
    ours = warplab.profile(kernel[grid, block], *args, arch=warplab.device().arch).ncu()
    print(f"\n{name}")
    for metric in SHOWN:
        here, there = ours.get(metric, float("nan")), ncu.get(metric, float("nan"))
        record_property(metric, f"engine {here:.10g}, ncu {there:.10g}")
        print(
            f"  {metric:<58}{ours.get(metric, float('nan')):>16,.2f} engine "
            f"{ncu.get(metric, float('nan')):>16,.2f} ncu"
        )
    for metric in MUST_AGREE:
        assert ours[metric] == ncu[metric], metric
