"""One launch on the engine: from a compiled numba kernel and Python arguments to a machine that runs it."""

from __future__ import annotations

import contextlib
import inspect
import warnings

from ..engine.machine import Launch, Machine
from ..engine.memory import AddressSpace
from ..engine.program import Program
from ..errors import InvalidLaunch
from ..sanitizer.global_races import GlobalConflict, GlobalRaces
from ..sanitizer.races import RaceDetector
from ..sanitizer.uninitialised import InitialisationCheck
from .arguments import flatten
from .linking import linked_ptx

_programs: dict[tuple, Program] = {}
_observers: list = []
_sample: int | None = None
_warned: dict = {}  # Python's memory of which warnings were shown


@contextlib.contextmanager
def observed_by(*observers):
    """Within the block, launches on the engine also report to ``observers``."""
    _observers.extend(observers)
    try:
        yield
    finally:
        del _observers[-len(observers) :]


@contextlib.contextmanager
def running_only(blocks: int | None):
    """Within the block, launches on the engine run only so many thread blocks, spread evenly over the grid; None: all."""
    global _sample
    before, _sample = _sample, blocks
    try:
        yield
    finally:
        _sample = before


def program_of(kernel, space: AddressSpace, capability=None) -> Program:
    """The translated program of a compiled numba kernel for a compute capability (default: the device's own)."""
    name = getattr(getattr(kernel, "py_func", None), "__name__", None) or kernel.entry_name
    return program_of_library(kernel._codelibrary, kernel.entry_name, name, space, capability)


def ptx_of_library(library, entry: str, capability=None) -> tuple[str, ...]:
    """PTX of a code library and of what it links, the module with ``entry`` first."""
    capability = library._ensure_cc(capability)
    modules = library.get_asm_strs(cc=capability)  # more than one where the kernel is compiled for debugging
    first = next((m for m in modules if f".entry {entry}(" in m), modules[0])
    return (first, *(m for m in modules if m is not first), *linked_ptx(library, capability))


def ptx_of(kernel, capability=None) -> tuple[str, ...]:
    """PTX of a compiled numba kernel and of what it links, the module with its entry first."""
    return ptx_of_library(kernel._codelibrary, kernel.entry_name, capability)


def program_of_library(library, entry: str, name: str, space: AddressSpace, capability=None) -> Program:
    """The same from numba's code library and the name of the entry in it."""
    modules = ptx_of_library(library, entry, capability)
    key = (id(space), entry, *modules)
    program = _programs.get(key)
    if program is None:
        program = _programs[key] = Program(modules[0], entry, name, space, modules[1:])
    return program


def launch_on_engine(kernel, args, grid, block, dynamic_shared, space: AddressSpace, capability=None) -> Machine:
    """Launch a compiled numba kernel. Raises as ``run`` does."""
    program = program_of(kernel, space, capability)
    names = list(inspect.signature(kernel.py_func).parameters) if hasattr(kernel, "py_func") else [f"arg{i}" for i in range(len(args))]
    values, regions, after = flatten(names, kernel.argument_types, args, space, getattr(kernel, "extensions", ()))
    machine = run(program, values, regions, grid, block, dynamic_shared, space)
    for call in after:
        call()
    return machine


def run(program: Program, values, regions, grid, block, dynamic_shared, space: AddressSpace) -> Machine:
    """Check the configuration as CUDA does, run with ``values`` (bytes) as parameters, then unmap ``regions``.

    Warns (GlobalConflict) where threads met in global memory with nothing to order them; ``machine.conflicts`` has these too.
    Raises InvalidLaunch for what CUDA refuses, other LaunchError subclasses for what goes wrong while running.
    """
    from ...device import limits

    try:
        grid, block = _three(grid), _three(block)
        check_limits(program, grid, block, dynamic_shared, limits())
        params = {p.name: v.ljust(p.size, b"\0") for p, v in zip(program.function.params, values, strict=True)}
        conflicts = GlobalRaces()
        checks = [RaceDetector(), InitialisationCheck(), conflicts]
        machine = Machine(program, space, Launch(grid, block, dynamic_shared, params), [*checks, *_observers], _sample)
        machine.run()
    finally:
        for region in regions:
            space.remove(region)
    machine.conflicts = conflicts.found_all
    for c in machine.conflicts:
        warnings.warn_explicit(str(c), GlobalConflict, c.file or program.name, c.line, registry=_warned)
    return machine


def _three(dims) -> tuple[int, int, int]:
    dims = (dims,) if isinstance(dims, int) else tuple(int(d) for d in dims)
    return dims + (1,) * (3 - len(dims))


def check_limits(program: Program, grid, block, dynamic_shared: int, limit) -> None:
    """What cudaLaunchKernel refuses, with the same limits and a reason."""
    threads = block[0] * block[1] * block[2]

    def refuse(message, hint=""):
        raise InvalidLaunch(message, kernel=program.name, hint=hint)

    if min(grid) < 1 or min(block) < 1:
        refuse(f"grid {grid} and block {block} must be positive in every dimension", "an empty array gives an empty grid: skip the launch")
    if threads > limit.max_threads_per_block:
        refuse(
            f"a block of {block[0]} x {block[1]} x {block[2]} = {threads} threads; the limit is {limit.max_threads_per_block} a block",
            "fewer threads a block and more blocks",
        )
    for axis, size, most in zip("xyz", block, limit.max_block_dim):
        if size > most:
            refuse(f"block dimension {axis} is {size}; the limit is {most}", "another axis, or fewer threads")
    for axis, size, most in zip("xyz", grid, limit.max_grid_dim):
        if size > most:
            refuse(f"grid dimension {axis} is {size:,}; the limit is {most:,}", "more threads a block, or a grid-stride loop")
    if program.max_threads and threads > program.max_threads:
        refuse(f"{threads} threads a block, but the kernel was compiled for at most {program.max_threads} (launch_bounds)")
    shared = program.shared_static + dynamic_shared
    if program.shared_static > limit.max_static_shared:
        refuse(
            f"{program.shared_static:,} bytes of static shared memory; the limit is {limit.max_static_shared:,} a block",
            "a smaller tile or element type",
        )
    if shared > limit.max_shared_per_block:
        refuse(f"{shared:,} bytes of shared memory; the limit is {limit.max_shared_per_block:,} a block", "a smaller tile or element type")
