"""Directed rounding in CUDA C++ against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

import warplab

RNG = np.random.default_rng(17)

SOURCE = """
extern "C" __global__ void each(const TYPE* x, const TYPE* y, const TYPE* z, TYPE* out)
{
    int i = threadIdx.x;
    TYPE a = x[i], b = y[i], c = z[i];
    out[i] = EXPRESSION;
}
"""
EXACT = {
    "add_{}(a, b)": lambda a, b, c: a + b,
    "sub_{}(a, b)": lambda a, b, c: a - b,
    "mul_{}(a, b)": lambda a, b, c: a * b,
    "fma_{}(a, b, c)": lambda a, b, c: a * b + c,
    "div_{}(a, b)": lambda a, b, c: a / b,
    "rcp_{}(a)": lambda a, b, c: 1 / a,
}


def is_rounded(result, true, rounding, dtype):
    """Whether ``result`` is the neighbour of the fraction ``true`` that the rounding asks for."""
    if rounding == "rz":
        rounding = "rd" if true >= 0 else "ru"
    inward = np.nextafter(result, dtype(np.inf if rounding == "rd" else -np.inf))
    exact = Fraction(float(result))
    return (
        exact <= true < Fraction(float(inward))
        if rounding == "rd"
        else exact >= true > Fraction(float(inward))
    )


@pytest.mark.parametrize("dtype, prefix", [(np.float32, "__f"), (np.float64, "__d")])
@pytest.mark.parametrize("expression", EXACT)
def test_each_result_is_the_neighbour_on_the_right_side(expression, dtype, prefix):
    a, b, c = (
        RNG.standard_normal(32).astype(dtype) * 10 ** RNG.integers(-3, 3, 32).astype(dtype) for _ in range(3)
    )
    a[0], b[0] = 1, 3  # a quotient just below and a sum that is exact
    a[1], b[1] = -1, 3
    for rounding in ("rz", "ru", "rd"):
        out = np.zeros(32, dtype)
        text = prefix + expression.format(rounding)
        text = text.replace("__ffma", "__fmaf").replace("__dfma", "__fma")
        source = SOURCE.replace("TYPE", "float" if dtype is np.float32 else "double").replace(
            "EXPRESSION", text
        )
        warplab.cuda_kernel(source, "each")[1, 32](a, b, c, out)
        for i in range(32):
            true = EXACT[expression](*(Fraction(float(v[i])) for v in (a, b, c)))
            assert is_rounded(out[i], true, rounding, dtype), (text, a[i], b[i], c[i], out[i])


@pytest.mark.parametrize("dtype, prefix", [(np.float32, "__f"), (np.float64, "__d")])
def test_roots(dtype, prefix):
    a = np.r_[np.arange(8), RNG.random(24) * 100].astype(dtype)
    for rounding in ("rd", "ru", "rz"):
        out = np.zeros(32, dtype)
        source = SOURCE.replace("TYPE", "float" if dtype is np.float32 else "double").replace(
            "EXPRESSION", f"{prefix}sqrt_{rounding}(a)"
        )
        warplab.cuda_kernel(source, "each")[1, 32](a, a, a, out)
        for x, root in zip(a, out):
            true, root_squared = Fraction(float(x)), Fraction(float(root)) ** 2
            inward = Fraction(float(np.nextafter(root, dtype(-np.inf if rounding == "ru" else np.inf)))) ** 2
            assert (
                (root_squared >= true > inward or true == 0)
                if rounding == "ru"
                else root_squared <= true < inward
            )


CONVERT = """
extern "C" __global__ void each(const long long* x, float* up, float* down, double* zero, float* small)
{
    int i = threadIdx.x;
    up[i] = __ll2float_ru(x[i]);
    down[i] = __ll2float_rd(x[i]);
    zero[i] = __ll2double_rz(x[i]);
    small[i] = __int2float_rz((int)x[i]);
}
"""


def test_integers_to_floats():
    x = np.r_[
        RNG.integers(-(1 << 62), 1 << 62, 28), [(1 << 62) + 1, -(1 << 62) - 1, (1 << 53) + 1, 16777217]
    ].astype(np.int64)
    up, down, zero, small = (
        np.zeros(32, np.float32),
        np.zeros(32, np.float32),
        np.zeros(32),
        np.zeros(32, np.float32),
    )
    warplab.cuda_kernel(CONVERT, "each")[1, 32](x, up, down, zero, small)
    for i, value in enumerate(x.tolist()):
        assert is_rounded(up[i], value, "ru", np.float32) and is_rounded(down[i], value, "rd", np.float32)
        assert is_rounded(zero[i], value, "rz", np.float64)
        assert is_rounded(small[i], int(np.int64(value).astype(np.int32)), "rz", np.float32)
