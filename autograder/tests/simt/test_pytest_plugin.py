"""`warplab` on its own: `pytest -p warplab.pytest_plugin` for other projects, and its README."""

import contextlib
import io
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import warplab

README = (ROOT / "autograder" / "README.md").read_text(encoding="utf-8")
OTHERS = """
import numpy as np
import pytest
from numba import cuda

if not cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2

def test_double():
    x = cuda.to_device(np.arange(32.0))
    double[1, 32](x)
    assert x.copy_to_host().sum() == 992

def test_too_far():
    double[1, 33](np.arange(32.0))
"""


@pytest.mark.slow
def test_tests_of_others_that_need_a_gpu_run_and_what_they_get_wrong_is_told(tmp_path):
    (tmp_path / "test_others.py").write_text(OTHERS)
    command = [sys.executable, "-P", "-m", "pytest", "-p", "warplab.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"warplab {warplab.__version__}: kernels run on {warplab.device()}" in done.stdout
    assert "1 failed, 1 passed" in done.stdout and "reads element [32] of argument 'x'" in done.stdout


@pytest.mark.slow
def test_numbas_simulator_is_told_to_be_switched_off(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    done = subprocess.run([sys.executable, "-c", "import warplab"], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ImportError: NUMBA_ENABLE_CUDASIM is set")


def test_the_readmes_program_prints_what_it_says():
    code = re.findall(r"```python\n(.*?)```", README, re.S)[-1]
    said = re.search(r"# (\d+)$", code.strip())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<of the README>", "exec"), {})
    assert said and out.getvalue() == f"{said[1]}\n"
