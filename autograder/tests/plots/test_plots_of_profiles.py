"""Figures drawn from a profile: what they say must be what was counted."""

import html
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from numba import cuda, float32, float64

import warplab
from warplab import plots
from warplab.plots import warp_request as lanes
from warplab.simt.counters.watch import WarpRequest


@cuda.jit
def strided(x, out, stride):
    tile = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    tile[t * stride] = x[t * stride]
    cuda.syncthreads()
    if t < 20:
        out[t] = tile[t * stride]


@pytest.fixture(scope="module")
def p():
    return warplab.profile(strided[1, 32], np.zeros(1024, np.float32), np.zeros(32, np.float32), 2)


def test_a_sample_has_the_byte_offsets_of_the_first_warp(p):
    sample = next(s for s in p.samples if s.space == "global" and s.kind == "read")
    assert sample.lanes == tuple(range(32)) and sample.offsets == tuple(8 * i for i in range(32))
    assert sample.width == 4


@cuda.jit
def two_rounds(x, out, n):
    own = cuda.local.array(2, float32)
    i = cuda.grid(1)
    for k in range(2):
        own[(k + i) % 2] = x[i + k * n]
    out[i] = own[0] - own[1]


def test_a_sample_is_the_first_request_of_the_grid_s_first_warp():
    n = 300 * 128  # more than one chunk of the grid
    p = warplab.profile(two_rounds[300, 128], np.zeros(2 * n, np.float32), np.zeros(n, np.float32), n)
    assert {(s.space, s.kind) for s in p.samples} == {("global", "read"), ("global", "write")}
    assert {s.offsets for s in p.samples if s.kind == "write"} == {tuple(range(0, 128, 4))}
    assert min(s.offsets for s in p.samples if s.kind == "read") == tuple(range(0, 128, 4))


def test_a_load_is_drawn_over_its_sectors(p):
    figure = plots.access(p, "= x[t * stride]", kind="read")
    assert "8 sectors of 32 bytes touched in argument" in figure.body and "8 sectors" in figure.alt


def test_a_shared_store_is_drawn_over_its_banks(p):
    figure = plots.access(p, "tile[t * stride] =", kind="write")
    assert "2 wavefronts, where 1 would do" in figure.body


def test_a_request_of_some_lanes_says_how_many(p):
    figure = plots.access(p, "out[t] =", kind="write")
    assert "20 lanes write 3 sectors" in figure.alt and "20 of the 32 lanes of one warp" in figure.body
    assert len(re.findall(r'<rect [^>]*y="34"[^>]*fill="none"', figure.body)) == 12  # boxes of idle lanes


def test_the_wanted_bytes_of_a_sector_are_filled_and_what_comes_with_them_is_tinted(p):
    body = plots.access(p, "= x[t * stride]", kind="read").body
    boxes = re.findall(r'width="([\d.]+)" height="20" fill="(#\w+)" fill-opacity="([\d.]+)"', body)
    fetched = [float(width) for width, _, opacity in boxes if opacity != "1"]
    wanted = [float(width) for width, _, opacity in boxes if opacity == "1"]
    assert len(fetched) == 8 and len(wanted) == 32  # every second number: four of eight in each sector
    assert sum(wanted) == pytest.approx(sum(fetched) / 2, rel=0.01)
    assert {colour for _, colour, _ in boxes} == {plots.PALETTE["orange"]}  # 8 sectors where 4 would do
    assert body.count("<line ") == 32


def test_under_a_bank_stands_one_word_for_each_wavefront(p):
    body = plots.access(p, "tile[t * stride] =", kind="write").body
    colours = re.findall(r'y="(?!34")[\d.]+" [^>]*fill="(#\w+)"', body)
    # 16 even banks, two words from each
    assert colours.count(plots.PALETTE["green"]) == colours.count(plots.PALETTE["orange"]) == 16


def test_an_access_plot_is_one_svg_in_the_pages_own_ink(p):
    body = plots.access(p, "tile[t * stride] =", kind="write").body
    root = ElementTree.fromstring(body)
    assert root.get("role") == "img" and root.get("aria-label").startswith("Line ")
    assert "currentColor" in body and not re.search(r"<(?:script|style|image|use|a)\b|href|url\(", body)


def test_sectors_far_apart_are_drawn_without_what_lies_between():
    apart = WarpRequest(
        1, "global", "read", tuple(range(32)), tuple(4096 * lane for lane in range(32)), 4, "x"
    )
    body = lanes.svg(apart, "32 rows")
    # 32 sectors, and the number wanted in each; not 4,000
    assert len(re.findall('height="20"', body)) == 2 * 32
    assert max(float(x) for x in re.findall(r'x2="([\d.]+)"', body)) <= lanes.WIDTH
    assert lanes.finding(apart, "x") == "32 lanes read 32 sectors of x where 4 would do"


@pytest.mark.parametrize(
    ("space", "lanes_", "apart", "first", "width", "told"),
    [
        ("global", 32, 4, 0, 4, "32 lanes read 4 sectors of x"),
        ("global", 32, 4, 4, 4, "32 lanes read 5 sectors of x where 4 would do"),
        ("global", 32, 0, 64, 4, "32 lanes read 1 sector of x"),  # one number for all
        ("global", 1, 0, 64, 4, "1 lane reads 1 sector of x"),
        ("global", 32, 16, 0, 16, "32 lanes read 16 sectors of x"),
        ("shared", 32, 4, 0, 4, "32 lanes read x in 1 wavefront"),
        ("shared", 32, 132, 0, 4, "32 lanes read x in 1 wavefront"),  # rows of 33 words
        ("shared", 32, 128, 0, 4, "32 lanes read x in 32 wavefronts where 1 would do"),
        ("shared", 32, 0, 128, 4, "32 lanes read x in 1 wavefront"),  # one word for all
        ("shared", 32, 8, 0, 8, "32 lanes read x in 2 wavefronts"),
        ("shared", 20, 16, 0, 4, "20 lanes read x in 3 wavefronts where 1 would do"),  # 8 banks: 3, 3, 3, ...
    ],
)
def test_the_finding_is_what_the_request_costs_and_what_would_do(space, lanes_, apart, first, width, told):
    offsets = tuple(first + apart * lane for lane in range(lanes_))
    request = WarpRequest(1, space, "read", tuple(range(lanes_)), offsets, width, "x")
    assert lanes.finding(request, "x") == told


@cuda.jit
def counts_doubles(x, counts):
    tile = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    cuda.atomic.add(counts, int(tile[31 - t]), 1)


@pytest.mark.slow
def test_doubles_take_two_wavefronts_without_blame_and_an_atomic_has_its_picture(tmp_path):
    p = warplab.profile(counts_doubles[1, 32], np.arange(32.0), np.zeros(32, np.int32))
    banks = plots.access(p, "tile[t] =", kind="write")
    assert "2 wavefronts, the fewest for so many words" in banks.body
    updates = plots.access(p, "atomic.add", kind="atomic")
    assert "32 lanes update 4 sectors" in updates.alt
    for figure in (banks, updates, plots.divergence(p)):
        figure.save(tmp_path / "figure.svg")
        assert html.escape(figure.alt.split(". ")[0]) in (tmp_path / "figure.svg").read_text()
        ElementTree.parse(tmp_path / "figure.svg")
    plots.divergence(p).save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"this figure saves as \.svg"):
        banks.save(tmp_path / "figure.png")


def test_a_line_without_access_says_which_lines_have_one(p):
    with pytest.raises(
        ValueError, match=r"no load or store on line 'syncthreads'; lines that have one are \d+: "
    ):
        plots.access(p, "syncthreads")


def test_the_timeline_shows_the_lanes_that_skip_a_branch(p):
    assert {step.active for step in p.timeline} == {0xFFFFFFFF, (1 << 20) - 1}
    # but for the exit, the whole kernel
    assert f"which is {p.warp_execution_efficiency:.0%} of the area" in plots.divergence(p).alt


@cuda.jit
def triad(a, b, out):
    i = cuda.grid(1)
    out[i] = a[i] + 3 * b[i]


@pytest.mark.slow
def test_a_kernel_stands_under_the_roof_by_its_counted_operations_and_bytes():
    arrays = np.ones((3, 1024), np.float64)
    counted = warplab.profile(triad[8, 128], *arrays)
    assert (counted.flops, counted.global_load.bytes + counted.global_store.bytes) == (2048, 24576)
    figure = plots.roofline({"triad": counted, "by hand": (100, 1)}, "h100-sxm", "peak_fp64")
    # 2048 FLOP for 24576 bytes at each level; the results may stay in L2. 3.35 TB/s x 1/8 are 0.419 TFLOP/s.
    assert "triad: 0.0833 at L1 and shared memory, 0.0833 at L2, 0.125 at HBM3" in figure.alt
    assert "at most 0.419 TFLOP/s, bound by HBM3; by hand: 100 at HBM3" in figure.alt
    assert "at most 33.5 TFLOP/s, bound by arithmetic" in figure.alt  # the ridge is at 10
    assert all(said in figure.body for said in ("FP64 peak", "HBM3: 3.35 TB/s", ">HBM3<"))


def test_a_roof_that_no_kernel_has_a_dot_at_is_not_drawn_and_one_level_needs_no_names():
    figure = plots.roofline({"decode": (1e12, 1e11), "prefill": (1e15, 1e12)}, peak="peak_bf16")
    assert "L1" not in figure.alt and "L2" not in figure.body and ">HBM3<" not in figure.body
    assert "FLOP for each byte of HBM3" in figure.body and "at most 33.5 TFLOP/s, bound by HBM3" in figure.alt


def test_a_kernel_without_arithmetic_has_no_place_under_a_roof():
    with pytest.raises(ValueError, match="copy does 0 FLOP and moves 4,096 bytes"):
        plots.roofline({"copy": (0, 4096)})


def test_names_of_kernels_that_stand_close_do_not_cover_each_other():
    from warplab.plots.roofline import spread

    moved = spread([1.0, 0.1, 0.15, 0.9, 2.0], 0.2)
    assert moved == pytest.approx([1.1, 0.1, 0.3, 0.9, 2.0])  # in their order, each 0.2 from the next
    assert spread([0.3], 0.2) == [0.3]


def test_a_roofline_saves_as_png_and_svg(tmp_path):
    figure = plots.roofline({"by hand": (1, 1)})
    for name in ("roof.png", "roof.svg"):
        figure.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
