"""The engine's own ufuncs against Python's numbers: in vectors, behind them, strided, and with one value for
all lanes.
"""

import numpy as np
import pytest

from warplab.simt.engine.ufuncs import FUNCTIONS, ufunc

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # the machine ignores what NumPy warns of

NAN, INF = float("nan"), float("inf")


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
