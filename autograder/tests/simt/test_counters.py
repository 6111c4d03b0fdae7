"""Counters against numbers worked out by hand.

A warp has 32 lanes, a sector 32 bytes, shared memory 32 banks of 4 bytes.
"""

import linecache

import numpy as np
import pytest
from numba import cuda, float32, float64, int32

import warplab
from warplab.hardware.target import Target
from warplab.simt.counters.collect import Counters
from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.program import Program
from warplab.simt.frontends.launch import LaunchContext, run
from warplab.simt.profile import summary

SM_90 = Target.of("sm_90")

# the kernels of the table


@cuda.jit
def strided(x, out, stride, offset):
    i = cuda.grid(1)
    out[i] = x[i * stride + offset]


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


@cuda.jit
def scatter(x, stride):
    x[cuda.grid(1) * stride] = 1


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


@cuda.jit
def columns(x, out):
    row, col = cuda.grid(2)  # the wrong way round: neighbours in x are rows
    out[row, col] = x[row, col]


@cuda.jit
def three_fields(x, out):
    i = cuda.grid(1)
    out[i] = x[3 * i] + x[3 * i + 1] + x[3 * i + 2]


@cuda.jit
def shared_stride(out, stride):
    s = cuda.shared.array(2048, float32)
    t = cuda.threadIdx.x
    s[t * stride] = t
    cuda.syncthreads()
    out[t] = s[t * stride]


@cuda.jit
def shared_pairs(out, many):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[t // many]


@cuda.jit
def shared_doubles(out, stride):
    s = cuda.shared.array(128, float64)
    t = cuda.threadIdx.x
    s[t * stride] = t
    cuda.syncthreads()
    out[t] = s[t * stride]


@cuda.jit
def shared_bytes(out):
    s = cuda.shared.array(32, np.uint8)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[31 - t]


@cuda.jit
def column_of_tile(out, pad):
    s = cuda.shared.array(32 * 33, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y * (32 + pad) + x] = x
    cuda.syncthreads()
    out[y, x] = s[x * (32 + pad) + y]


@cuda.jit
def parts_at(width, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x // width % 2 == 0:
        for k in range(3):
            out[i] += k * out[i] + 1.5
    else:
        for k in range(5):
            out[i] -= k * out[i] + 2.5


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def atomic_on(bins, many):
    i = cuda.grid(1)
    if i < 1000:
        cuda.atomic.add(bins, i % many, 1)


@cuda.jit
def shared_atomic(out):
    s = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, t % 4, 1)
    cuda.syncthreads()
    out[t] = s[t % 4]


VECTORS = """
extern "C" __global__ void load4(const float4* x, float4* out) { out[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void load2(const float2* x, float2* out) { out[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void every_other4(const float4* x, float4* out)
{ out[threadIdx.x] = x[2 * threadIdx.x]; }
extern "C" __global__ void tile4(float4* out) {
    __shared__ float4 s[32];
    s[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void tile4_of_one(float4* out) {
    __shared__ float4 s[1];
    if (threadIdx.x == 0) s[0] = out[0];
    __syncthreads();
    out[threadIdx.x] = s[0];
}"""

# the table

BIG = 4096


def f(n=BIG, dtype=np.float32):
    return np.zeros(n, dtype)


def launched(kernel, grid, block, *args):
    return lambda: warplab.profile(kernel[grid, block], *args)


def one_warp(kernel, *args):
    return launched(kernel, 1, 32, *args)


def vectors(name, *args):
    return lambda: warplab.profile(warplab.cuda_kernel(VECTORS, name)[1, 32], *args)


def load(stride, offset=0, dtype=np.float32):
    return one_warp(strided, f(dtype=dtype), f(32, dtype), stride, offset)


def from_index(index):
    return one_warp(gather, f(), np.asarray(index, np.int64), f(32))


def tail(n):
    return launched(copy, -(-n // 256), 256, f(n), f(n))


def loads(requests, sectors):
    return {
        "global_load.requests": requests,
        "global_load.sectors": sectors,
        "global_load.bytes": 32 * sectors,
    }


def stores(requests, sectors):
    return {"global_store.requests": requests, "global_store.sectors": sectors}


def both(requests, sectors):
    return loads(requests, sectors) | stores(requests, sectors)


def banks(requests, wavefronts, conflicts, kind="load"):
    names = ("requests", "wavefronts", "bank_conflicts")
    return {f"shared_{kind}.{name}": n for name, n in zip(names, (requests, wavefronts, conflicts))}


def atomics(requests, lanes, addresses, most):
    names = ("requests", "lanes", "addresses", "most_lanes_on_one_address")
    return {f"atomics.{name}": n for name, n in zip(names, (requests, lanes, addresses, most))}


LANES = np.arange(32)
TABLE = [
    # strides of 4-byte elements: 32 lanes span 128 x stride bytes,
    # and from stride 8 on every lane has a sector of its own
    ("neighbours: 128 bytes", load(1), loads(1, 4)),
    ("stride 2: 256 bytes", load(2), loads(1, 8)),
    ("stride 3: 384 bytes", load(3), loads(1, 12)),
    ("stride 4: 512 bytes", load(4), loads(1, 16)),
    ("stride 7: 31 x 28 + 4 = 872 bytes, which touch 28 sectors", load(7), loads(1, 28)),
    ("stride 8: a sector a lane", load(8), loads(1, 32)),
    ("stride 32: a sector a lane, and no more", load(32), loads(1, 32)),
    ("stride 0: one address, a broadcast", load(0), loads(1, 1)),
    ("stride -1: the order of the lanes does not matter", load(-1, 31), loads(1, 4)),
    # widths
    ("1 byte: 32 bytes", load(1, dtype=np.int8), loads(1, 1)),
    ("2 bytes: 64 bytes", load(1, dtype=np.float16), loads(1, 2)),
    ("8 bytes: 256 bytes", load(1, dtype=np.float64), loads(1, 8)),
    ("8 bytes, stride 2: 512 bytes", load(2, dtype=np.float64), loads(1, 16)),
    ("8 bytes, stride 4: a sector a lane", load(4, dtype=np.float64), loads(1, 32)),
    ("1 byte, stride 33: a sector a lane", load(33, dtype=np.int8), loads(1, 32)),
    ("float2: 256 bytes in one request", vectors("load2", f(64), f(64)), both(1, 8)),
    ("float4: 512 bytes in one request", vectors("load4", f(128), f(128)), both(1, 16)),
    (
        "every other float4: half of each sector pair is skipped, whole sectors of 16 bytes' use",
        vectors("every_other4", f(256), f(128)),
        loads(1, 32),
    ),
    # offsets
    ("shifted by one element: 4 sectors and a straddle", load(1, 1), loads(1, 5)),
    ("shifted by 7 elements: still 5", load(1, 7), loads(1, 5)),
    ("shifted by a sector: aligned again", load(1, 8), loads(1, 4)),
    ("doubles shifted by one: 8 and a straddle", load(1, 1, np.float64), loads(1, 9)),
    ("bytes shifted by one: 1 and a straddle", load(1, 1, np.int8), loads(1, 2)),
    # patterns; the 32 indices of 8 bytes are 8 sectors of their own
    ("two addresses in one sector", from_index(LANES % 2), loads(2, 8 + 1)),
    ("two addresses far apart", from_index(LANES % 2 * 100), loads(2, 8 + 2)),
    ("a random order of neighbours", from_index(np.random.default_rng(1).permutation(32)), loads(2, 8 + 4)),
    ("rows of 16: two runs of 64 bytes", from_index(LANES % 16 + LANES // 16 * 1000), loads(2, 8 + 4)),
    (
        "a 4 x 8 patch of a 64-wide image: 4 runs of 32 bytes",
        from_index(LANES % 8 + LANES // 8 * 64),
        loads(2, 8 + 4),
    ),
    # stores
    ("stores of neighbours", one_warp(scatter, f(), 1), stores(1, 4)),
    ("stores with stride 5: 640 bytes, all 20 sectors", one_warp(scatter, f(), 5), stores(1, 20)),
    ("stores to one address", one_warp(scatter, f(), 0), stores(1, 1)),
    # arrays of structs
    (
        "all of 3 fields of structs: 3 requests that each touch all 12 sectors",
        one_warp(three_fields, f(96), f(32)),
        loads(3, 36),
    ),
    (
        "rows and columns swapped: a sector a lane",
        launched(columns, 1, 32, f((32, 32)), f((32, 32))),
        both(1, 32),
    ),
    # ragged tails: ceil(n / 32) warps load, ceil(4 n / 32) sectors
    ("1 element", tail(1), both(1, 1)),
    ("33 elements", tail(33), both(2, 5)),
    ("1,000 elements", tail(1000), both(32, 125)),
    # banks: gcd(stride, 32) lanes meet in each
    *[
        (
            f"a stride of {stride} words",
            one_warp(shared_stride, f(32), stride),
            banks(1, w, w - 1) | banks(1, w, w - 1, "store"),
        )
        for stride, w in {1: 1, 2: 2, 3: 1, 4: 4, 6: 2, 8: 8, 16: 16, 31: 1, 32: 32, 33: 1}.items()
    ],
    (
        "a column of a tile of 32 x 32: 32 lanes in one bank",
        launched(column_of_tile, 1, (32, 32), f((32, 32)), 0),
        banks(32, 1024, 992),
    ),
    (
        "a column of a tile of 32 x 33",
        launched(column_of_tile, 1, (32, 32), f((32, 32)), 1),
        banks(32, 32, 0),
    ),
    # broadcasts and widths in shared memory
    ("one word for all", one_warp(shared_pairs, f(32), 32), banks(1, 1, 0)),
    ("one word for each pair of lanes", one_warp(shared_pairs, f(32), 2), banks(1, 1, 0)),
    (
        "bytes: 8 words",
        one_warp(shared_bytes, np.zeros(32, np.uint8)),
        banks(1, 1, 0) | banks(1, 1, 0, "store"),
    ),
    (
        "doubles: 64 words, and two wavefronts are no conflict",
        one_warp(shared_doubles, f(32, np.float64), 1),
        banks(1, 2, 0),
    ),
    (
        "doubles with stride 2: even pairs of banks only, 4 words each",
        one_warp(shared_doubles, f(32, np.float64), 2),
        banks(1, 4, 2),
    ),
    (
        "float4: 128 words in 4 wavefronts, no conflict",
        vectors("tile4", f(128)),
        banks(1, 4, 0) | banks(1, 4, 0, "store"),
    ),
    ("one float4 for all: 4 words", vectors("tile4_of_one", f(128)), banks(1, 1, 0)),
    # divergence
    ("halves of a warp part", launched(parts_at, 2, 64, 16, f(128)), {"divergent_branches": 4}),
    ("odd and even lanes part", launched(parts_at, 2, 64, 1, f(128)), {"divergent_branches": 4}),
    (
        "whole warps part",
        launched(parts_at, 2, 64, 32, f(128)),
        {"divergent_branches": 0, "branch_efficiency": 1.0, "warp_execution_efficiency": 1.0},
    ),
    ("one thread of a warp", launched(copy, 1, 1, f(1), f(1)), {"warp_execution_efficiency": 1 / 32}),
    (
        "a block of 48 threads: a warp and a half",
        launched(copy, 1, 48, f(48), f(48)),
        {"warp_execution_efficiency": 0.75},
    ),
    # atomics of 1,000 threads: 31 warps and 8 lanes
    ("all on one address", launched(atomic_on, 4, 256, f(1, np.int32), 1), atomics(32, 1000, 32, 32)),
    ("on four addresses", launched(atomic_on, 4, 256, f(4, np.int32), 4), atomics(32, 1000, 128, 8)),
    ("each on its own", launched(atomic_on, 4, 256, f(1000, np.int32), 1000), atomics(32, 1000, 1000, 1)),
    ("in shared memory, eight lanes a word", one_warp(shared_atomic, f(32, np.int32)), atomics(1, 32, 4, 8)),
    # floating point
    (
        "an fma is 2, and only of threads that do it",
        launched(saxpy, 4, 256, np.float32(2), f(1000), f(1000)),
        {"flops": 2000},
    ),
    ("additions are 1 each", one_warp(three_fields, f(96), f(32)), {"flops": 64}),
]


@pytest.mark.parametrize("what, run, expected", TABLE, ids=[row[0] for row in TABLE])
def test_counts_are_those_worked_out_by_hand(what, run, expected):
    counted = run().as_dict()
    assert {name: counted[name] for name in expected} == pytest.approx(expected)


# what a table does not say


def test_addresses_are_counted_as_if_the_buffer_were_aligned_as_cudas_are():
    raw = np.zeros(33, np.float32)
    # NumPy's pointer is 4 bytes off, a device copy's is not
    p = warplab.profile(copy[1, 32], raw[1:], np.zeros(32, np.float32))
    assert p.global_load.sectors == 4


def test_lines_add_up_to_the_kernel_and_name_its_source():
    p = warplab.profile(saxpy[4, 256], np.float32(2), np.ones(1000, np.float32), np.ones(1000, np.float32))
    line = next(entry for entry in p.lines if entry.global_load.requests)
    assert line.source.strip() == "y[i] = a * x[i] + y[i]" == linecache.getline(line.file, line.line).strip()
    assert line.global_load.requests == p.global_load.requests == 64
    assert sum(entry.flops for entry in p.lines) == p.flops


def test_nsight_compute_names_atomics_by_memory_and_by_whether_they_return_something():
    p = warplab.profile(atomic_on[4, 256], f(1, np.int32), 1)
    assert p.ncu()["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"] == 32  # nobody asks for the old value
    assert (
        p.ncu()["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"]
        == p.ncu()["smsp__inst_executed_op_shared_atom.sum"]
        == 0
    )
    shared = warplab.profile(shared_atomic[1, 32], f(32, np.int32))
    assert shared.ncu()["smsp__inst_executed_op_shared_atom.sum"] == 1


# the busiest warp

# Lanes whose `number / divisor` is 0 go round 10 times, all others once.
# Three instructions a turn, eight before, one after.
TURNS = """.version 9.0
.target sm_90
.address_size 64
.visible .entry turns(.param .u32 divisor)
{
    .reg .pred %p<3>; .reg .b32 %r<9>;
    ld.param.u32 %r1, [divisor];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r5, %r3, %r4, %r2;
    div.u32 %r6, %r5, %r1;
    setp.eq.u32 %p1, %r6, WHO;
    selp.u32 %r7, 10, 1, %p1;
AGAIN:
    sub.u32 %r7, %r7, 1;
    setp.ne.u32 %p2, %r7, 0;
    @%p2 bra AGAIN;
    ret;
}"""
ONE_TURN, TEN_TURNS = 8 + 3 + 1, 8 + 30 + 1


def turns(blocks, threads, divisor=32, who=0, sample=None):
    """(busiest warp's instructions, all warps') where lanes divisor * who and on take ten turns."""
    space, counters = AddressSpace(), Counters()
    program = Program(TURNS.replace("WHO", str(who)), "turns", "turns", space)
    context = LaunchContext(SM_90, (counters,), sample)
    machine = run(program, [divisor.to_bytes(4, "little")], [], blocks, threads, 0, space, context)
    p = summary(machine, counters, SM_90, resources=False)
    return p.busiest_warp_instructions, p.warp_instructions


BUSIEST = [  # what, the launch, the busiest warp's instructions, and how many other warps do one turn and ten
    ("the first warp", dict(blocks=2, threads=128), TEN_TURNS, 7, 0),
    ("whichever it is", dict(blocks=2, threads=128, who=6), TEN_TURNS, 7, 0),
    ("all alike", dict(blocks=2, threads=128, divisor=256), TEN_TURNS, 0, 7),
    ("all alike and short", dict(blocks=2, threads=128, who=99), ONE_TURN, 7, 0),
    ("one lane alone", dict(blocks=2, threads=128, divisor=1, who=40), TEN_TURNS, 7, 0),
    # lanes 32 to 63 are the second warp of block 0, of half a warp, and the first 16 lanes of block 1
    ("a warp and a half a block", dict(blocks=2, threads=48, who=1), TEN_TURNS, 2, 1),
    # a chunk is 32,768 lanes: 600 blocks of 4 warps are 3 chunks of 256, 256 and 88 blocks
    *(
        (f"in chunk {i}", dict(blocks=600, threads=128, who=who), TEN_TURNS, 2399, 0)
        for i, who in enumerate((0, 1100, 2399))
    ),
    # of a sample the total is scaled and the most is not; block 0 is not in it: 50, 150 ...
    ("in a sample", dict(blocks=600, threads=128, divisor=128 * 600, sample=6), TEN_TURNS, 0, 2399),
    ("not in a sample", dict(blocks=600, threads=128, who=0, sample=6), ONE_TURN, 2399, 0),
]


@pytest.mark.parametrize("what, launch, busiest, once, often", BUSIEST, ids=[row[0] for row in BUSIEST])
def test_the_busiest_warp_and_the_sum_of_all(what, launch, busiest, once, often):
    assert turns(**launch) == (busiest, busiest + once * ONE_TURN + often * TEN_TURNS)


def test_a_guarded_return_is_a_branch_and_one_instruction():
    leaves = """.version 8.0
.target sm_90
.address_size 64
.visible .entry leaves()
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 8;
    @%p1 ret;
    add.u32 %r2, %r1, 1;
    ret;
}
"""
    space, counters = AddressSpace(), Counters()
    program, context = Program(leaves, "leaves", "leaves", space), LaunchContext(SM_90, (counters,))
    machine = run(program, [], [], 1, 32, 0, space, context)
    p = summary(machine, counters, SM_90, resources=False)
    # mov, setp and the guard by 32 lanes; ret by the 8 that leave; add and ret by the 24 that stay
    assert (p.warp_instructions, p.busiest_warp_instructions) == (6, 6)


@cuda.jit
def parts_ways(x, out):
    """Each lane its own number of turns, on the left or on the right; a barrier in between."""
    i = cuda.grid(1)
    n = x[i]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    cuda.syncthreads()
    if cuda.laneid % 3 == 0:
        for k in range(x[i]):
            n += k * n
    out[i] = n


@pytest.mark.slow
def test_total_and_busiest_are_the_sum_and_the_most_of_the_warps_run_one_by_one():
    x = np.random.default_rng(3).integers(1, 100, 32 * 12).astype(np.int32)
    apart = [
        warplab.profile(parts_ways[1, 32], x[k : k + 32], np.zeros(32, np.int32)).warp_instructions
        for k in range(0, x.size, 32)
    ]
    for threads in (32, 96, 192):
        p = warplab.profile(parts_ways[x.size // threads, threads], x, np.zeros(x.size, np.int32))
        assert (p.warp_instructions, p.busiest_warp_instructions) == (sum(apart), max(apart))
    assert len(set(apart)) > 6
    assert p.as_dict()["busiest_warp_instructions"] == max(
        apart
    ) and f"{max(apart):,} of them by the busiest" in str(p)
