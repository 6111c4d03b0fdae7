"""`make bench`: the SIMT engine, checks on, against numba's own simulator on the same kernels, in one run.

The simulator must be chosen before numba is imported, so it runs in a child process (this file with
--simulator), and the kernels stand here: a module of warplab would bring the engine along. Times are of this
machine's CPU and compare two ways of running a kernel without a GPU; neither is a GPU's time. Each is the
least of several, by the clock and as CPU time of the process: where other work shares the cores, the second
is the one to compare. Launches run as a whole, as a first one does, except where a row says "replayed".

First launches, compilation included, are timed in a process of their own each, a copy of this one before it
has compiled anything: "its first" is that process's first kernel of all, and pays for what a process loads
once; "after another" comes behind a kernel of one thread, which has paid for that, and pays for all else that
only this kernel needs. So neither depends on the order of the rows.
"""

import contextlib
import functools
import gc
import json
import math
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import time

SIMULATOR = "--simulator" in sys.argv
if SIMULATOR:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
else:
    import warplab

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import cuda, float32, int32  # noqa: E402

N = 16_384  # threads of the one-dimensional kernels
S = 128  # edge of the images
M = 64  # edge of the matrices


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def saxpy_strided(a, x, y):
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    while i < y.size:
        y[i] = a * x[i] + y[i]
        i += step


@cuda.jit
def grayscale(rgb, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]


@cuda.jit
def box_blur(image, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        total, count = float32(0), 0
        for y in range(max(row - 1, 0), min(row + 2, image.shape[0])):
            for x in range(max(col - 1, 0), min(col + 2, image.shape[1])):
                total += image[y, x]
                count += 1
        out[row, col] = total / count


@cuda.jit
def mandelbrot(out, limit):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        cr, ci = -2 + 3 * col / out.shape[1], -1 + 2 * row / out.shape[0]
        zr, zi, k = 0.0, 0.0, 0
        while k < limit and zr * zr + zi * zi <= 4:
            zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            k += 1
        out[row, col] = k


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((16, 17), float32)
    col, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 16 + cuda.threadIdx.y, cuda.blockIdx.y * 16 + cuda.threadIdx.x] = tile[
        cuda.threadIdx.x, cuda.threadIdx.y
    ]


@cuda.jit
def matmul_naive(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


@cuda.jit
def matmul_tiled(a, b, c):
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for start in range(0, a.shape[1], 16):
        tile_a[ty, tx] = a[row, start + tx]
        tile_b[ty, tx] = b[start + ty, col]
        cuda.syncthreads()
        for k in range(16):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def reduce_tree(x, out):
    partial = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 64
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@cuda.jit
def block_and_warp_sums(x, out):
    partial = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    total = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if t % 32 == 0:
        partial[t // 32] = total
    cuda.syncthreads()
    if t < 32:
        total = partial[t] if t < cuda.blockDim.x // 32 else float32(0)
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
        if t == 0:
            out[cuda.blockIdx.x] = total


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@cuda.jit
def softmax(x, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        top = x[row, 0]
        for k in range(x.shape[1]):
            top = max(top, x[row, k])
        total = float32(0)
        for k in range(x.shape[1]):
            total += math.exp(x[row, k] - top)
        for k in range(x.shape[1]):
            out[row, k] = math.exp(x[row, k] - top) / total


@cuda.jit
def collatz(start, steps):
    i = cuda.grid(1)
    if i < start.size:
        n, count = start[i], int32(0)
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        steps[i] = count


@cuda.jit
def generic_map(out, out_shape, out_strides, x, x_shape, x_strides):
    """out = -x of tensors of any shape, broadcast, as a small tensor library has it: its tests launch it by
    the thousand, for a handful of elements each.
    """
    i = cuda.grid(1)
    if i < out.size:
        here = cuda.local.array(8, int32)
        there = cuda.local.array(8, int32)
        rest = i
        for k in range(len(out_shape)):
            d = len(out_shape) - 1 - k
            here[d] = rest % out_shape[d]
            rest = rest // out_shape[d]
        for d in range(len(x_shape)):
            there[d] = 0 if x_shape[d] == 1 else here[d + len(out_shape) - len(x_shape)]
        to, source = 0, 0
        for d in range(len(out_shape)):
            to += here[d] * out_strides[d]
        for d in range(len(x_shape)):
            source += there[d] * x_strides[d]
        out[to] = -x[source]


def tensor(*shape):
    """Elements, shape and strides (in elements) of a contiguous tensor."""
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    elements = np.arange(math.prod(shape), dtype=np.float32)
    return elements, np.array(shape, np.int32), strides.astype(np.int32)


def cases():
    """(kernel, grid, block, arguments) of each of the twelve."""
    rng = np.random.default_rng(0)

    def f32(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    image = (S // 16, S // 16), (16, 16)
    matrix = (M // 16, M // 16), (16, 16)
    line = (N // 128, 128)
    return [
        (add, *line, (f32(N), f32(N), np.zeros(N, np.float32))),
        (saxpy_strided, 32, 128, (np.float32(2), f32(8 * N), f32(8 * N))),
        (grayscale, *image, (f32(S, S, 3), np.zeros((S, S), np.float32))),
        (box_blur, *image, (f32(S, S), np.zeros((S, S), np.float32))),
        (mandelbrot, *image, (np.zeros((S, S), np.int32), 50)),
        (transpose, *image, (f32(S, S), np.zeros((S, S), np.float32))),
        (matmul_naive, *matrix, (f32(M, 3 * M), f32(3 * M, M), np.zeros((M, M), np.float32))),
        (matmul_tiled, *matrix, (f32(M, M), f32(M, M), np.zeros((M, M), np.float32))),
        (reduce_tree, *line, (f32(N), np.zeros(N // 128, np.float32))),
        (histogram, *line, (rng.integers(0, 16, N).astype(np.int32), np.zeros(16, np.int32))),
        (softmax, *line, (f32(N, 16), np.zeros((N, 16), np.float32))),
        (collatz, *line, (np.arange(1, N + 1), np.zeros(N, np.int32))),
    ]


def timed(call, repeats):
    """Least (seconds by the clock, seconds of CPU time) of ``repeats`` calls."""
    clock, work = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        call()
        clock.append(time.perf_counter() - start)
        work.append(time.process_time() - used)
    return min(clock), min(work)


def launches():
    """A launch of each of the twelve, by kernel."""
    out = {}
    for kernel, grid, block, args in cases():
        name = kernel.fn.__name__ if SIMULATOR else kernel.py_func.__name__
        out[name] = functools.partial(kernel[grid, block], *args)
    return out


def measure(repeats):
    """``timed`` of the first launch (compilation included) and of the next ones, by kernel."""
    return {name: (timed(launch, 1), timed(launch, repeats)) for name, launch in launches().items()}


def warm_up():
    """A kernel of one thread: loads the compiler."""
    cuda.jit(add.py_func)[1, 1](np.zeros(1), np.zeros(1), np.zeros(1))


def first_launch(name, after_another):
    """``timed`` of a kernel's first launch in this process, None: of the kernel of one thread."""
    gc.collect()
    launch = launches().get(name, warm_up)
    if after_another:
        warm_up()
    return timed(launch, 1)


def in_fresh_processes(repeats, *question):
    """The least answer to ``first_launch(*question)``, by the clock and as CPU time, each asked of a new copy
    of this process.
    """
    copies = multiprocessing.get_context("fork")
    answers = []
    for _ in range(repeats):
        with copies.Pool(1) as process:
            answers.append(process.apply(first_launch, question))
    return tuple(map(min, zip(*answers)))


COOPERATIVE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void down(int* x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    x[threadIdx.x] = warp.shfl_down(x[threadIdx.x], 1);
}
"""
WMMA = """
#include <mma.h>
using namespace nvcuda;
__global__ void tile(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
"""


def compiling():
    """What a first launch waits for, beside running: CUDA C++ with large headers, and of the twelve kernels
    what is numba's and what is the engine's.
    """
    from warplab.simt.engine.address_space import AddressSpace
    from warplab.simt.engine.program import Program
    from warplab.simt.toolchain import nvrtc

    for name, source, kernel in (("cooperative groups", COOPERATIVE, "down"), ("wmma", WMMA, "tile")):
        fresh = f"{source}// {time.time_ns()}"  # not one that is kept on disk
        prepared = nvrtc.prepare(fresh, kernel)
        _, work = timed(functools.partial(nvrtc.compile_ptx, prepared, kernel, "sm_90"), 1)
        print(f"  {'compiling CUDA C++ with ' + name:<48}{'':>12} {1e3 * work:9.1f} ms CPU")
    of_numba = of_engine = 0.0
    for kernel, _, _, args in cases():
        fresh = cuda.jit(kernel.py_func)
        start = time.process_time()
        compiled = fresh.compile(tuple(map(numba.typeof, args)))
        (ptx,) = compiled._codelibrary.get_asm_strs()
        middle = time.process_time()
        Program(ptx, compiled.entry_name, kernel.py_func.__name__, AddressSpace())
        of_numba += middle - start
        of_engine += time.process_time() - middle
    print(f"  {'numba: Python to PTX, a kernel':<48}{'':>12} {1e3 * of_numba / 12:9.1f} ms CPU")
    print(f"  {'the engine: PTX to a program, a kernel':<48}{'':>12} {1e3 * of_engine / 12:9.1f} ms CPU")


def small():
    """Launches of a few threads, of which gradient tests are made: the cost of one."""
    vectors = [np.ones(32, np.float32) for _ in range(3)]
    for name, launch, args in (
        ("add, 32 elements, a launch", add[1, 32], vectors),
        ("generic map, 24 elements, a launch", generic_map[1, 32], (*tensor(2, 3, 4), *tensor(2, 1, 4))),
    ):
        launch(*args)
        hundred = [timed(lambda: [launch(*args) for _ in range(100)], 1) for _ in range(5)]  # noqa: B023
        clock, work = (min(column) / 100 for column in zip(*hundred))
        print(f"  {name:<48}{1e3 * clock:9.2f} ms {1e3 * work:9.2f} ms CPU")


@cuda.jit
def empty(a, b, out):
    pass


def overhead():
    """What a launch costs on the engine, as a whole and replayed (``engine.repeats``), and what numba
    itself does for one: it looks at types and arguments (here arrays on the device, the same ones each time)
    until it hands over to the driver, which is left out.
    """
    vectors = [np.ones(32, np.float32) for _ in range(3)]
    rows = (
        ("an empty kernel", empty, 32, vectors),
        ("add, 32 elements", add, 32, vectors),
        ("generic map, 24 elements", generic_map, 32, (*tensor(2, 3, 4), *tensor(2, 1, 4))),
        ("a block's sum, 128 elements", reduce_tree, 128, (np.ones(128, np.float32), np.ones(1, np.float32))),
        ("a sum by shuffles, 256 elements", block_and_warp_sums, 256, (np.ones(256, np.float32), vectors[0])),
        ("a product of tiles, 16 x 16", matmul_tiled, (16, 16), [np.ones((16, 16), np.float32)] * 3),
    )
    for name, kernel, threads, on_host in rows:
        launch, arrays = kernel[1, threads], [cuda.to_device(array) for array in on_host]
        whole, again, own = [], [], []
        for _ in range(30):  # in turn, so that what else runs here slows all
            for spent, under in (
                (whole, no_replays()),
                (again, contextlib.nullcontext()),
                (own, numba_alone()),
            ):
                with under:
                    for _ in range(10):
                        launch(*arrays)
                    spent.append(timed(lambda: [launch(*arrays) for _ in range(20)], 1)[1] / 20)  # noqa: B023
        least = min(own)
        for kind, spent in (("a whole launch", whole), ("a replayed one", again)):
            title, ours = f"{name}: {kind}, numba's own part, ratio", min(spent)
            print(f"  {title:<66}{1e6 * ours:5.0f} us {1e6 * least:4.0f} us CPU {ours / least:6.1f}x")


def training():
    """A training step of a small network with a student's tensor library, launches whole and replayed."""
    import tensor_library  # here: its kernels are the engine's

    network = tensor_library.Network()
    for _ in range(20):
        network.step()
    spent = {}
    for name, under in (
        ("whole launches", no_replays()),
        ("replayed launches", contextlib.nullcontext()),
    ):
        with under:
            spent[name] = timed(network.step, 20)[1]
    for name, seconds in spent.items():
        print(f"  {'a training step of a small network, ' + name:<60}{1e3 * seconds:9.2f} ms CPU")


@contextlib.contextmanager
def no_replays():
    """Every launch runs as a whole."""
    from warplab.simt.engine import repeats

    before, repeats.FULL_RUNS = repeats.FULL_RUNS, sys.maxsize
    try:
        yield
    finally:
        repeats.FULL_RUNS = before


@contextlib.contextmanager
def numba_alone():
    """Launches are numba's own, without the driver's part."""
    from numba.cuda import dispatcher

    from warplab.simt.frontends import numba_hook

    kernel, handed_over = dispatcher._Kernel, dispatcher.launch
    engine = kernel.launch
    kernel.launch, dispatcher.launch = numba_hook.NUMBAS_LAUNCH, lambda *args: None
    try:
        yield
    finally:
        kernel.launch, dispatcher.launch = engine, handed_over


def larger():
    """The engine alone on sizes that the simulator does not finish in a coffee break."""
    rng = np.random.default_rng(0)
    million = [rng.standard_normal(1_000_000).astype(np.float32) for _ in range(3)]
    a, b, c = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(3))
    add_all, multiply = add[-(-1_000_000 // 256), 256], matmul_tiled[(16, 16), (16, 16)]
    for name, launch in [
        ("add, 1,000,000 elements (target 30 ms)", lambda: add_all(*million)),
        ("tiled matmul, 256 x 256 x 256 (target 500 ms)", lambda: multiply(a, b, c)),
        ("the same under profile()", lambda: warplab.profile(multiply, a, b, c)),
    ]:
        with no_replays():
            launch()
            clock, work = timed(launch, 9)
        print(f"  {name:<48}{1e3 * clock:9.1f} ms {1e3 * work:9.1f} ms CPU")


def main():
    if SIMULATOR:
        print(json.dumps(measure(1)))
        return
    print("running numba's simulator, then the engine with all checks on (two minutes or so) ...", flush=True)
    child = subprocess.Popen([sys.executable, __file__, "--simulator"], stdout=subprocess.PIPE, text=True)
    simulator = json.loads(child.communicate()[0])  # one after the other: they share the machine's cores
    first = {name: [in_fresh_processes(3, name, after) for after in (False, True)] for name in launches()}
    once = in_fresh_processes(3, None, False)
    warm_up()
    with no_replays():
        engine = measure(9)
    alike = measure(9)
    print(f"{'':<14}{'by the clock':>32}{'CPU time':>32}   first launch: CPU time, ratio by clock, CPU")
    print(
        f"{'kernel':<14}"
        + f"{'simulator':>12}{'engine':>12}{'ratio':>8}" * 2
        + f"   {'its first':<29}after another"
    )
    warm, cold = ([], []), {False: ([], []), True: ([], [])}
    for name, (_, again) in engine.items():
        line = f"{name:<14}"
        before, then = simulator[name]
        for kind in (0, 1):
            warm[kind].append(then[kind] / again[kind])
            line += f"{1e3 * then[kind]:>9.0f} ms{1e3 * again[kind]:>9.2f} ms{warm[kind][-1]:>7.0f}x"
        for after, spent in zip((False, True), first[name]):
            for kind in (0, 1):
                cold[after][kind].append(before[kind] / spent[kind])
            line += f"   {1e3 * spent[1]:6.0f} ms {cold[after][0][-1]:6.1f}x {cold[after][1][-1]:6.1f}x"
        print(line)
    print(
        f"median ratio, warm, whole launches (target 400x): {statistics.median(warm[0]):.0f}x by the clock, "
        f"{statistics.median(warm[1]):.0f}x of CPU time"
    )
    kept = statistics.median(simulator[name][1][0] / again[0] for name, (_, again) in alike.items())
    print(f"median ratio of replayed launches: {kept:.0f}x by the clock")
    for after, title in ((True, "after another kernel (target 15x)"), (False, "as a process's first kernel")):
        print(
            f"smallest ratio of a first launch {title}: {min(cold[after][0]):.1f}x by the clock, "
            f"{min(cold[after][1]):.1f}x of CPU time"
        )
    print(f"a process's first kernel, of one thread: {1e3 * once[0]:.0f} ms, {1e3 * once[1]:.0f} ms CPU")
    larger()
    small()
    overhead()
    training()
    compiling()
    print(
        f"  peak memory (target 1,024 MiB) {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} "
        "MiB"
    )


if __name__ == "__main__":
    main()
