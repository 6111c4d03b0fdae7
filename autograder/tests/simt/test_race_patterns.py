"""Published ways to order accesses stay silent, and each is found once the part that orders is taken away."""

import re
import warnings

import numpy as np
import pytest
from numba import cuda, float64

import warplab
from warplab.simt.sanitizer import vector_clocks as clocks

N = np.int32


def verdict(source: str, grid, block, args) -> str:
    """What the sanitizer says: "" if nothing."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            warplab.cuda_kernel(source, "k")[grid, block](*(a.copy() for a in args))
        except warplab.SharedRace as error:
            return str(error)
    return " ".join(str(w.message) for w in seen if w.category is warplab.GlobalConflict)


# name: (source, with marks around the text without which it is wrong; (grid, block); arguments)
PATTERNS = {
    "histogram, counts read after the atomics": (
        """extern "C" __global__ void k(const int* x, int* out) {
    __shared__ int h[8];
    if (threadIdx.x < 8) h[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&h[x[threadIdx.x] & 7], 1);
    /**/__syncthreads();/**/
    if (threadIdx.x < 8) out[threadIdx.x] = h[threadIdx.x];
}""",
        (1, 64),
        [np.arange(64, dtype=N), np.zeros(8, N)],
    ),
    "one warp's counts, read after a syncwarp": (
        """extern "C" __global__ void k(const int* x, int* out) {
    __shared__ int h[32];
    h[threadIdx.x] = 0;
    __syncwarp();
    atomicAdd(&h[x[threadIdx.x] & 31], 1);
    /**/__syncwarp();/**/
    out[threadIdx.x] = h[threadIdx.x];
}""",
        (1, 32),
        [np.arange(32, dtype=N)[::-1].copy(), np.zeros(32, N)],
    ),
    "lock in shared memory": (
        """extern "C" __global__ void k(int* out) {
    __shared__ int lock, total;
    if (threadIdx.x == 0) { lock = 0; total = 0; }
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            /**/__threadfence_block();/**/
            total += threadIdx.x;
            /**/__threadfence_block();/**/
            atomicExch(&lock, 0);
            done = true;
        }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}""",
        (2, 64),
        [np.zeros(2, N)],
    ),
    "lock in global memory, opened by a plain store": (
        """extern "C" __global__ void k(int* lock, int* out) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        /**/__threadfence();/**/
        out[0] = out[0] + 1;
        /**/__threadfence();/**/
        *lock = 0;
    }
}""",
        (4, 32),
        [np.zeros(1, N), np.zeros(1, N)],
    ),
    "flag in shared memory": (
        """extern "C" __global__ void k(int* out) {
    __shared__ volatile int flag;
    __shared__ int data[32];
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x >= 32) {
        data[threadIdx.x - 32] = threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 32) { /**/__threadfence_block();/**/ flag = 1; }
    } else {
        while (flag == 0) {}
        /**/__threadfence_block();/**/
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}""",
        (1, 64),
        [np.zeros(32, N)],
    ),
    "release and acquire": (
        """#include <cuda/atomic>
extern "C" __global__ void k(int* flag, int* x) {
    cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
    if (blockIdx.x == 0) {
        x[1] = 42;
        f.store(7, /**/cuda::memory_order_release/*cuda::memory_order_relaxed*/);
    } else {
        while (f.load(/**/cuda::memory_order_acquire/*cuda::memory_order_relaxed*/) != 7) {}
        x[0] = x[1];
    }
}""",
        (2, 1),
        [np.zeros(1, N), np.zeros(2, N)],
    ),
}


def without(source: str) -> str:
    """``/**/text/**/`` is left out; of ``/**/text/*other*/`` the other stays."""
    return re.sub(r"/\*\*/.*?/\*([\w:]+)\*/|/\*\*/.*?/\*\*/", lambda m: m[1] or "", source)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_the_pattern_is_silent_and_what_orders_it_is_missed(name):
    source, (grid, block), args = PATTERNS[name]
    assert verdict(source, grid, block, args) == ""
    assert "thread (" in verdict(without(source), grid, block, args)


def test_volatile_alone_is_no_syncwarp():
    source = """extern "C" __global__ void k(const int* x, int* out) {
    volatile __shared__ int s[32];
    s[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = s[31 - threadIdx.x];
}"""
    assert "no barrier between them" in verdict(
        source, 1, 32, [np.zeros(32, N) + 5 * np.arange(32, dtype=N), np.zeros(32, N)]
    )


@pytest.mark.parametrize("fence", ["__threadfence", "__threadfence_block"])
def test_a_plain_flag_that_is_seen_later_reaches_as_far_as_the_fence_before_it(fence):
    source = """extern "C" __global__ void k(int* flag, int* x) {
    if (blockIdx.x == 0) { x[1] = 42; FENCE(); *flag = 7; }
    __syncthreads();  // on the engine all blocks get here before one goes on
    if (blockIdx.x == 1) {
        while (*(volatile int*)flag != 7) {}
        x[0] = x[1];
    }
}""".replace("FENCE", fence)
    found = verdict(source, 2, 1, [np.zeros(1, N), np.zeros(2, N)])
    assert ("reads element [1] of argument 'number 2'" in found) == (fence == "__threadfence_block")


RELEASED_AND_SET = r"""extern "C" __global__ void k(int* flag, int* x) {
    int seen = 0;
    if (blockIdx.x == 0) {
        x[1] = 42;
        asm volatile("st.release.SCOPE.global.u32 [%0], 6; st.relaxed.gpu.global.u32 [%0], 7;"
                     :: "l"(__cvta_generic_to_global(flag)) : "memory");
    } else {
        while (seen != 7)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(seen) : "l"(__cvta_generic_to_global(flag)) : "memory");
        x[0] = x[1];
    }
}"""


@pytest.mark.parametrize("scope", ["gpu", "cta"])
def test_a_release_reaches_as_far_as_its_scope_whatever_is_stored_behind_it(scope):
    found = verdict(RELEASED_AND_SET.replace("SCOPE", scope), 2, 1, [np.zeros(1, N), np.zeros(2, N)])
    assert ("reads element [1] of argument 'number 2'" in found) == (scope == "cta")


def test_whoever_has_seen_a_flag_counted_up_twice_may_set_it_back():
    source = """extern "C" __global__ void k(int* flag, int* x) {
    if (blockIdx.x == 0) {
        x[1] = 42;
        __threadfence();
        atomicAdd(flag, 1);
        atomicAdd(flag, 1);
    } else {
        while (atomicAdd(flag, 0) < 2) {}
        *flag = 0;
        x[0] = x[1];
    }
}"""
    assert verdict(source, 2, 1, [np.zeros(1, N), np.zeros(2, N)]) == ""


@pytest.mark.parametrize("scope", ["gpu", "cta"])
def test_a_flag_of_another_block_is_looked_at_in_a_scope_that_has_both(scope):
    source = RELEASED_AND_SET.replace("SCOPE", "gpu").replace("ld.acquire.gpu", f"ld.acquire.{scope}")
    found = verdict(source, 2, 1, [np.zeros(1, N), np.zeros(2, N)])
    assert ("element [0] of argument 'number 1'" in found) == (scope == "cta")


@pytest.mark.parametrize("others", ["", "if (blockIdx.x == 0) out[0] = x[0];"])
def test_a_reader_whom_nothing_orders_is_found_behind_one_who_sets_a_flag(others):
    source = """extern "C" __global__ void k(int* flag, int* x, int* out) {
    OTHERS
    if (blockIdx.x == 1) { out[1] = x[0]; __threadfence(); atomicExch(flag, 1); }
    if (blockIdx.x == 2) {
        while (atomicAdd(flag, 0) == 0) {}
        x[0] = 5;
    }
}""".replace("OTHERS", others)
    found = verdict(source, 3, 1, [np.zeros(1, N), np.zeros(1, N), np.zeros(2, N)])
    assert ("that thread (0, 0, 0) of block (0, 0, 0) reads" in found) == bool(others)


def test_the_message_about_an_atomic_names_both_lines_and_says_that_atomics_are_writes():
    source, (grid, block), args = PATTERNS["histogram, counts read after the atomics"]
    text = verdict(without(source), grid, block, args)
    assert "in kernel k, k.cu:7: thread (0, 0, 0) of block (0, 0, 0) reads h[0]" in text
    assert "that several threads update atomically (k.cu:5)" in text and "atomics are writes too" in text


@cuda.jit
def largest_of_a_block(x, out):
    """numba makes the maximum of float64 of a compare-and-swap, with a plain load for a first guess."""
    best = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    if t == 0:
        best[0] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(best, 0, x[t])
    cuda.syncthreads()
    out[t] = best[0]


@cuda.jit
def largest_too_early(x, out):
    best = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    if t == 0:
        best[0] = 0.0
    cuda.syncthreads()
    cuda.atomic.max(best, 0, x[t])
    out[t] = best[0]  # before the others have put theirs in


def test_what_a_compare_and_swap_expects_may_be_a_plain_load_and_nothing_else_may():
    x, out = np.random.default_rng(0).random(64), np.zeros(64)
    largest_of_a_block[1, 64](x, out)
    assert (out == x.max()).all()
    with pytest.raises(warplab.SharedRace, match="largest_too_early"):
        largest_too_early[1, 64](x, out)


@pytest.mark.parametrize("most", [1024, 32, 2])
def test_a_missing_barrier_is_found_behind_a_fence_in_large_launches_too(monkeypatch, most):
    """Whether clocks are of threads, warps or blocks."""
    monkeypatch.setattr(clocks, "MOST", most)
    source = """extern "C" __global__ void k(int* done, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t == 0) { __threadfence(); atomicAdd(done, 1); }
    __syncthreads();
    s[t] = t;
    out[64 * blockIdx.x + t] = s[63 - t];
}"""
    assert "reads s[63]" in verdict(source, 4, 64, [np.zeros(1, N), np.zeros(256, N)])
    mended = source.replace("s[t] = t;", "s[t] = t; __syncthreads();")
    assert verdict(mended, 4, 64, [np.zeros(1, N), np.zeros(256, N)]) == ""
