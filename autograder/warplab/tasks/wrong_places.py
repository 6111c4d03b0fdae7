"""Describes what is wrong with a result: column 0, every 32nd element, the last block, transposed, a factor.

Every rule is exact: a rule about places applies only if the wrong elements are exactly its set, and a rule
about values only if it holds for every wrong element. If none applies nothing is said.
"""

import math
from typing import Any

import numpy as np

MOST = 1 << 22  # elements of the largest array that is analysed
SHARED = 1e-3  # relative difference below which two factors count as equal


def pattern(got, expected, wrong, near, launch=None):
    """A clause that describes all wrong elements; "" where no rule applies.

    got, expected: arrays of one shape. wrong: bool, the same shape, at least one True.
    near(values, place=...) -> bool array: whether values are within the tolerance of expected[place].
    launch: (grid, block) if known.
    """
    if not wrong.ndim or not 2 <= wrong.size <= MOST:
        return ""
    return _values(got, expected, wrong, near) or places(wrong, launch)


def places(wrong, launch=None):
    """Where the wrong elements are, as a clause; "" where no rule applies, and for one or all elements."""
    if wrong.all() or np.count_nonzero(wrong) == 1:
        return ""
    for name, mask in _sets(wrong, launch):
        if np.array_equal(mask, wrong):
            return name
    return ""


def _sets(wrong, launch):
    """Yield (name, bool array) of every named set of elements that begins where the wrong ones do."""
    shape = wrong.shape
    indices = np.argwhere(wrong)
    if wrong.ndim == 1:
        yield from _of_a_vector(wrong, launch)
        return
    for axis, name in _axes(shape):
        along = np.unique(indices[:, axis])
        lines = np.zeros(shape, bool)
        np.moveaxis(lines, axis, 0)[along] = True
        for clause in _of_an_axis(along, shape[axis], name):
            yield clause, lines
    if wrong.ndim == 2:
        border = np.ones(shape, bool)
        border[1:-1, 1:-1] = False
        yield "the border: the first and last rows and columns", border
        diagonal = np.eye(*shape, dtype=bool)
        yield "the diagonal", diagonal
        yield "all but the diagonal", ~diagonal
        yield "everything above the diagonal", np.triu(np.ones(shape, bool), 1)
        yield "everything below the diagonal", np.tril(np.ones(shape, bool), -1)
        yield from _of_a_grid(shape, launch)
    first = int(np.flatnonzero(wrong)[0])
    rest = np.arange(wrong.size).reshape(shape) >= first
    yield f"everything from {_index(indices[0])} on", rest
    yield (
        f"everything up to {_index(indices[-1])}",
        np.arange(wrong.size).reshape(shape) <= np.flatnonzero(wrong)[-1],
    )


def _of_a_vector(wrong, launch):
    """The named sets of elements of a one-dimensional array that begin and end as the wrong ones do."""
    numbers = np.arange(wrong.size)
    at = np.flatnonzero(wrong)
    first, last = int(at[0]), int(at[-1])
    block = covering(launch, wrong.shape)
    if block:
        starts = (wrong.size - 1) // block * block
        yield f"the last block's {wrong.size - starts} places, from [{starts}] on", numbers >= starts
        yield "all blocks but the first", numbers >= block
        yield "the first block", numbers < block
    if len(at) > 2:
        step = int(at[1] - at[0])
        if step > 1:
            yield (
                f"every {_ordinal(step)} place, from [{first}] on",
                (numbers >= first) & ((numbers - first) % step == 0),
            )
        right = np.flatnonzero(~wrong)
        if len(right) > 2 and (step := int(right[1] - right[0])) > 1:
            kept = (numbers >= right[0]) & ((numbers - right[0]) % step == 0)
            yield f"all but every {_ordinal(step)} place, which begin at [{right[0]}]", ~kept
    ends = (numbers == 0) | (numbers == wrong.size - 1)
    yield "the first and the last place", ends
    yield f"everything from [{first}] on", numbers >= first
    yield f"everything up to [{last}]", numbers <= last
    yield f"the places [{first}] to [{last}]", (numbers >= first) & (numbers <= last)


def _of_an_axis(along, size, name):
    """The named sets of whole lines across an axis. along: which indices of the axis are wrong."""
    first, last = int(along[0]), int(along[-1])
    if len(along) == 1:
        yield f"all of {name} {first}{', the last one' if first == size - 1 and size > 1 else ''}"
        return
    steps = np.diff(along)
    if (steps == 1).all():
        if last == size - 1:
            yield f"every {name} from {first} on"
        elif not first:
            yield f"every {name} up to {last}"
        else:
            yield f"the {name}s {first} to {last}"
    elif len(along) == 2 and (first, last) == (0, size - 1):
        yield f"the first and the last {name}"
    elif (steps == steps[0]).all() and last + steps[0] >= size:
        yield f"every {_ordinal(int(steps[0]))} {name}, from {first} on"


def _of_a_grid(shape, launch):
    """The named sets of elements that blocks of threads cover, where x is the column."""
    tile = covering(launch, shape)
    if not tile:
        return
    height, width = tile
    rows, columns = np.indices(shape)
    bottom, right = (shape[0] - 1) // height * height, (shape[1] - 1) // width * width
    corner = (rows >= bottom) & (columns >= right)
    if bottom and right:
        yield f"the last block, from [{bottom}, {right}] on", corner
    yield "the last blocks of each row and column", (rows >= bottom) | (columns >= right)
    yield "everything but the first block", (rows >= height) | (columns >= width)
    yield (
        "the edges of the blocks",
        (
            (rows % height == 0)
            | (rows % height == height - 1)
            | (columns % width == 0)
            | (columns % width == width - 1)
        ),
    )


def covering(launch, shape) -> Any:
    """The part of an array that a block covers, a length or (rows, columns), if the grid just covers it."""
    if not launch:
        return None
    (gx, gy, gz), (bx, by, bz) = (tuple([*dims, 1, 1])[:3] for dims in launch)
    if gz * bz != 1:
        return None
    if len(shape) == 1 and gy * by == 1 and gx == -(-shape[0] // bx) > 1:
        return bx
    if len(shape) == 2 and gx * gy > 1 and gx == -(-shape[1] // bx) and gy == -(-shape[0] // by):
        return by, bx
    return None


def _axes(shape):
    """[(axis, name)] of the axes whose lines have a name, such as "column"."""
    if len(shape) == 2:
        return ((1, "column"), (0, "row"))
    return tuple((axis, f"plane of index {axis}") for axis in range(len(shape)) if shape[axis] > 1)


def _values(got, expected, wrong, near):
    """What the wrong values are, as a clause: transposed, shifted, a factor, an offset."""
    if expected.size < 4 or np.array_equal(expected, np.broadcast_to(expected.flat[0], expected.shape)):
        return ""
    if got.ndim == 2 and got.shape[0] == got.shape[1] and near(got.T).all():
        return "it is the transpose of what is expected"
    if got.ndim == 2 and got.shape[0] > 1 and near(got[::-1]).all():
        return "its rows stand upside down"
    if near(np.flip(got, -1)).all():
        return "it is the wrong way round" if got.ndim == 1 else "its rows run backwards"
    shifted = _shifted(got, near)
    return shifted or _scaled(got, expected, wrong, near)


def _shifted(got, near):
    for axis in reversed(range(got.ndim)):
        size = got.shape[axis]
        if size < 3:
            continue
        here, there = [slice(None)] * got.ndim, [slice(None)] * got.ndim
        for step, words in ((1, "one too far on"), (-1, "one too early")):
            here[axis], there[axis] = (slice(1, None), slice(None, -1))[::step]
            if near(got[tuple(here)], tuple(there)).all():
                along = "" if got.ndim == 1 else f", along axis {axis}"
                return f"every value stands {words}{along}"
    return ""


def _scaled(got, expected, wrong, near):
    """A clause if all wrong values are off by the same factor or the same offset; else ""."""
    have, want = got[wrong].astype(float), expected[wrong].astype(float)
    if have.size < 3 or not (np.isfinite(have).all() and np.isfinite(want).all()):
        return ""
    if (want != 0).all() and np.ptp(np.abs(want)) > 0:
        factors = have / want
        factor = float(np.median(factors))
        if factor and np.abs(factors - factor).max() <= SHARED * abs(factor) and abs(factor - 1) > SHARED:
            return f"each wrong value is {_number(factor)} times what is expected"
    more = have - want
    much = float(np.median(more))
    if much and np.ptp(want) > 0 and np.abs(more - much).max() <= SHARED * abs(much):
        return f"each wrong value is {_number(abs(much))} too {'large' if much > 0 else 'small'}"
    return ""


def _number(value):
    """2, -1, 1/9 or 0.299."""
    if value == round(value):
        return f"{value:.0f}"
    inverse = 1 / value if value else math.inf
    if 1.5 < abs(inverse) < 1e6 and abs(inverse - round(inverse)) <= SHARED * abs(inverse):
        return f"1/{inverse:.0f}" if inverse > 0 else f"-1/{-inverse:.0f}"
    return f"{round(value)}" if abs(value - round(value)) <= SHARED * abs(value) else f"{value:.3g}"


def _ordinal(number):
    """2nd, 3rd, 11th, 32nd."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _index(index):
    return f"[{', '.join(map(str, index))}]"
