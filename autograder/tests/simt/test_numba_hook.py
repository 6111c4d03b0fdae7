"""The canary: fails first when numba-cuda moves a private name that the hook leans on.

And the host API on the engine.
"""

import inspect

import numba_cuda
import numpy as np
import pytest
import torch
from numba import cuda
from numba.cuda import codegen, debuginfo, dispatcher
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaPerformanceWarning
from numba.cuda.cudadrv import devices, driver
from numba.cuda.memory_management import nrt

import warplab
from warplab.simt.frontends import numba_hook
from warplab.simt.frontends.space import SPACE

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the hook is not installed where there is CUDA"
)


def test_numba_cuda_is_the_version_the_hook_was_written_for():
    assert numba_cuda.__version__ == "0.30.4"


def test_the_private_names_are_where_the_hook_expects_them():
    assert list(inspect.signature(numba_hook._original["init"]).parameters) == [
        "self",
        "py_func",
        "targetoptions",
        "pipeline_class",
    ]
    assert list(inspect.signature(dispatcher._Kernel.launch).parameters)[1:] == [
        "args",
        "griddim",
        "blockdim",
        "stream",
        "sharedmem",
    ]
    for owner, name in [
        (driver, "driver"),
        (devices, "driver"),
        (driver, "ExperimentalDevice"),
        (driver, "make_logger"),
        (dispatcher._Kernel, "bind"),
        (dispatcher.CUDADispatcher, "call"),
        (dispatcher, "_LaunchConfiguration"),
        (codegen.CUDACodeLibrary, "get_cufunc"),
        (codegen.CUDACodeLibrary, "get_ltoir"),
        (debuginfo.DIBuilder, "_var_type"),
        (driver, "_to_core_stream"),
        (driver.Stream, "_stream_callback"),
        (nrt._Runtime, "_single_thread_launch"),
        (nrt, "_nrt_mstats"),
    ]:
        assert hasattr(owner, name), f"{owner.__name__}.{name}"
    assert type(driver.driver) is numba_hook.EngineDriver


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def test_device_arrays_are_copied_there_and_back():
    x = np.arange(10, dtype=np.float32)
    d = cuda.to_device(x)
    double[1, 32](d)
    np.testing.assert_array_equal(d.copy_to_host(), 2 * np.arange(10))
    np.testing.assert_array_equal(x, np.arange(10))  # the device's copy changed, not ours


def test_a_slice_of_a_device_array_is_a_view():
    d = cuda.to_device(np.ones(10, np.float32))
    double[1, 32](d[3:5])
    np.testing.assert_array_equal(d.copy_to_host(), [1, 1, 1, 2, 2, 1, 1, 1, 1, 1])


def test_host_arrays_are_changed_in_place():
    x = np.ones(5, np.float32)
    double[1, 32](x)
    assert (x == 2).all()


def test_torch_tensors_share_their_memory():
    t = torch.ones(5)
    double[1, 32](t)
    assert t.tolist() == [2.0] * 5


def test_freed_device_memory_is_given_back():
    pending = cuda.current_context().memory_manager.deallocations
    pending.clear()
    before = len(SPACE.regions)
    d = cuda.to_device(np.zeros(1000))
    assert len(SPACE.regions) == before + 1
    del d
    pending.clear()
    assert len(SPACE.regions) == before


def test_a_signature_given_up_front_compiles_and_runs():
    kernel = cuda.jit("void(float32[::1])")(double.py_func)
    x = np.ones(3, np.float32)
    kernel[1, 32](x)
    assert (x == 2).all()


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


def test_the_engine_stands_for_an_architecture_and_reports_one_multiprocessor():
    assert cuda.get_current_device().MULTIPROCESSOR_COUNT == 1
