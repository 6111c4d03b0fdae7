"""Kernels of numba-cuda-mlir, numba-cuda's successor, on the engine: `warplab[mlir]`."""

import re
import warnings

import numpy as np
import pytest
import torch
from corpus_files import SOLUTIONS, cells_for

import warplab
from warplab.simt.frontends import mlir_hook
from warplab.tasks import registry
from warplab.tasks.feedback import report_on
from workshop.mutants.notebook_cells import run_cells

pytest.importorskip("numba_cuda_mlir")

from numba import cuda as numba_cuda
from numba_cuda_mlir import cuda
from numba_cuda_mlir.types import float32

TILE = 8
#: Rows of counted instructions that lose a little: the successor's compiler makes a seventh more of them.
PARTIAL = {"ps08/fused_bias_gelu": ["single"]}
IMPORT = re.compile(r"^from numba import cuda(?:, (.*))?$", re.M)


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def scaled(x, pair, factor, count, out):
    i = cuda.grid(1)
    if i < count:
        out[i] = x[i] * factor + pair[0][i] * pair[1]


@cuda.jit
def reversed_tile(x, out, wait):
    tile = cuda.shared.array((TILE, TILE), float32)
    i, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[row, i] = x[row, i]
    if wait:
        cuda.syncthreads()
    out[row, i] = tile[TILE - 1 - row, i]


@cuda.jit
def past_the_end(x):
    x[cuda.grid(1), 1] = 1


@cuda.jit(debug=True, opt=False)
def large(x):
    if x[cuda.grid(1)] <= 3:
        raise ValueError()


@cuda.jit
def unknown(x):
    x[0] = rbg  # noqa: F821


def floats(n):
    return np.arange(n, dtype=np.float32)


@pytest.mark.slow
def test_numpy_arrays_device_arrays_and_tensors_may_be_mixed():
    a, out = floats(100), np.zeros(100, np.float32)
    add[4, 32](a, cuda.to_device(a), out)
    assert (out == 2 * a).all()
    tensor = torch.zeros(10, 20)[:, ::2].T[0]  # a view with strides of its own, as CUDA takes it
    add[1, 32](torch.ones(10), cuda.to_device(floats(10)), tensor)
    assert tensor.tolist() == [1 + i for i in range(10)]
    assert torch.as_tensor(cuda.to_device(a)).sum() == a.sum()


def test_numbers_and_tuples_become_the_parameters_that_the_native_launcher_passes():
    x, out = floats(40), np.zeros(40, np.float32)
    scaled[2, 32](x, (cuda.to_device(x), np.float32(0.5)), 2.0, np.int64(33), out)
    assert (out[:33] == 2.5 * x[:33]).all() and not out[33:].any()


def test_elements_of_two_bytes_lie_two_bytes_apart():
    x, out = torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16), floats(4)

    @cuda.jit
    def widened(x, out):
        i = cuda.grid(1)
        out[i] = float32(x[i])

    widened[1, 4](x, out)
    assert out.tolist() == [1, 2, 3, 4]


def test_records_go_there_and_back():
    kind = np.dtype([("a", np.float32), ("b", np.int64)], align=True)
    record = np.zeros(1, kind)[0]
    record["a"] = 2

    @cuda.jit
    def doubled(r):
        r.b = np.int64(r.a) * 2

    doubled[1, 1](record)
    assert record["b"] == 4


def test_what_stands_in_for_the_driver_is_the_librarys_own_and_both_libraries_share_the_memory():
    from numba_cuda_mlir.numba_cuda.cudadrv import driver

    assert isinstance(driver.driver, mlir_hook.DriverCalls)
    assert cuda.get_current_device().compute_capability == warplab.device().target.capability
    first = numba_cuda.to_device(floats(8))
    assert (cuda.as_cuda_array(first).copy_to_host() == floats(8)).all()
    with pytest.raises(TypeError, match="invalid type"):  # as on a GPU
        add[1, 8](first, first, first)


def test_a_sample_of_the_blocks_runs_on_copies_of_the_librarys_own():
    a, out = cuda.to_device(floats(256)), cuda.to_device(np.zeros(256, np.float32))
    assert warplab.profile(add[8, 32], a, a, out, sample_blocks=2).global_store.requests == 8
    assert not out.copy_to_host().any()


def test_messages_name_the_line_the_array_and_the_argument():
    tile = np.zeros((TILE, TILE), np.float32)
    with pytest.raises(warplab.SharedRace, match=r"test_mlir\.py.* reads tile\[7, 0\]"):
        reversed_tile[1, (TILE, TILE)](tile, tile.copy(), False)
    with pytest.raises(warplab.OutOfBounds, match=r"element \[9, 1\] of argument 'x' \(float32\[9, 2\]\)"):
        past_the_end[1, 10](np.zeros((9, 2), np.float32))
    with pytest.raises(ValueError, match="at least the griddim and blockdim"):
        add[1]
    with pytest.raises(warplab.InvalidLaunch, match="the limit is 1024"):
        add[1, 2048](floats(4), floats(4), floats(4))
    with pytest.raises(warplab.InvalidLaunch, match="argument 'x' is a list"):
        past_the_end[1, 1]([1.0])
    with pytest.raises(warplab.InvalidLaunch, match="missing a required argument: 'out'"):
        add[1, 1](floats(4), floats(4))
    with pytest.raises(warplab.InvalidLaunch, match="out is given by name"):
        add[1, 1](floats(4), floats(4), out=floats(4))
    with pytest.raises(warplab.InvalidLaunch, match="requires a gradient"):
        add[1, 1](torch.ones(4, requires_grad=True), floats(4), floats(4))


def test_what_does_not_compile_is_told_in_words_with_the_line():
    with pytest.raises(Exception, match="rbg") as caught:
        unknown[1, 1](floats(1))
    told = caught.value._render_traceback_()[-1]
    assert "`rbg` is not defined" in told and "`x[0] = rbg" in told


def test_what_a_kernel_for_debugging_raises_is_raised():
    large[1, 4](floats(8)[4:])
    with pytest.raises(ValueError, match="Invalid value in kernel"):
        large[1, 8](floats(8))
    large[1, 4](floats(8)[4:])


def test_a_launch_that_failed_copies_nothing_back_after_the_next():
    x = np.zeros((9, 2), np.float32)
    with pytest.raises(warplab.OutOfBounds):
        past_the_end[1, 10](x)
    x = np.full((10, 2), 5, np.float32)
    past_the_end[1, 10](x)
    assert x.sum() == 10 * (5 + 1)


def test_counts_are_those_of_the_same_kernel_by_numba_cuda():
    """By hand: 4 warps with two loads and a store each, of 128 bytes or 4 sectors."""
    a = floats(128)
    theirs = numba_cuda.jit(_with_numba(add.py_func))
    for kernel in (add, theirs):
        counted = warplab.profile(kernel[4, 32], a, a, a.copy())
        assert (counted.global_load.requests, counted.global_load.sectors) == (8, 32)
        assert (counted.global_store.requests, counted.global_store.sectors) == (4, 16)


def _with_numba(function):
    return type(function)(function.__code__, function.__globals__ | {"cuda": numba_cuda}, function.__name__)


@pytest.mark.slow
def test_code_for_another_architecture_is_made_beside_that_of_the_device():
    a = floats(32)
    assert "sm_80" in str(warplab.machine_code(add, a, a, a, arch="sm_80"))
    assert warplab.profile(add[1, 32], a, a, a.copy(), arch="sm_80").arch == "sm_80"
    assert warplab.profile(add[1, 32], a, a, a.copy()).arch == warplab.device().target.arch


def of_mlir(source):
    """A cell of the course with the successor's import in the place of numba's."""

    def instead(found):
        names = f"; from numba_cuda_mlir.types import {found[1]}" if found[1] else ""
        return f"from numba_cuda_mlir import cuda{names}"

    return IMPORT.sub(instead, source)


def of_numba():
    """The tasks whose reference solutions are kernels of numba-cuda."""
    names = (name for problem_set in sorted(SOLUTIONS) for name in registry.names(problem_set))
    for name in names:
        try:
            cells = cells_for(name)
        except KeyError:
            continue
        if "@cuda.jit" in cells[-1]:
            yield name


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [*of_numba()])
def test_the_reference_solutions_earn_every_point_with_the_successors_import(name):
    namespace = run_cells([of_mlir(cell) for cell in cells_for(name)], SOLUTIONS[name.split("/")[0]])
    task = registry.get(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = report_on(name, namespace[task.entry], namespace.get(task.plan_entry), seed=0)
    lost = [line.key for line in report.lines if line.state in ("partial", "lost")]
    assert lost == PARTIAL.get(name, []), report.as_dict()["lines"]
