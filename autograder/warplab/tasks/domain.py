"""The domain of a task: which inputs are allowed. Statements must mention it; test cases are drawn from it.

    domain = {"rows": Whole(), "cols": Whole(multiple=4), "x": Values("float32", PLAIN, "equal", "zeros")}

An axis is one thing that may differ between cases: a size, a number, the contents of an array, an order.
places() combines corners of all axes; Task.at makes a case at each place. A test requires the `words` of each
axis in the statement; sizes from 1 on need none, as the opening of every set says that once.
"""

import itertools
from dataclasses import dataclass

import numpy as np

PLAIN = "plain"
"""The usual contents of arrays: numbers of ordinary size."""
BLOCK = 1024
"""The most threads that a block can have."""
BEYOND = (257, BLOCK + 1, 65_537)
"""Sizes just beyond common limits: blocks of 256 threads, the largest block, 16 bits."""


class Axis:
    """One thing that may differ between cases."""

    @property
    def words(self):
        """Texts that the statement must contain."""
        return ()

    @property
    def certain(self):
        """The corners that every check includes."""
        return ()

    def corners(self, rng):
        """A list of its corners (extreme or special values), some of them drawn at random."""
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(Axis):
    """A whole number from `least` to `most` (None: no limit) that is a multiple of `multiple`.

    upto: the largest number that a check can afford. says: the words required in the statement, if not the
    usual ones.
    """

    least: int = 1
    most: int | None = None
    multiple: int = 1
    upto: int = 1025
    says: tuple = ()

    @property
    def words(self):
        if self.says:
            return self.says
        if self.multiple > 1:
            return (f"multiple(s) of {self.multiple}",)
        if self.most is not None:
            return (f"{self.least:,} to {self.most:,}",)
        return () if self.least == 1 else (f"{self.least:,} or more",)

    @property
    def certain(self):
        return (BLOCK + 1,) if self.most is None else ()

    def corners(self, rng):
        """The least, 0, 1, an odd number, a prime, a power of two and its neighbour, BEYOND, the largest."""
        top = (self.upto if self.most is None else min(self.most, self.upto)) // self.multiple
        low = -(-self.least // self.multiple)
        powers = [2**k for k in range(1, 17) if low <= 2**k <= top]
        primes = [n for n in (3, 5, 7, 11, 13, 19, 31, 61, 127, 251) if low <= n <= top]
        power = int(rng.choice(powers)) if powers else low
        some = [low, 0, 1, 2, power, power + int(rng.choice([-1, 1])), int(rng.choice(primes or [low]))]
        some += [int(rng.integers(low, top + 1)) | 1, *BEYOND, top]
        return [self.multiple * n for n in dict.fromkeys(some) if low <= n <= top]


@dataclass(frozen=True, init=False)
class Choice(Axis):
    """One of several options, such as strings. said: whether the statement must mention them."""

    options: tuple
    said: bool = True

    def __init__(self, *options, said=False):
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "said", said)

    @property
    def words(self):
        return tuple(str(option) for option in self.options) if self.said else ()

    def corners(self, rng):
        return [self.options[n] for n in rng.permutation(len(self.options))]


DRAWERS = {
    PLAIN: lambda rng, shape: rng.normal(size=shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "signed zeros": lambda rng, shape: rng.choice([-0.0, 0.0], shape),
    "equal": lambda rng, shape: np.full(shape, rng.uniform(0.5, 2)),
    "negative": lambda rng, shape: -np.abs(rng.normal(size=shape)) - 0.01,
    "rising": lambda rng, shape: np.sort(rng.normal(size=shape), axis=-1),
    "falling": lambda rng, shape: -np.sort(rng.normal(size=shape), axis=-1),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "subnormal": lambda rng, shape: rng.integers(-9, 10, shape) * 2.0**-149,
    "large": lambda rng, shape: 1e13 * rng.normal(size=shape),
    "below -1e9": lambda rng, shape: -4e9 + 2000 * rng.normal(size=shape),
    "equal, far below -1e9": lambda rng, shape: np.full(shape, -3.3e38),
    "largest": lambda rng, shape: rng.choice([-3.4e38, 3.4e38], shape),
}
"""{kind of contents: function (rng, shape) -> float64 array}."""


@dataclass(frozen=True, init=False)
class Values(Axis):
    """The contents of an array of `dtype`: one of several kinds, which are keys of DRAWERS."""

    dtype: str
    kinds: tuple

    def __init__(self, dtype, *kinds):
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "kinds", kinds)

    @property
    def words(self):
        return (self.dtype,)

    @property
    def certain(self):
        return tuple(kind for kind in self.kinds if kind != PLAIN)

    def corners(self, rng):
        return [self.kinds[n] for n in rng.permutation(len(self.kinds))]

    def draw(self, rng, kind, shape):
        """A random array with contents of that kind."""
        return np.asarray(DRAWERS[kind](rng, shape), self.dtype)


def places(rng, domain, count, fits=lambda place: True):
    """`count` places, each {axis: value}, that cover all corners and many pairs of corners, if count allows.

    Then one more place for each `certain` corner not covered yet. fits: whether a place is affordable and
    allowed; where no place with a corner fits, that is left out.
    """
    corners = {name: axis.corners(rng) for name, axis in domain.items()}
    unseen = {(name, value) for name, values in corners.items() for value in values}
    certain = [{name: value} for name, axis in domain.items() for value in axis.certain]
    pairs, found = set(), []
    for part in [{}] * count + certain:
        if any((name, value) not in unseen for name, value in part.items()):
            continue
        best, most = None, -1
        for _ in range(60):
            place = {name: values[rng.integers(len(values))] for name, values in corners.items()} | part
            if not fits(place):
                continue
            new = [30 if value in BEYOND else 10 for name, value in place.items() if (name, value) in unseen]
            gain = sum(new) + len(set(itertools.combinations(place.items(), 2)) - pairs)
            if gain > most:
                best, most = place, gain
        if best is not None:
            found.append(best)
            unseen -= set(best.items())
            pairs |= set(itertools.combinations(best.items(), 2))
    return found
