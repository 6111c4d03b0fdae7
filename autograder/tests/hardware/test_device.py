"""Which device: detection, forcing, and errors that say what to do."""

import os
import subprocess
import sys

import pytest

import warplab
from warplab.hardware import specs
from warplab.hardware.device import processor
from warplab.hardware.target import Target


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.slow
def test_the_engine_can_be_forced_and_another_architecture_chosen():
    ask = "import warplab; d = warplab.device()\n"
    ask += "print(d.kind, warplab.torch_device, d.arch, d.limits.max_shared_per_block)"
    run = python(ask, WARPLAB_DEVICE="simt", WARPLAB_ARCH="sm_80")
    assert run.stdout.split() == ["simt", "cpu", "sm_80", str(163 * 1024)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment, message",
    [
        ({"WARPLAB_DEVICE": "gpu"}, "must be simt or cuda"),
        ({"WARPLAB_ARCH": "sm_12", "WARPLAB_DEVICE": "simt"}, "WARPLAB_ARCH=sm_12"),
    ],
)
def test_a_wrong_setting_is_named(environment, message):
    run = python("import warplab", **environment)
    assert run.returncode and message in run.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(warplab.device().kind == "cuda", reason="this machine has a GPU")
def test_cuda_forced_without_a_gpu_says_so():
    run = python("import warplab", WARPLAB_DEVICE="cuda")
    assert "this machine has no NVIDIA GPU" in run.stderr.splitlines()[-1]


def test_limits_are_those_of_the_registry():
    limit = warplab.device().limits
    assert (limit.max_threads_per_block, limit.max_block_dim) == (1024, (1024, 1024, 64))
    assert limit.max_grid_dim[0] == 2**31 - 1


@pytest.mark.slow
def test_importing_warplab_loads_little_makes_no_driver_call_and_survives_a_fork():
    code = """
import sys
from cuda.bindings import driver
calls = []
for name in [name for name in dir(driver) if name.startswith("cu") and name[2:3].isupper()]:
    setattr(driver, name, lambda *args, name=name: calls.append(name))
import os, warplab
loaded = {"torch", "matplotlib"} & set(sys.modules)
import warplab.tasks.feedback
pid = os.fork()
if pid == 0:
    os._exit(0)
print(calls, loaded | {"jinja2"} & set(sys.modules), os.waitpid(pid, 0)[1])
"""
    run = python(code)
    assert run.stdout.splitlines()[-1] == "[] set() 0", run.stderr


@pytest.mark.parametrize("arch", specs.archs())
def test_a_target_has_the_limits_of_its_architecture(arch):
    target, spec = Target.of(arch), specs.for_arch(arch)
    assert f"{target.capability[0]}.{target.capability[1]}" == spec["compute_capability"].value
    kept = spec["shared_memory_per_sm"].value - spec["max_shared_memory_per_block"].value
    assert target.limits.reserved_shared == 1024 * kept == (0 if target.capability < (8, 0) else 1024)
    assert target.gpu == spec.short


def test_a_target_for_a_gpu_that_is_here_has_its_name():
    assert Target.of("sm_80", "NVIDIA A100").gpu == "NVIDIA A100"


def test_the_processor_has_a_name():
    assert processor()
