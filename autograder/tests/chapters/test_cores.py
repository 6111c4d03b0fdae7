"""Chapter 2: every number of its prose is computed again, from the registry, the
engine, or the formula beside it.
"""

import re
from functools import cache, partial

import numpy as np
import pytest
from conftest import ROOT
from page_code import cell_with, defined, text_of

import warplab
from warplab.figures import cores as figures
from warplab.hardware import specs

BOOK = ROOT / "chapters"
CPU, GPU = specs.get("epyc-9654"), specs.get("h100-sxm")


TEXT = text_of("02-cores")
chapter = cache(partial(defined, "02-cores"))


def profile(name, grid, block, *args):
    return warplab.profile(chapter()[name][grid, block], *args)


# a kernel taken from a page has no source file, and one block is enough to count
quiet = pytest.mark.filterwarnings("ignore:Could not find source", "ignore:Grid size")


def test_the_ratios_of_the_two_chips():
    ratio = {fact: GPU[fact].si / CPU[fact].si for fact in ("peak_fp32", "memory_bandwidth", "tdp")}
    assert round(ratio["peak_fp32"]) == 9 and round(ratio["memory_bandwidth"]) == 7
    assert round(ratio["tdp"]) == 2
    assert 100 < GPU["peak_bf16"].si / CPU["peak_fp32"].si < 200  # "the only way to a hundred"
    assert GPU["peak_int8"].si == pytest.approx(2 * GPU["peak_bf16"].si, rel=0.001)
    assert CPU.year == GPU.year == 2022


def test_cache_a_thread_and_the_memory_on_the_chips():
    cores = figures
    each = {name: cores.cache_of(parts) / threads for name, (parts, threads) in cores.chip_bytes().items()}
    assert each["EPYC 9654"] / 2**20 == pytest.approx(2.5, abs=0.05) and round(each["H100 SXM"]) == 322
    parts, threads = cores.chip_bytes()["H100 SXM"]
    assert parts["registers"] == parts["L1"] == 132 * 256 * 1024  # "as many bytes of registers as of L1"
    wanted = threads * 2.5 * 2**20
    assert wanted / 2**30 == 660 and 5500 < wanted / sum(parts.values()) < 6000  # quiz 7


@quiet
def test_the_grid_stride_loop_is_right_for_any_size_and_any_grid():
    for size, grid, block in ((1, 3, 32), (1000, 1, 32), (1000, 7, 64), (5, 2, 256)):
        x, out = np.linspace(0, 1, size, dtype=np.float32), np.full(size, -1, np.float32)
        chapter()["scale"][grid, block](x, out)
        np.testing.assert_allclose(out, 2 * x + 1, atol=1e-6)


@quiet
def test_strides_ask_for_the_array_once_and_chunks_eight_times():
    x, out = np.zeros(65_536, np.float32), np.zeros(65_536, np.float32)
    strided, chunked = (profile(name, 16, 128, x, out) for name in ("scale", "scale_chunks"))
    assert strided.global_load.requests == chunked.global_load.requests == 64 * 32 == 2048
    assert strided.global_load.sectors_per_request == 4 and strided.global_load.bytes == x.nbytes == 262_144
    assert chunked.global_load.sectors_per_request == 32 and chunked.global_load.bytes == 8 * x.nbytes
    assert strided.flops == 2 * x.size and f"of the {strided.warp_instructions:,} instructions" in TEXT


@quiet
def test_more_threads_than_the_machine_holds_issue_more_instructions():
    x = np.zeros(65_536, np.float32)
    issued = [profile("scale", blocks, 256, x, x.copy()).warp_instructions for blocks in (4, 64, 256)]
    round_of_all, start_up = issued[0] / 2048, (issued[2] - issued[0]) / (2048 - 32)  # instructions of a warp
    assert issued == sorted(issued) and start_up > 2 * round_of_all
    assert GPU["sms"].value * min(chapter()["blocks_that_fit"](28, 0, 256).values()) == 1056
    assert "1,056" in TEXT


@quiet
def test_the_table_turns_129_trips_of_a_warp_into_one():
    marks = np.random.default_rng(3).random(1024, dtype=np.float32)
    alone, shared = np.zeros(1024, np.int32), np.zeros(1024, np.int32)
    before, after = profile("place", 8, 128, marks, alone), profile("place_shared", 8, 128, marks, shared)
    ranks = np.argsort(np.argsort(marks.reshape(8, 128), axis=1), axis=1).ravel()
    assert np.array_equal(alone, ranks) and np.array_equal(shared, ranks)
    assert before.global_load.requests == 32 * 129 == after.shared_load.requests
    assert after.global_load.requests == 32
    assert before.divergent_branches == 0  # the `if` became a comparison and an addition


@quiet
def test_without_the_barrier_the_engine_reports_a_race():
    cell, names = cell_with("02-cores", "def place_shared"), dict(chapter())
    exec(compile(cell.replace("    cuda.syncthreads()\n", ""), "02-cores.md", "exec"), names)
    with pytest.raises(warplab.SharedRace):
        warplab.profile(names["place_shared"][1, 128], np.zeros(128, np.float32), np.zeros(128, np.int32))


@quiet
def test_mixed_warps_issue_more_for_the_same_work_and_16_is_as_bad_as_1():
    runs = {group: profile("two_jobs", 4, 128, np.ones(512, np.float32), group) for group in (1, 16, 32, 64)}
    issued = {group: p.warp_instructions for group, p in runs.items()}
    assert issued[1] == issued[16] == 1984 and issued[32] == issued[64] == 1400
    assert "1,984 instructions in one case and 1,400 in the other" in TEXT
    assert len({p.thread_instructions for p in runs.values()}) == 1
    assert runs[32].divergent_branches == 0 and runs[1].warp_execution_efficiency == pytest.approx(
        0.71, abs=0.005
    )


@quiet
@pytest.mark.parametrize(
    ("kernel", "arguments", "registers", "percent", "limit"),
    [
        ("scale", [(512,), (512,)], None, 100, "warps"),
        ("many_sums", [(4, 512), (64, 512)], 94, 25, "registers"),
        ("big_tile", [(512,)], None, 75, "shared memory"),
    ],
)
def test_blocks_by_hand_agree_with_the_compilers_report(kernel, arguments, registers, percent, limit):
    p = profile(kernel, 2, 256, *(np.ones(shape, np.float32) for shape in arguments))
    fit = chapter()["blocks_that_fit"](p.registers, p.shared_bytes, 256)
    assert min(fit.values()) * 8 / 64 == p.occupancy == percent / 100
    assert p.occupancy_limit == limit and registers in (None, p.registers) and p.spill_bytes == 0
    assert figures.resident_warps(p.registers, p.shared_bytes, 256) == 64 * p.occupancy


def test_littles_law_gives_the_57_instructions_and_the_70_warps():
    fewest = next(n for n in range(1000) if 16 * (n + 1) >= 700 + 4 * n)
    assert fewest == 57 and "$n = 57$" in TEXT
    per_sm = 700 / GPU["boost_clock"].si * GPU["memory_bandwidth"].si / GPU["sms"].value
    assert round(per_sm / 128) == 70 > 64 and round(per_sm / 256) == 35


@pytest.mark.slow
@pytest.mark.parametrize(("warps", "arithmetic"), [(1, 0), (8, 15), (16, 15), (8, 63), (16, 57), (16, 63)])
def test_the_simulated_scheduler_stays_under_littles_law_and_far_from_full_on_it(warps, arithmetic):
    law = min(1.0, warps * (arithmetic + 1) / (700 + 4 * arithmetic))
    share = chapter()["share_of_busy_cycles"](warps, arithmetic)
    assert share <= law * 1.03 + 1 / 700  # the last round may be cut before its wait
    assert share > law * (0.95 if law < 0.6 else 0.9)


@pytest.mark.slow
def test_warps_in_step_cost_what_the_page_prints_and_only_in_step():
    share = chapter()["share_of_busy_cycles"]
    assert round(100 * share(16, 63)) == 94
    assert share(16, 63, cycles=100_000) == pytest.approx(share(16, 63), abs=0.01)  # it has settled
    assert share(16, 63, in_turn=True) == pytest.approx(0.59, abs=0.005)
    assert share(16, 63, in_turn=True, apart=60) == 1  # "busy in every cycle"


@pytest.mark.slow
def test_one_warp_by_hand_is_busy_in_2_percent_of_the_cycles():
    assert chapter()["share_of_busy_cycles"](1, 15) == pytest.approx(16 / 760, rel=0.03)
    assert "16 instructions in 760 cycles: it was busy in 2 %" in TEXT


@quiet
def test_the_worked_problems_of_the_engine():
    points, first = np.zeros((128, 3), np.float32), np.zeros(128, np.float32)
    assert profile("first_coordinates", 1, 128, points, first).global_load.sectors_per_request == 3 * 4 == 12
    cut = {edge // 32 for edge in range(48, 512, 48) if edge % 32}
    by_48 = profile("two_jobs", 4, 128, np.ones(512, np.float32), 48)
    assert by_48.divergent_branches == len(cut) == 5 and f"{by_48.warp_instructions:,} instructions" in TEXT


def test_the_size_at_which_a_copied_product_breaks_even():
    fetch = 2 * 4 / GPU["pcie_each_way"].si
    side = fetch / (2 / CPU["peak_fp32"].si - 2 / GPU["peak_fp32"].si)
    assert 510 < side < 525
    assert round(CPU["memory_bandwidth"].si / GPU["pcie_each_way"].si) == 7  # "at a seventh of that"
    # an addition never pays for the copy
    assert 8 / GPU["pcie_each_way"].si > 12 / CPU["memory_bandwidth"].si


def test_the_numbers_of_the_takeaways_are_computed():
    boxes = re.findall(r":::\{admonition\} Takeaway (.*?) :::", TEXT)
    per_sm = 700 / GPU["boost_clock"].si * GPU["memory_bandwidth"].si / GPU["sms"].value
    even = 1 / GPU["pcie_each_way"].si / (1 / CPU["peak_fp32"].si - 1 / GPU["peak_fp32"].si)
    wait = f"{700e9 / GPU['boost_clock'].si:.1f} ns × {GPU['memory_bandwidth'].si / 1e12} TB/s"
    assert f"{wait}, or {per_sm:,.0f} bytes" in boxes[1] and f"{per_sm / 128:.0f} warps" in boxes[1]
    all_, fewer = (figures.resident_warps(registers, 0, 256) for registers in (32, 33))
    assert f"With 32 registers a thread {all_} warps fit an SM of an H100, with 33 only {fewer}" in boxes[2]
    assert f"is {even:.0f} FLOP for each byte" in boxes[3]
    from warplab.figures.taken import taken

    paths = {k: t for (_, k), t in taken("divergence", "H100").items()}
    assert f"Thirty-two paths take {paths[32] / paths[1]:.1f} times as long" in TEXT


def test_a_gpu_that_nobody_measured_gets_no_curve():
    figure = figures.crossover([16, 32], [1e-6, 2e-6])
    assert "none on this machine" in figure.body and "recorded ones follow" in figure.caption
    assert "none on this machine" not in figures.crossover([16, 32], [1e-6, 2e-6], [5e-6, 5e-6]).body


@pytest.mark.slow
def test_the_numbers_in_the_anatomy_are_the_registrys():
    body = figures.anatomy().body
    for words in ("16,384 registers", "32 FP32 lanes", "528 schedulers", "16,896 lanes", "270,336 threads"):
        assert words in body


def test_the_walk_meets_new_places_until_it_has_seen_them_all():
    """A walk that began anew each time would time a cache, whatever the size of the ring."""
    ring, at, steps = chapter()["shuffled_ring"](16), np.zeros(1, np.int64), 100
    assert len(ring) == 2048
    seen = []
    for _ in range(20):
        chapter()["walk"](ring, at, steps)
        seen.append(int(at[0]))
    order = [0]
    for _ in range(20 * steps):
        order.append(int(ring[order[-1]]))
    assert seen == order[steps::steps] and len(set(order)) == 20 * steps + 1


@quiet
def test_a_grid_that_is_too_large_costs_start_up_most_of_all_in_numba():
    source = """
    extern "C" __global__ void scale(const float* x, float* out, int n) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            out[i] = 2 * x[i] + 1;
    }"""
    in_cpp, (x, out) = warplab.cuda_kernel(source, "scale"), np.ones((2, 65_536), np.float32)
    issued = {
        "numba": [profile("scale", blocks, 256, x, out).warp_instructions for blocks in (4, 256)],
        "C++": [
            warplab.profile(in_cpp[blocks, 256], x, out, x.size).warp_instructions for blocks in (4, 256)
        ],
    }
    rise = {name: round(many / few, 1) for name, (few, many) in issued.items()}
    assert rise == {"numba": 4.7, "C++": 2.5}
    assert "2.5-fold, not 4.7-fold" in TEXT
    assert "div.s64" in profile("scale", 4, 256, x, out).ptx  # "with a division of 64-bit numbers"
