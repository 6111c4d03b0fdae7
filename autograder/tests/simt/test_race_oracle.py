"""The sanitizer against a brute-force oracle, on random small programs of accesses, atomics and barriers.

The oracle knows nothing of summaries and moments. It draws each program's graph (statements of a thread in
order, barriers as nodes that all who take part pass) and asks of each pair of accesses that clash whether a
path leads from one to the other.
"""

import itertools
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import SharedRace
from warplab.simt.sanitizer.races import Races, Shadow

THREADS = (0, 1, 2, 32, 33)  # of each block: three of one warp, two of another
BLOCKS = 2
CELLS = 3
ACTORS = [(block, thread) for block in range(BLOCKS) for thread in THREADS]
ACCESSES = {
    ("shared", "read"): "ld.shared.u32 %r9, [%r7];",
    ("shared", "write"): "st.shared.u32 [%r7], %r8;",
    ("shared", "atomic"): "red.shared.add.u32 [%r7], 1;",
    ("global", "read"): "ld.global.u32 %r9, [%rd3];",
    ("global", "write"): "st.global.u32 [%rd3], %r8;",
    ("global", "atomic"): "red.global.add.u32 [%rd3], 1;",
}
BARRIERS = {"block": "bar.sync 0;", "warp": "bar.warp.sync 0xffffffff;", "grid": "barrier.sync.grid 0;"}
FENCES = {"fence.cta": "membar.cta;", "fence.gpu": "membar.gl;"}


@dataclass(frozen=True)
class Statement:
    """An access by those ``actors`` (numbers) to cell ``cell + step * number``, or a barrier or fence."""

    what: str
    space: str = ""
    actors: tuple[int, ...] = ()
    cell: int = 0
    step: int = 0

    def cell_of(self, actor: int) -> int:
        return (self.cell + self.step * actor) % CELLS


def a_program(rng: random.Random, space: str, fences: bool) -> list[Statement]:
    """Three to nine statements on one memory, by all threads or by those of one warp."""
    everyone = range(rng.choice((3, len(ACTORS))))
    others = [*BARRIERS, *(FENCES if fences else ())]
    others = [o for o in others if space == "global" or o != "grid"]
    program = []
    for _ in range(rng.randint(3, 9)):
        if rng.random() < 0.4:
            program.append(Statement(rng.choice(others)))
            continue
        actors = tuple(sorted(rng.sample(everyone, rng.choice((1, 1, 2, 3, len(everyone))))))
        what = rng.choice(("read", "write", "atomic"))
        program.append(Statement(what, space, actors, rng.randrange(CELLS), rng.choice((0, 0, 1))))
    return program


def races_by_brute_force(program: list[Statement], same_value: bool) -> bool:
    """Whether two accesses clash with no path between them."""
    edges: dict = {}
    events, last = [], dict.fromkeys(range(len(ACTORS)))
    for number, statement in enumerate(program):
        for actor, (block, thread) in enumerate(ACTORS):
            if statement.what in BARRIERS:
                who = {"block": (block,), "warp": (block, thread // 32), "grid": ()}[statement.what]
                node = (number, "meet", who)
            elif actor in statement.actors:
                node = (number, "access", actor)
                events.append((node, statement, actor))
            else:
                continue
            edges.setdefault(last[actor], set()).add(node)
            last[actor] = node

    def leads(one, other) -> bool:
        seen, todo = set(), [one]
        while todo:
            node = todo.pop()
            if node == other:
                return True
            if node not in seen:
                seen.add(node)
                todo += edges.get(node, ())
        return False

    for (one, a, x), (other, b, y) in itertools.combinations(events, 2):
        kinds = {a.what, b.what}
        if x == y or a.cell_of(x) != b.cell_of(y) or kinds in ({"read"}, {"atomic"}):
            continue
        if a.space == "shared" and ACTORS[x][0] != ACTORS[y][0]:
            continue
        if same_value and kinds == {"write"}:
            continue
        if not leads(one, other) and not leads(other, one):
            return True
    return False


def found_by_the_sanitizer(program: list[Statement], same_value: bool) -> bool:
    lines = []
    for number, statement in enumerate(program):
        if statement.what in BARRIERS | FENCES:
            lines.append((BARRIERS | FENCES)[statement.what])
            continue
        mask = sum(1 << actor for actor in statement.actors)
        value = "mov.u32 %r8, 7;" if same_value else f"add.u32 %r8, %r4, {1000 * (number + 1)};"
        lines.append(
            f"mad.lo.u32 %r6, %r3, {statement.step}, {statement.cell}; rem.u32 %r6, %r6, {CELLS}; "
            "shl.b32 %r6, %r6, 2; mov.u32 %r7, words; add.u32 %r7, %r7, %r6; cvt.u64.u32 %rd2, %r6; "
            f"add.u64 %rd3, %rd1, %rd2; {value} and.b32 %r9, %r5, {mask}; setp.ne.u32 %p1, %r9, 0; "
            f"@%p1 {ACCESSES[statement.space, statement.what]}"
        )
    # %r3: an actor's number, %r5: its bit, 0 for the threads that only meet at barriers
    number = "mov.u32 %r3, 31; " + " ".join(
        f"setp.eq.u32 %p1, %r4, {1000 * block + thread}; @%p1 mov.u32 %r3, {actor};"
        for actor, (block, thread) in enumerate(ACTORS)
    )
    body = "\n".join(lines)
    ptx = f""".version 9.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 out) {{
        .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
        .shared .align 4 .b8 words[{4 * CELLS}];
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r4, %r2, 1000, %r1;
        {number}
        setp.ne.u32 %p1, %r3, 31; mov.u32 %r5, 0; shl.b32 %r6, 1, %r3; @%p1 mov.u32 %r5, %r6;
        {body}
        ret;
    }}"""
    space = AddressSpace()
    region = space.add(np.zeros(4 * CELLS, np.uint8), "out", 4)
    races = Races()
    params = {"out": np.frombuffer(region.base.to_bytes(8, "little"), np.uint8)}
    launch = Launch((BLOCKS, 1, 1), (64, 1, 1), 0, params)
    machine = Machine(Program(ptx, "k", "k", space), space, launch, [races])
    try:
        machine.run()
    except SharedRace:
        return True
    return bool(races.found_all)


def disagreements(seeds, space: str, fences: bool = False) -> list:
    """Seeds of programs on which the two do not agree. With fences the sanitizer may be silent, no more."""
    wrong = []
    for seed in seeds:
        rng = random.Random(seed)
        program = a_program(rng, space, fences)
        same_value = rng.random() < 0.3
        there = races_by_brute_force(program, same_value)
        found = found_by_the_sanitizer(program, same_value)
        may_be_silent = fences or (space == "global" and same_value)  # a write may leave the word as it was
        if found != there and not (there and may_be_silent):
            wrong.append((seed, there, program))
    return wrong


@pytest.mark.parametrize("fences", [False, True])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_the_sanitizer_finds_what_brute_force_finds(space, fences):
    assert not disagreements(range(60), space, fences)


# A cell's summary where it is easily wrong. Actors 0 to 2 are of one warp, 3 and 4 of another, 5 is of the
# second block.
SUMMARIES = {
    "several read before one of them writes": (
        Statement("read", "global", (1, 2), 2),
        Statement("write", "global", (2,), 2),
    ),
    "a cell that nobody touched beside one that somebody did": (
        Statement("read", "global", (1,)),
        Statement("read", "global", (0, 1), 0, step=1),
        Statement("atomic", "global", (1,), 0, step=1),
    ),
    "another block's read behind those of a warp that has met": (
        Statement("read", "global", (5,)),
        Statement("read", "global", (0,)),
        Statement("read", "global", (1,)),
        Statement("warp"),
        Statement("write", "global", (1,)),
    ),
    "another block's read behind those of a block that has met": (
        Statement("read", "global", (5,)),
        Statement("read", "global", (0,)),
        Statement("read", "global", (1,)),
        Statement("block"),
        Statement("write", "global", (1,)),
    ),
    "another warp's read behind those of a warp that has met": (
        Statement("read", "global", (3,)),
        Statement("read", "global", (0,)),
        Statement("read", "global", (1,)),
        Statement("warp"),
        Statement("write", "global", (1,)),
    ),
    "reads of a warp that has met": (
        Statement("read", "global", (0, 1, 2)),
        Statement("warp"),
        Statement("write", "global", (1,)),
    ),
}


@pytest.mark.parametrize("what", SUMMARIES)
@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_summary_forgets_nobody(what, space):
    assert finds_what_brute_force_finds(what, space)


def finds_what_brute_force_finds(what: str, space: str) -> bool:
    program = [replace(s, space=space) if s.space else s for s in SUMMARIES[what]]
    return found_by_the_sanitizer(program, False) == races_by_brute_force(program, False)


@pytest.mark.full
@pytest.mark.parametrize("fences", [False, True])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_the_sanitizer_finds_what_brute_force_finds_in_thousands(space, fences):
    assert not disagreements(range(1000, 5000), space, fences)


def test_about_half_of_the_programs_race():
    """Or the test above would compare silence with silence."""
    for space in ("shared", "global"):
        programs = (a_program(random.Random(seed), space, False) for seed in range(300))
        assert 60 < sum(races_by_brute_force(p, same_value=False) for p in programs) < 240


@pytest.mark.slow
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("part", ["atomics", "syncwarp"])
def test_a_sanitizer_without_one_of_its_parts_disagrees(monkeypatch, space, part):
    accessed = Races.accessed

    def without_atomics(self, machine, group, site, access, offset, width, where, what, values):
        if what != "atomic":
            accessed(self, machine, group, site, access, offset, width, where, what, values)

    if part == "atomics":
        monkeypatch.setattr(Races, "accessed", without_atomics)
    else:
        monkeypatch.setattr(Races, "warp_barrier", lambda self, machine, group: None)
    assert disagreements(range(120), space)


def test_a_sanitizer_that_keeps_only_the_last_thread_disagrees(monkeypatch):
    monkeypatch.setattr(Shadow, "_distance", lambda self, token, later: np.zeros(token.size, np.int8))
    assert not all(
        finds_what_brute_force_finds(what, space) for what in SUMMARIES for space in ("shared", "global")
    )
