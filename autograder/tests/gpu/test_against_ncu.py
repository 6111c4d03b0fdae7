"""The engine's counters against Nsight Compute's, metric by metric, on a CUDA machine that has ncu.

Counters are of PTX; ncu's are of the assembled code. What the assembler cannot change must agree; the others
are printed side by side. tests/evidence/test_counted.py holds the same of the runs that counted.yml keeps.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warplab
from warplab.figures.counted import AGREE, DIFFER, differences, read_csv

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_engine import cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu (Nsight Compute) is not on the PATH"),
]


@pytest.fixture(scope="module")
def measured():
    """The launches' metrics in the order of ``cases``, as ncu prints them."""
    child = Path(__file__).with_name("kernels_under_ncu.py")
    command = ["ncu", "--csv", "--page", "raw", "--set", "full", "--clock-control", "none"]
    run = subprocess.run([*command, sys.executable, str(child)], capture_output=True, text=True, timeout=600)
    if run.returncode or '"ID"' not in run.stdout:
        pytest.skip(f"ncu cannot read counters here: {(run.stdout + run.stderr).strip().splitlines()[-1:]}")
    return read_csv(re.sub("^==.*\n", "", run.stdout, flags=re.M))


@pytest.mark.parametrize("number", range(len(cases())), ids=[c[0].py_func.__name__ for c in cases()])
def test_what_machine_code_does_not_change_agrees(measured, number, record_property):
    kernel, grid, block, args = cases()[number]
    name, ncu = kernel.py_func.__name__, measured[number]
    assert len(measured) == len(cases()), "a launch is missing, or one too many"
    ours = warplab.profile(kernel[grid, block], *args, arch=warplab.device().arch).ncu()
    print(f"\n{name}")
    for metric in (*AGREE, *DIFFER):
        record_property(metric, f"engine {ours[metric]:.10g}, ncu {ncu[metric]:.10g}")
        print(f"  {metric:<58}{ours[metric]:>16,.2f} engine {ncu[metric]:>16,.2f} ncu")
    assert differences(name, ours, ncu) == []
