"""Kernels of one warp group that multiply one tile with ``wgmma``, and where an operand's elements lie in
shared memory: by CUTLASS's layout of a swizzle atom, an address that is built up bit by bit, and not by the
engine's table. Used by the engine's tests and, on a GPU, by tests/gpu.
"""

import numpy as np
import pytest

import warplab


class Types(dict):
    """NumPy's types of the operands; those of ml_dtypes as they are asked for, by a test that can skip."""

    def __missing__(self, kind):
        names = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
        return np.dtype(getattr(pytest.importorskip("ml_dtypes"), names[kind]))


DTYPES = Types(f16=np.dtype("f2"), tf32=np.dtype("f4"), s8=np.dtype("i1"), u8=np.dtype("u1"))
SUMS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}
CODES = {0: 0, 128: 1, 64: 2, 32: 3}
HEAD = """
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
typedef unsigned u32;
typedef unsigned long long u64;
__device__ u64 at(const void* tile, u64 rest)
{
    return ((__cvta_generic_to_shared(tile) & 0x3FFFF) >> 4) + rest;
}
"""
COPY = """
    extern __shared__ __align__(1024) unsigned char tile[];
    for (int i = threadIdx.x; i < {bytes}; i += {threads}) tile[i] = given[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
"""


def product(n, k, d, a, b, *, registers=False, flags=None, satfinite=False):
    """The assembler statement: accumulators, then A (a descriptor or registers), B and whether it adds."""
    count = n // 4 if d == "f16" else n // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    first = ", ".join(f"%{count + i}" for i in range(4 if registers else 1))
    first, after = (f"{{{first}}}", count + 4) if registers else (first, count + 1)
    if flags is None:
        flags = () if d == "s32" else (1, 1) + (0,) * ((2 - registers) if a in ("f16", "bf16") else 0)
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}" + ".satfinite" * satfinite
    rest = "".join(f", {flag}" for flag in flags)
    return (
        f'asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{after + 1}, 0;\\n{name} {{{sums}}}, {first}, '
        f'%{after}, p{rest};\\n}}\\n" : '
    )


def call(n, k, d, a, b, sums, first, second, adds, **how):
    """The same with its operands: ``sums`` an array's name, ``first`` an array's name or a descriptor."""
    count, letter = (n // 4 if d == "f16" else n // 2), "f" if d == "f32" else "r"
    out = ", ".join(f'"+{letter}"({sums}[{i}])' for i in range(count))
    own = ", ".join(f'"r"({first}[{i}])' for i in range(4)) if how.get("registers") else f'"l"({first})'
    return f'{product(n, k, d, a, b, **how)}{out} : {own}, "l"({second}), "r"({adds}));'


def one_product(n, k, d, a, b, descriptors, size, *, registers=False, flags=None, satfinite=False):
    """A kernel of a tile product: ``given`` goes to shared memory, ``begin`` are the accumulators."""
    count = n // 4 if d == "f16" else n // 2
    word = "float" if d == "f32" else "u32"
    first = "own" if registers else f"at(tile, {descriptors[0]:#x}ull)"
    how = {"registers": registers, "flags": flags, "satfinite": satfinite}
    source = f"""{HEAD}
extern "C" __global__ void __launch_bounds__(128) k(const unsigned char* given, const u32* fragments,
                                                    const {word}* begin, int adds, {word}* out)
{{
    {COPY.format(bytes=size, threads=128)}
    {word} d[{count}];
    u32 own[4];
    for (int i = 0; i < 4; ++i) own[i] = fragments[threadIdx.x * 4 + i];
    for (int i = 0; i < {count}; ++i) d[i] = begin[threadIdx.x * {count} + i];
    FENCE;
    {call(n, k, d, a, b, "d", first, f"at(tile, {descriptors[1]:#x}ull)", "adds", **how)}
    COMMIT;
    WAIT(0);
    for (int i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i];
}}
"""
    return warplab.cuda_kernel(source, "k")


def descriptor(byte, leading, stride, span, base=0):
    """The 64 bits, without the tile's own address."""
    fields = ((byte >> 4, 0), (leading >> 4, 16), (stride >> 4, 32), (base, 49), (CODES[span], 62))
    return sum(value << shift for value, shift in fields)


def place(i, j, span, turned, leading, stride, size):
    """The byte at which element (i, j) lies: i along M or N, j along K; ``size`` bytes an element.

    An atom has eight lines of ``span`` bytes (16 without a swizzle); a line's neighbours are along K, or
    along M or N where it is ``turned``. ``leading`` and ``stride`` are the bytes between atoms.
    """
    line, along = (j, i) if turned else (i, j)
    width = span or 16
    atom_along, within = divmod(along * size, width)
    atom_across, row = divmod(line, 8)
    byte = row * width + within
    if turned and span == 0:
        byte += atom_along * stride + atom_across * leading
    else:
        byte += atom_along * leading + atom_across * stride
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[span]
    for bit in range(bits):  # CuTe's Swizzle<bits, 4, 3>
        byte ^= (byte >> 7 + bit & 1) << 4 + bit
    return byte


def lay_out(matrix, memory, start, span, turned, leading, stride):
    """Put a matrix (M or N by K) at ``start``, a multiple of 1024, of shared memory; where it ends."""
    size, end = matrix.dtype.itemsize, start
    for i, row in enumerate(matrix):
        for j in range(row.size):
            byte = start + place(i, j, span, turned, leading, stride, size)
            memory[byte : byte + size] = row[j : j + 1].view(np.uint8)
            end = max(end, byte + size)
    return end


def accumulators(tile, words):
    """What each of 128 threads holds of a 64 x N tile, by the manual's figure: (128, registers)."""
    n = tile.shape[1]
    out = np.zeros((128, n // 2), tile.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(n // 2):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            out[thread, i] = tile[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2]
    return np.ascontiguousarray(out).view(words)


def from_accumulators(held, kind, n):
    """The 64 x N tile that the threads hold."""
    values, tile = np.ascontiguousarray(held).view(kind), np.zeros((64, n), kind)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(n // 2):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            tile[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2] = values[thread, i]
    return tile


def fragments(matrix):
    """A, 64 x K, as each thread's four registers: 8 or 16 bytes of a row's two halves, for two rows."""
    size = matrix.dtype.itemsize
    each, half = 4 // size, 16 // size
    out = np.zeros((128, 4), np.uint32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(4):
            row, column = 16 * warp + lane // 4 + 8 * (i % 2), half * (i // 2) + each * (lane % 4)
            out[thread, i] = np.frombuffer(matrix[row, column : column + each].tobytes(), np.uint32)[0]
    return out


def numbers(rng, shape, kind):
    """Values whose products and sums are exact in float32: small multiples of 1/4, or whole."""
    low, high = (0, 5) if kind == "u8" else (-8, 9)
    return (rng.integers(low, high, shape) / (1 if kind in ("s8", "u8") else 4)).astype(DTYPES[kind])
