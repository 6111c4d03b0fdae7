"""Libraries for GPUs that are not installed, and NVIDIA's driver: their errors say what runs on the engine.

And the canary for the private names that ``absent.py`` leans on.
"""

import importlib.util
import subprocess
import sys

import pytest

import warplab
from warplab.simt.frontends import absent

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="nothing is installed where there is CUDA"
)


@pytest.mark.parametrize(
    "statement, instead",
    [
        ("import cupy as cp", "write `import numpy as cp`"),
        ("from cupyx.scipy import sparse", "warplab.cuda_kernel(source, name)"),
        ("import pycuda.autoinit", "SourceModule(source)"),
    ],
)
def test_who_imports_a_library_for_gpus_is_told_what_to_write(statement, instead):
    name = statement.split()[1].split(".")[0]
    if importlib.util.find_spec(name):
        pytest.skip(f"{name} is installed here")
    with pytest.raises(ModuleNotFoundError) as raised:
        exec(statement)
    assert raised.value.name == name and instead in str(raised.value)
    assert str(raised.value).startswith(f"No module named {name!r}\n")  # Python's own words stand before it


def test_who_only_looks_whether_it_is_there_is_told_that_it_is_not():
    assert any(isinstance(finder, absent._LastFinder) for finder in sys.meta_path)
    for name in [*absent.INSTEAD, "not_there"]:
        importlib.util.find_spec(name)  # no error: libraries ask so whether they may use CuPy


def test_cuda_core_asks_for_a_driver_and_is_told_what_runs_here():
    """In a process of its own: cuda.bindings' lock may stay closed behind an error."""
    ask = "import warplab\nfrom cuda.core import Device\nDevice()"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=100)
    if not done.returncode:
        pytest.skip("here is a driver")
    assert done.stderr.strip().endswith(absent.DRIVER)
