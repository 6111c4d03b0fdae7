"""One product climbed: what a step is counted as, by hand, and a log that stays."""

import json

import numpy as np
import pytest
from bench_engine import matmul_naive as naive
from numba import cuda

import warplab
from warplab.check import climb
from warplab.hardware import specs
from warplab.hardware.device import Device
from warplab.puzzles import climb as log
from warplab.timing.bench import Timing

WIDE = r"""
extern "C" __global__
void product(const float* A, const float* B, float* C, int n)
{
    __shared__ __align__(16) float left[16][64], right[16][64];
    int tx = threadIdx.x, ty = threadIdx.y, t = 16 * ty + tx;
    const float* a = A + (64 * blockIdx.y + t / 4) * n + 4 * (t % 4);
    const float* b = B + ty * n + 64 * blockIdx.x + 4 * tx;
    float sum[4][4] = {}, x[4], y[4], four[4];
    for (int start = 0; start < n; start += 16) {
        *(float4*)four = *(const float4*)(a + start);
        for (int i = 0; i < 4; i++)
            left[4 * (t % 4) + i][t / 4] = four[i];
        *(float4*)&right[ty][4 * tx] = *(const float4*)(b + start * n);
        __syncthreads();
        for (int p = 0; p < 16; p++) {
            *(float4*)x = *(float4*)&left[p][4 * ty];
            *(float4*)y = *(float4*)&right[p][4 * tx];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&C[(64 * blockIdx.y + 4 * ty + i) * n + 64 * blockIdx.x + 4 * tx] = *(float4*)sum[i];
}
"""

AHEAD = r"""
#include <cuda_pipeline.h>
extern "C" __global__
void product(const float* A, const float* B, float* C, int n)
{
    __shared__ __align__(16) float left[2][16][64], right[2][16][64];
    int tx = threadIdx.x, ty = threadIdx.y, t = 16 * ty + tx, now = 0;
    const float* a = A + (64 * blockIdx.y + t / 4) * n + 4 * (t % 4);
    const float* b = B + ty * n + 64 * blockIdx.x + 4 * tx;
    float sum[4][4] = {}, x[4], y[4], four[4];
    for (int start = -16; start < n; start += 16, now = 1 - now) {
        if (start + 16 < n) {
            __pipeline_memcpy_async(&right[1 - now][ty][4 * tx], b + (start + 16) * n, 16);
            *(float4*)four = *(const float4*)(a + start + 16);
        }
        __pipeline_commit();
        for (int p = 0; p < 16 && start >= 0; p++) {
            *(float4*)x = *(float4*)&left[now][p][4 * ty];
            *(float4*)y = *(float4*)&right[now][p][4 * tx];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += x[i] * y[j];
        }
        for (int i = 0; i < 4 && start + 16 < n; i++)
            left[1 - now][4 * (t % 4) + i][t / 4] = four[i];
        __pipeline_wait_prior(0);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&C[(64 * blockIdx.y + 4 * ty + i) * n + 64 * blockIdx.x + 4 * tx] = *(float4*)sum[i];
}
"""


@cuda.jit
def forgetful(a, b, c):
    col, row = cuda.grid(2)
    c[row, col] = a[row, 0] * b[0, col]


@cuda.jit
def zeroed(a, b, c):
    c[cuda.grid(2)] = 0


STEP = log.ClimbStep("a", "", "2 x 2 x 2", "h100-sxm", 10**9, 1, 1, 1.0, "L1", 1e13, 2e13, 2e-4)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two sets' folders; go("ps05") opens a notebook in one of them."""
    for name in ("ps04", "ps05"):
        (tmp_path / name).mkdir()

    def go(name):
        monkeypatch.chdir(tmp_path / name)

    go("ps04")
    return go


def matrices(n):
    a, b = np.random.default_rng(0).standard_normal((2, n, n), np.float32)
    return a, b, np.full((n, n), np.nan, np.float32)


def steps():
    return json.loads(log.place().read_text())


@pytest.mark.slow
def test_a_step_is_counted_as_by_hand(course):
    """32 warps, each of two rows of 16: for each k a load of a (2 sectors) and one of b (2). The rows lie
    128 bytes apart, in the same banks: the load of a takes two passes, that of b, of one row, takes one; at
    the end a store takes two. 32 * 32 * 3 + 32 * 2 passes of 128 bytes for 2 * 32^3 FLOP.
    """
    climb("naive", naive[(2, 2), (16, 16)], *matrices(32), note="nothing is shared")
    (step,) = steps()
    assert (step["requests"], step["sectors"], step["passes"]) == (2048, 4096, 3136)
    assert (step["flops"], step["size"], step["binds"]) == (65_536, "32 x 32 x 32", "L1 and shared memory")
    rate = specs.get("h100-sxm")["l1_bandwidth"].si
    assert step["at_most"] == pytest.approx(65_536 / (3136 * 128 / rate))
    assert step["peak"] == pytest.approx(specs.get("h100-sxm")["peak_fp32"].si)
    assert step["seconds"] is None and "measured" not in log.Climb([log.ClimbStep(**step)]).markdown()


@pytest.mark.slow
@pytest.mark.parametrize("source", [WIDE, AHEAD], ids=["wide", "ahead"])
def test_wide_loads_of_4_x_4_results_a_thread_are_counted_as_by_hand(course, source):
    """One block of 8 warps, four rounds: two loads a warp and round, of 512 bytes, 16 sectors, each. Copies
    that run ahead are as many.
    """
    kernel = warplab.cuda_kernel(source, "product")
    climb("wide", kernel[(1, 1), (16, 16)], *matrices(64), 64, note="four at once")
    (step,) = steps()
    assert (step["requests"], step["sectors"], step["flops"]) == (8 * 4 * 2, 8 * 4 * 2 * 16, 2 * 64**3)
    assert step["at_most"] > specs.get("h100-sxm")["peak_fp32"].si / 2


@pytest.mark.slow
def test_the_log_is_one_for_all_sets_and_keeps_its_order(course, capsys):
    a, b, c = matrices(16)
    for folder, name, note in (("ps04", "one", "x"), ("ps05", "two", "a | b\nc"), ("ps04", "one", "again")):
        course(folder)
        climb(name, naive[(1, 1), (16, 16)], a, b, c, note=note)
    assert [(step["name"], step["note"]) for step in steps()] == [("one", "again"), ("two", "a / b c")]
    capsys.readouterr()
    climb()
    rows = capsys.readouterr().out.strip().splitlines()
    assert rows[-4].startswith("| step | at most | binds |") and rows[-1].startswith("| 2 two |")
    assert {row.count("|") for row in rows[-4:]} == {8}
    picture = log.Climb([log.ClimbStep(**step) for step in steps()])._repr_html_()
    assert "Stairs of 2 steps: one" in picture and "again" in picture


def test_a_sentence_is_asked_for_first(course, capsys):
    climb("one", naive[(1, 1), (16, 16)], *matrices(16), note=...)
    assert "Say first, in one sentence" in capsys.readouterr().out and not log.place().exists()


def test_a_wrong_product_and_an_error_are_told_and_not_kept(course, capsys):
    climb("one", forgetful[(1, 1), (16, 16)], *matrices(16), note="fast")
    assert "c is not a @ b: off by" in capsys.readouterr().out and not log.place().exists()
    climb("one", forgetful[(2, 2), (16, 16)], *matrices(16), note="fast")
    assert "out-of-bounds" in capsys.readouterr().out and not log.place().exists()


@pytest.mark.slow
def test_what_is_no_launch_of_a_product_is_told_in_words(course, capsys):
    a, b, c = matrices(16)
    launch = naive[(1, 1), (16, 16)]
    for wrong, said in (
        ((launch, a, b, c), "The version's name comes first"),
        ((" ", launch, a, b, c), "The version's name comes first"),
        (("one", launch), "a, b and c, NumPy arrays of two dimensions"),
        (("one", launch, *map(cuda.to_device, (a, b, c))), "a, b and c, NumPy arrays of two dimensions"),
        (("one", launch, a, b, c[:, :1].copy()), "c is float32[16, 1]"),
        (("one", launch, a, b, np.zeros((16, 16), int)), "c is int64[16, 16]"),
        (("one", zeroed[1, (16, 16)], 0 * a, 0 * b, c), "multiplies nothing"),
    ):
        climb(*wrong, note="x")
        assert said in capsys.readouterr().out and not log.place().exists()


def test_what_an_earlier_version_left_in_c_is_no_result(course, capsys):
    a, b, c = matrices(16)
    climb("one", naive[(1, 1), (16, 16)], a, b, c, note="x")
    climb("two", naive[(1, 1), (8, 16)], a, b, c, note="half of the columns")
    assert "c is not a @ b: off by nan" in capsys.readouterr().out and len(steps()) == 1


EDITED = {"at_most": 0, "peak": "x", "device": "h100", "seconds": -1, "flops": None}


@pytest.mark.parametrize(
    "text",
    ["[{}]", "", "null", "[[", "[" * 10_000, *({key: value} for key, value in EDITED.items())],
    ids=repr,
)
def test_a_log_that_is_none_is_told_and_left(course, capsys, text):
    climb()
    assert "The log is empty" in capsys.readouterr().out
    if isinstance(text, dict):
        text = json.dumps([vars(STEP) | text])
    log.place().write_text(text)
    climb("one", naive[(1, 1), (16, 16)], *matrices(16), note="x")
    assert "cannot be read" in capsys.readouterr().out and log.place().read_text() == text


def test_what_another_notebook_adds_meanwhile_stays(course, monkeypatch):
    def slow(*args, **options):
        log.place().write_text(json.dumps([vars(STEP)]))
        return profile(*args, **options)

    profile = log.profile
    monkeypatch.setattr(log, "profile", slow)
    climb("one", naive[(1, 1), (16, 16)], *matrices(16), note="x")
    assert [step["name"] for step in steps()] == ["a", "one"]


@pytest.mark.slow
def test_the_bar_by_a_clock_says_its_share_of_the_bound():
    assert STEP.cells()[-1] == "5 TFLOP/s, 50% of the bound"
    assert log.stairs([STEP]).alt.startswith("Stairs of 1 step: a 10 TFLOP/s")


def test_on_cuda_a_large_product_is_sampled_timed_and_held_to_the_card(course, monkeypatch):
    """The branch for a GPU, with the engine in its place: 16 blocks of which 8 are counted, and a clock that
    says 1 ms.
    """
    monkeypatch.setattr(log, "device", lambda: Device("Tesla T4", "cuda", None))
    launched = []

    def clock(launch, *args):
        launched.append(launch(*args))
        return Timing((1e-3,), "cuda", "")

    monkeypatch.setattr(log, "bench", clock)
    climb("naive", naive[(4, 4), (16, 16)], *matrices(64), note="timed")
    (step,) = steps()
    assert (step["device"], step["seconds"], len(launched)) == ("t4", 1e-3, 1)
    assert (step["requests"], step["flops"]) == (128 * 64 * 2, 2 * 64**3)
    assert "of the bound" in log.Climb([log.ClimbStep(**step)]).markdown()
