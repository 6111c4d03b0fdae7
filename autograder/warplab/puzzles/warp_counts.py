"""One warp on the engine: what its 32 lanes ask for, what it costs, what they hold afterwards."""

import warnings
from dataclasses import replace

import numpy as np
from numba import cuda, float32

from warplab.plots import warp_request as lanes
from warplab.simt.profile import profile

REACH = 4096  # numbers in the array that a puzzle's lanes may read
WORDS = 1024  # words of the table in shared memory


@cuda.jit
def gather(x, places, out):
    lane = cuda.threadIdx.x
    out[lane] = x[places[lane]]


@cuda.jit
def look_up(places, out):
    table = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for row in range(WORDS // 32):
        table[32 * row + lane] = row
    cuda.syncwarp()
    out[lane] = table[places[lane]]


def global_request(place):
    """The WarpRequest of 32 lanes that read x[place(lane)], x float32."""
    places = _places(place, REACH)
    counted = profile(gather[1, 32], np.zeros(REACH, np.float32), places, np.zeros(32, np.float32))
    found = next(one for one in counted.samples if one.kind == "read" and "'x'" in one.label)
    return replace(found, label="x")


def shared_request(place):
    """The WarpRequest of 32 lanes that read table[place(lane)], a table of float32 in shared memory."""
    counted = profile(look_up[1, 32], _places(place, WORDS), np.zeros(32, np.float32))
    return next(one for one in counted.samples if one.kind == "read" and one.space == "shared")


def drawn(request):
    """The request as an SVG, with its finding for those who cannot see it."""
    return lanes.svg(request, f"{lanes.finding(request, request.label)}.")


def after(kernel, *arrays):
    """The last of `arrays` after one warp has run `kernel`; what it is warned of is the puzzle's point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile(kernel[1, 32], *arrays)
    return arrays[-1]


def _places(place, limit):
    places = np.array([place(lane) for lane in range(32)])
    if not np.issubdtype(places.dtype, np.integer):
        raise TypeError("an index is a whole number for every lane (// divides without a fraction)")
    if places.min() < 0 or places.max() >= limit:
        lane = int(np.argmax((places < 0) | (places >= limit)))
        raise IndexError(
            f"lane {lane} asks for place {places[lane]}, and the array has places 0 to {limit - 1}"
        )
    return places
