"""The executor's part: runs an Order on the SIMT engine, from PTX and arrays to arrays and counters.

Of the student's code only PTX gets here, and no expected value. Every order starts with fresh memory; also
`__device__` variables get their initial values back.
"""

import warnings

import numpy as np

from warplab.crossing import findings
from warplab.crossing.costliest import access_costs, costliest, counts_memory
from warplab.crossing.endless import Endless, stopped_after
from warplab.crossing.explain import Refused, explain
from warplab.crossing.orders import CopyStep, FillStep, MapOf, describe
from warplab.crossing.outcome import Outcome
from warplab.crossing.values import filled
from warplab.hardware.target import Target
from warplab.simt.abi import NUMBERS, c_number, memref, numba_array, numba_number, word
from warplab.simt.counters.collect import Counters
from warplab.simt.counters.watch import Costliest
from warplab.simt.engine.address_space import AddressSpace, as_bytes
from warplab.simt.engine.program import Program
from warplab.simt.errors import LaunchError
from warplab.simt.frontends.launch import LaunchContext, run
from warplab.simt.frontends.tensor_map import on_engine, tensor_map
from warplab.simt.profile import MEMORY, summary
from warplab.simt.ptx.parser import PTXSyntaxError

OF_INSTRUCTIONS = "warp_instructions thread_instructions branches divergent_branches".split()
FLOPS = "flops fp64_flops fp32_flops tf32_flops".split()
OF_MEMORY = [f"{part}.{number}" for part, numbers in MEMORY.items() for number in numbers]
TOTALS = (
    *(*OF_INSTRUCTIONS, *FLOPS),
    "busiest_warp_instructions",  # added up over launches, which run one after the other
    *(name for name in OF_MEMORY if not name.endswith(".sectors_per_request")),
    "atomics.requests",
)
UNCOUNTED = ("malloc", "mbarrier")  # by which threads could keep or pass on data that no counter sees
MOVES = {CopyStep: ("read", "write", "memory", "memory"), FillStep: ("write", "memory")}
ASSEMBLED = ("registers", "spill_bytes", "occupancy")


def execute(order):
    """Run all steps of an Order; returns an Outcome, whatever the kernels do."""
    memory = Memory(order.buffers)
    try:
        with stopped_after(order.most_s):
            profiles = [profile for step in order.steps if (profile := memory.run(step, order)) is not None]
        arrays, buffers = memory.arrays, order.buffers
        changed = [name for name in order.inputs if arrays[name].tobytes() != buffers[name].tobytes()]
        counters = counted(profiles, assembled(order))
        counters |= {"launches": float(len(profiles)), "allocated_bytes": float(order.allocated)}
        for name, moved in moved_by_copies(order).items():
            counters[name] = counters.get(name, 0.0) + moved
        outputs = {name: arrays[name] for name in order.results}
        asked = any(name in findings.INSTRUCTIONS for name in order.counts)
        lanes = findings.of_lines(profiles) if asked else []
        found = tuple([*lanes, *memory.findings][: findings.MOST])
        return Outcome("", outputs, counters, tuple(changed), None, memory.costliest(), found)
    except LaunchError as error:
        found = [findings.of_error(error), *memory.findings]
        return Outcome(error=str(error), findings=tuple(found[: findings.MOST]))
    except (Refused, Endless) as error:
        return Outcome(error=explain(error))
    except PTXSyntaxError as error:
        return Outcome(error=f"the kernel's PTX cannot be parsed: {str(error)[:300]}")
    except MemoryError:
        return Outcome(error="the executor is out of memory: use fewer threads or smaller arrays")
    except Exception as error:  # noqa: BLE001 - handmade PTX may make the engine raise anything
        what = f"{type(error).__name__}: {str(error)[:300]}"
        return Outcome(error=f"the engine cannot run this PTX; tell your instructor: {what}")
    finally:
        memory.release()


def assembled(order):
    """Whether the row counts something that only the assembler (ptxas) knows."""
    return any(name in ASSEMBLED for name in order.counts)


def counted(profiles, resources):
    """{counter: value}: all counters of a single launch, or the TOTALS of several.

    resources: whether to include those of ASSEMBLED.
    """
    if len(profiles) == 1:
        flat = profiles[0].as_dict()
        names = [name for name in flat if resources or name not in ASSEMBLED]
        return {name: float(flat[name]) for name in names if isinstance(flat[name], int | float)}
    flats = [profile.as_dict() for profile in profiles]
    return {name: float(sum(flat[name] for flat in flats)) for name in TOTALS}


def moved_by_copies(order):
    """{counter: amount} of the memory traffic of copies and fills, which the engine does not count."""
    moved = {}
    for step in order.steps:
        for part in MOVES.get(type(step), ()):
            sectors = -(-order.buffers[step.target].nbytes // 32)
            for name, amount in ((f"global_{part}.sectors", sectors), (f"global_{part}.bytes", 32 * sectors)):
                moved[name] = moved.get(name, 0) + amount
    return moved


class Memory:
    """The buffers of one order on the engine."""

    # {(entry, modules): (Program, initial values of its variables)}, so that each program is parsed once
    known = {}
    space = AddressSpace()

    def __init__(self, buffers):
        self.arrays, self.regions, self.spent, self.findings = {}, {}, [], []
        for name, buffer in buffers.items():
            array = self.arrays[name] = filled(buffer)
            label = f"argument '{name}' ({describe(array)})"
            self.regions[name] = self.space.add(as_bytes(array), label).holds(array, label)

    def run(self, step, order):
        """Do one step under counters; returns the Profile of a launch, None for other steps."""
        counters = Costliest() if counts_memory(order.counts) else Counters()
        machine = self.do(step, order, (counters,))
        if machine is None:
            return None
        if type(counters) is Costliest:
            self.spent += access_costs(step.kernel, machine.program, counters, order.counts)
        return summary(machine, counters, Target.of(order.arch), resources=assembled(order))

    def do(self, step, order, observers=()):
        """Do one step; returns the Machine of a launch, which runs under these observers, or None."""
        if type(step) is CopyStep:
            np.copyto(self.arrays[step.target], self.arrays[step.source])
        elif type(step) is FillStep:
            self.arrays[step.target].fill(step.value)
        else:
            return self.launch(order.kernels[step.kernel], step, order, observers)
        return None

    def launch(self, kernel, step, order, observers):
        program = self.program(kernel)
        used = {
            i.mods[0] if i.opcode == "extern" else i.opcode for block in program.blocks for i in block.instrs
        }
        uncounted = {*UNCOUNTED} - ({"mbarrier"} if order.mbarriers else set())
        if unseen := used & uncounted if order.counts else ():
            instead = "use the arrays that are passed, shared memory and barriers"
            raise Refused(
                f"this row counts memory, and no counter sees {min(unseen)} in {kernel.name}: {instead}"
            )
        values = parameters(kernel, program, [self.located(value) for value in step.arguments])
        context = LaunchContext(Target.of(order.arch), observers, replicas=kernel.abi == "triton")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = run(program, values, [], step.grid, step.block, step.shared, self.space, context)
        self.findings += [found for found in findings.of_machine(machine) if found not in self.findings]
        raised = program.globals.get(f"{kernel.entry}__errcode__")  # of numba's @cuda.jit(debug=True)
        if raised is not None and raised.data.any():
            raise Refused(f"kernel {kernel.name} raised an exception: see its `raise`, `assert` and `/`")
        return machine

    def costliest(self):
        """The record of the line that costs most over all launches; {} where the row counts no memory."""
        return costliest(self.spent, {region.label: name for name, region in self.regions.items()})

    def located(self, argument):
        """An argument of a step as parameters() takes it: (pointer, array) for a buffer's name, bytes for a
        tensor map; a (dtype, number) pair stays."""
        if type(argument) is MapOf:
            made = tensor_map(self.arrays[argument.array], argument.box, argument.swizzle)
            return made.encoded(self.regions[argument.array].base, on_engine, argument.array, "the kernel")
        return (self.regions[argument].base, self.arrays[argument]) if type(argument) is str else argument

    def program(self, kernel):
        key = (kernel.entry, kernel.modules)
        if key not in self.known:
            program = Program(kernel.modules[0], kernel.entry, kernel.name, self.space, kernel.modules[1:])
            self.known[key] = program, [region.data.copy() for region in program.regions]
        return self.known[key][0]

    def release(self):
        """Restore the variables of all known programs, and unmap all other memory, kernels' heap included.

        Other orders' programs are included because a kernel may have guessed an address and written there.
        """
        kept = set()
        for program, first in self.known.values():
            for region, data in zip(program.regions, first, strict=True):
                region.data[:] = data
                kept.add(region.base)
        for region in list(self.space.regions.values()):
            if region.base not in kept:
                self.space.remove(region)
        self.space.heap.clear()


def parameters(kernel, program, arguments):
    """The kernel's parameters as bytes, in order. Raises Refused unless they fit the PTX's declarations.

    arguments: from Memory.located().
    """
    declared = program.function.params
    if kernel.abi in ("numba", "mlir"):
        if any(type(argument) is bytes for argument in arguments):
            raise Refused(f"{kernel.name} gets a tensor map, which only CUDA C++ takes: warplab.cuda_kernel")
        described = numba_array if kernel.abi == "numba" else memref
        values = [word for argument in arguments for word in _numba_words(argument, described)]
    else:
        if len(arguments) != len(declared):
            passed = f"this task passes {len(arguments)}"
            raise Refused(f"the kernel {kernel.name} takes {len(declared)} arguments, and {passed}")
        pairs = zip(arguments, declared, strict=True)
        values = [_c_word(argument, param, kernel.name) for argument, param in pairs]
    sizes, wanted = [len(value) for value in values], [param.size for param in declared]
    if sizes != wanted:
        have = f"this task passes {kernel.name} {len(sizes)} parameters of {sum(sizes)} bytes in all"
        want = f"its PTX declares {len(wanted)} of {sum(wanted)} bytes"
        raise Refused(f"{have}, and {want}: compare their number and types with the task's")
    return values


def _numba_words(argument, described):
    first, second = argument
    if type(first) is str:
        return [numba_number(first, second).tobytes()]
    return [word(value) for value in described(first, second)]


def _c_word(argument, param, kernel):
    if type(argument) is bytes:
        return argument
    first, second = argument
    if type(first) is not str:
        return word(first)
    if param.type not in NUMBERS:
        what = f"{kernel} declares its parameter {param.name} as .{param.type}"
        raise Refused(f"{what}, and this task passes a number there: use a type such as int or float")
    return c_number(param.type, second, param.name, kernel).tobytes()
