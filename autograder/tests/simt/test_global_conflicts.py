"""Conflicts in global memory: what the warning says, and what it is silent about."""

import functools

import numpy as np
import told
from numba import cuda
from told import line_of

import warplab
from warplab.simt.engine import machine
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.ptx.parser import parse
from warplab.simt.ptx.stored import written_through

warned = functools.partial(told.warned, warplab.GlobalConflict)


@cuda.jit
def blocks_meet(x, out):
    i = cuda.grid(1)
    v = x[(i + 64) % x.size]  # read
    cuda.syncthreads()
    x[i] = v + 1  # write
    out[i] = v


def test_the_warning_names_kernel_lines_threads_blocks_element_and_what_to_look_at():
    (text,) = warned(lambda: blocks_meet[4, 64](np.zeros(256, np.float32), np.zeros(256, np.float32)))
    read, write = line_of(blocks_meet, "# read"), line_of(blocks_meet, "# write")
    assert text.startswith(
        f"global-memory conflict in kernel blocks_meet, test_global_conflicts.py:{write}: "
        "thread (0, 0, 0) of block (0, 0, 0) writes"
    )
    assert "element [0] of argument 'x' (float32[256]) that thread (0, 0, 0) of block (3, 0, 0) reads" in text
    assert f"(test_global_conflicts.py:{read}), and nothing orders the two; 256 such conflicts" in text
    assert "Look at: blocks run in any order" in text


def test_blocks_that_run_one_after_the_other_here_meet_all_the_same(monkeypatch):
    monkeypatch.setattr(machine, "CHUNK_LANES", 64)  # each block alone
    assert len(warned(lambda: blocks_meet[4, 64](np.zeros(256, np.float32), np.zeros(256, np.float32)))) == 1


def test_one_array_passed_twice_is_one_array():
    @cuda.jit
    def shift(x, out):
        i = cuda.grid(1)
        if i + 1 < x.size:
            out[i] = x[i + 1] + i

    x = cuda.to_device(np.zeros(256, np.float32))
    assert warned(lambda: shift[4, 64](x, cuda.to_device(np.zeros(256, np.float32)))) == []
    (text,) = warned(lambda: shift[4, 64](x, x))
    # elements 1 to 254 are read by the thread to the left and written by their own
    assert "254 such conflicts" in text


def test_a_pointer_that_was_loaded_from_memory_is_watched_too():
    source = """
extern "C" __global__ void k(float** table, float* out)
{ table[0][0] = threadIdx.x; out[threadIdx.x] = 1; }"""
    x = cuda.to_device(np.zeros(1, np.float32))
    table = np.array([int(x.device_ctypes_pointer.value)], np.int64)
    (text,) = warned(lambda: warplab.cuda_kernel(source, "k")[1, 32](table, np.zeros(32, np.float32)))
    assert "writes element [0] of device array" in text


def test_every_launch_is_judged_alone():
    @cuda.jit
    def first(x):
        x[cuda.grid(1)] = cuda.grid(1)

    @cuda.jit
    def second(x):
        x[cuda.grid(1)] += x.size

    x = cuda.to_device(np.zeros(128, np.float32))
    assert warned(lambda: (first[2, 64](x), second[4, 32](x))) == []


def origins(body: str):
    text = f""".version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 total;
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{{ .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<2>;
{body}
ret; }}"""
    return [set(o) for o in written_through(parse(text).functions["k"], INSTRUCTIONS)]


def test_a_store_s_address_comes_from_a_parameter_through_arithmetic():
    address = "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; cvta.to.global.u64 %rd3, %rd1; "
    address += "ld.param.u32 %r1, [n]; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4; "
    assert origins(address + "st.global.u32 [%rd5], %r1;") == [{("a", 0), ("n", 0)}]
    assert origins(
        address + "ld.global.u64 %rd6, [%rd2]; add.s64 %rd7, %rd3, %rd6; st.u32 [%rd7+4], %r1;"
    ) == [{("a", 0)}]  # an index
    assert origins(address + "ld.global.u64 %rd6, [%rd2]; st.u32 [%rd6], %r1;") == [
        set()
    ]  # a pointer from nowhere
    assert origins("mov.u32 %r1, 1; st.global.u32 [total], %r1;") == [{("total", 0)}]
    atomics = address + "red.global.add.u32 [%rd5], %r1; ld.global.u32 %r2, [%rd2];"
    assert origins(atomics) == [{("a", 0), ("n", 0)}]
