"""Chapter 3: its kernels add, scan and count what the page says, its numbers are right,
and its figures tell the same story.
"""

import inspect
import re
import subprocess
import tempfile
from functools import cache, partial

import numpy as np
import pytest
from conftest import ROOT
from numba import cuda, float32, int32
from page_code import defined, text_of

import warplab
from warplab.figures import kernels
from warplab.figures import parallel as figures
from warplab.hardware import specs
from warplab.simt.toolchain.ptxas import assemble, find

BOOK = ROOT / "chapters"
N, BLOCKS = 65_536, 256
KERNELS = ("sum_atomic", "sum_neighbours", "sum_halves", "sum_shuffle")

# one block is enough to count, and a kernel taken from a page has no source file
pytestmark = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


TEXT = text_of("03-parallel")
chapter = cache(partial(defined, "03-parallel"))


def variant(name, *changes):
    """The kernel `name` that the chapter imports, with each (old, new) of `changes` made in its source."""
    source = inspect.getsource(getattr(kernels, name).py_func)
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    names = dict(vars(kernels))
    exec(compile(source, "03-parallel.md", "exec"), names)
    return names[name]


@cache
def numbers():
    return np.random.default_rng(3).random(N, dtype=np.float32)


@cache
def tried(name):
    """(sum, profile) of one of the chapter's reductions over its 65,536 numbers."""
    total = np.zeros(1, np.float32)
    return warplab.profile(chapter()[name][BLOCKS, 256], numbers(), total), float(total[0])


def shared(p):
    return p.shared_load.requests + p.shared_store.requests


def amdahl(s, n):
    return 1 / (s + (1 - s) / n)


def test_the_steps_of_training_in_turn_and_at_once():
    step, w = chapter()["step"], 0.0
    for _ in range(3):
        w += step(w)
    assert w == pytest.approx(2.808) and 3 * step(0.0) == pytest.approx(5.4)  # closes in on 3; overshoots


def test_the_fit_gives_back_the_share_that_was_put_in():
    share = chapter()["serial_share"]
    assert share(1.6, 2) == pytest.approx(0.25)
    assert [share(amdahl(0.1, n), n) for n in (2, 8, 64)] == pytest.approx([0.1] * 3)
    constant = share(5.6, 8)  # the problem: a share that does not grow prints the same speedups
    assert [round(amdahl(constant, n), 1) for n in (2, 4, 8)] == [1.9, 3.4, 5.6]


def test_the_shares_of_the_job_come_out_even_for_every_number_of_workers():
    job, compute = chapter()["job"], chapter()["compute"]
    chapter()["pool"] = chapter()["ThreadPoolExecutor"](2)
    assert job(compute, 2, 1, 4) == [compute(2)] * 2


class Ready:
    """A pool that notes what it was given, and whose answers are there at once."""

    def __init__(self):
        self.given = []

    def submit(self, function, k):
        self.given.append(k)
        return type("Future", (), {"result": lambda _: k})()


@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_batches_come_in_order_and_as_many_are_under_way_as_was_said(ahead):
    book, pool = chapter(), Ready()
    book["batches"].__globals__["pool"] = pool
    for place, batch in enumerate(book["batches"](6, ahead)):
        assert batch == place and pool.given == list(range(place + 1 + ahead))


def test_27_keeps_its_warp_for_111_rounds():
    start = np.arange(1, 33, dtype=np.int32)
    steps = np.zeros_like(start)
    p = warplab.profile(chapter()["steps_simt"][1, 32], start, steps)
    np.testing.assert_array_equal(steps, chapter()["steps_simd"](start))
    assert (steps.argmax(), start[steps.argmax()], steps.max()) == (26, 27, 111)
    assert f"{p.warp_execution_efficiency:.1%}" == "15.5%"
    assert "Of 3,552 places in 111 rounds, 552 do work: 15.5%" in figures.mask(steps).caption


@pytest.mark.parametrize(
    ("kernel", "expected"), [("count_badly", 1), ("count_well", 1024), ("count_a_hundred", 100)]
)
def test_who_is_counted(kernel, expected):
    total = np.zeros(1, np.int32)
    p = warplab.profile(chapter()[kernel][4, 256], total)
    assert total[0] == expected
    touched = (
        (p.atomics.requests,) if kernel == "count_well" else (p.global_load.requests, p.global_store.requests)
    )
    assert set(touched) == {32}  # once a warp, also where the source has a loop of a hundred


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_reduction_adds_up_whole_and_ragged_sizes(kernel):
    exact = numbers().sum(dtype=float)
    assert tried(kernel)[1] == pytest.approx(exact, abs=0.01)
    part, total = numbers()[:1000].copy(), np.zeros(1, np.float32)
    chapter()[kernel][4, 256](part, total)
    assert total[0] == pytest.approx(part.sum(dtype=float), abs=1e-3)


def test_the_predicted_requests_are_the_engines():
    rounds = [
        max(1, stride // 32) for stride in (128, 64, 32, 16, 8, 4, 2, 1)
    ]  # warps that add, halves first
    assert rounds == [4, 2, 1, 1, 1, 1, 1, 1] and 8 + 3 * sum(rounds) + 1 == 45
    scattered = [8] * 5 + [4, 2, 1]  # neighbours first: every warp up to stride 16
    expected = {
        "sum_atomic": 0,
        "sum_neighbours": 8 + 3 * sum(scattered) + 1,
        "sum_halves": 45,
        "sum_shuffle": 8 + 1,
    }
    for kernel, requests in expected.items():
        p = tried(kernel)[0]
        assert shared(p) == BLOCKS * requests
        assert p.shared_load.bank_conflicts == p.shared_store.bank_conflicts == 0
        assert p.atomics.requests == (N // 32 if kernel == "sum_atomic" else BLOCKS)
        assert f"{max(shared(p), p.atomics.requests):,}" in TEXT
    assert tried("sum_neighbours")[0].flops == tried("sum_halves")[0].flops == BLOCKS * 255
    assert tried("sum_shuffle")[0].flops == BLOCKS * 1440


def test_what_the_prose_reads_off_the_panel_of_instructions():
    atomic, neighbours, halves, shuffle = (tried(kernel)[0].warp_instructions for kernel in KERNELS)
    assert 3 * atomic < halves < shuffle < 1.1 * halves < neighbours
    assert shared(tried("sum_neighbours")[0]) > 3 * shared(tried("sum_halves")[0])


@pytest.mark.slow
def test_the_trees_meet_by_chance_and_part_with_other_numbers():
    sums = [tried(kernel)[1] for kernel in KERNELS]
    assert sums[1] == sums[2] == sums[3] != sums[0]  # "the same error here, and the atomic kernel another"
    different = [chapter()["totals_of_the_trees"](seed) for seed in range(8)]
    assert min(different) == 1 < max(different)
    # a block's sum by halves and by neighbours, in NumPy: "the trees agree by chance"
    halves = neighbours = numbers().reshape(BLOCKS, 256)
    while halves.shape[1] > 1:
        middle = halves.shape[1] // 2
        halves = halves[:, :middle] + halves[:, middle:]
        neighbours = neighbours[:, ::2] + neighbours[:, 1::2]
    assert halves.dtype == np.float32 and 50 < (halves != neighbours).sum() < 150


@pytest.mark.slow
def test_the_assembler_elects_a_lane_for_equal_addends_and_cannot_for_others():
    """ptxas, not the engine: REDG after a population count, or a REDG of every lane."""
    names = chapter()
    equal = machine_code(names["count_well"].py_func, (int32[:],))
    own = machine_code(names["sum_atomic"].py_func, (float32[:], float32[:]))
    assert "POPC" in equal and "@P0 RED" in re.sub(r"@P\d", "@P0", equal)
    assert "POPC" not in own and "RED" in own


def machine_code(function, signature):
    """What nvdisasm prints of a kernel's machine code for sm_90; skips where it is not installed."""
    if find("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed")
    ptx, _ = cuda.compile_ptx(function, signature, cc=(9, 0))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(assemble(ptx, function.__name__).cubin)
        file.flush()
        return subprocess.run(
            [find("nvdisasm"), file.name], capture_output=True, text=True, check=True
        ).stdout


def test_the_kernel_written_in_haste_is_stopped_at_its_race():
    with pytest.raises(
        warplab.SharedRace, match=r"sum_in_haste.*thread \(0, 0, 0\).*thread \(64, 0, 0\).*no barrier"
    ):
        warplab.profile(chapter()["sum_in_haste"][BLOCKS, 256], numbers(), np.zeros(1, np.float32))


def test_one_warp_needs_a_syncwarp_too():
    one_warp = [("stride = 128", "stride = 16"), ("256", "32"), ("cuda.syncthreads()", "cuda.syncwarp()")]
    total = np.zeros(1, np.float32)
    variant("sum_halves", *one_warp)[1, 32](numbers()[:32].copy(), total)
    assert total[0] == pytest.approx(numbers()[:32].sum(dtype=float), abs=1e-4)
    with pytest.raises(warplab.SharedRace):
        variant("sum_halves", *one_warp, ("cuda.syncwarp()", "pass"))[1, 32](numbers()[:32].copy(), total)


def test_quiz_3_a_barrier_in_a_branch_of_the_scan_is_reported():
    tidy = [
        (
            "if t >= reach:\n            value += partial[t - reach]\n        cuda.syncthreads()\n        "
            "partial[t] = value\n",
            "if t >= reach:\n            value += partial[t - reach]\n            cuda.syncthreads()\n"
            "            partial[t] = value\n",
        )
    ]
    with pytest.raises(warplab.LaunchError, match="two different barriers"):
        variant("scan", *tidy)[1, 256](np.ones(256, np.float32))


def test_quiz_4_full_warps_with_bank_conflicts():
    places = [
        ("if t % (2 * stride) == 0", "if 2 * stride * t < 256"),
        ("partial[t] += partial[t + stride]", "partial[2 * stride * t] += partial[2 * stride * t + stride]"),
    ]
    p = warplab.profile(variant("sum_neighbours", *places)[BLOCKS, 256], numbers(), np.zeros(1, np.float32))
    assert p.shared_load.bank_conflicts + p.shared_store.bank_conflicts == 26_880 == 105 * BLOCKS
    meeting = {s: max(np.bincount(2 * s * np.arange(min(32, 128 // s)) % 32)) for s in (1, 2, 4, 8, 16)}
    assert meeting == {1: 2, 2: 4, 4: 8, 8: 8, 16: 8}


def test_the_scan_is_right_and_does_the_predicted_additions():
    x = np.arange(1, 257, dtype=np.float32)
    p = warplab.profile(chapter()["scan"][1, 256], x)
    np.testing.assert_array_equal(x, np.cumsum(np.arange(1, 257)))
    assert p.flops == 1793 == 256 * 8 - 256 + 1


@pytest.mark.slow
def test_the_drawn_scans_end_in_the_running_totals():
    values = [3, 1, 7, 0, 4, 1, 6, 3]
    drawn = re.findall(r">(\d+)</text>", figures.scans(values).body)
    assert drawn[24:32] == [str(total) for total in np.cumsum(values)]
    assert drawn[-8:] == ["0", *(str(total) for total in np.cumsum(values)[:-1])]
    assert "17 additions against 14" in figures.scans(values).caption


@pytest.mark.slow
def test_the_drawn_trees_wake_eleven_warps_and_five():
    assert "take 11 warp instructions in one order and 5 in the other" in figures.reduction().caption


def test_the_numbers_of_the_record_and_of_the_takeaways():
    from warplab.figures.taken import taken

    gpu, sums = specs.get("h100-sxm"), taken("reduction", "H100")
    each = sums["reduce_atomic", 2**24] / 2**24 * gpu["boost_clock"].si
    shuffle, tree = (sums[f"reduce_{way}", 2**20] * 1e6 for way in ("shuffle", "tree"))
    assert f"needs {each:.1f} cycles for each atomic" in TEXT and f"/ {each:.1f} " in TEXT
    assert f"than the tree, {shuffle:.0f} µs against {tree:.0f}," in TEXT
    least, few = (4 * n / gpu["memory_bandwidth"].si for n in (2**28, 2**20))
    longer = sums["reduce_tree", 2**28] / least
    assert f"{least * 1e3:.2f} ms on an H100; its tree takes {longer:.2f} times as long" in TEXT
    assert f"{few * 1e6:.2f} µs at HBM's rate" in TEXT
    assert f"256 workers are {1 / (0.1 + 0.9 / 256):.1f} times as fast" in TEXT
    assert f"2²⁴ atomics take {2**24 / gpu['boost_clock'].si * 1e3:.1f} ms" in TEXT


def test_a_gpu_that_nobody_measured_is_not_given_a_time():
    figure = figures.race(4e-3, dict.fromkeys(("atomic", "shuffle")), 2**24)
    said = "none on this machine, records follow"
    assert figure.body.count(said) >= 2 and f"2 of 2 kernels: {said}" in figure.alt


@pytest.mark.slow
def test_the_laws_are_drawn_for_any_number_of_cores():
    measured = {2**k: 1.5**k for k in range(6)}
    figure = figures.laws(0.1, {"computing": ({1: 1.0}, {1: 1.0}), "waiting": (measured, measured)})
    assert "9.7 at 256 workers" in figure.alt and "32 workers 7.59" in figure.alt
    assert "this machine's 1 cores" in figure.caption and "up to 32" in figure.caption
