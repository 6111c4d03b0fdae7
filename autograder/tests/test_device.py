"""Which device: detection, forcing, and errors that say what to do."""

import os
import subprocess
import sys

import pytest
import warplab


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_the_engine_can_be_forced():
    run = python("import warplab; print(warplab.device().kind, warplab.torch_device, warplab.device().arch)", WARPLAB_DEVICE="simt")
    assert run.stdout.split() == ["simt", "cpu", "sm_90"]


def test_another_architecture_can_be_chosen():
    run = python(
        "import warplab; print(warplab.device().arch, warplab.device().limits.max_shared_per_block)",
        WARPLAB_DEVICE="simt",
        WARPLAB_ARCH="sm_80",
    )
    assert run.stdout.split() == ["sm_80", str(163 * 1024)]


@pytest.mark.parametrize(
    "environment, message",
    [({"WARPLAB_DEVICE": "gpu"}, "must be simt or cuda"), ({"WARPLAB_ARCH": "sm_12", "WARPLAB_DEVICE": "simt"}, "WARPLAB_ARCH=sm_12")],
)
def test_a_wrong_setting_is_named(environment, message):
    run = python("import warplab", **environment)
    assert run.returncode and message in run.stderr.splitlines()[-1]


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="this machine has a GPU")
def test_cuda_forced_without_a_gpu_says_so():
    run = python("import warplab", WARPLAB_DEVICE="cuda")
    assert "this machine has no NVIDIA GPU" in run.stderr.splitlines()[-1]


def test_limits_are_those_of_the_registry():
    limit = warplab.device().limits
    assert (limit.max_threads_per_block, limit.max_block_dim, limit.max_grid_dim[0]) == (1024, (1024, 1024, 64), 2**31 - 1)


def test_importing_warplab_does_not_start_cuda_and_survives_a_fork():
    run = python("import os, warplab, numpy as np\npid = os.fork()\nif pid == 0:\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])")
    assert run.stdout.strip().splitlines()[-1] == "0", run.stderr
