"""Random PTX programs on the engine, each step held against the PTX manual (``ptx_oracle``).

``PTX_PROGRAMS`` and ``PTX_SEED`` choose another campaign.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from ptx_forms import FORMS
from ptx_generator import (
    AREA,
    CELL_BYTES,
    FRAMES,
    Atomic,
    Checker,
    Generator,
    Mismatch,
    Program,
    Writer,
    each,
    forms_of,
)

from warplab.simt.engine import program as engine
from warplab.simt.engine import repeats
from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.translate import NAMES
from warplab.simt.toolchain.ptxas import assemble

SEED = int(os.environ.get("PTX_SEED", "0"))
NORMAL, FULL, PARTS = 500, int(os.environ.get("PTX_PROGRAMS", "100000")), 20
GENERATOR = Generator()

# Rows of the table of instructions that the generator does not write, and what tests them.
ELSEWHERE = {
    "bar": "barriers: test_barriers.py",
    "barrier": "barriers: test_barriers.py",
    "cp": "asynchronous copies: test_cuda_cpp_more.py",
    "createpolicy": "nothing to see: a hint to caches, test_instructions.py",
    "extern": "what ptx.inline makes of printf and malloc: test_external.py",
    "fence": "nothing to see: memory is always up to date",
    "membar": "nothing to see: memory is always up to date",
    "mbarrier": "phases of an object: test_mbarriers.py",
    "nanosleep": "nothing to see: time is not kept",
    "griddepcontrol": "nothing to see: launches come one after the other",
    "prefetch": "nothing to see: a hint",
    "ldmatrix": "tiles of a warp: test_tensor.py",
    "stmatrix": "tiles of a warp: test_tensor.py",
    "movmatrix": "tiles of a warp: test_tensor.py",
    "mma": "tiles of a warp: test_tensor.py",
    "wgmma": "tiles of four warps: test_wgmma.py",
    "setmaxnreg": "nothing to see: test_wgmma.py",
    "mapa": "addresses in a cluster: test_clusters.py",
    "getctarank": "addresses in a cluster: test_clusters.py",
    "isspacep": "addresses in a cluster: test_clusters.py",
    "wmma": "tiles of a warp: test_tensor.py",
    "ldu": "the handler and row of ld",
    "recurse": "what ptx.inline makes of recursion: test_ptx_programs.py",
    "results": "what ptx.inline makes of recursion: test_ptx_programs.py",
    "trap": "ends the launch: test_external.py",
}
# Instructions that every program has, or that a statement is made of.
STRUCTURE = {"ld", "st", "atom", "red", "bra", "ret", "exit", "call", "cvta"}


def run(program: Program, kept: bool = False) -> bool:
    """Run a program on the engine and check it. Raises Mismatch, or whatever the engine raises.

    kept: twelve times more, each on other numbers than the time before, by what is kept of earlier ones as
    soon as something is. False if that is nothing.
    """
    writer = Writer(program)
    space = AddressSpace()
    made = engine.Program(writer.text(), "k", "k", space)
    given = np.array([program.inputs[name] for name in writer.order], np.uint64).reshape(-1, program.threads)
    trace = np.zeros((FRAMES, max(writer.used, 1), program.threads), np.uint64)
    cells = sum(isinstance(s, Atomic) for s in each(program.statements))
    scratch = np.zeros(program.threads * AREA + CELL_BYTES * cells, np.uint8)
    params, regions = {}, []
    for i, array in enumerate((given, trace, scratch)):
        region = space.add(array.reshape(-1).view(np.uint8), f"buffer {i}")
        params[f"k_param_{i}"] = region.base.to_bytes(8, "little")
        regions.append(region)
    launch = Launch((1, 1, 1), (program.threads, 1, 1), 0, params)
    machine = Machine(made, space, launch)
    machine.run()
    Checker(program, writer, trace.tolist()).run()
    if not kept:
        return True
    alike = repeats.Repeats(made)
    alike.most_contents = sys.maxsize
    own, replays = given.copy(), 0
    for again in range(12):
        trace[:], scratch[:] = 0, 0
        given[:] = np.roll(own, again % 2, axis=1)  # what is replayed was traced on other numbers
        kind = alike.kind_of(launch, space)
        if kind is None:
            return False
        if kind.replay():
            replays += 1
        else:
            traced = kind.trace()
            Machine(made, space, launch).run()
            if traced:
                kind.keep(checks_hold=True)
        if again % 2 == 0:
            Checker(program, writer, trace.tolist()).run()
    return replays > 3


def campaign(seeds, alike: int) -> set[str]:
    """Run the programs of these seeds, and each one of so many by what launches keep; the opcodes that were
    in them. Fails with the first that differs, and its inputs: the mismatch names the instruction.
    """
    asked = kept = 0
    opcodes = set()
    for number, seed in enumerate(seeds):
        program = GENERATOR.program(seed)
        ask = number % alike == 0
        try:
            kept += run(program, kept=ask) and ask
            asked += ask
        except Mismatch as mismatch:
            inputs = "\n".join(f"{name} = {[*map(hex, column)]}" for name, column in program.inputs.items())
            pytest.fail(f"seed {seed}: {mismatch}\n{Writer(program).text()}\n{inputs}", pytrace=False)
        opcodes |= {form.opcode for form in forms_of(program.statements)}
    assert kept >= asked // 8, f"of {asked} programs {kept} ran by what launches keep"
    return opcodes


@pytest.mark.slow
def test_seeded_programs_do_what_the_manual_says():
    opcodes = campaign((f"normal {SEED} {i}" for i in range(NORMAL)), alike=5)
    missing = {form.opcode for form in FORMS} - opcodes
    assert not missing, f"no program of {NORMAL} had these instructions: {missing}"


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_thousand_programs(part):
    campaign((f"full {SEED} {i}" for i in range(part, FULL, PARTS)), alike=1)


@pytest.mark.slow
def test_each_form_by_itself():
    """Every form once, on edge values: the random programs need not have met it."""
    refused = []
    for i, form in enumerate(FORMS):
        program = GENERATOR.of_one(form, f"each {SEED} {i}")
        try:
            run(program)
        except Mismatch as mismatch:
            pytest.fail(f"{mismatch}\n{Writer(program).text()}", pytrace=False)
        except engine.UnsupportedInstruction:
            refused.append(form.name)
    assert not refused


@pytest.mark.slow
@pytest.mark.parametrize(
    "forms", [FORMS[::40], pytest.param(FORMS, marks=pytest.mark.full)], ids=["some", "all"]
)
def test_a_form_gives_the_same_by_what_a_launch_has_kept(forms):
    alike = 0
    for i, form in enumerate(forms):
        program = GENERATOR.of_one(form, f"kept {SEED} {i}")
        try:
            alike += run(program, kept=True)
        except Mismatch as mismatch:
            pytest.fail(f"{mismatch}\n{Writer(program).text()}", pytrace=False)
    assert alike > 0.9 * len(forms)


def test_every_row_of_the_table_is_written_by_the_generator_or_named_here():
    written = {form.opcode for form in FORMS} | STRUCTURE
    assert set(INSTRUCTIONS) == written | set(ELSEWHERE), "forms in ptx_forms.py, or a line in ELSEWHERE"
    assert not written & set(ELSEWHERE)


def test_every_type_of_the_table_is_written_by_the_generator():
    """Floats and packed types; of integers a row has one handler for all widths."""
    written = {}
    for form in FORMS:
        written.setdefault(form.opcode, set()).add(form.name.split(".")[-1])
        written[form.opcode] |= set(form.name.split("."))
    any_type = {"cvt", "mov", "selp", "elect"}  # their rows hold types that the manual gives them not
    for opcode in sorted(set(written) - any_type):
        kinds = set(INSTRUCTIONS[opcode].forms)
        floats = {kind for kind in kinds if kind and (kind[0] in "f" or "bf" in kind or "x2" in kind)}
        assert floats <= written[opcode], opcode


@pytest.mark.slow
def test_what_the_generator_writes_is_ptx_that_nvidias_assembler_takes():
    for i in range(40):
        assemble(Writer(GENERATOR.program(f"assembled {SEED} {i}")).text(), "k")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, instead",
    [
        ("fma", lambda a, b, c: a * b + c),
        ("flush", lambda x: x),
        ("shift_right", lambda a, n: a >> (n % (8 * a.dtype.itemsize)).astype(a.dtype)),
        ("float_to_int", lambda x, dtype, rounding: np.trunc(x).astype(dtype)),
    ],
)
def test_an_engine_that_is_wrong_is_found(monkeypatch, name, instead):
    monkeypatch.setattr(NAMES["numeric"], name, instead)
    with pytest.raises(pytest.fail.Exception, match="the manual says"):
        campaign((f"normal {SEED} {i}" for i in range(NORMAL)), alike=5)
