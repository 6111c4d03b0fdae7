"""Drawings of a failure, as small plain data, made from validated arrays and records.

A drawing is a dict with its "kind": "values" (got, expected, where they differ), "threads" (what one or two
threads did), "lanes" (active lanes on the lines that issue most), "engines" (of a virtual device), "messages"
(between ranks). warplab.plots.failures and feedback.html.j2 draw them.
"""

import numpy as np

from warplab.crossing.arrays import NotPlain, as_array
from warplab.tasks.compare import far
from warplab.tasks.wrong_places import covering

ROWS, COLUMNS = 24, 36  # most cells of a picture; a larger array is scaled down
FEWEST, FEWEST_IN_A_ROW = 16, 6  # fewest elements for a picture, for a curve
SHADES = "0123456789abcdef"  # shade of a cell, from the smallest to the largest value; "." for NaN


def drawings(task, case, outcome):
    """The drawings of one case that is wrong or too costly; () if there is nothing to draw."""
    found = [{"kind": "threads", "acts": record["acts"]} for record in outcome.findings if record.get("acts")]
    for record in outcome.findings:
        names = ("file", "line", "warps", "threads")
        lines = [dict(zip(names, row, strict=True)) for row in record.get("lanes", ())]
        found += [{"kind": "lanes", "acts": lines}] if lines else []
    if outcome.trace:
        found.append(outcome.trace)
    if not outcome.error and not outcome.modified:
        with np.errstate(all="ignore"):  # of a student's NaN and infinities
            found += _values(task, case, outcome)
    return tuple(found[:3])


def _values(task, case, outcome):
    """[drawing] of the first wrong result; [] where it has too few elements."""
    _, tolerance = task.expected(case)
    for name, want in task.compared(case).items():
        try:
            got = as_array(outcome.outputs[name], task.kind_of(name, case.inputs))
        except (KeyError, NotPlain):
            return []
        if got.shape != want.shape:
            return []
        wrong = far(got, want, tolerance.get(name, 0.0))
        if wrong.any():
            picture = values(name, got, want, wrong, outcome.launch)
            return [picture] if picture else []
    return []


def values(name, got, want, wrong, launch=()):
    """The drawing of an array with wrong elements; None for too few elements or more than two axes."""
    image = got.ndim == 3 and got.shape[2] in (3, 4)
    if not (got.ndim in (1, 2) or image) or got.size < (FEWEST_IN_A_ROW if got.ndim == 1 else FEWEST):
        return None
    shape = got.shape[:2] if image else got.shape
    if image:
        got, want, wrong = got.mean(2, dtype=float), want.mean(2, dtype=float), wrong.any(2)
    strip = min(shape) == 1 or len(shape) == 1
    rows, columns = (1, got.size) if strip else shape
    block = covering(launch, shape) or ()
    if len(shape) == 2 and strip and block:
        block = block[shape.index(max(shape))]
    grid = (min(rows, ROWS), min(columns, 2 * COLUMNS if rows == 1 else COLUMNS))
    drawn = {
        "kind": "values",
        "name": name,
        "shape": list(shape),
        "count": int(wrong.sum()),
        "wrong": _shaded(_shrunk(wrong.reshape(rows, columns), grid, np.max), 0.0, 1.0),
        "block": np.atleast_1d(block).tolist(),
    }
    low, high = _range(want)
    if strip and got.size <= 2 * COLUMNS:
        drawn["curve"] = {
            "range": [f"{low + 0.0:.4g}", f"{high + 0.0:.4g}"],
            "got": _levels(got.ravel(), low, high),
            "expected": _levels(want.ravel(), low, high),
        }
    if not strip:
        drawn["got"] = _shaded(_shrunk(got, grid, np.mean), low, high)
        drawn["expected"] = _shaded(_shrunk(want, grid, np.mean), low, high)
    return drawn


def _shrunk(array, grid, take):
    """The array scaled down to grid[0] x grid[1] cells; take: reduces the elements of a cell to one."""
    array = array.astype(float)
    edges = [
        np.linspace(0, size, cells + 1).astype(int) for size, cells in zip(array.shape, grid, strict=True)
    ]
    if array.shape == grid:
        return array
    return np.array(
        [
            [take(array[top:bottom, left:right]) for left, right in zip(edges[1], edges[1][1:], strict=False)]
            for top, bottom in zip(edges[0], edges[0][1:], strict=False)
        ]
    )


def _range(want):
    """(least, largest) expected number, which become black and white."""
    finite = want[np.isfinite(want)].astype(float)
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _levels(row, low, high):
    """Heights 0 to 100 of numbers in a curve, with a quarter of the range above and below; None for NaN."""
    scale = max(abs(low), abs(high)) or 1.0
    row, low, high = row.astype(float) / scale, low / scale, high / scale
    room = (high - low) / 4 or 0.25
    share = (row - low + room) / (high - low + 2 * room)
    heights = np.clip(np.nan_to_num(100 * share, nan=0.0, posinf=100.0, neginf=0.0), 0, 100).round()
    return [None if np.isnan(one) else int(height) for one, height in zip(row, heights, strict=True)]


def _shaded(array, low, high):
    """A string for each row, with a character of SHADES for each cell."""
    with np.errstate(all="ignore"):
        share = (array - low) / ((high - low) or 1.0)
        steps = np.clip(np.nan_to_num(share * 15.999, nan=-1.0, posinf=15, neginf=0), -1, 15).astype(int)
    steps[np.isnan(array)] = -1
    return ["".join("." if step < 0 else SHADES[step] for step in row) for row in steps]
