"""Shared arrays of CUDA C++ have the shapes that their source declares, and messages name index tuples."""

import numpy as np
import pytest

import warplab
from warplab.simt.engine.indices import SharedArray
from warplab.simt.frontends.shared_shapes import named, shaped

RACE = """
#define WIDTH 16
__global__ void race(const float* x, float* out) {
    __shared__ float tile[WIDTH][WIDTH + 1];  // one column more, against bank conflicts
    int t = threadIdx.x;
    tile[t / 16][t % 16] = x[t];
    out[t] = tile[t % 16][t / 16];
}
"""


def shape_of(source, size, name="tile"):
    """Shape and bytes of an element that the source gives an array of so many bytes."""
    [array] = shaped([SharedArray(name, 0, size, (), 0)], source)
    return array.shape, array.itemsize


@pytest.mark.parametrize(
    "source, size, expected",
    [
        ("__shared__ float tile[16][17];", 1088, ((16, 17), 4)),
        ("constexpr int N = 8; __shared__ double a[2], tile[N][2 * N];", 1024, ((8, 16), 8)),
        ("#define ROWS 4u\n__shared__ alignas(16) unsigned short tile[ROWS][32];", 256, ((4, 32), 2)),
        ("__shared__ float4 tile[8][8];", 1024, ((8, 8), 16)),
        ("__shared__ float tile[2][8]; /* __shared__ float tile[4][4]; */", 64, ((2, 8), 4)),
    ],
)
def test_a_shape_is_read_off_its_declaration(source, size, expected):
    assert shape_of(source, size) == expected


@pytest.mark.parametrize(
    "source, size",
    [
        ("template <int N> __global__ void k() { __shared__ float tile[N][N]; }", 1024),  # who knows N
        ("__shared__ float tile[2][8]; __shared__ float tile[4][4];", 64),  # of two kernels
        ("__shared__ float tile[16][17];", 1024),  # another array's
        ("const int N = 2; void f() { const int N = 4; } __shared__ char tile[N][32];", 64),
        ("extern __shared__ float tile[];", 0),
    ],
)
def test_a_shape_that_the_source_does_not_say_for_certain_is_left_open(source, size):
    assert shape_of(source, size) == ((), 0)


def test_ptx_that_travels_without_its_source_says_the_shapes_too():
    ptx, entry = warplab.cuda_kernel(RACE, "race").compiled("sm_90")
    told = named(ptx, RACE)
    assert "$tile$16x17$uint32[1088]" in told and "E4tile" in ptx and "E4tile" not in told
    travelled = warplab.ptx_kernel(told, entry)
    with pytest.raises(warplab.SharedRace, match=r"reads tile\[1, 0\]"):
        travelled[1, 256](np.zeros(256, np.float32), np.zeros(256, np.float32))
    assert named(ptx, "") == ptx


def test_a_race_in_c_names_the_element_by_its_index_tuple():
    kernel = warplab.cuda_kernel(RACE, "race")
    with pytest.raises(
        warplab.SharedRace, match=r"\(1, 0, 0\) .* reads tile\[1, 0\] .* thread \(16, 0"
    ) as raised:
        kernel[1, 256](np.zeros(256, np.float32), np.zeros(256, np.float32))
    assert "put __syncthreads() after" in str(raised.value)  # not numba's word for it


def test_an_index_past_the_end_in_c_is_told_with_the_last_one():
    kernel = warplab.cuda_kernel(RACE.replace("tile[t / 16]", "tile[t / 8]"), "race")
    with pytest.raises(warplab.OutOfBounds, match=r"writes tile\[16, 0\], whose last element is \[15, 16\]"):
        kernel[1, 256](np.zeros(256, np.float32), np.zeros(256, np.float32))
