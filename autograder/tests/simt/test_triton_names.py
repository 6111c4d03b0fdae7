"""How the hook and Triton find each other: whichever is imported first, by nobody else, and not on CUDA."""

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_an_import_of_warplab_imports_no_triton():
    assert run("import sys, warplab; print('triton' in sys.modules)") == ["False"]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import warplab, triton", "import triton, warplab"])
def test_either_import_may_come_first(first):
    pytest.importorskip("triton")
    told = run(f"{first}; print(type(triton.runtime.driver.active).__name__)")
    assert told == ["TritonDriver"]


@pytest.mark.slow
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
