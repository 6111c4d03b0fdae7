"""What a set of timed samples says, and what it does not: medians, their confidence, pairs, floors.

No clock is read here.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

MIN_SAMPLES, MAX_SAMPLES, PRECISION, MAX_SECONDS = 20, 100, 0.01, 10.0
CLOCK_SPREAD = 0.05
MAX_REPEATS = 20  # pairs in one measurement that may be repeated because the clocks moved
FLOOR_SLACK = 0.9  # measured bandwidth is itself known to some per cent only


def interval(samples) -> tuple[float, float, float]:
    """(low, median, high): the 95 % confidence interval of the median.

    From order statistics, which ask for no distribution.
    The ranks are n / 2 -+ 1.96 sqrt(n) / 2 (normal approximation of the binomial; Conover, Practical
    Nonparametric Statistics, section 3.2). Below 6 samples the interval is all of them, and says less than
    that.
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
    """Whether to stop: 20 samples at least, 100 at most; in between a median known to 1 %, or 10 s."""
    if len(samples) < MIN_SAMPLES:
        return False
    return len(samples) >= MAX_SAMPLES or half_width(samples) < PRECISION or elapsed >= MAX_SECONDS


def flush_bytes(l2_bytes: int) -> int:
    """Bytes to write before a sample so that nothing of the last one is left in the L2 cache.

    Twice the cache's size, 256 MiB at least.
    """
    return max(2 * l2_bytes, 256 << 20)


def same_clock(first: float, second: float) -> bool:
    """Whether two clock rates (any unit; 0 where they cannot be read) lie within 5 % of the higher one."""
    return abs(first - second) <= CLOCK_SPREAD * max(first, second)


def below_floor(seconds: float, bytes_read: int, bandwidth: float) -> bool:
    """Whether a time is too short to have read `bytes_read` from memory at `bandwidth` (bytes a second).

    Reads alone: what is written may stay in the L2 cache.
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
        """Whether a and b are told apart: 1 lies outside the interval of the ratio.

        Of A against A that happens one time in twenty.
        """
        low, _, high = self.ratio
        return not low <= 1 <= high

    def counters(self) -> dict[str, float]:
        """Plain floats for a report. A bound on "time.ratio_low" gives a straddled band the higher points."""
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
    """The device's clocks never held still for long enough."""


def paired(sample_a, sample_b, elapsed) -> Pairs:
    """Take pairs until the median of their ratio is known.

    sample_a, sample_b: () -> (seconds, clock rate); elapsed: () -> seconds. The order within a pair
    alternates, so that a drift of the device favours neither. A pair between whose samples the clock moved by
    more than 5 % is taken again. Raises Unsteady after 20 of those.
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
