"""Launch plans: (grid, block[, shared bytes]) from a student, checked against the limits of CUDA before anything runs."""

import math

from warplab.crossing.errors import Refused
from warplab.plain import NotPlain, as_array

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_SHARED_BYTES = 48 * 1024
MAX_LAUNCH = 1 << 26  # threads of one launch: minutes on one core


def checked_plan(value, name):
    """Validate (grid, block) or (grid, block, shared_bytes); dimensions are ints or tuples of one to three ints."""
    if type(value) not in (tuple, list) or len(value) not in (2, 3):
        raise Refused(f"`{name}` must return (grid, block) or (grid, block, shared_bytes)")
    grid = _dimensions(value[0], "grid", MAX_GRID, name)
    block = _dimensions(value[1], "block", MAX_BLOCK, name)
    threads = math.prod(block)
    if threads > MAX_THREADS:
        raise Refused(f"`{name}` asks for {threads:,} threads a block, the limit is {MAX_THREADS:,}")
    shared = 0
    if len(value) == 3:
        shared = _whole(value[2], f"`{name}` must return shared_bytes as a whole number")
    if not 0 <= shared <= MAX_SHARED_BYTES:
        raise Refused(f"`{name}` asks for {shared:,} bytes of shared memory, the limit is {MAX_SHARED_BYTES:,}")
    if threads * math.prod(grid) > MAX_LAUNCH:
        raise Refused(f"`{name}` asks for {threads * math.prod(grid):,} threads in all, the limit is {MAX_LAUNCH:,}")
    return grid, block, shared


def _dimensions(value, what, limits, name):
    sizes = value if type(value) in (tuple, list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise Refused(f"`{name}` returned a {what} with {len(sizes)} dimensions; it has one to three")
    sizes = tuple(_whole(size, f"`{name}` must return whole numbers in the {what}") for size in sizes)
    for size, limit in zip(sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise Refused(f"`{name}` returned {size:,} in the {what} {sizes}; each entry lies between 1 and {limit:,}")
    return sizes


def _whole(value, message):
    try:
        number = as_array(value, "integers")
    except NotPlain as problem:
        raise Refused(f"{message}: {problem}") from None
    if number.ndim:
        raise Refused(f"{message}, got a list")
    return int(number)
