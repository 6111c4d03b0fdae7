"""The engine's findings against compute-sanitizer's: the same faulty kernels, the same verdicts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_kernels import FAULTS

CHILD = Path(__file__).with_name("faulty_kernels.py")
TOOLS = ("memcheck", "racecheck")


def launched(*before, name, device):
    environment = os.environ | {"WARPLAB_DEVICE": device, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [*before, sys.executable, str(CHILD), name],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_engine_names_the_fault(name):
    wanted = FAULTS[name][2]
    done = launched(name=name, device="simt")
    assert (done.returncode, done.stdout.strip()) == ((9, wanted) if wanted else (0, "")), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", FAULTS)
def test_compute_sanitizer_agrees(name, tool, record_property):
    if shutil.which("compute-sanitizer") is None:
        pytest.skip("compute-sanitizer is not on the PATH")
    done = launched("compute-sanitizer", "--tool", tool, "--error-exitcode", "9", name=name, device="cuda")
    if "not supported" in done.stdout:
        pytest.skip(f"compute-sanitizer cannot look at this device: {done.stdout.strip().splitlines()[-1]}")
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "nothing"
    record_property(tool, last)
    assert (done.returncode != 0) == (FAULTS[name][1] == tool), done.stdout
