"""report(): its findings against cases worked by hand, its names against Nsight Compute's, and its page."""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest
from bench_engine import add
from numba import cuda, float32, int32

import warplab
from warplab.evidence.experiments.kernels import matmul_naive
from warplab.plots.kernel_report import SECTIONS
from warplab.plots.kernel_rules import WORDS, size
from warplab.timing.bench import seconds as told

pytestmark = pytest.mark.slow
f32 = np.float32
FULL = 1056  # blocks of 256 threads that an H100's 132 SMs hold at once: 8 each
NCU_RULES = {  # titles of Nsight Compute's messages, from its rules' files and from published reports
    "Block Size",
    "FP64/32 Utilization",
    "Shared Load Bank Conflicts",
    "Shared Store Bank Conflicts",
    "Small Grid",
    "Tail Effect",
    "Theoretical Occupancy",
    "Thread Divergence",
    "Uncoalesced Global Accesses",
}


@cuda.jit
def columns(x, out):
    i = cuda.grid(1)
    out[i] = x[8 * i]


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    tile[y, x] = a[top + y, left + x]
    cuda.syncthreads()
    out[left + y, top + x] = tile[x, y]


@cuda.jit
def scattered(x, out):
    t = cuda.threadIdx.x
    number = x[8 * t]
    out[32 * t] = number


@cuda.jit
def crowded(x):
    own = cuda.shared.array(0, float32)
    own[cuda.threadIdx.x] = x[cuda.grid(1)]
    x[cuda.grid(1)] = own[cuda.threadIdx.x]


@cuda.jit
def scaled(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * 0.1


@cuda.jit
def many_registers(a, b, out):
    acc = cuda.local.array((12, 12), float32)
    i = cuda.grid(1)
    acc[:] = 0
    for k in range(0, a.size, out.size):
        for row in range(12):
            for column in range(12):
                acc[row, column] += a[i + (k + row) % 7] * b[i + (k + column) % 5]
    total = float32(0)
    for row in range(12):
        for column in range(12):
            total += acc[row, column] * row
    out[i] = total


@cuda.jit
def odd_lanes(x, out):
    i = cuda.grid(1)
    total = x[i]
    if i % 2:
        for _ in range(20):
            total = total * x[i] + float32(1)
    out[i] = total


@cuda.jit
def one_address(x, total):
    cuda.atomic.add(total, 0, x[cuda.grid(1)])


@cuda.jit
def looked_up(x, out):
    table = cuda.local.array(16, float32)
    i = cuda.grid(1)
    for k in range(16):
        table[k] = k
    out[i] = table[int(x[i]) % 16]


def vectors(count, blocks=FULL):
    return [np.ones(256 * blocks, f32) for _ in range(count)]


def line(kernel, text):
    """The number of the line of a kernel that has ``text``."""
    lines, first = inspect.getsourcelines(kernel.py_func)
    return first + next(n for n, one in enumerate(lines) if text in one)


def found(report):
    return {finding.rule: finding for finding in report.findings}


def test_a_clean_kernel_has_no_finding():
    report = warplab.report(add[FULL, 256], *vectors(3))
    assert report.findings == [] and report.residency.waves == 1.0
    assert "The rules find nothing." in str(report) and "The rules find nothing." in report._repr_html_()


def test_lanes_eight_numbers_apart_fetch_a_sector_each():
    x = np.ones(8 * 256 * FULL, f32)
    (one,) = warplab.report(columns[FULL, 256], x, *vectors(1)).findings
    assert (one.rule, one.line) == ("Uncoalesced Global Accesses", line(columns, "x[8 * i]"))
    # 1,056 x 256 / 32 = 8,448 requests, 32 sectors each
    assert (
        "a load of x touches 32 sectors a request where 4 would do (the line's loads: 270,336 sectors; "
        "89% of L1's" in one.sentence
    )
    assert "neighbouring elements" in one.change


def test_the_costliest_line_is_found_first_and_each_says_its_share_of_l1():
    small, *two = warplab.report(scattered[1, 32], np.ones(256, f32), np.ones(1024, f32)).findings
    # lanes 8 numbers apart meet in 4 of 32 banks, 8 in each; lanes 32 apart all meet in one: 8 and 32 of 40
    assert [(f.line, f.sentence.rpartition("; ")[2]) for f in two] == [
        (line(scattered, "out[32 * t]"), "80% of L1's wavefronts)."),
        (line(scattered, "x[8 * t]"), "20% of L1's wavefronts)."),
    ]


def test_a_column_of_a_tile_32_wide_lies_in_one_bank():
    a, out = np.ones((2, 512, 512), f32)
    report = warplab.report(transpose[(16, 16), (32, 32)], a, out)
    (one,) = report.findings
    assert (one.rule, one.line) == ("Shared Load Bank Conflicts", line(transpose, "tile[x, y]"))
    # 256 blocks of 32 warps, each 31 wavefronts more than its one
    assert (
        "32 wavefronts a request where 1 would do (at least 253,952 in excess, 89% of L1's wavefronts)"
        in one.sentence
    )
    assert report.bounds.binds.level == "L1 and shared memory"
    assert "\nLongest known bound: L1 and shared memory (91 % shared loads, 3 %" in str(report)


def test_133_blocks_on_132_sms_leave_a_wave_of_one():
    x = np.ones(133 * 64, f32)
    rules = found(warplab.report(crowded[133, 64, 0, 120 * 1024], x))  # of 228 KiB: one block an SM
    assert set(rules) == {"Tail Effect", "Theoretical Occupancy"}
    assert (
        "1.01 waves: after 1 full, of 132 blocks each, a partial one of 1." in rules["Tail Effect"].sentence
    )
    assert "up to 50% of the time" in rules["Tail Effect"].sentence
    # 2 of 64 warps
    assert "at most 3%, limited by 122,880 bytes of shared memory" in rules["Theoretical Occupancy"].sentence
    assert found(warplab.report(crowded[132, 64, 0, 120 * 1024], x)) == {}


@pytest.mark.parametrize(
    ("blocks", "threads", "rule", "told"),
    [
        # 2 x 132 / 133
        (133, 256, "Tail Effect", ("some SMs get 2 and the mean is 1.01", "1.98 times as long")),
        (16, 256, "Small Grid", ("16 blocks and the device 132 SMs: at least 88%",)),
        # 132 x 4 warps of 132 x 64, while the occupancy of one block alone is no limit
        (132, 128, "Few Warps", ("an SM 4 warps on average, 6% of what it holds",)),
    ],
)
def test_a_grid_that_leaves_sms_without_work_is_told(blocks, threads, rule, told):
    report = warplab.report(add[blocks, threads], *np.ones((3, blocks * threads), f32))
    (one,) = report.findings
    assert one.rule == rule and all(said in one.sentence for said in told)
    assert report.residency.occupancy == 1


def test_a_literal_without_a_type_is_float64():
    (one,) = warplab.report(scaled[FULL, 256], *vectors(2)).findings
    assert (one.rule, one.line) == ("FP64/32 Utilization", line(scaled, "0.1"))
    assert "270,336 FLOP in float64" in one.sentence and "1/2 of float32's rate" in one.sentence
    ada = found(warplab.report(scaled[FULL, 256], *vectors(2), device="rtx-4090"))
    assert "the RTX 4090 does float64 at 1/64" in ada["FP64/32 Utilization"].sentence


def test_registers_limit_the_blocks_of_an_sm():
    report = warplab.report(many_registers[264, 256], *vectors(2, 265), *vectors(1, 264))
    registers = report.profile.registers
    per_warp = -(-32 * registers // 256) * 256
    assert registers > 168 and report.residency.fits["registers"] == 65536 // 4 // per_warp * 4 // 8 == 1
    one = found(report)["Theoretical Occupancy"]
    assert f"at most 12%, limited by {registers} registers a thread: 1 of the blocks" in one.sentence


def test_lanes_that_disagree_are_found_at_their_branch():
    one = found(warplab.report(odd_lanes[FULL, 256], *vectors(2)))["Thread Divergence"]
    assert one.line == line(odd_lanes, "if i % 2") and "at 100% of its branches" in one.sentence


def test_an_address_that_all_lanes_add_to_is_contended():
    one = found(warplab.report(one_address[FULL, 256], *vectors(1), np.zeros(1, f32)))["Atomic Contention"]
    assert one.line == line(one_address, "atomic")
    assert "32 lanes of a request to global memory of total share" in one.sentence


@cuda.jit
def spread(x, bins):
    cuda.atomic.add(bins, 8 * x[cuda.grid(1)], 1)


def test_atomics_apart_do_not_make_a_load_uncoalesced():
    x = np.arange(256 * FULL, dtype=np.int32)
    report = warplab.report(spread[FULL, 256], x, np.zeros(8 * x.size, np.int32))
    assert report.profile.global_load.sectors_per_request == 4 and report.findings == []


@cuda.jit
def block_wise(x, bins):
    own = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        own[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(own, x[cuda.grid(1)], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(bins, 0, own[0])


def test_where_a_block_adds_up_already_the_contention_is_shared_memorys():
    report = warplab.report(block_wise[FULL, 256], np.zeros(256 * FULL, np.int32), np.zeros(1, np.int32))
    one = found(report)["Atomic Contention"]
    assert "32 lanes of a request to shared memory share" in one.sentence and "within the warp" in one.change
    assert "Not bounded: Issue slots (estimated" in str(report) and "turns of atomics." in str(report)
    # an atomic passes L1 or shared memory once at least: 8 warps of a block, and one of them once more
    assert report.profile.l1_passes["shared_atomic"] == 8 * FULL
    assert report.profile.l1_passes["global_atomic"] == FULL
    chart = re.search(r"<svg.*?</svg>", report._repr_html_(), re.S)[0]
    assert "8,448 requests, 1,056 atomics" in chart  # loads by themselves


def test_threads_beyond_the_data_and_lanes_beyond_the_block_are_idle():
    half = np.ones(256 * FULL // 2, f32)
    one = found(warplab.report(add[FULL, 256], half, half, half))["Idle Threads"]
    assert "Of 270,336 threads at most 135,168 come to an access" in one.sentence
    rules = found(warplab.report(add[FULL, 250], *vectors(3)))
    assert "A block of 250 threads" in rules["Block Size"].sentence
    assert "6 lanes of its last warp never run" in rules["Block Size"].sentence


def test_a_product_asks_l1_again_for_what_it_had():
    report = warplab.report(matmul_naive[(16, 16), (16, 16)], *np.ones((3, 256, 256), f32))
    one = found(report)["Repeated Loads"]
    assert one.line == line(matmul_naive, "+= a[row, k]") and WORDS[one.rule]["ours"]
    # of 65,536 sums each step asks for 2 sectors a warp and load: 64 MiB of 2 x 256 KiB
    assert "ask L1 for 64 MiB of sectors where 512 KiB are distinct, each 128 times" in one.sentence


@cuda.jit
def weighted(w, x, out):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(5):
        a, b, c = w[k], w[k + 5], w[k + 10]
        total += a * x[i + k] + b * x[i + k + 1] + c
    out[i] = total


def test_the_line_that_loads_again_is_the_one_of_most_sectors():
    """Three words of w are a sector each; two rows of x are four and more, in fewer requests."""
    report = warplab.report(weighted[FULL, 256], np.ones(15, f32), np.ones(256 * FULL + 6, f32), *vectors(1))
    one = found(report)["Repeated Loads"]
    assert one.line == line(weighted, "x[i + k]") and "loads the most sectors of x." in one.sentence


def rows_of(width):
    @cuda.jit
    def rows(x, out):
        tile = cuda.shared.array((32, width), float32)
        t, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, t] = x[y, t]
        cuda.syncthreads()
        total = float32(0)
        for k in range(32):
            total += tile[t, k]
        out[y, t] = total

    return rows


def test_a_joined_load_takes_as_many_passes_as_its_widest_part():
    """32 warps, 32 loads each of 32 words in one bank: 32,768 wavefronts on PTX. LDS.128 joins four of them,
    and needs 4 words of each lane in 4 banks: 32 wavefronts a request, 8,192. Of rows of 36 words a part
    takes 4 wavefronts, and the whole 4: 32 x 8 x 4, no conflict.
    """
    report = warplab.report(rows_of(32)[1, (32, 32)], *np.ones((2, 32, 32), f32))
    p = report.profile
    assert (p.shared_load.wavefronts, p.machine.forms("shared_load")) == (32_768, {"LDS.128": 8})
    assert p.l1_passes["shared_load"] == 32 * 8 * 32 and p.l1_wavefronts == 8192 + 3 * 32
    one = found(report)["Shared Load Bank Conflicts"]
    assert (
        "a load takes 32 wavefronts a request where 4 would do (at least 7,168 in excess, 86% of"
        in one.sentence
    )
    line_sums = re.search(r"31,744 +8,192 +\d+ +total \+= tile\[t, k\]", str(report))
    assert line_sums and "are 32,800, and the machine code" in report._repr_html_()
    assert "takes at least 8,224." in report._repr_html_()
    assert "machine code, estimated: 256 (8 LDS.128)" in str(report) and "8 LDS.128" in report._repr_html_()
    report = warplab.report(rows_of(36)[1, (32, 32)], *np.ones((2, 32, 32), f32))
    assert report.profile.l1_passes["shared_load"] == 32 * 8 * 4
    assert report.profile.shared_load.bank_conflicts == 3 * 1024  # of PTX, which has no LDS.128
    assert "Shared Load Bank Conflicts" not in found(report)


def test_a_local_array_with_a_computed_index_is_local_memory():
    rules = found(warplab.report(looked_up[FULL, 256], *vectors(2)))
    assert "Local Memory" in rules and "requests" in rules["Local Memory"].sentence


def test_cuda_cpp_has_its_own_source_in_the_report():
    source = """extern "C" __global__ void copy(const float* x, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[8 * i] = x[i] < 2.f ? x[i] : 0;
}"""
    kernel = warplab.cuda_kernel(source, "copy")
    report = warplab.report(kernel[FULL, 256], *vectors(1), np.zeros(8 * 256 * FULL, f32))
    (one,) = report.findings
    assert (one.rule, one.line) == ("Uncoalesced Global Accesses", 3) and "a store touches 32" in one.sentence
    assert any("st.global" in text and warps == 8448 for warps, text in report.ptx[report.home, 3])
    page = report._repr_html_()
    assert "x[i] &lt; 2.f" in page and "x[i] < 2.f" not in page
    assert "  3     out[8 * i] = x[i] < 2.f ? x[i] : 0;" in str(report)


def test_every_row_and_every_rule_has_nsight_computes_name_or_is_marked_as_ours():
    known = {
        text
        for text in Path(__file__).with_name("ncu_metrics.txt").read_text().splitlines()
        if text[0] != "#"
    }
    assert {metric for rows in SECTIONS.values() for _, metric, *_ in rows} == known
    assert {rule.partition(",")[0] for rule, words in WORDS.items() if not words.get("ours")} == NCU_RULES
    ours = {rule.partition(",")[0] for rule, words in WORDS.items() if words.get("ours")}
    assert ours == {"Atomic Contention", "Few Warps", "Idle Threads", "Local Memory", "Repeated Loads"}
    page = warplab.report(add[1, 32], *vectors(3, 1))._repr_html_()
    assert "Few Warps, Idle Threads, Local Memory, Atomic Contention, Repeated Loads are this course" in page
    assert known <= set(re.findall(r"[a-z0-9_.]+", page))  # all of them in the command for ncu


def test_a_row_is_what_nsight_compute_prints_under_its_name():
    """16 registers at least, hits of loads alone, atomics apart from what L2 reads and writes."""
    report = warplab.report(one_address[FULL, 256], *vectors(1), np.zeros(1, f32))
    ours = {metric: value for name in SECTIONS for _, value, _, metric, _ in report.rows(name)}
    assert ours["launch__registers_per_thread"] == "16" and report.profile.registers < 16
    assert ours["lts__t_sectors_srcunit_tex_op_read.sum"] == "33,792"  # 8,448 warps, 4 sectors each
    assert ours["lts__t_sectors_srcunit_tex_op_write.sum"] == "0"
    report = warplab.report(matmul_naive[(4, 4), (16, 16)], *np.ones((3, 64, 64), f32))
    ours = {metric: value for name in SECTIONS for _, value, _, metric, _ in report.rows(name)}
    model = report.profile.caches
    assert ours["l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"] == f"{model.l1_load_hit_rate:.1%}"
    assert model.l1_load_hit_rate != model.l1_hit_rate
    assert "no branch left: ncu prints 0" in str(warplab.report(add[1, 32], *vectors(3, 1)))


@cuda.jit
def powers(x, out):
    i = cuda.grid(1)
    total = x[i]
    for _ in range(50):
        total = math.exp(total) - float32(1)
    out[i] = total


def test_an_estimate_that_is_longer_than_every_bound_stands_in_the_headline():
    """An exponential is one special function and a dozen other instructions, which take longer to issue."""
    report = warplab.report(powers[FULL, 256], *vectors(2))
    (issue, _, seconds), *_ = report.estimates
    assert report.bounds.binds.level == "Special functions" and seconds > report.bounds.at_least
    for text in (str(report), report._repr_html_()):
        assert f" Longer, but only estimated: {issue}, {told(seconds)}. Not bounded: L2 (estimated" in text


def test_distinct_sectors_stand_by_array_too():
    report = warplab.report(add[16, 256], *vectors(3, 16))
    for text in (str(report), report._repr_html_().replace("&#39;", "'")):
        (arrays,) = re.findall("Distinct sectors by array, to fetch and to store: (.*)[.]", text)
        of = dict(one.split(" (float32[4096]) ") for one in arrays.split("; "))
        kib = "16 KiB and 0 B"
        assert of == {"argument 'a'": kib, "argument 'b'": kib, "argument 'out'": "0 B and 16 KiB"}


def test_what_is_estimated_bounds_nothing():
    report = warplab.report(add[FULL, 256], *vectors(3))
    (issue, of, seconds), (level, _, _) = report.estimates
    # 8,448 warps of 42 instructions, as many as Nsight Compute counted of each (counted.yml: 21,504 of 512)
    assert (issue, of, level) == ("Issue slots", "354,816 instructions of machine code", "L2")
    assert seconds == pytest.approx(354_816 / (4 * 132 * 1.98e9), rel=1e-3)


def test_no_row_of_ours_is_a_time_or_a_rate():
    report = warplab.report(add[16, 256], *vectors(3, 16))
    assert report.rows("Only measured") == [] and not any(words for *_, words in SECTIONS["Only measured"])
    memory = report.rows("Memory Workload Analysis")
    modelled = {metric for _, _, known, metric, _ in memory if known == "modelled"}
    assert {metric.split("__")[0] for metric in modelled} == {"l1tex", "lts", "dram"}
    shown = {metric for name in SECTIONS for _, _, _, metric, _ in report.rows(name)}
    assert not re.search(r"time|per_second|throughput|stalled", " ".join(shown))


TEST_DATA = """==PROF== these numbers were invented for a test
"ID","Process ID","Kernel Name","gpu__time_duration.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
"","","","ns","sector"
"0","7","something_else","1","2"
"1","7","_ZN8__main__3addB2v1E5Array","1234","1,026"
"""


def test_what_ncu_measured_stands_beside_ours(tmp_path):
    path = tmp_path / "invented.csv"
    path.write_text(TEST_DATA)
    report = warplab.report(add[16, 256], *vectors(3, 16), ncu_csv=path)
    rows = {metric: (ours, theirs) for _, ours, _, metric, theirs in report.rows("Memory Workload Analysis")}
    # two loads of 128 warps, 4 sectors each
    assert rows["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == ("1,024", "1,026 sector")
    assert report.rows("Only measured") == [("Duration", "", "measured", "gpu__time_duration.sum", "1234 ns")]
    assert "1,026 sector" in report._repr_html_() and "ncu measured 1234 ns" in str(report)
    with pytest.raises(ValueError, match="has no kernel columns; it has something_else, _ZN8"):
        warplab.report(columns[1, 32], np.ones(256, f32), np.ones(32, f32), ncu_csv=path)
    with pytest.raises(FileNotFoundError, match=r"there is no file mistyped\.csv in .*ncu --csv --page raw"):
        warplab.report(add[16, 256], *vectors(3, 16), ncu_csv="mistyped.csv")


def test_the_page_alone_needs_nothing_else_and_follows_the_readers_theme(tmp_path):
    report = warplab.report(transpose[(16, 16), (32, 32)], *np.ones((2, 512, 512), f32))
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "color-scheme: light dark" in page
    assert not re.search(r"https?://(?!www\.w3\.org)|<script|@import|src=|url\(", page)
    headings = [re.sub("<[^>]+>", "", text) for text in re.findall(r"<h2>(.*?)</h2>", page)]
    assert headings == [
        "GPU Speed Of Light Throughput",
        "Findings",
        "Memory Workload Analysis",
        "Shared memory conflicts by line",
        "Warp State Statistics",
        "Instruction Statistics",
        "Launch Statistics",
        "Occupancy",
        "Source Counters",
        "What Nsight Compute shows besides",
    ]
    chart = re.search(r"<svg.*?</svg>", page, re.S)[0]
    assert chart.count("stroke-dasharray") == 3 and "modelled" in chart  # L2 both ways, HBM to read
    assert "loads 32 MiB" in chart and "262,144 wavefr." in chart and "fetched 1 MiB" in chart
    assert "<h1>" not in report._repr_html_() and "<main>" not in report._repr_html_()


def test_a_launch_that_does_nothing_has_no_bound_and_no_chart():
    @cuda.jit
    def nothing(x):
        pass

    report = warplab.report(nothing[FULL, 256], *vectors(1))
    assert report.bounds is None and "Nothing that was counted has a bound." in str(report)
    assert "Nothing that was counted has a bound." in report._repr_html_()


def test_another_device_is_another_architecture():
    ampere = warplab.report(add[FULL, 256], *vectors(3), device="a100-sxm")
    assert ampere.profile.arch == "sm_80" and ampere.residency.sms == 108
    old = warplab.report(add[FULL, 256], *vectors(3), device="v100-sxm2")
    assert old.profile.arch == "sm_75" and old.residency.sms == 80  # the oldest that the compilers know
    assert not re.search("_op_tma_|_dshared_", old._repr_html_())  # its ncu has no such metric
    with pytest.raises(warplab.specs.SpecError):
        warplab.report(add[1, 32], *vectors(3, 1), device="mi300x")


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (96, "96 B"), (1024, "1 KiB"), (2**26, "64 MiB"), (3 * 2**30, "3 GiB")]
    + [(1003 * 2**10, "1,003 KiB")],
)
def test_sizes_have_binary_units(count, words):
    assert size(count) == words
