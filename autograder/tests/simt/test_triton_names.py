"""The canary: fails first when Triton moves a name that the hook leans on; and nobody else names them."""

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import warplab
from warplab.simt.frontends import triton_hook

PACKAGE = Path(warplab.__file__).parent
HOOK = PACKAGE / "simt" / "frontends" / "triton_hook.py"


def test_the_version_is_the_pinned_one():
    pytest.importorskip("triton")
    pinned = [
        line.split("==")[1].split()[0]
        for line in (PACKAGE.parents[1] / "requirements.txt").read_text().splitlines()
        if line.startswith("triton==")
    ]
    assert [version("triton")] == pinned


def test_names_that_the_hook_leans_on():
    pytest.importorskip("triton")
    from triton import knobs, testing
    from triton.backends.nvidia import compiler as nvidia
    from triton.backends.nvidia import driver as cuda
    from triton.compiler import compiler
    from triton.runtime import autotuner

    assert hasattr(knobs.runtime, "add_stages_inspection_hook") and hasattr(knobs.runtime, "scope")
    stages = inspect.getsource(nvidia.CUDABackend.add_stages)
    assert stages.index('stages["cubin"]') < stages.index("add_stages_inspection_hook(self, stages")
    made = inspect.getsource(compiler.make_backend)
    assert "for x in backends.values() if x.compiler.supports_target(target)" in made
    assert "actives[0](target)" in made
    asked = inspect.getsource(compiler.CompiledKernel)
    for call in (
        "launcher_cls(self.src, self.metadata)",
        "utils.load_binary(",
        "get_current_target().warp_size",
    ):
        assert call in asked
    assert list(inspect.signature(cuda.CudaLauncher.__call__).parameters)[1:] == [
        *("gridX", "gridY", "gridZ", "stream", "function", "kernel_metadata", "launch_metadata"),
        *("launch_enter_hook", "launch_exit_hook", "args"),
    ]
    assert cuda.CudaDriver.map_python_to_cpp_type(None, "*fp32") == "CUdeviceptr"
    assert "get_device_interface()" in inspect.getsource(testing.do_bench)
    assert "get_benchmarker()" in inspect.getsource(autotuner.Autotuner.do_bench.func)


def test_a_launcher_is_known_by_its_name_and_holds_its_kernel():
    triton = pytest.importorskip("triton")

    @triton.jit
    def nothing():
        pass

    assert (
        triton_hook.is_triton_launch(nothing[(1,)]) and triton_hook.name_of_launch(nothing[(1,)]) == "nothing"
    )
    assert not triton_hook.is_triton_launch(nothing) and not triton_hook.is_triton_launch(lambda: None)


def test_a_tensor_descriptor_has_the_parameters_that_triton_makes_of_it():
    pytest.importorskip("triton")
    from triton.backends.nvidia import driver as cuda
    from triton.tools.tensor_descriptor import TensorDescriptor

    descriptor = TensorDescriptor.from_tensor(torch.zeros(8, 16), [4, 16])
    types, values = zip(*triton_hook._of_descriptor(descriptor), strict=True)
    made = cuda.expand_signature(["tensordesc<fp32[4, 16]>"], None)
    assert [*types] == ["*i8", *made[1:]] and made[0] == "*fp32"
    assert [*values[1:]] == cuda.make_tensordesc_arg(descriptor, None)[1:]
    assert values[0] is descriptor.base


def test_only_the_hook_names_triton():
    names = re.compile(r"^\s*(import|from) triton\b", re.M)
    assert [path for path in PACKAGE.rglob("*.py") if names.search(path.read_text("utf-8"))] == [HOOK]


def run(code, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "WARPLAB_DEVICE": "simt", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_import_of_warplab_imports_no_triton():
    assert run("import sys, warplab; print('triton' in sys.modules)") == ["False"]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import warplab, triton", "import triton, warplab"])
def test_either_import_may_come_first(first):
    pytest.importorskip("triton")
    told = run(f"{first}; print(type(triton.runtime.driver.active).__name__)")
    assert told == ["TritonDriver"]


def test_looking_for_triton_without_importing_it_leaves_the_hook_in_place():
    pytest.importorskip("triton")
    look = "import importlib.util, warplab; importlib.util.find_spec('triton')"
    told = run(f"{look}; import triton; print(type(triton.runtime.driver.active).__name__)")
    assert told == ["TritonDriver"]


def test_on_cuda_triton_is_left_alone_and_profile_gives_it_back(monkeypatch):
    """What install_when_imported would do is not done; while a launch is counted the driver is ours."""
    pytest.importorskip("triton")
    from triton import knobs
    from triton.runtime import driver

    ours = object()
    monkeypatch.setattr(driver, "_active", ours)
    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", None)
    seen = []

    def launcher():
        seen.append((type(driver.active).__name__, knobs.runtime.add_stages_inspection_hook is not None))

    assert triton_hook.launch_on_engine(launcher, (), {}, lambda grid, block: None) == []
    assert seen == [("TritonDriver", True)]
    assert driver._active is ours and knobs.runtime.add_stages_inspection_hook is None
    source = inspect.getsource(warplab._start)
    assert source.index('"simt"') < source.index("_triton_hook") < source.index("else")
