"""Executes PTX: each instruction is a row of instructions.py, each basic block becomes one Python function.

program.py -> translate.py      memory layout and translation; handlers emit code for each instruction
machine.py, schedule.py, groups.py, warp.py, barriers.py    lanes, divergence and reconvergence, barriers
wrapped.py    array classes that pass through the generated code: taint.py for uninitialised values,
    tracing.py for values that differ between launches (repeats.py replays a traced launch)
loadstore.py, address_space.py, generic_addresses.py, atomics.py, async_copies.py    memory
handlers, a file a family: arithmetic, bits, comparisons, conversions, rounding, fp16, fp8, packed, movement,
    warp_exchanges, matrix_moves, cp_async, tensor, calls, external; numeric.py has what NumPy lacks
"""
