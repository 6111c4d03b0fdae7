"""Triton's language on the engine against torch, type by type. Its operators and functions of single elements
are the instructions of test_ptx_fuzz.py.
"""

import pytest
import torch

import warplab  # noqa: F401 - before Triton: it brings the engine

triton = pytest.importorskip("triton", reason="Triton's wheels are for Linux")
import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.full

WHOLE = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIZE = 128


@triton.jit
def unary(x, out, OP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, OP(tl.load(x + at)))


@triton.jit
def reduce(x, out, OP: tl.constexpr, AXIS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    m, n = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    found = OP(tl.load(x + m[:, None] * COLUMNS + n[None, :]), AXIS)
    tl.store(out + (n if AXIS == 0 else m), found)


@triton.jit
def spread(x, out, OP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    OP(out + at % 4, tl.load(x + at))


def numbers(dtype, low=1, high=20):
    return torch.randint(low, high, (SIZE,), generator=torch.Generator().manual_seed(low)).to(dtype)


@pytest.mark.parametrize("to", WHOLE + FLOATS, ids=str)
@pytest.mark.parametrize("dtype", WHOLE + FLOATS, ids=str)
def test_conversions(dtype, to):
    @triton.jit
    def same(x):
        return x

    x, out = numbers(dtype), torch.empty(SIZE, dtype=to)
    unary[(1,)](x, out, OP=same, SIZE=SIZE)
    assert torch.equal(out, x.to(to))


@pytest.mark.parametrize("dtype", [torch.int32, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax"])
def test_reductions(name, axis, dtype):
    x = torch.randperm(16 * 32, generator=torch.Generator().manual_seed(0)).reshape(16, 32).to(dtype)
    if name == "sum":
        x = x % 4  # small enough to be exact in every order
    expected = getattr(torch, {"max": "amax", "min": "amin"}.get(name, name))(x, axis)
    out = torch.empty(32 if axis == 0 else 16, dtype=torch.int32 if name == "argmax" else dtype)
    reduce[(1,)](x, out, OP=getattr(tl, name), AXIS=axis, ROWS=16, COLUMNS=32)
    assert torch.equal(out, expected.to(out.dtype))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "sort"])
def test_along_a_tile(name):
    x = torch.rand(SIZE) + 0.5
    out = torch.empty(SIZE)
    expected = {"sort": lambda: x.sort()[0]}
    unary[(1,)](x, out, OP=getattr(tl, name), SIZE=SIZE)
    torch.testing.assert_close(out, expected.get(name, lambda: getattr(torch, name)(x, 0))())


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32], ids=str)
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_atomics(name, dtype):
    x, out = numbers(dtype), torch.full((4,), 10, dtype=dtype)
    spread[(1,)](x, out, OP=getattr(tl, f"atomic_{name}"), SIZE=SIZE)
    parts = torch.cat([x.reshape(-1, 4), torch.full((1, 4), 10, dtype=dtype)])
    assert torch.equal(out, parts.sum(0).to(dtype) if name == "add" else getattr(torch, f"a{name}")(parts, 0))


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_products(dtype, warps):
    @triton.jit
    def dot(x, y, out, N: tl.constexpr):
        at = tl.arange(0, N)
        at = at[:, None] * N + at[None, :]
        tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at), out_dtype=out.dtype.element_ty))

    x, y = (torch.randint(-3, 4, (32, 32)).to(dtype) for _ in range(2))
    out = torch.empty(
        32, 32, dtype={torch.int8: torch.int32, torch.float64: torch.float64}.get(dtype, torch.float32)
    )
    dot[(1,)](x, y, out, N=32, num_warps=warps)
    assert torch.equal(out, x.to(out.dtype) @ y.to(out.dtype))
