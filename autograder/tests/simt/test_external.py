"""printf, malloc, assert and function pointers of CUDA C++, and print in numba kernels."""

import numpy as np
import pytest
from numba import cuda

import warplab

PRINTS = r"""
#include <cstdio>
extern "C" __global__ void prints() {
    if (threadIdx.x < 2)
        printf("%d|%5.2f|%s|%c|%#x|%lld|%u|100%%\n",
           -(int)threadIdx.x, 1.5, "text", 'z', 255, 1LL << 40, 4000000000u);
}
"""


def test_printf_formats_as_c_does_and_keeps_the_order_of_threads(capsys):
    warplab.cuda_kernel(PRINTS, "prints")[1, 32]()
    rest = "| 1.50|text|z|0xff|1099511627776|4000000000|100%"
    assert capsys.readouterr().out.splitlines() == ["0" + rest, "-1" + rest]


def test_what_was_printed_before_an_error_is_shown(capsys):
    @cuda.jit
    def prints_then_fails(x):
        print("before")
        x[5] = 1

    with pytest.raises(warplab.OutOfBounds):
        prints_then_fails[1, 1](np.zeros(2))
    assert capsys.readouterr().out == "before\n"


LIST = r"""
struct Node { int value; Node *next; };
extern "C" __global__ void list(int *out) {
    Node *head = nullptr;
    for (int i = 0; i < 4; i++) {
        Node *n = (Node *)malloc(sizeof(Node));
        n->value = i + threadIdx.x; n->next = head; head = n;
    }
    int sum = 0;
    while (head) { Node *next = head->next; sum = 10 * sum + head->value; free(head); head = next; }
    out[threadIdx.x] = sum;
}
"""


def test_malloc_gives_every_thread_memory_of_its_own():
    out = np.zeros(5, np.int32)
    warplab.cuda_kernel(LIST, "list")[1, 5](out)
    np.testing.assert_array_equal(out, 3210 + 1111 * np.arange(5))


ASSERTS = r"""
#include <cassert>
extern "C" __global__ void asserts(int limit) { assert((int)threadIdx.x < limit); }
"""


def test_a_failed_assert_names_its_condition_and_thread():
    warplab.cuda_kernel(ASSERTS, "asserts")[1, 32](32)
    with pytest.raises(
        warplab.LaunchError, match=r"thread \(7, 0, 0\) .* found `\(int\)threadIdx.x < limit` to be false"
    ):
        warplab.cuda_kernel(ASSERTS, "asserts")[1, 32](7)


MIXED = r"""
extern "C" __global__ void mixed(int *a, int *b) {
    __shared__ int s[32];
    s[threadIdx.x] = 100 + threadIdx.x;
    __syncthreads();
    int *p = threadIdx.x % 3 == 0 ? a : threadIdx.x % 3 == 1 ? b : s;
    p[threadIdx.x] += 1;
    atomicAdd(&p[threadIdx.x], 10);
    __syncthreads();
    a[threadIdx.x] = p[threadIdx.x];
}
"""


def test_lanes_of_one_access_may_point_into_different_arrays_and_spaces():
    a, b = np.zeros(32, np.int32), np.full(32, 50, np.int32)
    warplab.cuda_kernel(MIXED, "mixed")[1, 32](a, b)
    i = np.arange(32)
    np.testing.assert_array_equal(a, 11 + np.where(i % 3 == 0, 0, np.where(i % 3 == 1, 50, 100 + i)))
