"""Compares arrays with expected values, and derives tolerances from error bounds."""

import re

import numpy as np

from warplab.tasks.wrong_places import pattern

MAX_DIFFERENTIATED = 4096


def sum_tolerance(terms, magnitude, dtype: type[np.floating] = np.float32, slack=2.0):
    """The largest rounding error that a correct sum of `terms` products can have, element by element.

    Formula: slack * (terms + 1) * u * sum(|a| * |b|), with u the unit roundoff (2**-24 for float32). It is
    the bound of Higham, Accuracy and Stability of Numerical Algorithms, section 3.1, and holds for ANY
    order of summation, with or without fused multiply-add: no correct kernel is refused, but one that sums
    in float16 is.

    terms: K, the length of the sum. magnitude: |A| @ |B| (float64 array, the outputs' shape).
    """
    unit = np.finfo(dtype).eps / 2
    return slack * (terms + 1) * unit * np.asarray(magnitude, dtype=np.float64)


def gradient_check(forward, x, grad_out):
    """(gradient, error bound) of sum(forward(x) * grad_out) by x, by finite differences in float64.

    Central differences with steps h and h / 2, h = 1e-3 * max(1, |x|), extrapolated (Richardson). A third of
    the difference between the two bounds the truncation error; rounding adds at most
    4 eps sum(|y| |grad_out|) over the half step, for those y that depend on x.
    forward: float64 array like x -> array like grad_out; called 4 x.size times, so x may have 4,096 elements.
    """
    x, weight = np.array(x, dtype=np.float64), np.asarray(grad_out, dtype=np.float64)
    if x.size > MAX_DIFFERENTIATED:
        raise ValueError(
            f"finite differences of {x.size:,} numbers take too long; the limit is {MAX_DIFFERENTIATED:,}: "
            "use a smaller case"
        )
    gradient, error = np.empty(x.shape), np.empty(x.shape)
    for place in np.ndindex(x.shape):
        step = 1e-3 * max(1.0, abs(x[place]))
        whole, half = (_central(forward, x, place, size, weight) for size in (step, step / 2))
        gradient[place] = (4 * half[0] - whole[0]) / 3
        error[place] = abs(half[0] - whole[0]) / 3 + half[1]
    return gradient, error


def _central(forward, x, place, step, weight):
    """(difference quotient, bound of its rounding error) of one coordinate."""
    ends = []
    for sign in (1, -1):
        moved = x.copy()
        moved[place] += sign * step
        ends.append((moved[place], np.asarray(forward(moved), dtype=np.float64)))
    (right, up), (left, down) = ends
    changed = (up != down) * np.abs(weight) * (np.abs(up) + np.abs(down))
    return float(((up - down) * weight).sum() / (right - left)), float(
        2 * np.finfo(np.float64).eps * changed.sum() / step
    )


def far(got, expected, tolerance: float | np.ndarray = 0.0):
    """A bool array: which elements differ by more than the tolerance, as in difference()."""
    if got.dtype.kind in "iub" and expected.dtype.kind in "iub":
        return _far_integers(got, expected, tolerance)
    return _far_reals(got.astype(np.float64), expected.astype(np.float64), tolerance)


def difference(name, got, expected, tolerance=0.0, untouched=None, launch=None):
    """One sentence on how `got` differs from `expected`, or None when it does not.

    got, expected: plain arrays; shapes must match exactly. name: of the result.
    tolerance: absolute, a scalar or an array like `expected`.
    untouched: what the array held before a kernel ran, if one did, to tell elements that were never written.
    launch: its (grid, block) if known, to describe wrong elements by blocks.
    NaN matches only NaN, and an infinity only the same infinity. Elements with an infinite tolerance are not
    compared.
    """
    who = re.sub(r"^`(\w+)\[(\d+)\]`$", r"`\1` of rank \2", f"`{name}`")
    if got.shape != expected.shape:
        if got.ndim < 2 and expected.ndim == 1:  # lengths are clearer than shapes for a list
            return f"{who} has {_count(got)}, expected {_count(expected)}"
        return f"{who} has shape {_shape(got.shape)}, expected {_shape(expected.shape)}"
    wrong = far(got, expected, tolerance)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    if untouched is not None and got.tobytes() == untouched.tobytes():
        added = (
            ", only added to (it does not begin at 0), or computed from what was never written"
            if untouched.dtype.kind == "f" and np.isnan(untouched).all()
            else ""
        )
        return f"{who} was never written to{added}"
    if got.ndim == 0:
        return "{} is {}, expected {}".format(who, *_apart(got, expected))
    if got.size <= 4 and got.ndim == 1:
        return "{} is [{}], expected [{}]".format(who, *_apart(got, expected))
    places = (
        f"{count:,} of {got.size:,} places"
        if count < got.size
        else f"all {count:,} places"
        if count > 1
        else "its one place"
    )
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = ", ".join(map(str, first))
    same = untouched is not None and got[first].tobytes() == untouched[first].tobytes()
    value, right = _apart(got[first], expected[first])
    value = "nothing (never written)" if same else value
    limits = np.broadcast_to(tolerance, expected.shape)
    told = pattern(
        got, expected, wrong, lambda values, at=...: ~far(values, expected[at], limits[at]), launch
    )
    return (
        f"{who} is wrong at {places}{told and ', ' + told}; first at [{where}]: got {value}, expected {right}"
    )


def _far_integers(got, expected, tolerance):
    if not np.any(tolerance):
        return got != expected
    return (
        np.abs(got.astype(np.float64) - expected.astype(np.float64)) > tolerance
    )  # an infinite tolerance lets all pass


def _far_reals(got, expected, tolerance):
    with np.errstate(invalid="ignore"):
        near = np.abs(got - expected) <= tolerance
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    return ~(same | (near & np.isfinite(got) & np.isfinite(expected)) | np.isinf(tolerance))


def _count(row):
    return f"{row.size:,} numbers" if row.size != 1 else "1 number" if row.ndim else "a single number, no row"


def _shape(shape):
    return str(tuple(shape)) if shape else "() of a single number"


def _apart(got, expected):
    """Both numbers as texts, with as many digits as are needed to see the difference."""
    for digits in (6, 9, 12, 17):
        texts = [", ".join(_value(n, digits) for n in np.ravel(numbers)) for numbers in (got, expected)]
        if texts[0] != texts[1]:
            break
    return texts


def _value(number, digits):
    return f"{number:.{digits}g}" if isinstance(number, np.floating) else f"{int(number):,}"
