"""Statistics of samples against numbers computed by hand."""

import random

import pytest

from warplab.tasks.rubric import Bound
from warplab.timing import samples
from warplab.timing.samples import (
    Pairs,
    Unsteady,
    below_floor,
    enough,
    flush_bytes,
    half_width,
    interval,
    paired,
    same_clock,
)


def test_the_interval_of_a_median_comes_from_order_statistics():
    """n = 100: ranks 50 -+ 1.96 * 5 = 40.2 and 59.8, from 0 the 40th and 60th of them sorted: 41 and 61."""
    assert interval(range(1, 101)) == (41, 50.5, 61)
    assert half_width(range(1, 101)) == pytest.approx(20 / 2 / 50.5)


def test_few_samples_give_all_they_have():
    assert interval([3, 1, 2]) == (1, 2, 3)
    assert interval([5]) == (5, 5, 5)


def test_the_interval_holds_the_true_median_in_about_nineteen_of_twenty_cases():
    """2,000 sets of 30 samples of a skewed distribution of median ln 2; to err on the safe side is fine."""
    rng = random.Random(0)
    hits = 0
    for _ in range(2_000):
        low, _, high = interval([rng.expovariate(1) for _ in range(30)])
        hits += low <= 0.6931471805599453 <= high
    assert 0.945 <= hits / 2_000 <= 0.985


@pytest.mark.parametrize(
    ("values", "elapsed", "stop"),
    [
        ([1.0] * 19, 99.0, False),
        ([1.0] * 20, 0.0, True),
        ([1.0, 2.0] * 20, 9.9, False),
        ([1.0, 2.0] * 20, 10.0, True),
        ([1.0, 2.0] * 50, 0.0, True),
    ],
)
def test_sampling_stops_at_one_per_cent_ten_seconds_or_a_hundred(values, elapsed, stop):
    assert enough(values, elapsed) is stop


def test_the_flush_is_twice_the_cache_and_never_below_256_mib():
    assert flush_bytes(50 << 20) == 256 << 20
    assert flush_bytes(200 << 20) == 400 << 20


def test_clocks_agree_within_five_per_cent():
    assert same_clock(1980, 1881) and not same_clock(1980, 1880)
    assert same_clock(0, 0)


def test_a_time_below_the_floor_of_compulsory_reads_is_refused():
    """3.35 GB at 3.35 TB/s take 1 ms; a tenth below it is given, for the bandwidth is a measurement too."""
    assert below_floor(0.89e-3, 3_350_000_000, 3.35e12)
    assert not below_floor(0.91e-3, 3_350_000_000, 3.35e12)


def test_pairs_are_taken_as_a_b_b_a():
    log = []
    paired(lambda: log.append("A") or (1.0, 1), lambda: log.append("B") or (2.0, 1), lambda: 0.0)
    assert "".join(log) == "ABBA" * 10


def test_a_against_b_is_the_ratio_of_the_pairs():
    """A takes 2 ms, B 1 ms, and a drift slows both by 1 % a pair: the ratio stays 2, they are told apart."""
    step = iter(range(10_000))
    pairs = paired(
        lambda: (2e-3 * 1.01 ** (next(step) // 2), 1),
        lambda: (1e-3 * 1.01 ** (next(step) // 2), 1),
        lambda: 0.0,
    )
    assert pairs.ratio == pytest.approx((2, 2, 2))
    assert pairs.differ
    assert pairs.counters()["time.ratio_low"] == pytest.approx(2)


def test_a_against_a_is_told_apart_in_about_one_of_twenty_runs():
    rng = random.Random(1)
    told = 0
    for _ in range(400):
        a, b = (tuple(rng.lognormvariate(0, 0.05) for _ in range(40)) for _ in range(2))
        told += Pairs(a, b).differ
    assert told / 400 <= 0.06


def test_two_per_cent_are_seen_in_a_hundred_pairs_with_two_per_cent_noise():
    rng = random.Random(2)
    a = tuple(1.02 * rng.lognormvariate(0, 0.02) for _ in range(100))
    b = tuple(rng.lognormvariate(0, 0.02) for _ in range(100))
    assert Pairs(a, b).differ


def test_a_pair_whose_clocks_differ_is_taken_again():
    rates = iter([1980, 1500] + [1980] * 1000)
    pairs = paired(lambda: (1.0, next(rates)), lambda: (1.0, next(rates)), lambda: 0.0)
    assert pairs.repeated == 1 and len(pairs.a) == samples.MIN_SAMPLES


def test_clocks_that_never_agree_end_the_measurement():
    rates = iter([1980, 1500] * 1000)
    with pytest.raises(Unsteady, match="21 pairs"):
        paired(lambda: (1.0, next(rates)), lambda: (1.0, next(rates)), lambda: 0.0)


def test_a_straddled_band_gives_the_higher_points():
    """34 ratios: ranks 17 -+ 1.96 * sqrt(34) / 2 = 11.3 and 22.7, samples 11 and 23 of 0..33: 1.9 and 2.3."""
    pairs = Pairs((1.9,) * 12 + (2.1,) * 10 + (2.3,) * 12, (1.0,) * 34)
    assert pairs.ratio == pytest.approx((1.9, 2.1, 2.3))
    bound = Bound("time.ratio_low", 2.0, 10.0)
    assert bound.fraction(bound.total(pairs.counters())) == 1.0
