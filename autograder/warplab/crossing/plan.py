"""Launch plans: (grid, block[, shared bytes]) from a student, checked against CUDA's limits."""

import math

from warplab.crossing.arrays import NotPlain, as_array, named
from warplab.crossing.explain import Refused

MAX_LAUNCH = 1 << 26  # threads of one launch: minutes on one core


def checked_plan(value, name, limits):
    """Validate (grid, block) or (grid, block, shared_bytes); dimensions are one to three ints, or one int.

    name: what returned it, for messages. limits: the LaunchLimits of the target. Shared memory is limited to
    what a block gets without opting in to more. Raises Refused.
    """
    if type(value) not in (tuple, list) or len(value) not in (2, 3):
        got = f"{len(value)} values" if type(value) in (tuple, list) else named(value)
        raise Refused(f"`{name}` must return (grid, block) or (grid, block, shared_bytes), got {got}")
    grid = _dimensions(value[0], "grid", limits.max_grid_dim, name)
    block = _dimensions(value[1], "block", limits.max_block_dim, name)
    threads = math.prod(block)
    shared, total = 0, threads * math.prod(grid)
    if len(value) == 3:
        shared = _whole(value[2], f"`{name}` needs whole numbers in shared_bytes")
    for asked, least, most, what in (
        (threads, 1, limits.max_threads_per_block, "threads a block"),
        (shared, 0, limits.max_static_shared, "bytes of shared memory"),
        (total, 1, MAX_LAUNCH, "threads in all"),
    ):
        if not least <= asked <= most:
            limit = most if asked > most else least
            raise Refused(f"`{name}` asks for {asked:,} {what}, the limit is {limit:,}")
    return grid, block, shared


def _dimensions(value, what, limits, name):
    sizes = value if type(value) in (tuple, list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise Refused(f"`{name}` asks for a {what} with {len(sizes)} dimensions; it has one to three")
    sizes = tuple(_whole(size, f"`{name}` needs whole numbers in the {what}") for size in sizes)
    for axis, size, limit in zip("xyz", sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise Refused(
                f"`{name}` asks for a {what} of {sizes}; dimension {axis} must lie between 1 and {limit:,}"
            )
    return sizes


def _whole(value, message):
    try:
        number = as_array(value, "integers")
    except NotPlain as problem:
        raise Refused(f"{message}: {problem}") from None
    if number.ndim:
        raise Refused(f"{message}, got a list")
    return int(number)
