"""No access to memory goes uncounted, and no row is bought by moving accesses to other instructions.

A row that bounds loads or stores must see every instruction that can stand for one. So each memory
instruction of the engine's table counts what one warp does with it, by hand; and a kernel that loses points
for its accesses is rewritten, access by access, to each of them, and must not earn more.
"""

from functools import cache

import numpy as np
import pytest
from corpus_files import entry_of, of_all_sets
from memory_instructions import LOADS, STORES, global_only, with_other_accesses

from warplab.crossing import CROSSINGS, EXECUTED, execute, finish
from warplab.crossing.costliest import counts_memory
from warplab.hardware.target import Target
from warplab.simt.counters.collect import Counters
from warplab.simt.counters.counts import Counts
from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.engine.program import Program
from warplab.simt.frontends.launch import LaunchContext, run
from warplab.simt.observer import Observer
from warplab.simt.profile import MEMORY, summary
from warplab.tasks import registry, scoring
from warplab.tasks.declaration import KernelTask

FILLED = np.array((2, 8))  # what KERNEL itself does to shared memory, so that all of it can be read
# One warp. %rd1 is the array, %rd2 the lane's word in it, %rd3 its 16 bytes; %rd5 and %rd6 the same in shared
# memory, whose start is %rd4.
KERNEL = """
.version 9.0
.target sm_90
.address_size 64
.shared .align 16 .b8 table[1024];
.const .align 4 .b8 constants[128];
.visible .entry k(.param .u64 array)
{{
.reg .b32 %r<40>; .reg .b64 %rd<12>; .reg .f32 %f<9>; .reg .pred %p<3>;
ld.param.u64 %rd1, [array];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd9, %r1, 4;
add.s64 %rd2, %rd1, %rd9;
mul.wide.u32 %rd10, %r1, 16;
add.s64 %rd3, %rd1, %rd10;
mov.u64 %rd4, table;
add.s64 %rd5, %rd4, %rd9;
add.s64 %rd6, %rd4, %rd10;
cvta.shared.u64 %rd7, %rd5;
mov.u64 %rd8, constants;
add.s64 %rd8, %rd8, %rd9;
mov.u32 %r2, 16;
st.shared.v4.b32 [%rd6], {{%r1, %r1, %r1, %r1}};
st.shared.v4.b32 [%rd6+512], {{%r1, %r1, %r1, %r1}};
bar.sync 0;
{body}
ret;
}}
"""
HALVES = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}"
FLOATS = "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}"
WORDS = {"global": (1, 4), "shared": (1, 1)}  # 128 bytes side by side: 4 sectors, 1 wavefront
FORMS = {  # opcode -> {what a warp does: {part: (requests, sectors or wavefronts)}}
    "ld": {
        "ld.global.b32 %r3, [%rd2];": {"global_load": WORDS["global"]},
        "ld.volatile.global.b32 %r3, [%rd2];": {"global_load": WORDS["global"]},
        "ld.global.nc.b32 %r3, [%rd2];": {"global_load": WORDS["global"]},
        "ld.const.b32 %r3, [%rd8];": {"global_load": WORDS["global"]},
        "ld.b32 %r3, [%rd2];": {"global_load": WORDS["global"]},
        "ld.global.v2.b32 {%r3, %r4}, [%rd3];": {"global_load": (1, 16)},
        "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd3];": {"global_load": (1, 16)},
        "ld.shared.b32 %r3, [%rd5];": {"shared_load": WORDS["shared"]},
        "ld.b32 %r3, [%rd7];": {"shared_load": WORDS["shared"]},
        "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%rd6];": {"shared_load": (1, 4)},
    },
    "ldu": {"ldu.global.b32 %r3, [%rd2];": {"global_load": WORDS["global"]}},
    "st": {
        "st.global.b32 [%rd2], %r1;": {"global_store": WORDS["global"]},
        "st.volatile.global.b32 [%rd2], %r1;": {"global_store": WORDS["global"]},
        "st.b32 [%rd2], %r1;": {"global_store": WORDS["global"]},
        "st.global.v4.b32 [%rd3], {%r1, %r1, %r1, %r1};": {"global_store": (1, 16)},
        "st.shared.b32 [%rd5], %r1;": {"shared_store": WORDS["shared"]},
        "st.b32 [%rd7], %r1;": {"shared_store": WORDS["shared"]},
    },
    "atom": {
        "atom.global.or.b32 %r3, [%rd2], 0;": {"global_atomic": WORDS["global"]},
        "atom.global.cas.b32 %r3, [%rd2], 0, 0;": {"global_atomic": WORDS["global"]},
        "atom.global.exch.b32 %r3, [%rd2], %r1;": {"global_atomic": WORDS["global"]},
        "atom.add.u32 %r3, [%rd2], 0;": {"global_atomic": WORDS["global"]},
        "atom.global.add.u32 %r3, [%rd1], 1;": {"global_atomic": (1, 1)},
        "atom.shared.or.b32 %r3, [%rd5], 0;": {"shared_atomic": WORDS["shared"]},
        "atom.or.b32 %r3, [%rd7], 0;": {"shared_atomic": WORDS["shared"]},
    },
    "red": {
        "red.global.or.b32 [%rd2], 0;": {"global_atomic": WORDS["global"]},
        "red.shared.or.b32 [%rd5], 0;": {"shared_atomic": WORDS["shared"]},
    },
    "cp": {
        "cp.async.ca.shared.global [%rd5], [%rd2], 4; cp.async.wait_all;": {
            "global_load": WORDS["global"],
            "shared_store": WORDS["shared"],
        },
        "cp.async.cg.shared.global [%rd6], [%rd3], 16; cp.async.wait_all;": {
            "global_load": (1, 16),
            "shared_store": (1, 4),
        },
    },
    "ldmatrix": {
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%rd6];": {"shared_load": (1, 4)},
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%rd6];": {"shared_load": (1, 1)},
    },
    "stmatrix": {
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%rd6], {%r1, %r1, %r1, %r1};": {"shared_store": (1, 4)},
    },
    "wmma": {  # 16 x 16 numbers of 2 bytes, and of 4
        f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {HALVES}, [%rd1], %r2;": {"global_load": (1, 16)},
        f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {HALVES}, [%rd4], %r2;": {"shared_load": (1, 4)},
        f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {FLOATS}, %r2;": {
            "global_store": (1, 32)
        },
    },
}
NO_ACCESS = {  # their handlers stand among those of memory, and they bring a kernel no data of it
    "mov",
    "cvta",
    "isspacep",
    "movmatrix",
    "mma",
    "membar",
    "fence",
    "griddepcontrol",
    "setmaxnreg",
    "nanosleep",
    "createpolicy",  # a hint for caches
    "prefetch",  # asks for sectors that the load after it has to ask for again
    "trap",
    "extern",  # printf, malloc, free, assert: they read for the host
}
NO_STAND_IN = {"ldmatrix", "stmatrix", "wmma"}  # no single lane's load or store can be made of these


class EveryAccess(Observer):
    """Requests by (space, what) as the load-store unit tells them, whatever instruction they come from."""

    def __init__(self):
        self.requests = {}

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        self.requests[space, what] = self.requests.get((space, what), 0) + group.warps


def profiled(body):
    """(Profile, requests as told) of one warp that runs `body`."""
    space, array = AddressSpace(), np.zeros(1024, np.uint32)
    program = Program(KERNEL.format(body=body), "k", "k", space)
    region = space.add(array.view(np.uint8), "array", 4)
    counters, told = Counters(), EveryAccess()
    context = LaunchContext(Target.of("sm_90"), (counters, told))
    pointer = region.base.to_bytes(8, "little")
    machine = run(program, [pointer], [], (1, 1, 1), (32, 1, 1), 0, space, context)
    return summary(machine, counters, Target.of("sm_90"), resources=False), told.requests


def touches_memory(opcode):
    return INSTRUCTIONS[opcode].memory != "none"


def test_every_memory_instruction_of_the_table_has_its_forms_here():
    warp_groups = {"wgmma"}  # counted in test_wgmma.py
    counted = {opcode for opcode in INSTRUCTIONS if touches_memory(opcode)} - warp_groups
    assert set(FORMS) == counted, "add to FORMS what a warp's access counts"
    assert set(LOADS) | set(STORES) == counted - NO_STAND_IN, (
        "of memory_instructions.py, or named in NO_STAND_IN"
    )


def test_an_instruction_that_says_it_touches_no_memory_does_not_live_where_memory_is_touched():
    lives = {
        opcode: {form.handler.__module__ for form in row.forms.values()}
        for opcode, row in INSTRUCTIONS.items()
    }
    rooms = set().union(*(lives[opcode] for opcode in (*FORMS, "extern")))
    quiet = {opcode for opcode in INSTRUCTIONS if not touches_memory(opcode) and rooms & lives[opcode]}
    assert quiet == NO_ACCESS, "name in NO_ACCESS what brings a kernel no data of memory"


@pytest.mark.parametrize(
    "body, counted",
    [pytest.param(body, counted, id=body) for forms in FORMS.values() for body, counted in forms.items()],
)
def test_a_warps_access_is_counted_once_and_in_the_sums_of_its_kind(body, counted):
    p, told = profiled(body)
    expected = {}
    for space in ("global", "shared"):
        load, store, atomic = (
            np.array(counted.get(f"{space}_{kind}", (0, 0))) for kind in ("load", "store", "atomic")
        )
        store = store + (FILLED if space == "shared" else 0)
        kinds = {"load": load, "store": store, "atomic": atomic, "read": load + atomic}
        kinds |= {"write": store + atomic, "memory": load + store + 2 * atomic}
        expected |= {f"{space}_{kind}": tuple(numbers.tolist()) for kind, numbers in kinds.items()}
    pieces = {"global": "sectors", "shared": "wavefronts"}
    found = {part: getattr(p, part) for part in MEMORY if part in expected}
    assert not any(getattr(p, part).requests for part in MEMORY if part not in expected)  # TMA's
    assert {
        name: (part.requests, getattr(part, pieces[name.split("_")[0]])) for name, part in found.items()
    } == expected
    for space in ("global", "shared"):
        times = {"read": 1, "write": 1, "atomic": 2}
        heard = sum(n * times[what] for (where, what), n in told.items() if where == space)
        assert heard == getattr(p, f"{space}_memory").requests


def test_an_instruction_that_goes_to_several_memories_counts_in_each():
    """A generic load of the lanes' words in shared memory, 1 wavefront, and then in the array, 4 sectors."""
    body = """
    mov.u64 %rd11, %rd7;
    again: ld.b32 %r3, [%rd11]; setp.eq.u64 %p1, %rd11, %rd2; mov.u64 %rd11, %rd2; @!%p1 bra again;
    """
    p, _ = profiled(body)
    assert (p.shared_load.requests, p.shared_load.wavefronts) == (1, 1)
    assert (p.global_load.requests, p.global_load.sectors) == (1, 4)


def test_an_access_is_a_store_by_its_row_whatever_the_opcode(monkeypatch):
    monkeypatch.setitem(INSTRUCTIONS, "put", INSTRUCTIONS["st"])
    p, _ = profiled("put.global.b32 [%rd2], %r1;")
    assert (p.global_store.requests, p.global_load.requests) == (1, 0)


# the rows

LOSERS = {  # task -> right answers that lose points for their accesses; the first is attacked in every run
    "ps00/barrier": ("wrong_no_table",),
    "ps00/row_sum": ("wrong_writes_each_time",),
    "ps00/stride": ("wrong_all_by_all", "wrong_step_of_a_block"),
    "ps00/tile": ("wrong_reads_four_times",),
    "ps01/grayscale": ("wrong_guards_the_whole_image_only",),
    "ps01/box_blur": ("wrong_sums_in_memory",),
    "ps01/brighten": ("wrong_rows_by_x",),
    "ps02/dimming": ("wrong_as_given",),
    "ps04/layer": ("wrong_indices_exchanged",),
    "ps05/echoes": ("wrong_padding",),
    "ps02/grid_stride": ("wrong_strides_by_the_block", "wrong_chunks", "cheat_one_thread"),
    "ps03/reduce_atomic": ("wrong_one_thread",),
    "ps03/reduce_tree": ("wrong_neighbours_first", "cheat_one_thread", "wrong_atomic_for_each_warp"),
    "ps03/reduce_shuffle": ("wrong_tree_on_the_table", "cheat_one_thread", "wrong_atomic_for_each_warp"),
    "ps03/scan": ("wrong_launch_for_each_power", "cheat_one_thread"),
    "ps04/matmul_naive": ("wrong_sum_in_c", "wrong_swapped_axes"),
    "ps04/matmul_tiled": ("wrong_naive_kernel", "wrong_tile_from_b_only", "wrong_uncoalesced"),
    "ps04/matmul_register_tiled": ("wrong_one_result", "part_two_by_two"),
    "ps05/copy_strided": ("wrong_block_order", "cheat_one_thread"),
    "ps05/transpose": ("wrong_naive", "wrong_no_padding"),
    "ps05/stencil_shared": ("wrong_five_loads", "wrong_columns_fetched_by_rows"),
    "ps05/softmax_online": ("wrong_three_passes",),
    "ps05/flash_attention": ("wrong_no_table",),
    "ps07/wmma_matmul": ("wrong_scalar", "wrong_reuses_one_side"),
    "ps07/int8_matmul": ("wrong_no_tables", "wrong_column_of_its_own", "wrong_no_padding"),
    "ps08/fused_bias_gelu": ("wrong_through_memory", "wrong_swapped_indices"),
    "ps08/read_report": ("wrong_no_table", "wrong_table_down_its_columns"),
    "ps12/vector_add": ("cheat_one_program",),
    "ps12/fused_softmax": ("wrong_three_passes", "cheat_one_program", "wrong_writes_the_powers_first"),
    "ps12/layer_norm": ("wrong_reads_twice", "cheat_one_program"),
    "ps12/layer_norm_backward": ("wrong_reads_again", "cheat_one_program"),
    "ps12/matmul_dot": ("wrong_one_program",),
    "ps12/autotune": ("wrong_no_large_tile", "wrong_words_choose_for_the_prompt"),
    "ps13/linear": ("wrong_down_the_columns", "cheat_one_block"),
    "ps13/activation": ("wrong_down_the_columns", "cheat_one_warp"),
    "ps13/layer_norm": ("wrong_found_anew",),
    "ps13/cross_entropy": ("wrong_three_launches",),
    "ps13/adamw": ("part_reads_what_it_wrote", "cheat_one_thread_a_warp"),
    "ps13/embedding": ("wrong_a_row_for_each_thread",),
    "ps13/train_mlp": ("wrong_no_tiles", "part_every_operation"),
    "ps15/smooth": ("wrong_halo_from_memory", "wrong_adds_from_neighbours"),
    "ps15/row_energy": ("wrong_row_a_lane", "wrong_twice"),
    "ps15/wgmma_product": ("wrong_beyond_and_waits",),
}
FIRST = [f"{task}/{answers[0]}" for task, answers in LOSERS.items()]
ALL = [f"{task}/{answer}" for task, answers in LOSERS.items() for answer in answers]
BOTH = ("global", "shared")
# a table is not set yet
ATOMICS = {"load": LOADS["atom"]["or"], "store": global_only(STORES["atom"]["exch"])}
LOCAL_FIRST = {"load": LOADS["ld"]["local memory first"], "store": STORES["st"]["local memory first"]}
ONE_BY_ONE = [
    pytest.param(kind, rewrite, id=f"{kind} by {opcode}, {form}")
    for kind, table in (("load", LOADS), ("store", STORES))
    for opcode, forms in table.items()
    for form, rewrite in forms.items()
]


@cache
def memory_cases(name):
    """A task's cases whose rows count accesses to memory."""
    task = registry.get(name)
    counted = task.crossing in EXECUTED
    return [case for case in task.cases(0) if counts_memory(task.counts_of(case))] if counted else []


@cache
def orders_of(identity):
    """(task, cases, their Orders) of a corpus entry, compiled once."""
    entry = entry_of(identity)
    task, namespace, cases = registry.get(entry.task), entry.namespace(), memory_cases(entry.task)
    crossing, names = CROSSINGS[task.crossing], (task.entry, task.plan_entry)
    given = namespace[task.entry], namespace.get(task.plan_entry), None
    answers = [crossing.answer(crossing.question(task, case), names, *given) for case in cases]
    return task, cases, [finish(task, case, answer, None) for case, answer in zip(cases, answers)]


def judged(task, cases, orders):
    """{row that counts memory: its Line}."""
    outcomes = [execute(order).of(case) for case, order in zip(cases, orders)]
    rows = {case.item for case in cases}
    return {line.key: line for line in scoring.judge(task, cases, outcomes).lines if line.key in rows}


@cache
def plainly(identity):
    return judged(*orders_of(identity))


def gained(identity, **rewrites):
    """({row: points more than plainly}, {row: Line}) with the accesses to what its rows count rewritten.

    Skips where no access has the form.
    """
    task, cases, orders = orders_of(identity)
    counted = " ".join(name for case in cases for name in task.counts_of(case))
    spaces = [space for space in BOTH if f"{space}_" in counted]
    other, done = zip(*(with_other_accesses(order, spaces, **rewrites) for order in orders))
    if not sum(done):
        pytest.skip("no access of this kernel has this form")
    lines = judged(task, cases, other)
    more = {key: line.points - plainly(identity)[key].points for key, line in lines.items()}
    return {key: points for key, points in more.items() if points > 0}, lines


@pytest.mark.slow
@of_all_sets
def test_every_task_with_such_rows_is_attacked_where_points_are_lost():
    ours = {name for name in registry.names() if not name.startswith("example/") and memory_cases(name)}
    assert ours == set(LOSERS), "name in LOSERS what is right and loses a row that counts accesses to memory"


@pytest.mark.sampled(7)
@pytest.mark.slow
@pytest.mark.parametrize("identity", FIRST)
def test_atomics_for_loads_and_stores_earn_nothing(identity):
    lost = [line for line in plainly(identity).values() if line.points < line.max]
    assert lost and not any("only counted" in line.reason for line in lost)
    more, lines = gained(identity, **ATOMICS)
    assert not more
    if not registry.get(identity.rpartition("/")[0]).atomics:
        assert all("this task needs none" in line.reason for line in lines.values()), lines


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["ps04/matmul_tiled/wrong_naive_kernel", "ps05/transpose/wrong_naive"])
def test_an_instruction_that_went_to_local_memory_first_earns_nothing(identity):
    more, lines = gained(identity, **LOCAL_FIRST)
    assert not more
    assert not any("only counted" in line.reason for line in lines.values()), "the attack spoils the result"


@pytest.mark.full
@pytest.mark.parametrize("kind, rewrite", ONE_BY_ONE)
@pytest.mark.parametrize("identity", ALL)
def test_no_form_of_an_access_earns_more_than_the_plain_one(identity, kind, rewrite, request):
    more, _ = gained(identity, **{kind: rewrite})
    # cp.async goes by way of shared memory, which is what that warm-up asks for
    assert not more or (identity.startswith("ps00/barrier/") and "cp, async" in request.node.name)


def take_away(monkeypatch, *, sums=False, refusal=False):
    """Count and judge as if atomics were neither loads nor stores."""
    if refusal:
        monkeypatch.setattr(KernelTask, "needless_atomics", lambda *_: None)
    for space in ("global", "shared") if sums else ():
        part = {
            kind: property(lambda c, name=f"{space}_{kind}": getattr(c, name)) for kind in ("load", "store")
        }
        both = property(lambda c, s=space: getattr(c, f"{s}_load") + getattr(c, f"{s}_store"))
        for name, counted in (("read", part["load"]), ("write", part["store"]), ("memory", both)):
            monkeypatch.setattr(Counts, f"{space}_{name}", counted)


@pytest.mark.slow
def test_either_wall_holds_alone_and_without_both_the_points_are_to_be_had(monkeypatch):
    """The naive kernel with its 12 points for few requests and few sectors, by atomics."""
    naive = "ps04/matmul_tiled/wrong_naive_kernel"
    for walls in ({"sums": True}, {"refusal": True}):
        with monkeypatch.context() as patch:
            take_away(patch, **walls)
            assert not gained(naive, **ATOMICS)[0], walls
    take_away(monkeypatch, sums=True, refusal=True)
    assert gained(naive, **ATOMICS)[0] == {"requests": 8, "sectors": 4}


def test_counted_where_it_first_went_an_access_is_to_be_had_for_nothing(monkeypatch):
    counted = Counters.accessed

    def by_first_space(self, machine, group, site, access, offset, width, space, what, values):
        first = self.__dict__.setdefault("first", {}).setdefault(site, space)
        counted(self, machine, group, site, access, offset, width, first, what, values)

    monkeypatch.setattr(Counters, "accessed", by_first_space)
    assert gained("ps04/matmul_tiled/wrong_naive_kernel", **LOCAL_FIRST)[0] == {"requests": 8, "sectors": 4}
