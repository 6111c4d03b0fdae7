"""Unwritten memory may be read and thrown away; it may not matter. Held to runs with other bytes in it.

If the sanitizer lets a random program pass, its output must be the same whatever lies in the memory that
nobody wrote, and the same as without the sanitizer.
"""

import random

import numpy as np
import pytest
from numba import cuda, float32
from ptx_runner import run
from told import line_of

import warplab
from warplab.simt.engine import loadstore, taint
from warplab.simt.engine.address_space import AddressSpace
from warplab.simt.engine.groups import joined
from warplab.simt.engine.machine import Launch, Machine
from warplab.simt.engine.program import Program
from warplab.simt.engine.taint import Tainted
from warplab.simt.engine.wrapped import plain
from warplab.simt.errors import UninitialisedRead
from warplab.simt.sanitizer.uninitialised import InitialisationCheck

CELLS = 160
HEAD = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .pred %p<6>; .reg .b32 %r<30>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
    .shared .align 16 .b8 words[{4 * CELLS}];
    .local .align 16 .b8 own[32];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    shl.b32 %r2, %r1, 2; mov.u32 %r3, words; add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1; mov.u64 %rd3, own; st.local.u32 [%rd3], %r1;
    mov.u32 %r10, 0; mov.u32 %r11, 1; mov.u32 %r12, 77; mov.u32 %r13, %r1;
    setp.lt.u32 %p1, %r1, 16; setp.eq.u32 %p2, %r1, 3; setp.ne.u32 %p3, %r1, %r1;
"""
NUMBERS = ["%r10", "%r11", "%r12", "%r13"]
PREDICATES = ["%p1", "%p2", "%p3"]


class Filled(Machine):
    """A machine whose unwritten memory holds the bytes that a seed gives."""

    seed = 0

    def _start_chunk(self, first, count):
        super()._start_chunk(first, count)
        rng = np.random.default_rng(self.seed)
        for region in (self.shared, self.local):
            region.data[:] = rng.integers(0, 256, region.size, np.uint8)


def output(program: Program, space: AddressSpace, observers=(), seed: int | None = None) -> np.ndarray:
    out = np.zeros(32, np.uint32)
    region = space.add(out.view(np.uint8), "out", 4)
    params = {"out": np.frombuffer(region.base.to_bytes(8, "little"), np.uint8)}
    machine = (Machine if seed is None else Filled)(
        program, space, Launch((1, 1, 1), (32, 1, 1), 0, params), list(observers)
    )
    if isinstance(machine, Filled):
        machine.seed = seed
    machine.run()
    return out


def a_body(rng: random.Random) -> str:
    def number() -> str:
        return rng.choice(NUMBERS)

    def predicate() -> str:
        return rng.choice(PREDICATES)

    def statement() -> str:
        d, a, b, p, q = number(), number(), number(), predicate(), predicate()
        return rng.choice(
            [
                f"ld.shared.u32 {d}, [%r4+{4 * rng.choice((0, 1, 16, 31, 40))}];",
                f"ld.shared.v2.u32 {{{d}, %r20}}, [%r3+{8 * rng.randrange(20)}];",
                f"st.shared.u32 [%r4+{4 * rng.choice((32, 64, 96))}], {a};",
                f"ld.local.u32 {d}, [%rd3+{4 * rng.randrange(3)}];",
                f"st.local.v2.u32 [%rd3+{8 * rng.randrange(2)}], {{{a}, {b}}};",
                f"add.u32 {d}, {a}, {b};",
                f"mul.lo.u32 {d}, {a}, {b};",
                f"mad.lo.u32 {d}, {a}, {b}, {number()};",
                f"and.b32 {d}, {a}, {b};",
                f"or.b32 {d}, {a}, {b};",
                f"min.u32 {d}, {a}, {b};",
                f"shr.u32 {d}, {a}, 7;",
                f"add.cc.u32 {d}, {a}, {b}; addc.u32 {number()}, {a}, {b};",
                f"mov.u32 {d}, {rng.choice((0, 5, 0xFFFFFFFF))};",
                f"selp.b32 {d}, {a}, {b}, {p};",
                f"setp.lt.u32 {p}, {a}, {b};",
                f"setp.gt.and.u32 {p}, {a}, {b}, {rng.choice(('', '!'))}{q};",
                f"setp.eq.or.u32 {p}, {a}, {b}, {q};",
                f"and.pred {p}, {q}, {predicate()};",
                f"or.pred {p}, {q}, {predicate()};",
                f"not.pred {p}, {q};",
                f"shfl.sync.bfly.b32 {d}|{p}, {a}, {rng.choice(('1', '16', '%r12'))}, 31, -1;",
                f"shfl.sync.idx.b32 {d}, {a}, {rng.choice(('0', '5', '%r13'))}, 31, -1;",
                f"shfl.sync.{rng.choice(('up', 'down'))}.b32 {d}|{p}, {a}, 1, {rng.choice((0, 31))}, -1;",
                f"vote.sync.ballot.b32 {d}, {p}, -1;",
                f"vote.sync.any.pred {p}, {q}, -1;",
                f"redux.sync.add.u32 {d}, {a}, -1;",
            ]
        )

    lines = []
    for label in range(rng.randint(4, 12)):
        if rng.random() < 0.2:
            lines.append(f"@{predicate()} bra L{label}; {statement()} {statement()} L{label}:")
        elif rng.random() < 0.1:
            lines.append(f"@{predicate()} {statement().split(';')[0]};")
        else:
            lines.append(statement() + rng.choice(("", "", " bar.sync 0;")))
    return "\n".join(lines) + f"\nst.global.u32 [%rd1], {number()}; ret; }}"


def judge(seed: int) -> str:
    """How a program fares: "passed" without an unwritten read, "followed", "refused", or "severe": refused
    though its output is the same.
    """
    rng = random.Random(seed)
    space = AddressSpace()
    program = Program(HEAD + a_body(rng), "k", "k", space)
    plain = [output(program, space, seed=fill) for fill in (1, 2, 3)]
    same = all((o == plain[0]).all() for o in plain)
    check = InitialisationCheck()
    try:
        checked = output(program, space, [check])
    except UninitialisedRead:
        return "severe" if same else "refused"
    assert same, (seed, program.ptx)
    np.testing.assert_array_equal(checked, plain[0], err_msg=str(seed))
    return "followed" if check.tracks else "passed"


@pytest.mark.slow
def test_what_passes_does_not_depend_on_unwritten_memory():
    verdicts = [judge(seed) for seed in range(120)]
    assert min(map(verdicts.count, ("followed", "refused"))) > 8


@pytest.mark.full
def test_what_passes_does_not_depend_on_unwritten_memory_in_thousands():
    for seed in range(1000, 9000):
        judge(seed)


def without_origins(self, *rest):
    return taint.INITIALISED


def not_tainted(view, index, count, *origins):
    return view[index] if count == 1 else [view[index + i] for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "owner, part, forgets",
    [
        (Tainted, "call", lambda self, function, args, settings: function(*plain(args), **settings)),
        (Tainted, "_chosen", without_origins),
        (Tainted, "_masked", without_origins),
        (Tainted, "__getitem__", lambda self, index: self.now[index]),
        (Tainted, "joined", lambda self, parts, places, size: joined(list(plain(parts)), places, size)),
        (taint, "of_warp", lambda table, origins: np.zeros(table.row.size, np.int64)),
        (loadstore, "loaded", not_tainted),
        (loadstore, "origins_of", lambda values: 0 * taint.origins_of(values)),
    ],
)
def test_a_check_that_loses_a_value_is_found_out(monkeypatch, owner, part, forgets):
    monkeypatch.setattr(owner, part, forgets)
    with pytest.raises(AssertionError):
        for seed in range(1000):
            judge(seed)


# %r5: of lanes 16 to 31 what nobody has written, of the others 5; %p2 is true.
HALF_WRITTEN = """
    mov.u32 %r2, words; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; mov.u32 %r4, 5;
    setp.lt.u32 %p1, %r1, 16; setp.eq.u32 %p2, %r1, %r1;
    @%p1 st.shared.u32 [%r2], %r4;
    mov.u32 %r6, 0xFFFFFFFF; add.cc.u32 %r7, %r6, 1;
    ld.shared.u32 %r5, [%r2];
"""
WORDS = ".shared .align 4 .b8 words[128];"


@pytest.mark.parametrize(
    "statement, result",
    [  # None: the unknown value matters, in operations that the random programs have not
        ("and.b32 %r9, %r5, 0;", 0),
        ("and.b32 %r9, 0, %r5;", 0),
        ("or.b32 %r9, %r5, -1;", 0xFFFFFFFF),
        ("or.b32 %r9, -1, %r5;", 0xFFFFFFFF),
        ("xor.b32 %r9, %r5, %r5;", None),
        ("mul.lo.u32 %r9, %r5, 0;", 0),
        ("setp.ne.and.u32 %p3, %r5, 5, !%p2; selp.b32 %r9, 1, 2, %p3;", 2),
        ("setp.ne.or.u32 %p3, %r5, 5, %p2; selp.b32 %r9, 1, 2, %p3;", 1),
        ("setp.ne.xor.u32 %p3, %r5, 5, %p2; selp.b32 %r9, 1, 2, %p3;", None),
        ("setp.ne.u32 %p4, %r5, 5; or.pred %p3, %p4, %p2; selp.b32 %r9, 1, 2, %p3;", 1),
        ("selp.b32 %r9, %r4, %r5, %p2;", 5),
        ("st.shared.u32 [%r2], %r5; mov.u32 %r9, 4;", 4),
        ("addc.u32 %r9, %r4, %r4;", 11),  # with the carry of before the load
    ],
)
def test_what_decides_a_result_alone(statement, result):
    def finished():
        return run(f"{HALF_WRITTEN} {statement} st.global.u32 [%rd1], %r9;", regs=WORDS)

    if result is None:
        with pytest.raises(UninitialisedRead, match=r"thread \(16, 0, 0\) .* stores it to global memory"):
            finished()
    else:
        assert set(finished()[:, 0].tolist()) == {result}


@cuda.jit
def product_with_unpadded_tiles(a, b, c):
    tile_a, tile_b = cuda.shared.array((8, 8), float32), cuda.shared.array((8, 8), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], 8):
        if row < a.shape[0] and start + tx < a.shape[1]:
            tile_a[ty, tx] = a[row, start + tx]
        if start + ty < b.shape[0] and col < b.shape[1]:
            tile_b[ty, tx] = b[start + ty, col]
        cuda.syncthreads()
        for k in range(min(8, a.shape[1] - start)):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


def test_a_tiled_product_may_compute_beyond_the_edge_what_it_does_not_store():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((13, 21)).astype(np.float32), rng.standard_normal((21, 11)).astype(np.float32)
    c = np.zeros((13, 11), np.float32)
    product_with_unpadded_tiles[(2, 2), (8, 8)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@cuda.jit
def row_sums(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < x.size:
        tile[t] = x[t]
    cuda.syncthreads()
    v = tile[t]  # read
    left = cuda.shfl_up_sync(0xFFFFFFFF, v, 1)
    if 0 < t < out.size:
        out[t] = v + left  # use


def test_a_neighbour_s_value_is_followed_through_a_shuffle_and_both_lines_are_named():
    x = np.arange(20, dtype=np.float32)
    out = np.zeros(20, np.float32)
    row_sums[1, 32](x, out)
    np.testing.assert_array_equal(out[1:], x[1:] + x[:-1])
    with pytest.raises(warplab.UninitialisedRead) as caught:
        row_sums[1, 32](x, np.zeros(22, np.float32))
    read, use = line_of(row_sums, "# read"), line_of(row_sums, "# use")
    text = str(caught.value)
    assert f"in kernel row_sums, test_uninitialised_uses.py:{read}: thread (20, 0, 0) of block" in text
    assert "tile[20], which no thread of its block has written; thread (20, 0, 0) of block" in text
    assert f"stores it to global memory (test_uninitialised_uses.py:{use})" in text


@pytest.mark.parametrize(
    "use, how",
    [
        ("if (v > 0) out[t] += cosf(v);", "lets it decide a branch"),
        ("out[(int)v & 31] = 1;", "uses it as an address"),
        ("atomicAdd(out, v);", "passes it to an atomic"),
        ("out[t] = __any_sync(-1, v > 0) ? 1 : 2;", "stores it to global memory"),
        ("out[t] = __syncthreads_or(v > 0);", "lets it decide a vote"),
        ("s[t + 32] = v; __syncthreads(); out[t] = s[32 + (t ^ 1)];", "stores it to global memory"),
        ("float own[2]; own[t & 1] = v; own[~t & 1] = 2; out[t] = own[t & 1];", "stores it to global memory"),
    ],
)
def test_each_use_that_matters_is_said(use, how):
    source = f"""
extern "C" __global__ void k(float* out) {{
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 20) s[t] = t;
    __syncthreads();
    float v = s[t];
    {use}
}}"""
    with pytest.raises(warplab.UninitialisedRead) as caught:
        warplab.cuda_kernel(source, "k")[1, 32](np.zeros(64, np.float32))
    text = str(caught.value)
    assert "k.cu:7: thread (" in text and f"{how} (k.cu:8)" in text
    discarded = source.replace(use, "if (t < 20) out[t] = v;")
    out = np.zeros(64, np.float32)
    warplab.cuda_kernel(discarded, "k")[1, 32](out)
    np.testing.assert_array_equal(out[:20], np.arange(20))


UNWRITTEN_IN_CUDA = """
extern "C" __global__ void prints(int n) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) s[t] = 3 * t;
    __syncwarp();
    double far = 2 * s[t];
    if (t < n) printf("%d %d %g|", t, s[t], far);
}
extern "C" __global__ void sets(int* out, int old) {
    __shared__ int lock[2];
    int t = threadIdx.x;
    if (t < 2) {
        int before = atomicExch(&lock[t], 4);
        if (t < old) out[t] = before;
    }
    __syncthreads();
    if (t < 8) atomicAdd(&lock[t & 1], t);
    __syncthreads();
    out[t] = lock[t & 1];
}
extern "C" __global__ void four(int* out) {
    __shared__ signed char s[128];
    int t = threadIdx.x;
    s[4 * t] = s[4 * t + 1] = s[4 * t + 3] = 1;
    out[t] = *(int*)&s[4 * t];
}"""


def test_printing_what_nobody_wrote_is_an_error(capsys):
    kernel = warplab.cuda_kernel(UNWRITTEN_IN_CUDA, "prints")
    kernel[1, 32](2)
    assert capsys.readouterr().out == "0 0 0|1 3 6|"
    with pytest.raises(UninitialisedRead, match=r"s\[16\], .*; thread \(16, 0, 0\) .* prints it \("):
        kernel[1, 32](17)


def test_an_atomic_exchange_may_be_the_first_to_write_a_word():
    kernel = warplab.cuda_kernel(UNWRITTEN_IN_CUDA, "sets")
    for _ in range(20):
        out = np.zeros(32, np.int32)
        kernel[1, 32](out, 0)
        np.testing.assert_array_equal(out, [4 + 0 + 2 + 4 + 6, 4 + 1 + 3 + 5 + 7] * 16)
    with pytest.raises(UninitialisedRead, match=r"reads lock\[[01]\].* stores it to global"):
        kernel[1, 32](np.zeros(32, np.int32), 2)


def test_of_a_word_of_which_some_is_written_the_rest_is_named():
    with pytest.raises(UninitialisedRead, match=r"thread \(0, 0, 0\) .* reads s\[2\], which no thread"):
        warplab.cuda_kernel(UNWRITTEN_IN_CUDA, "four")[1, 32](np.zeros(32, np.int32))
