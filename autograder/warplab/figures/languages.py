"""One problem in three languages, counted side by side: in numba and CUDA C++ as in earlier problem sets, and
in Triton, by a kernel of the page or its reader.
"""

import inspect
import math
from dataclasses import dataclass

import numpy as np
from numba import cuda, float32

import warplab
from warplab import plots
from warplab.figures.kernels import tiled
from warplab.rendering import render
from warplab.simt.counters.collect import Counters
from warplab.simt.counters.footprint import DistinctSectors
from warplab.simt.frontends import triton_hook
from warplab.simt.frontends.launch import LaunchContext
from warplab.simt.profile import Profile, summary

THREADS, TILE = 128, 16
CUDA_CORES = ("fp32", "fp64", "half_lanes", "special")


@cuda.jit
def vector_add(x, y, out):
    """One thread: one number."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


VECTOR_ADD = """
extern "C" __global__ void vector_add(const float* x, const float* y, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] + y[i];
}
"""


@cuda.jit
def softmax(x, out):
    """One block: a row. Every thread merges numbers to a maximum and a sum, and a tree merges theirs."""
    tops, totals = cuda.shared.array(THREADS, float32), cuda.shared.array(THREADS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    top, total = float32(-math.inf), float32(0)
    for i in range(t, x.shape[1], THREADS):
        new = max(top, x[row, i])
        total = total * math.exp(top - new) + math.exp(x[row, i] - new)
        top = new
    tops[t], totals[t] = top, total
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride and tops[t + stride] > -math.inf:
            new = max(tops[t], tops[t + stride])
            mine = totals[t] * math.exp(tops[t] - new)
            totals[t] = mine + totals[t + stride] * math.exp(tops[t + stride] - new)
            tops[t] = new
        cuda.syncthreads()
        stride //= 2
    for i in range(t, x.shape[1], THREADS):
        out[row, i] = math.exp(x[row, i] - tops[0]) / totals[0]


SOFTMAX = """
extern "C" __global__ void softmax(const float* x, float* out, int columns)
{
    __shared__ float tops[128], totals[128];
    int row = blockIdx.x, t = threadIdx.x;
    float top = -INFINITY, total = 0;
    for (int i = t; i < columns; i += 128) {
        float value = x[row * columns + i], larger = fmaxf(top, value);
        total = total * __expf(top - larger) + __expf(value - larger);
        top = larger;
    }
    tops[t] = top;  totals[t] = total;
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (t < stride && tops[t + stride] > -INFINITY) {
            float larger = fmaxf(tops[t], tops[t + stride]);
            totals[t] = totals[t] * __expf(tops[t] - larger) + totals[t + stride] * __expf(tops[t + stride] - larger);
            tops[t] = larger;
        }
        __syncthreads();
    }
    for (int i = t; i < columns; i += 128)
        out[row * columns + i] = __expf(x[row * columns + i] - tops[0]) / totals[0];
}
"""  # noqa: E501 - a line of C++


matmul = tiled(TILE)

MATMUL = """
#include <mma.h>
using namespace nvcuda::wmma;

extern "C" __global__ void matmul(const half* a, const half* b, float* c, int n, int k)
{
    fragment<matrix_a, 16, 16, 16, half, row_major> left[2];
    fragment<matrix_b, 16, 16, 16, half, row_major> right[2];
    fragment<accumulator, 16, 16, 16, float> sums[2][2];
    int row = 32 * blockIdx.y, col = 32 * blockIdx.x;
    for (int i = 0; i < 4; i++)
        fill_fragment(sums[i / 2][i % 2], 0.0f);
    for (int step = 0; step < k; step += 16) {
        for (int i = 0; i < 2; i++) {
            load_matrix_sync(left[i], a + (row + 16 * i) * k + step, k);
            load_matrix_sync(right[i], b + step * n + col + 16 * i, n);
        }
        for (int i = 0; i < 4; i++)
            mma_sync(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
    }
    for (int i = 0; i < 4; i++)
        store_matrix_sync(c + (row + 16 * (i / 2)) * n + col + 16 * (i % 2), sums[i / 2][i % 2], n, mem_row_major);
}
"""  # noqa: E501 - a line of C++


@cuda.jit(device=True)
def sum_of_block(partial, t, value):
    """The sum of a block's values, which every thread gets."""
    partial[t] = value
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride //= 2
    total = partial[0]
    cuda.syncthreads()
    return total


@cuda.jit
def layer_norm(x, weight, bias, out, eps):
    """One block: a row. Three sweeps: the mean, the variance, the results."""
    partial = cuda.shared.array(THREADS, float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    total = spread = float32(0)
    for i in range(t, columns, THREADS):
        total += x[row, i]
    mean = sum_of_block(partial, t, total) / float32(columns)
    for i in range(t, columns, THREADS):
        spread += (x[row, i] - mean) * (x[row, i] - mean)
    scale = float32(1) / math.sqrt(sum_of_block(partial, t, spread) / float32(columns) + float32(eps))
    for i in range(t, columns, THREADS):
        out[row, i] = (x[row, i] - mean) * scale * weight[i] + bias[i]


SUM_OF_BLOCK = """
__device__ float sum_of_block(float* partial, int t, float value)
{
    partial[t] = value;
    __syncthreads();
    for (int stride = 64; stride > 0; stride /= 2) {
        if (t < stride)
            partial[t] += partial[t + stride];
        __syncthreads();
    }
    float total = partial[0];
    __syncthreads();
    return total;
}
"""

LAYER_NORM = """
extern "C" __global__
void layer_norm(const float* x, const float* weight, const float* bias, float* out, int columns, float eps)
{
    __shared__ float partial[128];
    int t = threadIdx.x;
    const float* from = x + blockIdx.x * columns;
    float total = 0, spread = 0;
    for (int i = t; i < columns; i += 128)
        total += from[i];
    float mean = sum_of_block(partial, t, total) / columns;
    for (int i = t; i < columns; i += 128)
        spread += (from[i] - mean) * (from[i] - mean);
    float scale = rsqrtf(sum_of_block(partial, t, spread) / columns + eps);
    for (int i = t; i < columns; i += 128)
        out[blockIdx.x * columns + i] = (from[i] - mean) * scale * weight[i] + bias[i];
}
"""


@cuda.jit
def back_by_row(x, gamma, mean, rstd, dy, dx):
    """One block: a row of dx. Two sweeps: the means of h w and of w, the results."""
    partial = cuda.shared.array(THREADS, float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    along = level = float32(0)
    for i in range(t, columns, THREADS):
        w = dy[row, i] * gamma[i]
        along += w * (x[row, i] - mean[row]) * rstd[row]
        level += w
    along = sum_of_block(partial, t, along) / float32(columns)
    level = sum_of_block(partial, t, level) / float32(columns)
    for i in range(t, columns, THREADS):
        h = (x[row, i] - mean[row]) * rstd[row]
        dx[row, i] = (dy[row, i] * gamma[i] - h * along - level) * rstd[row]


@cuda.jit
def back_by_column(x, mean, rstd, dy, dgamma, dbeta):
    """One thread: a column's sums over all rows."""
    i = cuda.grid(1)
    if i < x.shape[1]:
        for_gamma = for_beta = float32(0)
        for row in range(x.shape[0]):
            for_gamma += dy[row, i] * (x[row, i] - mean[row]) * rstd[row]
            for_beta += dy[row, i]
        dgamma[i], dbeta[i] = for_gamma, for_beta


BACK = """
extern "C" __global__
void back_by_row(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                 float* dx, int columns)
{
    __shared__ float partial[128];
    int t = threadIdx.x, row = blockIdx.x;
    float middle = mean[row], scale = rstd[row], along = 0, level = 0;
    for (int i = row * columns + t; i < (row + 1) * columns; i += 128) {
        float w = dy[i] * gamma[i - row * columns];
        along += w * (x[i] - middle) * scale;
        level += w;
    }
    along = sum_of_block(partial, t, along) / columns;
    level = sum_of_block(partial, t, level) / columns;
    for (int i = row * columns + t; i < (row + 1) * columns; i += 128)
        dx[i] = (dy[i] * gamma[i - row * columns] - (x[i] - middle) * scale * along - level) * scale;
}

extern "C" __global__
void back_by_column(const float* x, const float* mean, const float* rstd, const float* dy, float* dgamma,
                    float* dbeta, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= columns)
        return;
    float for_gamma = 0, for_beta = 0;
    for (int row = 0; row < rows; row++) {
        for_gamma += dy[row * columns + i] * (x[row * columns + i] - mean[row]) * rstd[row];
        for_beta += dy[row * columns + i];
    }
    dgamma[i] = for_gamma;
    dbeta[i] = for_beta;
}
"""


@dataclass(frozen=True)
class Problem:
    """A problem: {name: input}, {name: exact result}, and its programs in numba and CUDA C++.

    ``numba`` and ``cpp`` are sequences of launches: (kernel, grid, block, names of arguments).
    """

    title: str
    inputs: dict
    exact: dict[str, np.ndarray]
    numba: list[tuple]
    cpp: list[tuple]


def vector_add_problem(n=10_000):
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    known = -(-n // THREADS), THREADS
    return Problem(
        f"Adding two vectors of {n:,} numbers in FP32",
        {"x": x, "y": y, "out": np.zeros_like(x), "n": n},
        {"out": x + y},
        [(vector_add, *known, "x y out")],
        [(warplab.cuda_kernel(VECTOR_ADD, "vector_add"), *known, "x y out n")],
    )


def softmax_problem(rows=32, columns=1000):
    x = np.random.default_rng(12).normal(size=(rows, columns)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return Problem(
        f"Softmax of {rows} rows of {columns:,} numbers in FP32",
        {"x": x, "out": np.zeros_like(x), "rows": rows, "columns": columns},
        {"out": powers / powers.sum(1, keepdims=True)},
        [(softmax, rows, THREADS, "x out")],
        [(warplab.cuda_kernel(SOFTMAX, "softmax"), rows, THREADS, "x out columns")],
    )


def matmul_problem(m=128, n=128, k=128):
    rng = np.random.default_rng(12)
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    return Problem(
        f"{m} x {k} times {k} x {n}, factors in FP16, sums in FP32",
        {"a": a, "b": b, "c": np.zeros((m, n), np.float32), "m": m, "n": n, "k": k},
        {"c": a.astype(np.float64) @ b.astype(np.float64)},
        [(matmul, (n // TILE, m // TILE), (TILE, TILE), "a b c")],
        [(warplab.cuda_kernel(MATMUL, "matmul"), (n // 32, m // 32), 32, "a b c n k")],
    )


def autotune_problem(rows=(128, 32), n=256, k=64):
    """Two products with the same weights; the numba and CUDA C++ kernels use the same tiles for both."""
    rng = np.random.default_rng(12)
    weights = rng.normal(size=(k, n)).astype(np.float16)
    inputs, exact, ours, theirs = {"weights": weights, "n": n, "k": k}, {}, [], []
    for name, m in zip(("prompt", "words"), rows, strict=True):
        factor, out = rng.normal(size=(m, k)).astype(np.float16), f"out_{name}"
        inputs |= {name: factor, out: np.zeros((m, n), np.float32)}
        exact[out] = factor.astype(np.float64) @ weights.astype(np.float64)
        ours.append((matmul, (n // TILE, m // TILE), (TILE, TILE), f"{name} weights {out}"))
        theirs.append(
            (warplab.cuda_kernel(MATMUL, "matmul"), (n // 32, m // 32), 32, f"{name} weights {out} n k")
        )
    title = f"{rows[0]} rows and {rows[1]} rows times {k} x {n}, factors in FP16, sums in FP32"
    return Problem(title, inputs, exact, ours, theirs)


def layer_norm_problem(rows=32, columns=768, eps=1e-5):
    rng = np.random.default_rng(12)
    x = rng.normal(2, 3, (rows, columns)).astype(np.float32)
    gamma, beta = rng.normal(size=(2, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    inputs = {"x": x, "gamma": gamma, "beta": beta, "eps": eps, "y": np.zeros_like(x)}
    inputs |= {name: np.zeros(rows, np.float32) for name in ("mean", "rstd")}
    return Problem(
        f"Layer norm of {rows} rows of {columns:,} numbers in FP32",
        inputs | {"rows": rows, "columns": columns},
        {"y": centred / np.sqrt(wide.var(1, keepdims=True) + eps) * gamma + beta},
        [(layer_norm, rows, THREADS, "x gamma beta y eps")],
        [
            (
                warplab.cuda_kernel(SUM_OF_BLOCK + LAYER_NORM, "layer_norm"),
                rows,
                THREADS,
                "x gamma beta y columns eps",
            )
        ],
    )


def layer_norm_backward_problem(rows=256, columns=256):
    rng = np.random.default_rng(12)
    x, dy = rng.normal(2, 3, (2, rows, columns)).astype(np.float32)
    gamma = rng.normal(size=columns).astype(np.float32)
    mean, rstd = x.mean(1), 1 / x.std(1)
    h, w = (x.astype(np.float64) - mean[:, None]) * rstd[:, None], dy.astype(np.float64) * gamma
    dx = (w - h * (h * w).mean(1, keepdims=True) - w.mean(1, keepdims=True)) * rstd[:, None]
    exact = {"dx": dx, "dgamma": (dy * h).sum(0), "dbeta": dy.sum(0, dtype=np.float64)}
    inputs = {"x": x, "gamma": gamma, "mean": mean, "rstd": rstd, "dy": dy}
    inputs |= {name: np.zeros(value.shape, np.float32) for name, value in exact.items()}
    inputs |= {"partial": np.zeros((2, 32, columns), np.float32), "rows": rows, "columns": columns}
    row, column = "x gamma mean rstd dy dx", "x mean rstd dy dgamma dbeta"
    known = -(-columns // THREADS), THREADS
    by_row, by_column = (
        warplab.cuda_kernel(SUM_OF_BLOCK + BACK, name) for name in ("back_by_row", "back_by_column")
    )
    return Problem(
        f"The gradients of a layer norm of {rows} rows of {columns:,} numbers in FP32",
        inputs,
        exact,
        [(back_by_row, rows, THREADS, row), (back_by_column, *known, column)],
        [(by_row, rows, THREADS, f"{row} columns"), (by_column, *known, f"{column} rows columns")],
    )


PROBLEMS = {
    "vector_add": vector_add_problem,
    "softmax": softmax_problem,
    "layer_norm": layer_norm_problem,
    "layer_norm_backward": layer_norm_backward_problem,
    "matmul": matmul_problem,
    "autotune": autotune_problem,
}


@dataclass(frozen=True)
class SideBySide:
    """{language: profiles of its launches} of one problem.

    A row of ``rows()`` is (what is counted, a number for each language): the sum over launches, or for
    resources of a block or thread the maximum.
    """

    title: str
    profiles: dict[str, list[Profile]]

    def rows(self) -> list[tuple[str, list[float]]]:
        """Rows that are 0 in every language are left out, and launches where each has one."""

        def row(label, number, of=sum):
            return label, [of(map(number, launches)) for launches in self.profiles.values()]

        several = any(len(launches) > 1 for launches in self.profiles.values())
        rows = [
            row("launches", lambda _: int(several)),
            row("blocks", lambda p: math.prod(p.grid)),
            row("threads a block", lambda p: math.prod(p.block), max),
            row("load requests", lambda p: p.global_load.requests),
            row("sectors read", lambda p: p.global_load.sectors),
            row("store requests", lambda p: p.global_store.requests),
            row("sectors written", lambda p: p.global_store.sectors),
            row("shared bytes a block", lambda p: p.shared_bytes, max),
            row("shared wavefronts", lambda p: p.shared_memory.wavefronts),
            row("FLOP on Tensor Cores", on_tensor_cores),
            row("FLOP on CUDA cores", lambda p: p.flops - on_tensor_cores(p)),
            row("instructions of warps", lambda p: p.warp_instructions),
            row("registers a thread", lambda p: p.registers, max),
        ]
        return [(label, numbers) for label, numbers in rows if any(numbers)]

    def __str__(self) -> str:
        lines = [f"{'':<30}" + "".join(f"{name:>14}" for name in self.profiles)]
        lines += [f"{label:<30}" + "".join(f"{n:>14,}" for n in numbers) for label, numbers in self.rows()]
        return "\n".join([f"{self.title}: counted on PTX for sm_80, registers by ptxas", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = plots.PALETTE["blue"]
        return render("warplab.figures", "languages.html.j2", table=self, colour=colour)


def on_tensor_cores(profile: Profile) -> int:
    """The floating-point operations of a profile that Tensor Cores do."""
    return sum(flops for unit, flops in profile.unit_flops.items() if unit not in CUDA_CORES)


def side_by_side(name: str, triton_launch=None) -> SideBySide:
    """Count a problem in numba, in CUDA C++ and, where ``triton_launch`` is given, in Triton.

    ``name``: a key of PROBLEMS. ``triton_launch``: a function that launches Triton kernels. Its parameters
    are named after the problem's inputs that it needs (arrays arrive as tensors), and ``device``, which has
    ``empty`` and ``zeros``. All three are compiled for sm_80, as Triton's kernels are here. Raises ValueError
    for an unknown name or parameter, and for a wrong result.
    """
    if name not in PROBLEMS:
        raise ValueError(f"{name!r} is not compared here; there are {', '.join(PROBLEMS)}")
    problem, target = PROBLEMS[name](), triton_hook.target()
    profiles = {}
    for language, launches in (("numba", problem.numba), ("CUDA C++", problem.cpp)):
        values = _fresh(problem)
        profiles[language] = [
            warplab.profile(kernel[grid, block], *(values[one] for one in names.split()), arch=target.arch)
            for kernel, grid, block, names in launches
        ]
        _must_agree(problem, values, language)
    if triton_launch is not None:
        profiles["Triton"] = _counted(problem, triton_launch, target)
    return SideBySide(problem.title, profiles)


def _fresh(problem) -> dict:
    """The inputs and empty results."""
    return problem.inputs | {name: np.full_like(problem.inputs[name], np.nan) for name in problem.exact}


def _must_agree(problem, values, language):
    for name, exact in problem.exact.items():
        off = np.abs(np.asarray(values[name]) - exact)
        if not (off <= 1e-4 * (1 + np.abs(exact))).all():
            raise ValueError(f"{language}: `{name}` is not the result yet, so counts say nothing")


class OnTensors:
    """The `device` of a host function whose arrays are tensors."""

    def empty(self, shape, dtype):
        return self.zeros(shape, dtype)

    def zeros(self, shape, dtype):
        import torch

        return torch.from_numpy(np.zeros(shape, dtype))


def _counted(problem, launch, target) -> list[Profile]:
    """The Profiles of the kernels that the function launches."""
    import torch

    values = {
        key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for key, value in _fresh(problem).items()
    } | {"device": OnTensors()}
    wanted = inspect.signature(launch).parameters
    if unknown := [one for one in wanted if one not in values]:
        raise ValueError(f"no `{unknown[0]}` here; the function may ask for {', '.join(values)}")
    seen: list[tuple[Counters, DistinctSectors]] = []

    def context_of(grid, block) -> LaunchContext:
        seen.append((Counters(), DistinctSectors()))
        return LaunchContext(target, seen[-1])

    machines = triton_hook.launch_on_engine(launch, [values[one] for one in wanted], {}, context_of)
    if not machines:
        raise ValueError("Triton kernels are compared, and the function launched none")
    _must_agree(problem, values, "Triton")
    profiles = []
    for machine, (counters, distinct) in zip(machines, seen, strict=True):
        profiles.append(summary(machine, counters, target))
        profiles[-1].footprints = distinct.by_buffer()
    return profiles
