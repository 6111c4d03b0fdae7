"""The engine's own ufuncs against Python's numbers: in vectors, behind them, strided, and with one value for
all lanes.
"""

from fractions import Fraction

import numpy as np
import pytest

from warplab.simt.engine.ufuncs import FUNCTIONS, ufunc

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # the machine ignores what NumPy warns of

NAN, INF = float("nan"), float("inf")
TINY = {"f": 2.0**-126, "d": 2.0**-1022}


@pytest.mark.parametrize("letter", "fd")
def test_a_fused_multiply_add_rounds_once(letter):
    bits = {"f": 24, "d": 53}[letter]
    a, b, c = (np.full(5, x, letter) for x in (1 + 2.0 ** (1 - bits), 1 - 2.0 ** (1 - bits), -1))
    assert (ufunc("fma", letter)(a, b, c) == -(2.0 ** (2 - 2 * bits))).all()  # 0 if the product were rounded
    assert ((a * b).astype(letter) + c == 0).all()


def test_a_fused_multiply_add_of_float64_is_what_fractions_say():
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(100) for _ in range(3))
    exact = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c)]
    assert ufunc("fma", "d")(a, b, c).tolist() == exact


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize("count", [1, 3, 8, 37])
def test_a_subnormal_becomes_a_zero_of_its_sign(letter, count):
    x = np.resize(np.array([TINY[letter], -TINY[letter], TINY[letter] / 2, -TINY[letter] / 4, -0.0]), count)
    found = ufunc("flush", letter)(x.astype(letter))
    kept = np.resize([TINY[letter], -TINY[letter], 0.0, -0.0, -0.0], count)
    assert found.tolist() == kept.tolist()
    assert np.signbit(found).tolist() == np.signbit(kept).tolist()
    special = np.array([NAN, INF, -INF], letter)
    np.testing.assert_array_equal(ufunc("flush", letter)(special), special)


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize(
    "a, b, least, greatest", [(1.0, 2.0, 1.0, 2.0), (-0.0, 0.0, -0.0, 0.0), (0.0, -0.0, -0.0, 0.0)]
)
@pytest.mark.parametrize("count", [1, 19])
def test_the_smaller_and_the_larger_of_numbers(letter, a, b, least, greatest, count):
    x, y = np.full(count, a, letter), np.full(count, b, letter)
    for suffix in ("", "_or_nan"):
        for name, value in (("least", least), ("greatest", greatest)):
            found = ufunc(f"{name}{suffix}", letter)(x, y)
            assert found.tolist() == [value] * count
            assert (np.signbit(found) == np.signbit(value)).all()


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize("name", ["least", "greatest"])
def test_a_nan_loses_or_wins(letter, name):
    quiet = np.full(9, NAN, letter)
    signalling = (quiet.view(f"u{quiet.itemsize}") - (1 << {"f": 22, "d": 51}[letter]) + 1).view(letter)
    one = np.ones(9, letter)
    for nan in (quiet, signalling):
        assert np.isnan(nan).all()
        for pair in ((nan, one), (one, nan)):
            assert (ufunc(name, letter)(*pair) == 1).all()
            assert np.isnan(ufunc(f"{name}_or_nan", letter)(*pair)).all()
        assert np.isnan(ufunc(name, letter)(nan, nan)).all()


@pytest.mark.parametrize("letter", "hilq")
@pytest.mark.parametrize("count", [1, 25])
def test_integers_divide_as_in_c(letter, count):
    least = np.iinfo(letter).min
    cases = [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (5, 0, -1, 5), (5, -1, -5, 0)]
    for a, b, quotient, left in [*cases, (least, -1, least, 0), (least, 1, least, 0), (0, 0, -1, 0)]:
        x, y = np.full(count, a, letter), np.full(count, b, letter)
        assert ufunc("quotient", letter)(x, y).tolist() == [quotient] * count
        assert ufunc("remainder", letter)(x, y).tolist() == [left] * count
        if min(a, b) >= 0:
            x, y, most = x.astype(letter.upper()), y.astype(letter.upper()), np.iinfo(letter.upper()).max
            want = most if b == 0 else quotient
            assert ufunc("unsigned_quotient", letter.upper())(x, y).tolist() == [want] * count
            assert ufunc("unsigned_remainder", letter.upper())(x, y).tolist() == [left] * count


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize(
    "name", [name for name in FUNCTIONS if "quotient" not in name and "remainder" not in name]
)
def test_strides_and_values_for_all_lanes_give_what_dense_arrays_give(letter, name):
    sources, _ = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    wide = [rng.standard_normal(2 * 37).astype(letter) for _ in range(sources)]
    strided = ufunc(name, letter)(*(x[::2] for x in wide))
    np.testing.assert_array_equal(strided, ufunc(name, letter)(*(x[::2].copy() for x in wide)))
    for i in range(sources):
        some = [x[:37] for x in wide]
        some[i] = wide[i][:1]
        full = [np.broadcast_to(x, 37).copy() for x in some]
        found = np.broadcast_to(ufunc(name, letter)(*some), 37)
        np.testing.assert_array_equal(found, ufunc(name, letter)(*full))
    assert ufunc(name, letter)(*(x[:0] for x in wide)).size == 0


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize("name", [*(n for n in FUNCTIONS if "quotient" not in n and "remainder" not in n)])
def test_a_lane_s_result_is_the_same_wherever_it_stands(name, letter):
    """A NaN's payload too."""
    rng, bits = np.random.default_rng(0), np.dtype(letter).itemsize * 8
    least = int(np.array(INF, letter).view(f"u{bits // 8}")) + 1
    sources = rng.standard_normal((FUNCTIONS[name][0], 100)).astype(letter)
    nans = rng.integers(least, 2 ** (bits - 1), sources.shape, f"u{bits // 8}").view(letter)
    sources = np.where(rng.random(sources.shape) < 0.5, nans, sources)
    whole = ufunc(name, letter)(*sources)
    for lane in range(100):
        assert ufunc(name, letter)(*sources[:, lane : lane + 1]).tobytes() == whole[lane].tobytes()
