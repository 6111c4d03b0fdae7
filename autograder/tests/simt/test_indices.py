"""Messages name elements as the student does: by an array's name and an index tuple."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cuda, float32
from numba.cuda.np.numpy_support import from_dtype

import warplab
from warplab.simt.engine.indices import SharedArray, index_text, shared_array, shared_symbol

WIDTH = 16
POINT_TYPE = from_dtype(np.dtype([("x", np.float32), ("y", np.int32)]))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_an_element_has_the_index_that_numpy_gives_it(shape, data):
    place = data.draw(st.integers(0, int(np.prod(shape)) - 1))
    for order in "CF":
        index = np.unravel_index(place, shape, order)
        assert index_text(place, shape, order) == f"[{', '.join(map(str, index))}]"


def test_an_element_past_an_end_goes_on_along_the_slowest_axis():
    assert index_text(3840, (80, 48)) == "[80, 0]"
    assert index_text(-1, (80, 48)) == "[-1, 47]"
    assert index_text(3840, (80, 48), "F") == "[0, 48]"


def test_a_shared_variable_says_its_name_shape_and_dtype():
    symbol = shared_symbol("_cudapy_smem_7", "tile_b", (10, 16), "float64")
    array = shared_array(symbol, 128, 10 * 16 * 8)
    assert array == SharedArray("tile_b", 128, 1280, (10, 16), 8)
    assert array.place(128 + 8 * (9 * 16 + 3), 8) == "tile_b[9, 3]"
    assert array.place(128 + 1280, 8) == "tile_b[10, 0]"


@cuda.jit
def of_records(out):
    points = cuda.shared.array(4, dtype=POINT_TYPE)
    größe = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    points[t].x = t
    größe[t] = points[t].x + 1
    out[t] = größe[t]


def test_arrays_whose_name_or_dtype_no_ptx_has_keep_their_symbol():
    assert shared_symbol("s_1", "größe", (4,), "float32") == "s_1"
    assert shared_symbol("s_1", "t", (4,), "Record(x[type=float32;offset=0])") == "s_1"
    out = np.zeros(4, np.float32)
    of_records[1, 4](out)
    np.testing.assert_array_equal(out, [1, 2, 3, 4])


def test_a_forged_shape_is_not_believed():
    assert shared_array("_cudapy_smem_7$t$10x16$float64", 0, 4).shape == ()
    assert shared_array("_cudapy_smem_7$t$10$voids", 0, 40).shape == ()


def test_a_variable_of_a_c_function_has_its_name_alone():
    assert shared_array("_ZZ9transposeE4tile", 0, 1024).place(12, 4) == "tile[3]"


@cuda.jit
def beside(x, out):
    first = cuda.shared.array(WIDTH, float32)
    tile_b = cuda.shared.array((10, WIDTH), float32)
    t = cuda.threadIdx.x
    first[t] = x[t]
    tile_b[10, t] = first[t]
    out[t] = tile_b[0, t]


@cuda.jit
def tall(x, out):
    out[80, cuda.threadIdx.x] = x[0]


@cuda.jit
def grown(out):
    table = cuda.shared.array(0, float32)
    table[cuda.threadIdx.x] = 1.0
    out[0] = table[0]


def test_out_of_bounds_in_shared_memory_names_array_and_index():
    with pytest.raises(warplab.OutOfBounds, match=r"writes tile_b\[10, 0\], whose last element is \[9, 15\]"):
        beside[1, WIDTH](np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32))


def test_out_of_bounds_in_global_memory_names_array_and_index():
    with pytest.raises(
        warplab.OutOfBounds,
        match=r"element \[80, 0\] of argument 'out' \(float32\[80, 48\]\), whose last element is \[79, 47\]",
    ):
        tall[1, 32](np.ones(1, np.float32), np.zeros((80, 48), np.float32))


def test_a_place_behind_the_last_row_has_its_other_index_too():
    @cuda.jit
    def wide(out):
        out[cuda.threadIdx.x, 48] = 1.0

    with pytest.raises(warplab.OutOfBounds, match=r"if your indices were \[79, 48\], that is the same"):
        wide[1, 80](np.zeros((80, 48), np.float32))


def test_out_of_bounds_in_dynamic_shared_memory_says_how_much_there_is():
    with pytest.raises(
        warplab.OutOfBounds, match=r"writes table\[16\], and the block has 64 bytes of shared memory"
    ):
        grown[1, 32, 0, 64](np.zeros(1, np.float32))


def test_an_error_knows_what_the_thread_did():
    with pytest.raises(warplab.OutOfBounds) as caught:
        beside[1, WIDTH](np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32))
    (act,) = caught.value.acts
    assert (act.thread, act.block, act.does, act.what) == ((0, 0, 0), (0, 0, 0), "writes", "tile_b[10, 0]")
    assert act.file == "test_indices.py"
