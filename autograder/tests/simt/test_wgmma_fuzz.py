"""Random programs of one warp group with ``wgmma``: shapes, types, layouts, signs, fresh starts, groups and
waits, against an oracle that has each sum as a fraction; and the same programs with one mistake, which must
be told.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from wgmma_kernels import (
    DTYPES,
    HEAD,
    SUMS,
    accumulators,
    call,
    descriptor,
    fragments,
    from_accumulators,
    lay_out,
)

import warplab

TYPES = [  # D, A, B
    *[("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32")],
    *[("f32", a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
    *[("f16", "e4m3", "e5m2"), ("s32", "s8", "s8"), ("s32", "u8", "s8"), ("s32", "u8", "u8")],
]
WHOLE_N = [8, 16, 24, *range(32, 257, 16)]  # of integers
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "f32": -126}


def exponent(x: Fraction, kind: str) -> int:
    return max(math.frexp(float(x))[1] - 1, LEAST[kind]) if x else -126


def cut(x: Fraction, last: int) -> Fraction:
    """Without the bits below 2**last."""
    return Fraction(math.trunc(x / Fraction(2) ** last)) * Fraction(2) ** last


def summed(c, xs, ys, d, a, b):
    """C + X Y as MMA-Sim (arXiv:2511.10909) has it for Hopper."""
    c, pairs = Fraction(float(c)), [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(xs, ys)]
    if d == "s32":
        total = int(c + sum(x * y for x, y in pairs))
        return (total + 2**31) % 2**32 - 2**31
    kept = 13 if a[0] == "e" else 25
    top = max(exponent(c, d), *(exponent(x, a) + exponent(y, b) for x, y in pairs))
    total = cut(c, top - kept) + sum(cut(x * y, top - kept) for x, y in pairs)
    if d == "f16":
        return float(np.float16(float(total)))
    return float(cut(total, exponent(total, "f32") - min(kept, 23)))


class Program:
    """One random program: its statements, what it is given, and by step what the oracle must do."""

    def __init__(self, seed):
        self.rng, self.numbers = random.Random(seed), np.random.default_rng([*seed.encode()])
        choice = self.rng.choice
        self.d, self.a, self.b = choice(TYPES)
        self.k = 32 // DTYPES[self.a].itemsize
        self.n = choice(WHOLE_N if self.d == "s32" else range(8, 257, 8))
        self.count = self.n // 4 if self.d == "f16" else self.n // 2
        self.bytes, self.tiles, self.steps, self.own = np.zeros(1 << 17, np.uint8), 0, [], []
        self.statements = ["FENCE;"]
        self.given_sums = [self.draw((64, self.n), None) for _ in range(2)]
        steps = self.rng.randint(1, 4)
        for i in range(steps):
            self.product(i)
            if i + 1 == steps or self.rng.random() < 0.6:
                self.statements.append("COMMIT;")
                if self.rng.random() < 0.4:
                    self.statements.append(f"WAIT({self.rng.randint(0, 2)});")
            if self.statements[-1] == "WAIT(0);" and self.d != "f16" and self.rng.random() < 0.5:
                which = self.rng.randrange(2)
                twice = f"for (int i = 0; i < {self.count}; ++i) d{which}[i] = d{which}[i] * 2; FENCE;"
                self.statements.append(twice)
                self.steps.append((which, "twice"))
        self.statements.append("WAIT(0);")

    def draw(self, shape, kind):
        if kind is None:
            spread = {"s32": 1000, "f16": 2, "f32": 8}[self.d]
            return (self.numbers.standard_normal(shape) * spread).astype(SUMS[self.d])
        if kind in ("s8", "u8"):
            low, high = (-128, 128) if kind == "s8" else (0, 256)
            return self.numbers.integers(low, high, shape).astype(DTYPES[kind])
        return (self.numbers.standard_normal(shape) * 2.0 ** self.rng.randint(-3, 1)).astype(DTYPES[kind])

    def place(self, matrix, turn, span):
        """Put an operand into shared memory; its descriptor."""
        apart = self.rng.choice([0, 0, 1024]) if matrix.shape[0] <= 64 else 0
        atom, rows = 8 * (span or 16) + apart, matrix.shape[0] // 8
        leading, stride = (2 * atom, atom) if turn and span else (rows * atom, atom)
        start, size = self.tiles, 32 // matrix.dtype.itemsize
        assert matrix.shape[1] == size
        end = lay_out(matrix, self.bytes, start, span, turn, leading, stride)
        self.tiles = -(-end // 1024) * 1024
        return f"at(tile, {descriptor(start, leading, stride, span):#x}ull)", start

    def product(self, i):
        choice = self.rng.choice
        registers, which, adds = choice([False, True]), self.rng.randrange(2), self.rng.randrange(2)
        half = self.a in ("f16", "bf16")
        turns = [half and self.rng.random() < 0.5 and not registers, half and self.rng.random() < 0.5]
        left, right = self.draw((64, self.k), self.a), self.draw((self.n, self.k), self.b)
        if self.a == "tf32":
            left, right = ((x.view("u4") & 0xFFFFE000).view("f4") for x in (left, right))
        first, own = f"own[{len(self.own)}]", fragments(left)
        if not registers:
            first, _ = self.place(left, turns[0], choice([0, 32, 64, 128]))
        else:
            self.own.append(own)
        second, self.last = self.place(right, turns[1], choice([0, 32, 64, 128]))
        flags, sign = None, 1
        if self.d != "s32":
            signs = choice([1, -1]), choice([1, -1])
            sign = signs[0] * signs[1]
            flags = (*signs, *([] if registers else [int(turns[0])]), int(turns[1])) if half else signs
        how = {"registers": registers, "flags": flags}
        self.statements.append(
            call(self.n, self.k, self.d, self.a, self.b, f"d{which}", first, second, str(adds), **how)
        )
        self.steps.append((which, left.astype("f8") * sign, right.astype("f8"), adds))

    def run(self, statements):
        word, c = ("float" if self.d == "f32" else "int"), self.count
        source = f"""{HEAD}
extern "C" __global__ void __launch_bounds__(128) k(const unsigned char* given, const u32* fragments,
                                                    const {word}* begin, {word}* out)
{{
    extern __shared__ __align__(1024) unsigned char tile[];
    for (int i = threadIdx.x; i < {self.tiles // 16}; i += 128) ((uint4*)tile)[i] = ((const uint4*)given)[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    {word} d0[{c}], d1[{c}];
    u32 own[4][4];
    for (int s = 0; s < 4; ++s)
        for (int i = 0; i < 4; ++i) own[s][i] = fragments[(s * 128 + threadIdx.x) * 4 + i];
    for (int i = 0; i < {c}; ++i) d0[i] = begin[threadIdx.x * {c} + i];
    for (int i = 0; i < {c}; ++i) d1[i] = begin[(128 + threadIdx.x) * {c} + i];
    {chr(10).join(statements)}
    for (int i = 0; i < {c}; ++i) out[threadIdx.x * {c} + i] = d0[i];
    for (int i = 0; i < {c}; ++i) out[(128 + threadIdx.x) * {c} + i] = d1[i];
}}
"""
        own = np.zeros((4, 128, 4), np.uint32)
        own[: len(self.own)] = self.own or own[:0]
        words = np.float32 if self.d == "f32" else np.int32
        begin = np.stack([accumulators(x, words) for x in self.given_sums])
        out = np.zeros_like(begin)
        warplab.cuda_kernel(source, "k")[1, 128, 0, self.tiles](self.bytes, own, begin, out)
        return [from_accumulators(x, SUMS[self.d], self.n) for x in out]

    def check(self):
        """Each of a few sums bit for bit, and all of them nearly."""
        got, c = self.run(self.statements), [x.astype("f8") for x in self.given_sums]
        few = [(self.rng.randrange(64), self.rng.randrange(self.n)) for _ in range(12)]
        exact = [{at: float(x[at]) for at in few} for x in c]
        for which, *step in self.steps:
            if step == ["twice"]:
                c[which] *= 2
                exact[which] = {at: 2 * value for at, value in exact[which].items()}
                continue
            left, right, adds = step
            c[which] = left @ right.T + adds * c[which]
            for i, j in few:
                before = adds * exact[which][i, j]
                exact[which][i, j] = summed(before, left[i], right[j], self.d, self.a, self.b)
        close = {"f16": 2e-2}.get(self.d, 1e-2 if self.a[0] == "e" else 1e-5)
        for have, sums, wanted in zip(got, c, exact):
            np.testing.assert_allclose(have.astype("f8"), sums, rtol=close, atol=close * 64)
            assert {at: float(have[at]) for at in few} == wanted

    def with_a_mistake(self, kind):
        """The statements with it."""
        s = list(self.statements)
        products = [i for i, x in enumerate(s) if "mma_async" in x]
        at = products[-1]  # nothing is waited for between it and the next COMMIT
        sums = s[at][s[at].index("(d") + 1 :][:2]
        if kind == "no fence":
            s[0] = ""
        elif kind == "early":
            s.insert(at + 1, f"out[threadIdx.x * {self.count}] = {sums}[0];")
        elif kind == "overwritten":
            s.insert(at + 1, f"if (threadIdx.x == 0) tile[{self.last}] = 77;")
        elif kind == "no wait":
            s = [x for i, x in enumerate(s) if i < at or not x.startswith("WAIT")]
        elif kind == "no commit":
            s = [x for i, x in enumerate(s) if i < at or x != "COMMIT;"]
        elif kind == "some threads":
            s[at] = f"if (threadIdx.x < 96) {{ {s[at]} }}"
        return s


MISTAKES = {
    "no fence": warplab.WarpgroupMisuse,
    "early": warplab.WarpgroupMisuse,
    "overwritten": warplab.WarpgroupMisuse,
    "no wait": warplab.WarpgroupMisuse,
    "no commit": warplab.WarpgroupMisuse,
    "some threads": warplab.WarpWide,
}
EVERY = [pytest.param(i, marks=pytest.mark.full) for i in range(2, 150)]


@pytest.mark.slow
@pytest.mark.parametrize("i", [*range(2), *EVERY])
def test_a_random_program_gives_the_sums_of_the_rule(i):
    Program(f"wgmma {i}").check()


@pytest.mark.slow
@pytest.mark.parametrize("i", [0, *EVERY[:30]])
@pytest.mark.parametrize("kind", MISTAKES)
def test_a_random_program_with_a_mistake_is_refused(kind, i):
    program = Program(f"wrong {kind} {i}")
    with pytest.raises(MISTAKES[kind]):
        program.run(program.with_a_mistake(kind))
