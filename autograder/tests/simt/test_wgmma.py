"""``wgmma`` against an independent model: every type, where operands lie (swizzles, both major orders,
offsets, registers), negation, what is refused, and the bugs that must be found.
"""

import numpy as np
import pytest
from test_tma import PRELUDE
from wgmma_kernels import (
    COPY,
    DTYPES,
    HEAD,
    SUMS,
    accumulators,
    call,
    descriptor,
    fragments,
    from_accumulators,
    lay_out,
    numbers,
    one_product,
)

import warplab

RNG = np.random.default_rng(9)
K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}


def run(n, d, a, b, *, spans=(128, 128), turned=(False, False), registers=False, flags=None, adds=1, apart=0):
    """The tile that a kernel computes, and A B + D of NumPy's in float64. ``apart``: bytes beyond the least
    between atoms.
    """
    k = K[a]
    left, right = numbers(RNG, (64, k), a), numbers(RNG, (n, k), b)
    memory, where, start = np.zeros(1 << 17, np.uint8), [], 0
    for matrix, span, turn in zip((left, right), spans, turned, strict=True):
        atom = 8 * (span or 16) + apart
        rows = matrix.shape[0] // 8
        leading, stride = (2 * atom, atom) if turn and span else (rows * atom, atom)
        end = lay_out(matrix, memory, start, span, turn, leading, stride)
        where.append(descriptor(start, leading, stride, span))
        start = -(-end // 1024) * 1024
    kernel = one_product(n, k, d, a, b, where, start, registers=registers, flags=flags)
    begin = (RNG.integers(-20, 20, (64, n)) / (1 if d == "s32" else 2)).astype(SUMS[d])
    words = np.float32 if d == "f32" else np.uint32
    held = accumulators(begin, words)
    own = fragments(left) if registers else np.zeros((128, 4), np.uint32)
    out = np.zeros_like(held)
    kernel[1, 128, 0, start](memory, own, held, adds, out)
    wanted = left.astype(float) @ right.astype(float).T
    sign = -1 if flags and flags[0] * flags[1] < 0 else 1
    return from_accumulators(out, SUMS[d], n), (sign * wanted + adds * begin.astype(float))


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize(
    "d, a, b, n",
    [
        ("f32", "f16", "f16", 8),
        ("f16", "f16", "f16", 24),
        ("f32", "bf16", "bf16", 256),
        ("f32", "tf32", "tf32", 40),
        ("f32", "e4m3", "e5m2", 16),
        ("f16", "e5m2", "e4m3", 8),
        ("s32", "s8", "u8", 32),
        ("s32", "u8", "s8", 8),
    ],
)
def test_each_type(d, a, b, n, registers):
    got, wanted = run(n, d, a, b, registers=registers)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "spans, turned, apart",
    [
        ((0, 32), (False, True), 1024),
        ((32, 0), (True, False), 0),
        ((64, 128), (True, True), 1024),
        ((128, 64), (False, False), 2048),
        ((128, 0), (True, True), 1024),
    ],
)
def test_where_operands_lie(spans, turned, apart):
    flags = (1, 1, *map(int, turned))
    got, wanted = run(72, "f32", "bf16", "bf16", spans=spans, turned=turned, apart=apart, flags=flags)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("flags, adds", [((-1, 1, 0, 0), 1), ((1, -1, 0, 0), 0), ((-1, -1, 0, 0), 1)])
def test_negation_and_a_fresh_start(flags, adds):
    got, wanted = run(16, "f32", "f16", "f16", flags=flags, adds=adds)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "kind, begin, factors, wanted",
    [
        ("f16", 2**24, [1, 1, 1], 2**24 + 2),  # an H100 and an H200 gave these four
        ("tf32", 2**24, [1, 1, 1], 2**24 + 2),
        ("e4m3", 2**13, [1], 2**13 + 1),
        ("e4m3", 2**14, [1, 1, 1], 2**14),
        ("e4m3", 2**13 + 1, [2**6, 2**6, 2**6, 2**6, 0.5], 2**13 + 257),  # 13 fraction bits of each
        ("e5m2", 2**13 + 1, [2**13], 2**14),  # and of the sum
    ],
)
def test_sums_are_cut_off(kind, begin, factors, wanted):
    left, right = np.zeros((64, K[kind]), DTYPES[kind]), np.ones((8, K[kind]), DTYPES[kind])
    left[0, : len(factors)] = factors
    memory = np.zeros(2304, np.uint8)
    lay_out(left, memory, 0, 0, False, 1024, 128)
    lay_out(right, memory, 2048, 0, False, 128, 128)
    where = descriptor(0, 1024, 128, 0), descriptor(2048, 128, 128, 0)
    kernel = one_product(8, K[kind], "f32", kind, kind, where, 2304)
    held = accumulators(np.full((64, 8), begin, np.float32), np.float32)
    out = np.zeros_like(held)
    kernel[1, 128, 0, 2304](memory, np.zeros((128, 4), np.uint32), held, 1, out)
    assert from_accumulators(out, np.float32, 8)[:2, 0].tolist() == [wanted, begin]


PIPELINE = (
    HEAD
    + """
extern "C" __global__ void __launch_bounds__(256) k(const unsigned char* given, float* out)
{"""
    + COPY.format(bytes=9216, threads=256)
    + """
    const u64 rest = (64ull << 32) | (1ull << 62);
    u64 a = at(tile, rest), b = at(tile + 8192, rest);
    float d[4] = {0, 0, 0, 0}, e[4];
    for (int i = 0; i < 4; ++i) e[i] = threadIdx.x;
    BODY
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""
)
MULTIPLY = call(8, 16, "f32", "bf16", "bf16", "d", "a", "b", "1")
NARROW = call(8, 8, "f32", "tf32", "tf32", "d", "a", "b", "1")
OF_OWN = call(8, 16, "f32", "bf16", "bf16", "d", "own", "b", "1", registers=True)
OTHER = call(8, 16, "f32", "bf16", "bf16", "e", "a", "b", "0")
WHOLE = f"FENCE; {MULTIPLY} COMMIT; WAIT(0);"
LINE = {
    "silent": WHOLE,
    "a fence of memory beside it": f"{WHOLE} __threadfence();",
    "two in one group, then two groups": f"FENCE; {MULTIPLY} {MULTIPLY} COMMIT; {OTHER} COMMIT; WAIT(1); "
    "d[0] += 1; WAIT(0);",
    "a loop": f"for (int i = 0; i < 5; ++i) {{ FENCE; {MULTIPLY} COMMIT; WAIT(0); }}",
    "a loop without a wait": f"for (int i = 0; i < 5; ++i) {{ FENCE; {MULTIPLY} COMMIT; }} WAIT(0);",
    "a scaled sum": f"{WHOLE} for (int i = 0; i < 4; ++i) d[i] *= 2; {WHOLE}",
    "operands overwritten afterwards": f"{WHOLE} __syncthreads(); tile[threadIdx.x] = 0;",
}


OWN = "u32 own[4] = {given[threadIdx.x] + 1u};"
READS_EARLY = r"k.cu:(\d+): thread \(0, 0, 0\) .* reads an accumulator \(k.cu:\1\) of the product at k.cu:\d+"
WRITES_EARLY = (
    r"writes to .*, an operand \(k.cu:\d+\) of the product at k.cu:\d+, for which the warp group of "
    r"thread \(0, 0, 0\)"
)


def piped(body):
    kernel = warplab.cuda_kernel(PIPELINE.replace("BODY", body), "k")
    out = np.zeros(1024, np.float32)
    kernel[1, 256, 0, 9216](np.zeros(9216, np.uint8), out)
    return out


@pytest.mark.parametrize("body", LINE.values(), ids=LINE)
def test_what_the_manual_allows_is_silent(body):
    piped(body)


@pytest.mark.parametrize(
    "body, said",
    [
        (f"FENCE; {MULTIPLY} COMMIT;\nd[0] += 1;\nWAIT(0);", READS_EARLY),
        (f"FENCE; {MULTIPLY} WAIT(0);\nd[0] += 1;", "reads an accumulator"),  # nothing was committed
        (
            f"FENCE; {MULTIPLY} COMMIT; {OTHER} COMMIT; WAIT(1); e[0] += 1; d[0] = e[0]; WAIT(0);",
            "reads an acc",
        ),
        (
            f"{MULTIPLY} COMMIT; WAIT(0);",
            "first of its warp group, and there is no wgmma.fence before it",
        ),
        (f"FENCE; {MULTIPLY} {NARROW} COMMIT; WAIT(0);", "that a product of another shape used at k.cu:"),
        (f"{OWN} FENCE; {OF_OWN} COMMIT; d[0] = own[0] * 3; WAIT(0);", "reads a register of A"),
        (f"{WHOLE} d[1] *= 2; {MULTIPLY} COMMIT; WAIT(0);", r"a register that it used itself at k.cu:\d+"),
        (f"FENCE; {MULTIPLY} COMMIT;\ntile[threadIdx.x & 15] = 1;\nWAIT(0);", WRITES_EARLY),
    ],
)
def test_misuse_is_found(body, said):
    with pytest.raises(warplab.WarpgroupMisuse, match=said):
        piped(body)


def test_what_threads_wrote_needs_a_fence_of_the_proxy():
    source = PIPELINE.replace("BODY", WHOLE).replace("fence.proxy.async;", "")
    with pytest.raises(warplab.SharedRace, match=r"the product of .* no fence.proxy.async .* wgmma may read"):
        warplab.cuda_kernel(source, "k")[1, 256, 0, 9216](
            np.zeros(9216, np.uint8), np.zeros(1024, np.float32)
        )


def test_threads_of_a_warp_group_come_together():
    with pytest.raises(warplab.WarpWide, match="96 of the 128 threads of a warp group are here"):
        piped(f"if (threadIdx.x < 224) {{ {WHOLE} }}")
    with pytest.raises(warplab.WarpWide, match="disagree about the descriptor"):
        piped(f"a += threadIdx.x / 32; {WHOLE}")


@pytest.mark.parametrize(
    "right, wrong, said",
    [
        ("{%0, %1, %2, %3}", "{%0, %1}", "number of operands or registers, and D has 4"),
        ("p, 1, 1, 0, 0", "p, 1, 1, 0, 3", r"\(operands\)"),
        (".bf16.bf16", ".bf16.bf16.satfinite", "shape or type"),
        ("mma_async", "mma_async.sp", "modifier .sp"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(right, wrong, said):
    assert right in WHOLE
    with pytest.raises(warplab.UnsupportedInstruction, match=said):
        piped(WHOLE.replace(right, wrong))


def test_only_sm_90_has_it(monkeypatch, tmp_path):
    for arch in ("sm_80", "sm_100"):
        monkeypatch.setenv("WARPLAB_ARCH", arch)
        with pytest.raises(warplab.CompileError, match=f"wgmma.fence is not an instruction of {arch}"):
            piped(WHOLE)
    file = tmp_path / "wgmma.cu"  # a file's name is no instruction
    file.write_text('extern "C" __global__ void f(float* x) { x[0] = 1; }')
    monkeypatch.setenv("WARPLAB_ARCH", "sm_80")
    out = np.zeros(1, np.float32)
    warplab.cuda_kernel(file, "f")[1, 1](out)
    assert out[0] == 1


@pytest.mark.slow
def test_counts():
    kernel = warplab.cuda_kernel(PIPELINE.replace("BODY", LINE["a loop"]), "k")
    p = warplab.profile(kernel[1, 256, 0, 9216], np.zeros(9216, np.uint8), np.zeros(1024, np.float32))
    assert p.unit_flops["bf16"] == 2 * 5 * 2 * 64 * 8 * 16
    assert p.operand_bytes == 2 * 5 * (64 + 8) * 32
    assert p.shared_load.requests == 0
    assert "23,040 bytes of operands" in str(p)


RING = (
    HEAD
    + PRELUDE
    + """
extern "C" __global__ void __launch_bounds__(160) k(const u32* given, int steps, float* out)
{
    __shared__ __align__(1024) u32 stage[2][64 * 8 + 8 * 8];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x < 2) { start(full + threadIdx.x, 32); start(empty + threadIdx.x, 1); }
    __syncthreads();
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        for (int step = 0; step < steps; ++step) {
            if (step >= 2) wait(&empty[step % 2], step / 2 - 1 & 1);
            for (int i = threadIdx.x - 128; i < 576; i += 32) stage[step % 2][i] = given[step * 576 + i];
            fence_proxy();
            arrive(&full[step % 2]);
        }
        return;
    }
    float d[4] = {0, 0, 0, 0};
    for (int step = 0; step < steps; ++step) {
        wait(&full[step % 2], step / 2 & 1);
        const u64 rest = (8ull << 16) | (16ull << 32);
        FENCE;
        MULTIPLY
        COMMIT;
        WAIT(1);
        if (step > 0 && threadIdx.x == 5) arrive(&empty[(step - 1) % 2]);
    }
    WAIT(0);
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""
).replace(
    "MULTIPLY",
    call(
        8, 16, "f32", "f16", "f16", "d", "at(stage[step % 2], rest)", "at(stage[step % 2] + 512, rest)", "1"
    ),
)


def ring(source):
    a, b = numbers(RNG, (5, 64, 16), "f16"), numbers(RNG, (5, 8, 16), "f16")
    given = np.zeros((5, 1152), np.float16)
    for step in range(5):  # without a swizzle: eight rows of 16 bytes, the other half of k after them
        given[step, :1024] = a[step].reshape(8, 8, 2, 8).transpose(0, 2, 1, 3).reshape(-1)
        given[step, 1024:] = b[step].reshape(8, 2, 8).transpose(1, 0, 2).reshape(-1)
    out = np.zeros((128, 4), np.float32)
    warplab.cuda_kernel(source, "k")[1, 160](given.view(np.uint32), 5, out)
    wanted = np.matmul(a.astype(float), b.astype(float).transpose(0, 2, 1)).sum(axis=0)
    np.testing.assert_array_equal(from_accumulators(out, np.float32, 8), wanted)


def test_a_ring_with_a_producer():
    ring(RING)


@pytest.mark.parametrize(
    "right, wrong, error, said",
    [
        # a stage is given back while its product may still read it
        (
            "step > 0 && threadIdx.x == 5) arrive(&empty[(step - 1) % 2])",
            "threadIdx.x == 5) arrive(&empty[step % 2])",
            warplab.SharedRace,
            r"thread \(12., 0, 0\) .* writes stage",
        ),
        ("WAIT(1);", "", warplab.WarpgroupMisuse, r"writes to stage\[0, 0\], an operand"),
        ("step >= 2) wait", "step >= 9) wait", warplab.BarrierMisuse, "nobody has waited for phase 0"),
        ("wait(&full[step % 2], step / 2 & 1);", "", warplab.SharedRace, "reads stage"),
        ("    WAIT(0);", "", warplab.WarpgroupMisuse, "reads an accumulator"),
    ],
)
def test_mistakes_in_the_ring_are_found(right, wrong, error, said):
    assert right in RING
    with pytest.raises(error, match=said):
        ring(RING.replace(right, wrong))
