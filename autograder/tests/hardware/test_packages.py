"""What a student's first install holds, and what is said where a cell needs more."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution

import nbformat
import pytest
from conftest import ROOT
from cuda.bindings import nvrtc
from packaging.requirements import Requirement

import warplab
from warplab.check import needs
from warplab.hardware import packages
from warplab.simt.toolchain.nvrtc import ARCHITECTURES

PROJECT = tomllib.loads((ROOT / "autograder/pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def brought_by(*extras):
    """{name: distribution} of the package's dependencies, of these extras and of all that they bring."""
    todo, seen, found = [f"warplab[{','.join(extras)}]", *PROJECT["dependencies"]], set(), {}
    while todo:
        one = Requirement(todo.pop())
        if (one.name, frozenset(one.extras)) in seen:
            continue
        seen.add((one.name, frozenset(one.extras)))
        if one.name == "warplab":
            todo += [line for extra in one.extras for line in EXTRAS[extra]]
            continue
        held = found[one.name.lower().replace("_", "-")] = distribution(one.name)
        for line in held.requires or ():
            marker = Requirement(line).marker
            if not marker or any(marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
                todo.append(line)
    return found


def megabytes(one):
    paths = [one.locate_file(file) for file in one.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


@pytest.mark.slow
def test_a_students_first_install_is_under_a_gigabyte():
    """On the disk, counted here: 928 MB in 125 packages on 2026-11-26, where it was 2,137 MB in 134."""
    found = brought_by("student")
    assert sum(map(megabytes, found.values())) < 1000
    later = {"torch", "triton", "numba-cuda-mlir", "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "jupyter-book"}
    assert {"numba-cuda", "nvidia-nvvm", "jupyterlab", "matplotlib"} <= found.keys()
    assert not later & found.keys()
    assert {"torch", "nvidia-cuda-nvrtc", "nvidia-nvjitlink"} <= brought_by("student", "torch", "cuda").keys()


def sets_that_ask():
    for path in sorted((ROOT / "exercises").glob("ps*/*.ipynb")):
        cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        yield path.parent.name, "\n".join(cells), packages.extras_in("\n".join(cells))


def test_the_first_sets_ask_for_nothing_and_who_imports_says_so_before():
    asked = {name: extras for name, _, extras in sets_that_ask()}
    assert [asked[name] for name in ("ps00", "ps01", "ps02", "ps03")] == [[]] * 4
    assert asked["ps12"] == ["torch", "triton", "cuda"]
    for name, code, extras in sets_that_ask():
        for extra in ("torch", "triton"):
            imported = re.search(rf"^\s*import {extra}\b", code, re.MULTILINE)
            assert bool(imported) == (extra in extras), name
            assert not imported or code.index("needs(") < imported.start()
        assert "cuda" in extras or "__global__" not in code, name


def test_who_lacks_something_is_told_the_command(monkeypatch):
    monkeypatch.setattr(packages, "missing", lambda extra: extra != "triton")
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as told:
        needs("torch", "triton", "cuda")
    lines = str(told.value).splitlines()
    assert told.value.name == "torch" and "need PyTorch and NVIDIA's compiler of CUDA C++, not" in lines[0]
    command = re.fullmatch(r'    %pip install "(.*)" "(.*)" --extra-index-url (.*)', lines[1])
    assert command and [command[1].split("=")[0], command[2].split("=")[0]] == ["torch", "numba-cuda[cu13]"]
    assert needs("triton") is None


WITHOUT_NVRTC = """
import numpy as np
from cuda import pathfinder
from cuda.bindings import nvrtc
plain = pathfinder.load_nvidia_dynamic_lib
def absent(name="nvrtc"):
    if name == "nvrtc":
        raise pathfinder.DynamicLibNotFoundError("none here")
    return plain(name)
pathfinder.load_nvidia_dynamic_lib = absent
nvrtc.nvrtcVersion = nvrtc.nvrtcGetSupportedArchs = absent
import warplab
from numba import cuda
@cuda.jit
def double(x):
    x[cuda.threadIdx.x] *= 2
x = np.arange(32, dtype=np.float32)
print(warplab.profile(double[1, 32], x).global_load.requests, x[31])
try:
    warplab.cuda_kernel('extern "C" __global__ void f(float *x) { x[0] = 1; }', "f")[1, 1](x)
except warplab.CompileError as problem:
    print(problem)
"""


@pytest.mark.slow
def test_numbas_kernels_run_without_nvrtc_and_cuda_cpp_says_what_it_needs():
    done = subprocess.run([sys.executable, "-c", WITHOUT_NVRTC], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "62.0" in done.stdout and "which is not installed here" in done.stdout
    assert '%pip install "numba-cuda[cu13]' in done.stdout


def test_nvrtc_compiles_for_the_architectures_that_stand_in_for_its_answer():
    assert nvrtc.nvrtcGetSupportedArchs()[1] == list(ARCHITECTURES)


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="this machine has a GPU")
def test_on_a_gpu_without_what_kernels_on_it_need_the_engine_is_offered(monkeypatch):
    from warplab.hardware import device

    monkeypatch.setattr(device, "_cuda_present", lambda: True)
    monkeypatch.setattr(packages, "missing", lambda extra: True)
    monkeypatch.delenv("WARPLAB_DEVICE", raising=False)
    with pytest.raises(device.DeviceError, match=r"%pip install .*WARPLAB_DEVICE=simt before"):
        device.device.__wrapped__()
