"""What runs PTX: each instruction is a row of instructions.py, each basic block becomes one Python function.

program.py -> translate.py      a kernel laid out and translated; handlers write a line for each instruction
machine.py, schedule.py, warp.py, barriers.py    lanes, groups that diverge and reconverge, barriers
wrapped.py    arrays that carry something through the generated code: taint.py, uninitialised values;
    tracing.py, values that differ between launches (repeats.py replays a traced launch)
loadstore.py, address_space.py, generic_addresses.py, atomics.py, async_copies.py    memory
handlers, a file a family: arithmetic, bits, comparisons, conversions, rounding, fp16, fp8, packed, movement,
    warp_exchanges, matrix_moves, cp_async, tensor, calls, external; numeric.py is what NumPy lacks
"""
