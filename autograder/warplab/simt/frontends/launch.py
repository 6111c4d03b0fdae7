"""One launch on the engine: checks the configuration, runs the program under all checks, and warns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import prod

import numpy as np

from warplab.hardware.target import LaunchLimits, Target
from warplab.simt.engine import repeats
from warplab.simt.engine.address_space import AddressSpace, Region
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import BarrierWarning, InvalidLaunch
from warplab.simt.sanitizer.constants import UnsetConstant, UnsetConstants
from warplab.simt.sanitizer.races import GlobalConflict, Races
from warplab.simt.sanitizer.uninitialised import InitialisationCheck

_programs: dict[tuple, Program] = {}
# blocks of a cluster: portable, and non-portable on an H100 (CUDA C++ Guide)
MOST_BLOCKS = {False: 8, True: 16}
CLUSTER_HINT = "__cluster_dims__(x, y, z) at the kernel, or the launch: kernel[grid, block, 0, 0, (x, y, z)]"
_warned: dict = {}  # the registry in which Python's warnings module keeps which warnings were shown


@dataclass(frozen=True)
class LaunchContext:
    """How a launch is run: for the limits of ``target``, with ``observers`` in addition to the checks of
    every launch.

    ``sample``: how many thread blocks to run, spread evenly over the grid; None: all. ``replicas``: several
    threads of a block may hold the same element, as in Triton (``sanitizer.races``).
    """

    target: Target
    observers: tuple = ()
    sample: int | None = None
    replicas: bool = False


def translated(
    modules: tuple[str, ...],
    entry: str,
    name: str,
    space: AddressSpace,
    variables: dict[tuple, Region] | None = None,
) -> Program:
    """The program of PTX ``modules``, the first of which has ``entry``; translated once a process.

    ``variables``: variables laid out by programs of the same source; a new program adds its own.
    """
    key = (id(space), id(variables), entry, *modules)
    if key not in _programs:
        _programs[key] = Program(modules[0], entry, name, space, modules[1:], variables)
    return _programs[key]


def run(
    program: Program,
    values,
    regions,
    grid,
    block,
    dynamic_shared,
    space: AddressSpace,
    context: LaunchContext,
    cluster: Cluster | None = None,
) -> Machine:
    """Check the configuration as CUDA does, run with ``values`` (the parameters' bytes), then unmap
    ``regions``.

    Warns: GlobalConflict for unordered conflicting accesses to global memory (also in
    ``machine.conflicts``), BarrierWarning for barriers that some threads of a block never reach and for
    warp-wide exchanges without lanes of their member mask, UnsetConstant for constant memory without a
    value. Raises InvalidLaunch for what CUDA refuses too, other LaunchErrors for errors of the kernel.
    Without ``observers`` in the context the launch may replay an earlier one (``engine.repeats``).
    """
    try:
        grid, block = _three(grid), _three(block)
        configuration = grid, block, dynamic_shared, cluster, context.target
        clustered, size = cluster_of(program, grid, cluster, context.target)
        if program.checked != configuration:
            check_limits(program, grid, block, dynamic_shared, context.target.limits)
            program.checked = configuration
        params = dict(zip(program.parameters, values, strict=True))
        if [*map(len, values)] != [*program.parameters.values()]:
            params = {name: params[name].ljust(size, b"\0") for name, size in program.parameters.items()}
        launch = Launch(grid, block, dynamic_shared, params, size, clustered)
        unset = [UnsetConstants()] if any(region.unset for region in program.regions) else []
        watched = clustered or context.observers or context.sample is not None or unset
        program.launches += not watched
        comes_again = not watched and program.launches > repeats.FULL_RUNS
        kind = _repeats_of(program).kind_of(launch, space) if comes_again else None
        if kind is not None and kind.replay():
            return Machine(program, space, launch)
        machine = Machine(program, space, launch, context.observers, context.sample)
        traced = kind is not None and kind.trace()
        unwritten, races = InitialisationCheck(), Races(context.replicas)
        machine.observers = [unwritten, races, *machine.observers, *unset]
        machine.run()
        if traced and kind is not None:
            mattered = races.values_mattered or bool(machine.sync_warnings)
            kind.keep(checks_hold=not (mattered or repeats.depend_on_values(program, unwritten.deciders)))
    finally:
        for region in regions:
            space.remove(region)
    machine.conflicts = races.conflicts
    _warn(program, machine, unset)
    return machine


def _warn(program: Program, machine: Machine, unset: list[UnsetConstants]) -> None:
    """Issue the warnings of a finished launch, each at its line of the kernel."""
    for c in machine.conflicts:
        warnings.warn_explicit(str(c), GlobalConflict, c.file or program.name, c.line, registry=_warned)
    for text, file, line in machine.sync_warnings.values():
        warnings.warn_explicit(text, BarrierWarning, file, line, registry=_warned)
    for constants in unset:
        for text, file, line in constants.texts(program):
            warnings.warn_explicit(text, UnsetConstant, file, line, registry=_warned)


@dataclass(frozen=True)
class Cluster:
    """The clusters that a launch asks for: blocks (x, y, z) of a cluster, () to leave that to the kernel;
    ``non_portable``: more blocks are allowed (``cudaFuncAttributeNonPortableClusterSizeAllowed``).
    """

    size: tuple[int, ...] = ()
    non_portable: bool = False


def cluster_of(
    program: Program, grid, asked: Cluster | None, target: Target
) -> tuple[bool, tuple[int, int, int]]:
    """(whether a launch uses clusters, blocks (x, y, z) of a cluster). Raises InvalidLaunch as CUDA does."""
    function, asked = program.function, asked or Cluster()
    if not (asked.size or function.cluster or function.explicit_cluster):
        return False, (1, 1, 1)

    def refuse(message, hint=""):
        raise InvalidLaunch(message, kernel=program.name, hint=hint)

    if not (asked.size or function.cluster):
        refuse(
            "the kernel uses clusters, and neither it nor the launch gives the number of blocks", CLUSTER_HINT
        )
    size = _three(asked.size or function.cluster)
    blocks, most = prod(size), MOST_BLOCKS[asked.non_portable]
    most = min(most, function.max_cluster or most)
    if function.cluster and size != _three(function.cluster):
        refuse(
            f"the launch asks for clusters of {size} blocks, the kernel was compiled for {function.cluster}"
        )
    if target.capability < (9, 0):
        refuse(f"{target.arch} has no thread block clusters", "WARPLAB_ARCH=sm_90")
    if min(size) < 1:
        refuse(f"a cluster of {size} blocks must be positive in every dimension")
    if blocks > most:
        hint = "fewer blocks in a cluster"
        if most == MOST_BLOCKS[False]:
            hint += f", or kernel.non_portable_cluster_size_allowed = True for up to {MOST_BLOCKS[True]}"
        refuse(f"a cluster of {blocks} blocks; the limit is {most}", hint)
    for axis, wide, one in zip("xyz", grid, size):
        if wide % one:
            refuse(
                f"grid dimension {axis} is {wide}, which is not a multiple of the {one} blocks of a cluster",
                "more blocks; those beyond the data only take part in barriers",
            )
    return True, size


def _repeats_of(program: Program) -> repeats.Repeats:
    if program.repeats is None:
        program.repeats = repeats.Repeats(program)
    return program.repeats


def _three(dims) -> tuple[int, int, int]:
    if type(dims) is tuple and len(dims) == 3 and type(dims[0]) is type(dims[1]) is type(dims[2]) is int:
        return dims
    given = (dims,) if isinstance(dims, int) else tuple(map(int, dims))
    x, y, z = given + (1,) * (3 - len(given))
    return x, y, z


def check_limits(program: Program, grid, block, dynamic_shared: int, limit: LaunchLimits) -> None:
    """Raise InvalidLaunch for a configuration that cudaLaunchKernel refuses, with the reason."""
    threads = block[0] * block[1] * block[2]

    def refuse(message, hint=""):
        raise InvalidLaunch(message, kernel=program.name, hint=hint)

    if min(grid) < 1 or min(block) < 1:
        refuse(
            f"grid {grid} and block {block} must be positive in every dimension",
            "n // size is 0 where n is smaller than a block: round up; an empty array needs no launch",
        )
    if threads > limit.max_threads_per_block:
        refuse(
            f"a block of {block[0]} x {block[1]} x {block[2]} = {threads} threads; "
            f"the limit is {limit.max_threads_per_block} a block",
            "fewer threads a block and more blocks",
        )
    for axis, size, most in zip("xyz", block, limit.max_block_dim):
        if size > most:
            refuse(f"block dimension {axis} is {size}; the limit is {most}", "another axis, or fewer threads")
    for axis, size, most in zip("xyz", grid, limit.max_grid_dim):
        if size > most:
            refuse(
                f"grid dimension {axis} is {size:,}; the limit is {most:,}",
                "more threads a block, or a grid-stride loop",
            )
    if program.max_threads and threads > program.max_threads:
        refuse(
            f"{threads} threads a block, but the kernel was compiled for at most {program.max_threads} "
            "(launch_bounds)"
        )
    if not isinstance(dynamic_shared, int | np.integer) or dynamic_shared < 0:
        text = f"{dynamic_shared!r} bytes of dynamic shared memory, which is not a whole number from 0 on"
        refuse(text, "kernel[grid, block, stream, shared_bytes]")
    shared = program.shared_static + dynamic_shared
    if program.shared_static > limit.max_static_shared:
        refuse(
            f"{program.shared_static:,} bytes of static shared memory; "
            f"the limit is {limit.max_static_shared:,} a block",
            "a smaller tile or element type",
        )
    if shared > limit.max_shared_per_block:
        refuse(
            f"{shared:,} bytes of shared memory; the limit is {limit.max_shared_per_block:,} a block",
            "a smaller tile or element type",
        )
