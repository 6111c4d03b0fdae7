"""Whole `.cu` files in the style of textbooks and samples, host code and all, against NumPy."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import warplab

FILES = Path(__file__).parent / "cu"
RNG = np.random.default_rng(5)


def kernel(file, name):
    return warplab.cuda_kernel(FILES / file, name)


def test_every_file_has_a_test_that_runs_it():
    told = Path(__file__).read_text()
    missing = [path.name for path in FILES.glob("*.cu") if f'"{path.name}"' not in told]
    assert not missing


def test_vector_add():
    a, b, c = RNG.random(1000, np.float32), RNG.random(1000, np.float32), np.zeros(1000, np.float32)
    kernel("vector_add.cu", "vectorAdd")[4, 256](a, b, c, 1000)
    np.testing.assert_array_equal(c, a + b)


def test_a_path_may_be_a_string_and_lines_are_the_files_own():
    k = warplab.cuda_kernel(str(FILES / "vector_add.cu"), "vectorAdd")
    p = warplab.profile(k[1, 32], *np.zeros((3, 32), np.float32), 32)
    assert [(Path(line.file).name, line.line) for line in p.lines if line.global_store.requests] == [
        ("vector_add.cu", 21)
    ]
    with pytest.raises(warplab.OutOfBounds, match=r"vector_add.cu:21: .*'number 3'"):
        k[1, 32](np.zeros(32, np.float32), np.zeros(32, np.float32), np.zeros(8, np.float32), 32)


@dataclass
class Matrix:
    """``Matrix<float>`` of matmul_tiled.cu: the array is its pointer."""

    width: np.int32
    height: np.int32
    stride: np.int32
    elements: np.ndarray

    @classmethod
    def of(cls, array):
        return cls(array.shape[1], array.shape[0], array.shape[1], array)


@pytest.mark.parametrize("tile", [8, 16])
def test_tiled_matrix_product_of_structs_by_value(tile):
    a, b = RNG.integers(0, 9, (20, 30)).astype(np.float32), RNG.integers(0, 9, (30, 17)).astype(np.float32)
    c = np.zeros((20, 17), np.float32)
    grid = (-(-17 // tile), -(-20 // tile))
    product = kernel("matmul_tiled.cu", f"matmul<float, {tile}>")
    product[grid, (tile, tile)](Matrix.of(a), Matrix.of(b), Matrix.of(c))
    np.testing.assert_array_equal(c, a @ b)


def test_convolution_with_a_mask_that_the_host_sets():
    convolve = kernel("convolution.cu", "convolve")
    mask, image = RNG.random((5, 5), np.float32), RNG.random((20, 33), np.float32)
    convolve.symbol("d_mask").set(mask)
    convolve.symbol("pixels_done").set(0)
    out = np.zeros_like(image)
    size = np.array((33, 20), [("width", "i4"), ("height", "i4")])[()]
    convolve[(3, 2), (16, 16)](image, out, size)
    padded = np.pad(image, 2, mode="edge")
    expected = sum(mask[i, j] * padded[i : i + 20, j : j + 33] for i in range(5) for j in range(5))
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert convolve.symbol("pixels_done").get() == 33 * 20


@dataclass
class Csr:
    """``csr`` of spmv_csr.cu."""

    rows: np.int32
    row_ptr: np.ndarray
    col: np.ndarray
    val: np.ndarray


@pytest.mark.slow
@pytest.mark.parametrize("name, threads", [("spmv_scalar", 64), ("spmv_vector", 40 * 32)])
def test_sparse_matrix_times_vector(name, threads):
    dense = RNG.integers(1, 9, (40, 50)) * (RNG.random((40, 50)) < 0.2)
    rows, col = np.nonzero(dense)
    pointers = np.searchsorted(rows, np.arange(41)).astype(np.int32)
    matrix = Csr(40, pointers, col.astype(np.int32), dense[rows, col].astype(np.float32))
    x, y = RNG.integers(0, 9, 50).astype(np.float32), np.zeros(40, np.float32)
    kernel("spmv_csr.cu", name)[-(-threads // 64), 64](matrix, x, y)
    np.testing.assert_array_equal(y, dense @ x)
    most = np.zeros(40, np.float32)
    kernel("spmv_csr.cu", "row_max")[1, 64](matrix, most)
    np.testing.assert_array_equal(most, np.where(dense > 0, dense, -np.inf).max(1))


def test_locks_and_atomics():
    mutex, total = cuda.to_device(np.zeros(1, np.int32)), np.zeros(1, np.int32)
    count = kernel("locks.cu", "count_blocks")
    before = [int(count.symbol(name).get()) for name in ("tickets", "served")]
    lock = np.array((mutex.device_ctypes_pointer.value,), [("mutex", "u8")])[()]
    count[20, 32](lock, total)
    after = [int(count.symbol(name).get()) for name in ("tickets", "served")]
    assert total[0] == 20 and np.subtract(after, before).tolist() == [40, 20]
    x, most = RNG.random(200, np.float32), np.zeros(1, np.float32)
    kernel("locks.cu", "maximum")[2, 128](x, 200, most)
    assert most[0] == x.max()


@pytest.mark.slow
def test_cooperative_groups():
    x, sums = RNG.integers(0, 9, 256).astype(np.float32), np.zeros(32, np.float32)
    kernel("cooperative.cu", "sum_tiles")[2, 128](x, sums)
    np.testing.assert_array_equal(sums, x.reshape(32, 8).sum(1))
    a = RNG.random(128, np.float32)
    b, expected = a.copy(), a.astype(float)
    for _ in range(4):
        expected[1:-1] += 0.25 * (expected[:-2] - 2 * expected[1:-1] + expected[2:])
    kernel("cooperative.cu", "heat")[2, 64](a, b, 128, 4)
    np.testing.assert_allclose(a, expected, rtol=1e-5)


@pytest.mark.parametrize("rule", ["mirror", "zero"])
def test_stencil_with_tables_of_constants_and_of_functions(rule):
    second = kernel("stencil.cu", "second_derivative")
    h, x = 0.01, np.linspace(0, 2.99, 300)
    info = np.array((h, 2), np.dtype([("h", "f8"), ("order", "i4")], align=True))
    second.symbol("grid_info").set(info)
    f, out = np.sin(x), np.zeros(300)
    second[3, 128](f, out, 300, ["mirror", "zero"].index(rule))
    np.testing.assert_allclose(out[3:-3], -f[3:-3], atol=1e-8)
    edge = f[0] if rule == "mirror" else 0.0
    taps = [-49 / 18, 3 / 2, -3 / 20, 1 / 90]
    expected = taps[0] * f[0] + sum(t * (edge + f[r]) for r, t in enumerate(taps[1:], 1))
    np.testing.assert_allclose(out[0] * h**2, expected, atol=1e-12)
