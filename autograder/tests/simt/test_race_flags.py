"""The sanitizer against the PTX memory model, on random programs: accesses of several widths, atomics and
strong accesses of each order and scope, fences, barriers of a grid, a cluster, a block, a warp, some
warps and some lanes, and mbarriers.

The oracle takes from the engine in which order the accesses were made, and nothing else. It draws the graph
of what happens before what: statements of a thread in order, barriers, arrivals and waits at an mbarrier
(one that is relaxed says nothing), and an edge from a fence to each
strong read that observes a strong write behind it, directly or through a chain of atomics. Then it asks of
each two accesses that clash whether a path leads from one to the other. As in ``vector_clocks`` a reader
needs no fence of its own, and the fence may stand before a barrier at which its thread met the one that
writes the flag.
"""

import itertools
import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import SharedRace
from warplab.simt.observer import Observer
from warplab.simt.sanitizer import vector_clocks as clocks
from warplab.simt.sanitizer.races import Races, Shadow
from warplab.simt.sanitizer.vector_clocks import Clocks

THREADS = (0, 1, 32, 33, 64)  # of each block of three warps; the others only meet at barriers
ACTORS = [(block, thread) for block in range(2) for thread in THREADS]
BASES = {"global": "%rd1", "shared": "words", "other": "%r14"}
DATA, FLAGS = 16, 8  # bytes: plain accesses and atomics, then strong accesses
READS, WRITES = ("ld", "atom"), ("st", "atom")


@dataclass(frozen=True)
class Statement:
    """What it does, and who of ``ACTORS`` does it. ``order`` and ``scope`` are "" of plain accesses."""

    what: str  # ld, st, atom; fence; block, grid, cluster, warps, lanes, warp; arrive, wait at ``at``
    actors: tuple[int, ...] = ()
    space: str = "global"
    at: int = 0
    width: int = 4
    order: str = ""
    scope: str = ""
    who: tuple[int, ...] = ()  # the warps, or the lanes, that meet

    @property
    def accesses(self) -> bool:
        return self.what in ("ld", "st", "atom")

    def home(self, block: int) -> int | None:
        """Of which block the memory is that ``block`` accesses; None of global memory."""
        return {"shared": block, "other": 1 - block}.get(self.space)


def some_actors(rng: random.Random) -> tuple[int, ...]:
    return tuple(sorted(rng.sample(range(len(ACTORS)), rng.choice((1, 1, 1, 2, 3)))))


def a_message(rng: random.Random, spaces) -> list[Statement]:
    """One writes data and sets a flag behind a fence, another looks at the flag and goes to the data. Half of
    them lack a step, have two in the wrong order, or look at another flag.
    """
    writer, reader, other = ((a,) for a in rng.sample(range(len(ACTORS)), 3))
    scope, at, space = rng.choice(("gpu", "gpu", "cta")), 4 * rng.randrange(DATA // 4), rng.choice(spaces)
    flag = DATA + 4 * rng.randrange(FLAGS // 4)
    steps = [
        Statement("st", writer, space, at),
        Statement("fence", writer, scope=scope),
        Statement(rng.choice(("st", "atom")), writer, "global", flag, 4, "relaxed", "gpu"),
        Statement(rng.choice(("ld", "atom")), reader, "global", flag, 4, "relaxed", "gpu"),
        Statement(rng.choice(("ld", "st")), reader, space, at),
    ]
    if rng.random() < 0.3:  # somebody else of the block, who met the one that looked
        steps[4:] = [Statement("block"), replace(steps[4], actors=other)]
    spoilt = rng.random()
    if spoilt < 0.2:
        del steps[rng.randrange(1, 4)]
    elif spoilt < 0.4:
        i = rng.randrange(3)
        steps[i], steps[i + 1] = steps[i + 1], steps[i]
    elif spoilt < 0.5:
        steps[3] = replace(steps[3], at=2 * DATA + 4 - flag)
    return steps


def a_program(rng: random.Random, level: str) -> list[Statement]:
    """``level``: barriers of a "whole" grid, block or warp, of "some" threads too, or "flags" too; those of a
    "cluster" of both blocks, which reach each other's shared memory; "rounds" of mbarriers.
    """
    if level == "cluster":
        return a_program_of_a_cluster(rng)
    if level == "rounds":
        return a_program_of_rounds(rng)
    flags = level == "flags"
    if flags and rng.random() < 0.7:
        spaces = rng.choice((("global",), ("global",), ("global", "shared")))
        return [step for _ in range(rng.choice((1, 1, 2))) for step in a_message(rng, spaces)]
    spaces = rng.choice((("global",), ("shared",), ("global", "shared")))
    program = []
    for _ in range(rng.randint(4, 12)):
        kind = rng.random()
        if kind < 0.25:
            program.append(a_meeting(rng, spaces, level != "whole"))
        elif flags and kind < 0.4:
            program.append(Statement("fence", some_actors(rng), scope=rng.choice(("cta", "gpu", "gpu"))))
        elif flags and kind < 0.7:
            program.append(a_strong_access(rng, spaces))
        else:
            space, width = rng.choice(spaces), rng.choice((1, 2, 4, 4, 4, 8))
            at = width * rng.randrange(DATA // width)
            what = rng.choice(("ld", "st", "atom" if width == 4 else "st"))
            order, scope = ("relaxed", rng.choice(("gpu", "gpu", "cta"))) if what == "atom" else ("", "")
            program.append(Statement(what, some_actors(rng), space, at, width, order, scope))
    return program


def a_program_of_a_cluster(rng: random.Random) -> list[Statement]:
    """A few places, so that accesses clash, and a barrier behind most of them. Those of the cluster at both
    ends keep each block there while the other may come.
    """
    program = []
    for _ in range(rng.randint(2, 6)):
        kind, space = rng.random(), rng.choice(("shared", "other", "other"))
        if kind < 0.15:
            program.append(Statement("fence", some_actors(rng), scope=rng.choice(("cta", "cluster"))))
        elif kind < 0.3:
            strong = a_strong_access(rng, (space,))
            program.append(replace(strong, scope=rng.choice(("cta", "cluster", "cluster"))))
        else:
            what, at = rng.choice(("ld", "st", "st")), 4 * rng.randrange(2)
            program.append(Statement(what, some_actors(rng)[:2], space, at))
        if rng.random() < 0.7:
            program.append(Statement(rng.choice(("cluster", "cluster", "cluster", "block", "warp"))))
    return [Statement("cluster"), *program, Statement("cluster")]


def a_program_of_rounds(rng: random.Random) -> list[Statement]:
    """Some threads arrive at an mbarrier of their block, one of them behind a write; others wait there and
    go to what it wrote. Half of the rounds lack the wait, have two steps the wrong way or arrive relaxed.
    """
    program: list[Statement] = []
    for number in range(rng.randint(1, 3)):
        arrivals, at = some_actors(rng), 4 * rng.choice((number, 0))
        writers = {ACTORS[actor][0]: actor for actor in arrivals}  # one of each block
        there = [actor for actor, (block, _) in enumerate(ACTORS) if block in writers]
        waiting = tuple(sorted(rng.sample(there, rng.randint(1, 3))))
        last = {ACTORS[actor][0]: actor for actor in waiting}
        steps = [
            Statement("st", tuple(sorted(writers.values())), "shared", at),
            Statement("arrive", arrivals, at=number, order=rng.choice(("", "", "", "", "relaxed"))),
            Statement("wait", waiting, at=number),
            rng.choice(
                (Statement("ld", waiting, "shared", at), Statement("st", (*last.values(),), "shared", at))
            ),
        ]
        spoilt = rng.random()
        if spoilt < 0.1:
            steps[:2] = steps[1::-1]
        elif spoilt < 0.2:
            steps[2:] = steps[:1:-1]
        elif spoilt < 0.3:
            del steps[2]
        program += steps
        if rng.random() < 0.3:
            program.append(Statement(rng.choice(("block", "warp"))))
    return program


def a_meeting(rng: random.Random, spaces, some: bool) -> Statement:
    grid = ("grid",) if "global" in spaces else ()
    what = rng.choice(("block", "warp", *grid, *(("warps", "lanes", "warps") if some else ())))
    who = {"warps": rng.choice(((0, 1), (1, 2), (0, 2), (0,))), "lanes": rng.choice(((0, 1), (0,)))}
    return Statement(what, who=who.get(what, ()))


def a_strong_access(rng: random.Random, spaces) -> Statement:
    what = rng.choice(("ld", "st", "atom", "atom"))
    orders = {"ld": ("relaxed", "acquire"), "st": ("relaxed", "release")}
    order = rng.choice(orders.get(what, ("relaxed", "acquire", "release", "acq_rel")))
    scope = rng.choice(("gpu", "gpu", "gpu", "cta"))
    at = DATA + 4 * rng.randrange(FLAGS // 4)
    return Statement(what, some_actors(rng), rng.choice(spaces), at, 4, order, scope)


def the_ptx(program: list[Statement]) -> str:
    lines, starts = [], []
    for number, s in enumerate(program):
        if s.accesses or s.what in ("fence", "arrive", "wait"):
            mask = sum(1 << actor for actor in s.actors)
            lines.append(f"and.b32 %r9, %r5, {mask}; setp.ne.u32 %p1, %r9, 0;")
        if s.accesses:
            order = f".{s.order}.{s.scope}" if s.order else ""
            where = f"[{BASES[s.space]}+{s.at}]"
            kind = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[s.width]
            value = {1: "%rs1", 2: "%rs1", 4: "%r8", 8: "%rd2"}[s.width]
            # each byte of it is different from what others write, and not 0
            lines.append(f"mad.lo.u32 %r8, %r13, 16, {0x1010101 * (number + 1)};")
            lines.append("cvt.u16.u32 %rs1, %r8; cvt.u64.u32 %rd2, %r8; shl.b64 %rd3, %rd2, 32;")
            lines.append("or.b64 %rd2, %rd2, %rd3;")
            op, target = f"{s.what}{order}.{'shared::cluster' if s.space == 'other' else s.space}", value
            lines.append(
                {
                    "ld": f"@%p1 {op}.{kind} {target}, {where};",
                    "st": f"@%p1 {op}.{kind} {where}, {value};",
                    "atom": f"@%p1 {op}.add.u32 %r10, {where}, 1;",
                }[s.what]
            )
        elif s.what == "fence":
            lines.append(f"@%p1 fence.acq_rel.{s.scope};")
        elif s.what == "arrive":
            how = ".relaxed.cta" if s.order else ""
            lines.append(f"@%p1 mbarrier.arrive{how}.shared.b64 _, [bars+{8 * s.at}];")
            for block in range(2):
                count = sum(ACTORS[actor][0] == block for actor in s.actors)
                starts.append(f"setp.eq.u32 %p1, %r4, {1000 * block};")
                starts.append(f"@%p1 mbarrier.init.shared.b64 [bars+{8 * s.at}], {max(count, 1)};")
        elif s.what == "wait":
            lines.append(f"@!%p1 bra OVER{number};")
            lines.append(f"WAIT{number}: mbarrier.test_wait.parity.shared.b64 %p2, [bars+{8 * s.at}], 0;")
            lines.append(f"@!%p2 bra WAIT{number}; OVER{number}:")
        elif s.what == "warps":
            mask = sum(1 << warp for warp in s.who)
            lines.append(f"and.b32 %r9, %r11, {mask}; setp.ne.u32 %p1, %r9, 0;")
            lines.append(f"@%p1 bar.sync {1 + number}, {32 * len(s.who)};")
        elif s.what == "lanes":
            mask = sum(1 << lane for lane in s.who)
            lines.append(f"and.b32 %r9, %r12, {mask}; setp.ne.u32 %p1, %r9, 0;")
            lines.append(f"@%p1 bar.warp.sync {mask};")
        else:
            lines.append(
                {
                    "block": "bar.sync 0;",
                    "warp": "bar.warp.sync 0xffffffff;",
                    "grid": "barrier.sync.grid 0;",
                    "cluster": "barrier.cluster.arrive; barrier.cluster.wait;",
                }[s.what]
            )
    number = " ".join(
        f"setp.eq.u32 %p1, %r4, {1000 * block + thread}; "
        f"@%p1 mov.u32 %r5, {1 << actor}; @%p1 mov.u32 %r13, {0x1010101 * actor};"
        for actor, (block, thread) in enumerate(ACTORS)
    )
    start = "\n".join([*starts, "bar.sync 0;"] if starts else [])
    body, cluster = "\n".join(lines), ".reqnctapercluster 2" * any(s.what == "cluster" for s in program)
    reach = "mov.u32 %r14, words; xor.b32 %r9, %r2, 1; mapa.shared::cluster.u32 %r14, %r14, %r9;"
    return f""".version 9.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 out) {cluster} {{
        .reg .pred %p<3>; .reg .b16 %rs<3>; .reg .b32 %r<16>; .reg .b64 %rd<6>;
        .shared .align 8 .b8 words[{DATA + FLAGS}]; .shared .align 8 .b8 bars[24];
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r4, %r2, 1000, %r1;
        mov.u32 %r5, 0; mov.u32 %r13, 0; {number}
        shr.u32 %r9, %r1, 5; mov.u32 %r11, 1; shl.b32 %r11, %r11, %r9;
        mov.u32 %r9, %laneid; mov.u32 %r12, 1; shl.b32 %r12, %r12, %r9;
        {start} {reach if cluster else ""}
        {body}
        ret;
    }}"""


@dataclass
class InOrder(Observer):
    """The accesses as they were made: (number among the access statements, actor)."""

    made: list[tuple[int, int]] = field(default_factory=list)

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        for lane in group.lanes.tolist():
            self.made.append((site, ACTORS.index(divmod(lane, machine.launch.threads))))


def run(program: list[Statement]) -> tuple[bool, list[tuple[int, int]]]:
    """Whether the sanitizer found a race; the accesses in the order in which they were made."""
    space, order = AddressSpace(), InOrder()
    region = space.add(np.zeros(DATA + FLAGS, np.uint8), "out", 4)
    params = {"out": np.frombuffer(region.base.to_bytes(8, "little"), np.uint8)}
    code = Program(the_ptx(program), "k", "k", space)
    launch = Launch((2, 1, 1), (96, 1, 1), 0, params, (2 if code.function.cluster else 1, 1, 1))
    Machine(code, space, launch, [order]).run()
    sites = [n for n, instr in enumerate(code.sites) if instr.opcode in ("ld", "st", "atom")]
    order.made = [(sites.index(site), actor) for site, actor in order.made]
    region.data[:] = 0  # or each store would leave the word as it is
    races = Races()
    try:
        Machine(code, space, launch, [races]).run()
    except SharedRace:
        return True, order.made
    return bool(races.conflicts), order.made


class HappensBefore:
    """The graph of one run, and whether it has a race."""

    def __init__(self, program: list[Statement], made: list[tuple[int, int]]):
        self.program = program
        self.edges: dict = {}
        self.last: dict = {}
        self.nodes: list = []
        for number, s in enumerate(program):
            for actor, (block, thread) in enumerate(ACTORS):
                meeting = {
                    "block": (block,),
                    "grid": (),
                    "cluster": (),
                    "warp": (block, thread // 32),
                    "warps": (block,) if thread // 32 in s.who else None,
                    "lanes": (block, thread // 32) if thread % 32 in s.who else None,
                }.get(s.what)
                if meeting is not None:
                    self._next(actor, (number, "meeting", meeting))
                elif s.what in ("fence", "arrive", "wait") and actor in s.actors:
                    self._next(actor, (number, s.what, actor))
                elif s.accesses and actor in s.actors:
                    if s.order in ("release", "acq_rel"):
                        self._next(actor, (number, "fence", actor))
                    self._next(actor, (number, "access", actor))
                    self.nodes.append((number, "access", actor))
        for n, k in itertools.product(range(len(program)), repeat=2):
            arrive, wait = program[n], program[k]
            if (arrive.what, wait.what, arrive.at, arrive.order) == ("arrive", "wait", wait.at, ""):
                for one, other in itertools.product(arrive.actors, wait.actors):
                    if ACTORS[one][0] == ACTORS[other][0]:
                        self.edges.setdefault((n, "arrive", one), set()).add((k, "wait", other))
        base = {one: set(others) for one, others in self.edges.items()}
        for fence, read in self._observed(base, made):
            self.edges.setdefault(fence, set()).add(read)

    def _next(self, actor: int, node) -> None:
        if actor in self.last:
            self.edges.setdefault(self.last[actor], set()).add(node)
        self.last[actor] = node

    def _observed(self, base: dict, made: list[tuple[int, int]]):
        """(fence, strong read) of each release that was observed."""
        statements = [n for n, s in enumerate(self.program) if s.accesses]
        fences = {n for edge in base.values() for n in edge if n[1] == "fence"} | {
            n for n in base if n[1] == "fence"
        }
        behind = {fence: reached(base, fence) for fence in fences}
        chains: dict = {}  # by block (of shared memory) and address: the writes that a read there observes
        for site, actor in made:
            number = statements[site]
            s = self.program[number]
            if not s.order:
                continue
            block = ACTORS[actor][0]
            place = s.home(block), s.at
            if s.what in READS:
                for writer in chains.get(place, ()):
                    for fence in fences:
                        if writer in behind[fence] and self._in_scope(
                            fence, writer, (number, "access", actor)
                        ):
                            yield fence, (number, "access", actor)
            if s.what == "st":
                chains[place] = []
            if s.what in WRITES:
                chains.setdefault(place, []).append((number, "access", actor))

    def _in_scope(self, *nodes) -> bool:
        """Whether the fence, the write and the read are of scopes in which both threads are."""
        fence, writer, reader = nodes
        one, other = ACTORS[writer[2]][0], ACTORS[reader[2]][0]
        scopes = {self.program[n[0]].scope for n in nodes}
        return one == other or "cta" not in scopes

    def races(self) -> list[tuple]:
        """Pairs of accesses: nodes of the graph."""
        behind = {node: reached(self.edges, node) for node in self.nodes}
        found = []
        for one, other in itertools.combinations(self.nodes, 2):
            pair = self.program[one[0]], self.program[other[0]]
            if clashes(*pair, ACTORS[one[2]], ACTORS[other[2]]):
                if one not in behind[other] and other not in behind[one]:
                    found.append((one, other))
        return found


def overlap(a: Statement, b: Statement) -> bool:
    return (a.space == "global") == (b.space == "global") and a.at < b.at + b.width and b.at < a.at + a.width


def clashes(a: Statement, b: Statement, x, y) -> bool:
    if x == y or not overlap(a, b) or a.home(x[0]) != b.home(y[0]) or a.what == b.what == "ld":
        return False
    if a.order and b.order:
        return x[0] != y[0] and "cta" in (a.scope, b.scope)
    return True


def reached(edges: dict, start) -> set:
    seen: set = set()
    todo = list(edges.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += edges.get(node, ())
    return seen


def judge(seed: int, level: str) -> str:
    return compared(a_program(random.Random(seed), level), level)


def compared(program: list[Statement], level: str) -> str:
    """They "agree" that there is a race or is "none"; or a "false alarm", "silence" or "allowed" silence."""
    found, made = run(program)
    races = HappensBefore(program, made).races()
    if found:
        return "agree" if races else "false alarm"
    allowed = all(may_be_missed(program, made, *race, level) for race in races)
    return "none" if not races else "allowed" if allowed else "silence"


def may_be_missed(program: list[Statement], made: list[tuple[int, int]], one, other, level: str) -> bool:
    """Shadow memory has two threads a cell; after a fence a plain access to a flag counts as strong. Threads
    of one statement access at once: which two of them are kept does not follow the order of ``made``.
    """
    if level == "whole":
        return False
    if level in ("flags", "cluster") and any(s.order and overlap(s, program[one[0]]) for s in program):
        return True
    statements = [n for n, s in enumerate(program) if s.accesses]
    order = [(statements[site], "access", actor) for site, actor in made]
    first, later = sorted((one, other), key=order.index)
    s = program[first[0]]
    between = order[order.index(first) + 1 : order.index(later)]
    between += [access for access in order if access[0] == first[0]]
    alike = {
        actor
        for number, _, actor in between
        if (t := program[number]).what == s.what and bool(t.order) == bool(s.order)
        if actor != first[2] and overlap(s, t)
    }
    return len(alike) > 1


def test_a_store_that_reaches_beyond_a_flag_is_strong_for_no_part_of_it():
    """Threads 33, 0 and 32 write bytes 12 and 13; only bytes 8 to 11 are a flag."""
    flag = Statement("atom", (4,), "shared", 8, 4, "relaxed", "cta")
    fence = Statement("st", (9,), "shared", 20, 4, "release", "gpu")
    plain = Statement("st", (3,), "shared", 8, 8), Statement("st", (0, 2), "shared", 12, 2)
    assert compared([fence, flag, *plain], "flags") == "agree"


def verdicts(seeds, level: str) -> dict[str, list[int]]:
    seen: dict[str, list[int]] = {}
    for seed in seeds:
        seen.setdefault(judge(seed, level), []).append(seed)
    return seen


LEVELS = ["whole", "some", "flags", "cluster", "rounds"]


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_sanitizer_finds_what_happens_before_says(level):
    seen = verdicts(range(100), level)
    assert not seen.get("false alarm") and not seen.get("silence"), seen
    assert min(len(seen["agree"]), len(seen["none"])) > 8


@pytest.mark.slow
@pytest.mark.parametrize("most", [6, 2, 1])
def test_clocks_of_warps_blocks_or_several_blocks_give_no_false_alarm(monkeypatch, most):
    monkeypatch.setattr(clocks, "MOST", most)
    seen = verdicts(range(60), "flags")
    assert not seen.get("false alarm") and seen["agree"]


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("level", LEVELS)
def test_the_sanitizer_finds_what_happens_before_says_in_thousands(level, part):
    seen = verdicts(range(1000 * (part + 1), 1000 * (part + 2)), level)
    assert not seen.get("false alarm") and not seen.get("silence"), seen
    assert len(seen.get("allowed", ())) < 50


@pytest.mark.parametrize("access", [("atom", "relaxed", "gpu"), ("ld", "", "")])
@pytest.mark.parametrize(
    "meeting, verdict",
    [
        (Statement("warps", who=(0,)), "agree"),
        (Statement("lanes", who=(0, 1)), "agree"),
        (Statement("warps", who=(0, 2)), "agree"),
        (Statement("warps", who=(0, 1)), "none"),
    ],
)
def test_who_touched_a_cell_with_others_is_known_at_the_first_barrier_of_some(access, meeting, verdict):
    what, order, scope = access
    both = Statement(what, (0, 2), "shared", order=order, scope=scope)  # of two warps
    assert compared([both, meeting, Statement("st", (0,), "shared")], "some") == verdict


@pytest.mark.parametrize("readers", [(1,), (0, 1)])
def test_a_reader_in_another_block_is_not_forgotten_behind_two_who_met(readers):
    two_meet = Statement("lanes", who=(0, 1))
    program = [Statement("ld", (8,)), Statement("ld", readers), two_meet, Statement("st", (1,))]
    assert compared(program, "some") == "agree"


# Shadow memory where it is easily wrong. Actors 0 and 1 are of one warp, 2 of another, 5 of the second block.
SUMMARIES = {
    "several read before one of them writes": (("ld", 1, 2), ("st", 2)),
    "an atomic behind reads": (("ld", 1), ("ld", 0, 1), ("atom", 1)),
    "reads of a warp that has met": (("ld", 0, 1), ("warp",), ("st", 1)),
    **{
        f"a read of actor {other} behind those of a {group} that has met": (
            *(("ld", actor) for actor in (other, 0, 1)),
            *((group,), ("st", 1)),
        )
        for other, group in ((5, "warp"), (5, "block"), (2, "warp"))
    },
}


def agrees(what: str, space: str) -> bool:
    program = [
        Statement(step, actors, space, order="relaxed" if step == "atom" else "", scope="gpu")
        for step, *actors in SUMMARIES[what]
    ]
    return compared(program, "whole") in ("agree", "none")


@pytest.mark.parametrize("what", SUMMARIES)
@pytest.mark.parametrize("space", ["shared", "global"])
def test_shadow_memory_forgets_nobody(what, space):
    assert agrees(what, space)


ACCESSED, FENCE = Races.accessed, Clocks.fence


def accessed_but(left_out):
    """``Races.accessed`` that sees no access of a kind or a space."""
    return lambda self, *args: None if left_out in args[6:8] else ACCESSED(self, *args)


TAKEN_AWAY = {  # part of the sanitizer: (whose, its name, what stands there instead, level, verdict)
    "releases": (Clocks, "_release", lambda *args, **named: None, "flags", "false alarm"),
    "acquires": (Clocks, "_acquire", lambda *args, **named: None, "flags", "false alarm"),
    "scopes of fences": (Clocks, "fence", lambda *args: FENCE(*args[:-1], True), "flags", "silence"),
    "atomics": (Races, "accessed", accessed_but("atomic"), "whole", "silence"),
    "accesses to the neighbour": (Races, "accessed", accessed_but("cluster"), "cluster", "silence"),
    "the cluster's barrier": (Races, "waited", lambda *args: None, "cluster", "false alarm"),
    "waits at mbarriers": (Races, "waited", lambda *args: None, "rounds", "false alarm"),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", TAKEN_AWAY)
def test_a_sanitizer_without_one_of_its_parts_does_not_agree(monkeypatch, part):
    owner, name, instead, level, verdict = TAKEN_AWAY[part]
    monkeypatch.setattr(owner, name, instead)
    assert any(judge(seed, level) == verdict for seed in range(200))


@pytest.mark.parametrize(
    "owner, name, instead",
    [
        (Shadow, "_distance", lambda self, token, later: np.zeros(token.size, np.int8)),
        (Races, "warp_barrier", lambda self, machine, group: None),
    ],
    ids=["of the last thread alone", "without syncwarp"],
)
def test_shadow_memory_without_one_of_its_parts_forgets_somebody(monkeypatch, owner, name, instead):
    monkeypatch.setattr(owner, name, instead)
    assert not all(agrees(what, space) for what in SUMMARIES for space in ("shared", "global"))
