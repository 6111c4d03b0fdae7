"""Statistics of timed samples: medians and their confidence intervals, paired samples, plausible minimums."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

MIN_SAMPLES, MAX_SAMPLES, PRECISION, MAX_SECONDS = 20, 100, 0.01, 10.0
CLOCK_SPREAD = 0.05
MAX_REPEATS = 20  # pairs in one measurement that may be repeated because the clocks moved
FLOOR_SLACK = 0.9  # the measured bandwidth is itself accurate only to some per cent


def interval(samples) -> tuple[float, float, float]:
    """(low, median, high): the median and its 95 % confidence interval, from order statistics, which assume
    no distribution.

    The ranks are n / 2 -+ 1.96 sqrt(n) / 2 (normal approximation of the binomial; Conover, Practical
    Nonparametric Statistics, section 3.2). For fewer than 6 samples the interval is their range, which has
    less than 95 % confidence.
    """
    s, n = sorted(samples), len(samples)
    reach = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return s[low], statistics.median(s), s[high]


def half_width(samples) -> float:
    """Half of the 95 % confidence interval of the median, as a share of the median."""
    low, median, high = interval(samples)
    return (high - low) / 2 / median


def enough(samples, elapsed: float) -> bool:
    """Whether to stop sampling: after 20 samples if the median is known to 1 % or 10 s have passed; after 100
    samples in any case.
    """
    if len(samples) < MIN_SAMPLES:
        return False
    return len(samples) >= MAX_SAMPLES or half_width(samples) < PRECISION or elapsed >= MAX_SECONDS


def flush_bytes(l2_bytes: int) -> int:
    """Bytes to write before a sample to overwrite the L2 cache: twice its size, at least 256 MiB."""
    return max(2 * l2_bytes, 256 << 20)


def same_clock(first: float, second: float) -> bool:
    """Whether two clock rates (any unit; 0 if they cannot be read) differ by at most 5 % of the higher."""
    return abs(first - second) <= CLOCK_SPREAD * max(first, second)


def below_floor(seconds: float, bytes_read: int, bandwidth: float) -> bool:
    """Whether a time is too short to have read `bytes_read` from memory at `bandwidth` (bytes a second).

    Only reads count, as written data may stay in the L2 cache.
    """
    return seconds < FLOOR_SLACK * bytes_read / bandwidth


@dataclass(frozen=True)
class Pairs:
    """Times in seconds of a and b, taken as A B B A A B B A ...; ratios[i] is a's i-th over b's i-th."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    repeated: int = 0

    @property
    def ratios(self) -> list[float]:
        return [x / y for x, y in zip(self.a, self.b, strict=True)]

    @property
    def ratio(self) -> tuple[float, float, float]:
        """(low, median, high) of a over b."""
        return interval(self.ratios)

    @property
    def differ(self) -> bool:
        """Whether a and b differ significantly: 1 is outside the interval of the ratio. For equal a and b
        this happens one time in twenty.
        """
        low, _, high = self.ratio
        return not low <= 1 <= high

    def counters(self) -> dict[str, float]:
        """Plain floats for a report. A rubric row bounds "time.ratio_low", so that an interval that includes
        the bound gets the points.
        """
        low, median, high = self.ratio
        return {
            "time.seconds": statistics.median(self.a),
            "time.yardstick_seconds": statistics.median(self.b),
            "time.ratio": median,
            "time.ratio_low": low,
            "time.ratio_high": high,
            "time.samples": float(len(self.a)),
        }


class Unsteady(RuntimeError):
    """The device's clocks changed too often to take paired samples."""


def paired(sample_a, sample_b, elapsed) -> Pairs:
    """Take pairs of samples until the median of their ratio is known (``enough``).

    ``sample_a`` and ``sample_b`` return (seconds, clock rate), ``elapsed`` the seconds since the beginning.
    The order within a pair alternates, so that a drift of the device favours neither. A pair whose clock
    rates differ by more than 5 % is repeated; raises Unsteady after 20 of these.
    """
    times: tuple[list[float], list[float]] = ([], [])
    repeated = 0
    while not times[0] or not enough([x / y for x, y in zip(*times, strict=True)], elapsed()):
        swap = len(times[0]) % 2
        second, first = (sample_a, sample_b) if swap else (sample_b, sample_a)
        one, other = first(), second()
        if not same_clock(one[1], other[1]):
            repeated += 1
            if repeated > MAX_REPEATS:
                raise Unsteady(
                    f"the device's clock moved by more than {CLOCK_SPREAD:.0%} "
                    f"within {repeated} pairs of samples"
                )
            continue
        a, b = (other, one) if swap else (one, other)
        times[0].append(a[0])
        times[1].append(b[0])
    return Pairs(tuple(times[0]), tuple(times[1]), repeated)
