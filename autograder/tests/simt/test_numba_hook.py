"""The canary: fails first when numba-cuda moves a private name that the hook leans on.

And the host API on the engine.
"""

import subprocess
import sys

import numba_cuda
import numpy as np
import pytest
import torch
from numba import cuda
from numba.cuda import types
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaPerformanceWarning
from numba.cuda.cudadrv import driver

import warplab
from warplab.simt.frontends import numba_hook
from warplab.simt.frontends.space import SPACE

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the hook is not installed where there is CUDA"
)


def test_numba_cuda_is_the_version_the_hook_was_written_for():
    assert numba_cuda.__version__ == "0.30.4"


def test_the_engine_stands_in_the_drivers_place():
    assert type(driver.driver) is numba_hook.EngineDriver


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit("void(float32[:, ::1], int32)")
def declared(x, n):
    x[0, 1] = n


@pytest.mark.parametrize(
    "arguments, told, instead",
    [
        ((np.zeros((2, 2)), 1), "'x' is array(float64, 2d, C), and the", "x.astype(np.float32)"),
        ((torch.zeros(2, 2).double(), 1), "'x' is array(float64, 2d, C), and the", "x.astype(np.float32)"),
        ((np.zeros((2, 2), np.int32), 1), "'x' is array(int32, 2d, C), and the", "x.astype(np.float32)"),
        ((np.zeros((2, 2), "f4", "F"), 1), "'x' is array(float32, 2d, F)", "np.ascontiguousarray(x)"),
        ((np.zeros(4, np.float32), 1), "'x' is array(float32, 1d, C)", "leave the signature out"),
        ((1.5, 1), "'x' is float64, and the kernel's signature says array", "leave the signature out"),
        ((np.zeros((2, 2), np.float32),), "1 arguments for a kernel that takes 2", ""),
        (([[0.0, 0.0]], 1), "argument 'x' is a list, and a kernel takes arrays", "np.array(values"),
    ],
)
def test_what_does_not_fit_the_one_signature_is_refused_and_not_read_as_other_bytes(arguments, told, instead):
    for call in (declared[1, 1], lambda *given: warplab.profile(declared[1, 1], *given)):
        with pytest.raises(warplab.InvalidLaunch) as refused:
            call(*arguments)
        assert told in str(refused.value) and instead in refused.value.hint


def test_what_fits_the_one_signature_runs():
    for x in (np.zeros((2, 2), np.float32), cuda.to_device(np.zeros((2, 2), np.float32)), torch.zeros(2, 2)):
        declared[1, 1](x, True)
        assert x[0, 1] == 1
    x = np.zeros((2, 2), np.float32)
    declared[1, 1](cuda.InOut(x), np.uint8(7))
    assert x[0, 1] == 7

    @cuda.jit(types.void(types.CPointer(types.float32), types.UniTuple(types.int32, 2)))
    def by_address(p, pair):
        p[0] = pair[0] - pair[1]

    there = cuda.to_device(x)
    by_address[1, 1](there.device_ctypes_pointer, (9, 4))
    assert there[0, 0] == 5


def test_lists_names_and_fractions_of_blocks_are_refused_in_words():
    with pytest.raises(warplab.InvalidLaunch, match="argument 'x' is a list, and a kernel takes arrays"):
        double[1, 4]([1.0, 2.0])
    with pytest.raises(warplab.InvalidLaunch, match="arguments by their places, and x is given by name"):
        double[1, 4](x=np.zeros(4))
    with pytest.raises(TypeError, match="griddim must be a sequence of integers") as refused:
        double[10 / 4, 4](np.zeros(10))
    led, told = refused.value._render_traceback_()
    assert "double[10 / 4, 4]" in led and told.endswith("-(-n // 256) is n / 256 rounded up, a whole number")


def test_a_device_says_what_its_architecture_has_and_where_a_cards_numbers_are():
    device, limits = cuda.get_current_device(), numba_hook.numba_driver.driver.target.limits
    assert device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR == limits.shared_per_sm
    assert device.compute_capability == (device.COMPUTE_CAPABILITY_MAJOR, device.COMPUTE_CAPABILITY_MINOR)
    assert device.TOTAL_CONSTANT_MEMORY == 65536
    with pytest.raises(AttributeError, match=r"attribute CLOCK_RATE.*warplab\.specs\.get"):
        device.CLOCK_RATE  # noqa: B018


def test_a_kernel_without_a_source_is_compiled_without_a_word():
    """In a process of its own: pytest has filters of warnings of its own."""
    text = (
        "import warplab, numpy; from numba import cuda; print(cuda.reduce(lambda a, b: a + b)(numpy.ones(9)))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert done.stdout.endswith("9.0\n") and "Warning" not in done.stderr


def test_freed_device_memory_is_given_back():
    pending = cuda.current_context().memory_manager.deallocations
    pending.clear()
    before = len(SPACE.regions)
    d = cuda.to_device(np.zeros(1000))
    assert len(SPACE.regions) == before + 1
    del d
    pending.clear()
    assert len(SPACE.regions) == before


def test_streams_synchronise():
    stream = cuda.stream()
    d = cuda.to_device(np.ones(4, np.float32), stream=stream)
    double[1, 32, stream](d)
    stream.synchronize()
    cuda.synchronize()
    assert (d.copy_to_host(stream=stream) == 2).all()


def test_events_order_work_but_have_no_times():
    start, end = cuda.event(), cuda.event()
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(NotImplementedError, match="no event times"):
        start.elapsed_time(end)


def test_mapped_and_pinned_host_arrays_are_arguments():
    mapped, pinned = cuda.mapped_array(4, np.float32), cuda.pinned_array(4, np.float32)
    mapped[:] = pinned[:] = 3
    double[1, 32](mapped)
    double[1, 32](pinned)
    assert (mapped == 6).all() and (pinned == 6).all()


def test_memory_that_nobody_wrote_is_not_zero():
    assert np.isnan(cuda.device_array(4, np.float32).copy_to_host()).all()


def test_what_the_engine_has_not_says_that_it_needs_a_gpu():
    with pytest.raises(NotImplementedError, match="cuIpcGetMemHandle is not available on the SIMT engine"):
        cuda.to_device(np.zeros(4)).get_ipc_handle()


@cuda.jit
def lengths(out, nested):
    out[0] = len(nested)
    out[1] = len(nested[0])


def test_a_tuple_of_empty_tuples_is_an_argument_although_line_information_is_asked_for():
    out = np.full(2, 9)
    lengths[1, 1](out, ((), (), ()))
    assert out.tolist() == [3, 0]


@cuda.jit
def not_written_yet(out):
    """A stub, with nothing but what it should do."""


def test_a_kernel_that_is_only_a_docstring_runs_and_does_nothing():
    out = np.full(4, 9)
    not_written_yet[1, 4](out)
    assert out.tolist() == [9, 9, 9, 9]


def test_copies_of_host_arrays_are_warned_of_only_where_somebody_asks(monkeypatch, recwarn):
    host, there = np.ones(4, np.int64), cuda.to_device(np.ones(4, np.int64))
    lengths[1, 1](host, ((1,),))
    assert not [w for w in recwarn if "Host array" in str(w.message)]
    monkeypatch.setattr(config, "CUDA_WARN_ON_IMPLICIT_COPY", 1)
    lengths[1, 1](there, ((1,),))
    assert not [w for w in recwarn if "Host array" in str(w.message)]
    with pytest.warns(
        NumbaPerformanceWarning, match="Host array used in CUDA kernel will incur copy overhead"
    ):
        lengths[1, 1](host, ((1,),))
