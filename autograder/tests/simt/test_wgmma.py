"""``wgmma`` against an independent model: every type, where operands lie (swizzles, both major orders,
offsets, registers), negation, what is refused, and the bugs that must be found.
"""

import numpy as np
import pytest
from wgmma_kernels import (
    COPY,
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
OTHER = call(8, 16, "f32", "bf16", "bf16", "e", "a", "b", "0")
WHOLE = f"FENCE; {MULTIPLY} COMMIT; WAIT(0);"
LINE = {
    "silent": WHOLE,
    "two in one group, then two groups": f"FENCE; {MULTIPLY} {MULTIPLY} COMMIT; {OTHER} COMMIT; WAIT(1); "
    "d[0] += 1; WAIT(0);",
    "a loop": f"for (int i = 0; i < 5; ++i) {{ FENCE; {MULTIPLY} COMMIT; WAIT(0); }}",
    "a loop without a wait": f"for (int i = 0; i < 5; ++i) {{ FENCE; {MULTIPLY} COMMIT; }} WAIT(0);",
    "a scaled sum": f"{WHOLE} for (int i = 0; i < 4; ++i) d[i] *= 2; {WHOLE}",
    "operands overwritten afterwards": f"{WHOLE} __syncthreads(); tile[threadIdx.x] = 0;",
}


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
        (
            f"FENCE; {MULTIPLY} COMMIT;\nd[0] += 1;\nWAIT(0);",
            r"k.cu:(\d+): thread \(0, 0, 0\) .* reads an accumulator \(k.cu:\1\) of the product at k.cu:\d+",
        ),
        (f"FENCE; {MULTIPLY} WAIT(0);\nd[0] += 1;", "reads an accumulator"),  # nothing was committed
        (
            f"FENCE; {MULTIPLY} COMMIT; {OTHER} COMMIT; WAIT(1);\ne[0] += 1; d[0] = e[0]; WAIT(0);",
            "reads an acc",
        ),
        (
            MULTIPLY + "COMMIT; WAIT(0);",
            "is the first of its warp group, and no wgmma.fence stands before it",
        ),
        (
            f"{WHOLE} d[1] *= 2;\n{MULTIPLY} COMMIT; WAIT(0);",
            r"uses a register that it used itself at k.cu:\d+",
        ),
        (
            f"FENCE; {MULTIPLY} COMMIT;\ntile[threadIdx.x & 15] = 1;\nWAIT(0);",
            r"writes to .*, an operand \(k.cu:\d+\) of the product at k.cu:\d+, for which the warp group of "
            r"thread \(0, 0, 0\)",
        ),
    ],
)
def test_misuse_is_found(body, said):
    with pytest.raises(warplab.WarpgroupMisuse, match=said):
        piped(body)


def test_threads_of_a_warp_group_come_together():
    with pytest.raises(warplab.WarpWide, match="96 of the 128 threads of a warp group are here"):
        piped(f"if (threadIdx.x < 224) {{ {WHOLE} }}")
    with pytest.raises(warplab.WarpWide, match="disagree about the descriptor"):
        piped(f"a += threadIdx.x / 32; {WHOLE}")


def test_counts():
    kernel = warplab.cuda_kernel(PIPELINE.replace("BODY", LINE["a loop"]), "k")
    p = warplab.profile(kernel[1, 256, 0, 9216], np.zeros(9216, np.uint8), np.zeros(1024, np.float32))
    assert p.unit_flops["bf16"] == 2 * 5 * 2 * 64 * 8 * 16
    assert p.operand_bytes == 2 * 5 * (64 + 8) * 32
    assert p.shared_load.requests == 0
    assert "23,040 bytes of operands" in str(p)
