"""A launch like an earlier one does what the whole launch would do: the same results, faults and warnings.

Each kernel is launched several times on fresh numbers; here no launch is too early to be kept.
"""

import warnings

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.simt.engine import repeats

F = np.float32


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch):
    monkeypatch.setattr(repeats, "WHOLE", 0)


@pytest.fixture
def shortened(monkeypatch):
    """How many launches ran by what was kept."""
    runs = []
    plain = repeats.KeptLaunch.run

    def run(kept, regions):
        ran = plain(kept, regions)
        runs.extend([1] * ran)
        return ran

    monkeypatch.setattr(repeats.KeptLaunch, "run", run)
    return runs


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def saxpy_strided(a, x, y):
    i = cuda.grid(1)
    while i < y.size:
        y[i] = a * x[i] + y[i]
        i += cuda.gridsize(1)


@cuda.jit
def row_sums(x, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = float32(0)
        for k in range(x.shape[1]):
            total += x[row, k]
        out[row] = total


@cuda.jit
def one_of_two(x, y, out, first):
    i = cuda.grid(1)
    if i % 3 < first:
        value = x[i]
    else:
        value = y[i]
    out[i] = 2 * value


@cuda.jit
def weighted(x, out):
    """A loaded value meets one that follows from the thread's number."""
    i = cuda.grid(1)
    out[i] = x[i] * float32(i) + float32(cuda.blockIdx.x)


@cuda.jit
def shifted(x, out):
    i = cuda.grid(1)
    out[i] = x[i + 1]


@cuda.jit
def numbered(out):
    i = cuda.grid(1)
    out[i] = i * i


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


@cuda.jit
def only_positive(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[i] = x[i]


def numbers(*shape):
    return np.random.default_rng().standard_normal(shape).astype(F)


i = np.arange(64)
CASES = [  # kernel, grid, block, makes the arguments, what must be in the last array, is it kept
    (add, 2, 32, lambda: (numbers(50), numbers(50), numbers(50)), lambda a, b, _: a + b, True),
    (row_sums, 2, 32, lambda: (numbers(50, 3), numbers(50)),
     lambda x, _: x[:, 0] + x[:, 1] + x[:, 2], True),
    (one_of_two, 2, 32, lambda: (numbers(64), numbers(64), numbers(64), 2),
     lambda x, y, _, first: 2 * np.where(i % 3 < first, x, y), None),
    (weighted, 2, 32, lambda: (numbers(64), numbers(64)), lambda x, _: x * i.astype(F) + (i // 32), True),
    (numbered, 2, 32, lambda: (numbers(64),), lambda _: i * i, True),
    (gather, 2, 32, lambda: (numbers(64), np.random.default_rng().permutation(64), numbers(64)),
     lambda x, index, _: x[index], False),
    (only_positive, 2, 32, lambda: (numbers(64), numbers(64)), lambda x, old: np.where(x > 0, x, old), False),
]  # fmt: skip


@pytest.mark.parametrize("kernel, grid, block, make, expected, kept", CASES, ids=[
    case[0].py_func.__name__ for case in CASES
])  # fmt: skip
def test_every_launch_of_a_kind_gives_what_its_own_numbers_give(
    shortened, kernel, grid, block, make, expected, kept
):
    for _ in range(5):
        args = make()
        out = next(a for a in reversed(args) if isinstance(a, np.ndarray))
        right = np.float32(expected(*(a.copy() if isinstance(a, np.ndarray) else a for a in args)))
        kernel[grid, block](*args)
        np.testing.assert_allclose(out, right, rtol=1e-5, atol=1e-4)  # a fused product is rounded once
    assert kept is None or bool(shortened) == kept


def test_arrays_on_the_device_and_numbers_are_told_apart(shortened):
    for a in (2, 3, 2, 3, 2, 3, 2, 3):
        x, y = numbers(100), numbers(100)
        there = cuda.to_device(y)
        saxpy_strided[1, 32](F(a), cuda.to_device(x), there)
        np.testing.assert_allclose(there.copy_to_host(), a * x + y, rtol=1e-5, atol=1e-6)
    assert len(shortened) >= 3


GUARDED = """
extern "C" __global__ void guarded(const float4* x, float4* out, int n) {
    int i = threadIdx.x;
    float4 v = make_float4(1, 1, 1, 1);
    if (i < n) v = x[i];
    out[i] = make_float4(v.x + v.y, v.y * v.z, v.z - v.w, v.w);
}"""


@pytest.mark.parametrize("n", [0, 20, 32])
def test_a_load_under_a_condition_and_vectors(shortened, n):
    kernel = warplab.cuda_kernel(GUARDED, "guarded")
    for _ in range(5):
        x, out = numbers(32, 4), numbers(32, 4)
        kernel[1, 32](x.reshape(-1), out.reshape(-1), n)
        v = np.where(np.arange(32)[:, None] < n, x, 1).T
        right = np.stack([v[0] + v[1], v[1] * v[2], v[2] - v[3], v[3]], axis=1)
        np.testing.assert_allclose(out, right, rtol=1e-6)


def test_a_shorter_array_is_overrun_though_longer_ones_were_not(shortened):
    for _ in range(4):
        shifted[1, 32](numbers(33), numbers(32))
    assert shortened
    for _ in range(3):
        with pytest.raises(warplab.OutOfBounds, match=r"element \[32\] of argument 'x'"):
            shifted[1, 32](numbers(32), numbers(32))
        shifted[1, 32](numbers(33), numbers(32))


def test_an_array_that_must_not_be_written_is_not():
    kernel = warplab.cuda_kernel(GUARDED, "guarded")
    for _ in range(4):
        kernel[1, 32](numbers(128), numbers(128), 32)
    fixed = numbers(128)
    fixed.flags.writeable = False
    with pytest.raises(warplab.OutOfBounds, match="read-only"):
        kernel[1, 32](numbers(128), fixed, 32)


def test_threads_that_meet_are_told_of_at_every_launch(shortened):
    for _ in range(4):
        shifted[2, 32](numbers(65), numbers(64))
    alone = len(shortened)
    assert alone
    for _ in range(4):
        x = cuda.to_device(numbers(65))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            shifted[2, 32](x, x)
        assert any(issubclass(w.category, warplab.GlobalConflict) for w in seen)
    assert len(shortened) == alone


def test_who_watches_a_launch_sees_all_of_it(shortened):
    arguments = numbers(50), numbers(50), numbers(50)
    first = warplab.profile(add[2, 32], *arguments)
    for _ in range(4):
        add[2, 32](*arguments)
    assert shortened
    again = warplab.profile(add[2, 32], *arguments)
    assert (str(again), again.lines) == (str(first), first.lines)


def test_a_program_is_taken_apart_only_after_many_launches(shortened, monkeypatch):
    monkeypatch.setattr(repeats, "WHOLE", 10)
    kernel = cuda.jit(add.py_func)
    for launch in range(1, 16):
        kernel[1, 32](numbers(32), numbers(32), numbers(32))
        assert len(shortened) == max(0, launch - 11)  # ten, then the first of the kind


def test_no_more_than_so_many_kinds_are_kept():
    kernel = cuda.jit(add.py_func)
    for n in range(1, repeats.KINDS + 10):
        for _ in range(2):
            kernel[1, 64](numbers(n), numbers(n), numbers(n))
    (compiled,) = kernel.overloads.values()
    assert len(compiled._warplab_program[1].repeats.kinds) == repeats.KINDS
