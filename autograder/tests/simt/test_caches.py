"""Kernels that were compiled once are not compiled again.

Within a process, in the next one, and whatever happens to the cache.
"""

import numpy as np
import pytest
from numba import cuda

import warplab
from warplab.simt.toolchain import disk, nvrtc

SOURCE = "__global__ void three(float *x) { x[threadIdx.x] *= 3; }"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, so an empty cache, and nothing remembered in this process."""
    monkeypatch.setenv("HOME", str(tmp_path))
    nvrtc.compile_ptx.cache_clear()
    yield tmp_path
    nvrtc.compile_ptx.cache_clear()


@pytest.fixture
def compilations(monkeypatch):
    """Names of the kernels that NVRTC has compiled."""
    names = []
    plain = nvrtc._compile
    monkeypatch.setattr(nvrtc, "_compile", lambda *args: names.append(args[-1]) or plain(*args))
    return names


def compiled(source, name, arch):
    return nvrtc.compile_ptx(nvrtc.prepare(source, name), name, arch)


def in_a_new_process():
    nvrtc.compile_ptx.cache_clear()  # what the process itself remembers; the disk stays


def test_the_second_process_finds_the_first_ones_ptx(home, compilations):
    first = compiled(SOURCE, "three", "sm_90")
    in_a_new_process()
    assert compiled(SOURCE, "three", "sm_90") == first
    assert compilations == ["three"]
    x = np.ones(4, np.float32)
    warplab.cuda_kernel(SOURCE, "three")[1, 4](x)
    assert (x == 3).all()


@pytest.mark.parametrize("source, arch", [(SOURCE + " ", "sm_90"), (SOURCE, "sm_80")])
def test_another_source_or_architecture_is_compiled(home, compilations, source, arch):
    compiled(SOURCE, "three", "sm_90")
    compiled(source, "three", arch)
    assert len(compilations) == 2


def test_a_course_with_other_headers_of_its_own_compiles_anew(home, compilations, monkeypatch):
    """Two versions of the course in one home share a cache."""
    source = "#include <stand_in.h>\n__global__ void put(float *x) { x[0] = VALUE; }"
    for value in ("1.0f", "2.0f"):
        monkeypatch.setitem(nvrtc.STAND_INS, "stand_in.h", f"#define VALUE {value}\n")
        ptx, _ = compiled(source, "put", "sm_90")
        in_a_new_process()
        assert ("1073741824" in ptx or "0f40000000" in ptx) == (value == "2.0f")
    assert len(compilations) == 2


def test_a_header_of_the_authors_own_that_changed_is_compiled_again(home, compilations, tmp_path):
    source = f'#include "{tmp_path}/factor.h"\n__global__ void scale(float *x) {{ x[0] *= FACTOR; }}'
    for factor in (3, 3, 4):
        (tmp_path / "factor.h").write_text(f"#define FACTOR {factor}")
        compiled(source, "scale", "sm_90")
        in_a_new_process()
    assert compilations == ["scale", "scale"]


@pytest.mark.parametrize("damage", ["", "[1, 2]", '["half a fi', "{}"])
def test_a_damaged_file_is_made_again(home, damage):
    assert disk.cached(("a",), lambda: ("text", "entry")) == ("text", "entry")
    (file,) = (home / ".cache" / "warplab").iterdir()
    file.write_text(damage)
    assert disk.cached(("a",), lambda: ("new", "entry")) == ("new", "entry")
    assert disk.cached(("a",), lambda: pytest.fail("it was there")) == ("new", "entry")


def test_without_a_writable_home_kernels_still_compile(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert disk.cached(("a",), lambda: ("text",)) == ("text",)


def test_a_compilers_error_is_not_kept(home):
    for _ in range(2):
        with pytest.raises(warplab.CompileError, match="expected"):
            compiled("__global__ void broken(float *x) { x[0] = }", "broken", "sm_90")
    assert not (home / ".cache").exists()


def test_a_second_launch_translates_nothing(monkeypatch):
    @cuda.jit
    def double(x):
        x[cuda.threadIdx.x] *= 2

    x = np.ones(4, np.float32)
    double[1, 4](x)
    monkeypatch.setattr(
        "warplab.simt.frontends.launch.Program", lambda *args: pytest.fail("translated again")
    )
    double[1, 4](x)
    assert (x == 4).all()
