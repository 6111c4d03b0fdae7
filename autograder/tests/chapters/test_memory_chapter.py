"""Chapter 5: its predictions are the engine's counts, its ratios follow from the
registry, and its numbers from their sources.
"""

import math
import runpy
import tempfile
from functools import cache, partial

import numpy as np
import pytest
from conftest import ROOT
from numba import cuda, float32
from page_code import cell_with, defined, text_of

import warplab
from warplab.evidence.measure import published
from warplab.figures import kernels
from warplab.figures import memory as figures
from warplab.figures.taken import taken
from warplab.hardware import specs

BOOK = ROOT / "chapters"
H100 = specs.get("h100-sxm")
TEXT = text_of("05-memory")
# one small launch is enough to count, and a kernel taken from a page has no source file
pytestmark = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


chapter = cache(partial(defined, "05-memory", np=np, warplab=warplab, h100=H100, kernels=kernels))


def count(kernel, grid, block, *args):
    return warplab.profile(chapter()[kernel][grid, block], *args)


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"),
    [(1, 0, 4), (1, 1, 5), (0, 0, 1), (2, 0, 8), (3, 0, 12), (8, 0, 32), (32, 0, 32)],
)
def test_a_request_costs_the_sectors_that_the_chapter_predicts(stride, offset, sectors):
    x, out = np.arange(32_800, dtype=np.float32), np.empty(1024, np.float32)
    p = count("copy_strided", 8, 128, x, out, stride, offset)
    assert (p.global_load.requests, p.global_load.sectors) == (32, 32 * sectors)
    np.testing.assert_array_equal(out, x[np.arange(1024) * stride + offset])


@pytest.mark.slow
def test_the_three_transposes_cost_what_was_derived():
    book, a = chapter(), np.random.default_rng(0).random((256, 256), np.float32)
    warps = 256 * 256 // 32
    derived = {
        "naive": (warps * (4 + 32), 0),
        "tiled": (warps * (4 + 4), warps * 31),
        "padded": (warps * (4 + 4), 0),
    }
    ways = {
        "naive": book["transpose_naive"],
        "tiled": kernels.transpose_tiled(32),
        "padded": kernels.transpose_tiled(33),
    }
    for name, expected in derived.items():
        out = np.empty_like(a)
        p = warplab.profile(ways[name][(8, 8), (32, 32)], a, out)
        np.testing.assert_array_equal(out, a.T)
        assert (p.global_load.sectors + p.global_store.sectors, p.shared_load.bank_conflicts) == expected
        assert p.shared_store.bank_conflicts == 0
    said = [f"{sectors:,}" for sectors, _ in derived.values()] + [
        f"{warps * 31:,}",
        f"{warps * 32:,}",
        f"{warps * (36 - 8):,}",
    ]
    assert [number for number in said if number not in TEXT] == []


@pytest.mark.slow
def test_the_blur_with_a_halo_asks_for_1_79_times_the_fewest():
    a, naive, tiled = (
        np.random.default_rng(0).random((288, 288), np.float32),
        *np.empty((2, 288, 288), np.float32),
    )
    fewest = 288 * 288 * 4 // 32
    p = count("blur_tiled", (9, 9), (32, 32), a, tiled)
    assert p.global_load.sectors == (9 * 34 - 2) * (9 * 7 - 2) == 18_544
    assert fewest == 10_368 and p.global_load.sectors / fewest == pytest.approx(1.79, abs=0.005)
    q = count("blur_naive", (9, 9), (32, 32), a, naive)
    middle, up_and_down, sideways = 288 * 36, 2 * 287 * 36, 2 * 288 * (9 * 5 - 1)
    assert q.global_load.sectors == middle + up_and_down + sideways
    assert q.global_load.sectors / p.global_load.sectors == pytest.approx(3, abs=0.05)  # "a third"
    around = np.pad(a, 1)
    mean = (a + around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]) / 5
    for out in (naive, tiled):
        np.testing.assert_allclose(out, mean, rtol=0, atol=1e-6)


@cuda.jit
def mean_of_11_by_11(a, out, tiled):
    """One block, from ``a`` itself or from a tile; a result's row begins 8 numbers into that of ``a``."""
    tile = cuda.shared.array((42, 42), float32)
    left, up, acc = cuda.threadIdx.x, cuda.threadIdx.y, float32(0)
    if tiled:
        for y in range(up, 42, 32):
            for x in range(left, 42, 32):
                tile[y, x] = a[y, x + 3]
        cuda.syncthreads()
    for y in range(11):
        for x in range(11):
            acc += tile[up + y, left + x] if tiled else a[up + y, left + x + 3]
    out[up, left] = acc / float32(121)


@pytest.mark.slow
def test_a_tile_saves_sectors_and_no_wavefronts_of_a_window_of_11_by_11():
    a, out = np.ones((42, 48), np.float32), np.empty((32, 32), np.float32)
    naive, tiled = (warplab.profile(mean_of_11_by_11[1, (32, 32)], a, out, tile) for tile in (False, True))
    assert (naive.global_load.sectors, tiled.global_load.sectors) == (32 * 594, 42 * 7)
    assert tiled.l1_wavefronts > naive.l1_wavefronts  # "saves no wavefronts"
    reads = (42 * 32 + 32 * 32) * 11 / 32**2
    assert "= 594 sectors" in TEXT and f"{reads:.0f} reads a result" in TEXT


@pytest.mark.slow
def test_the_online_softmax_reads_twice_what_the_other_reads_three_times():
    x = 4 * np.random.default_rng(0).standard_normal((128, 1024)).astype(np.float32)
    exact = np.exp(x.astype(float) - x.max(0))
    exact /= exact.sum(0)
    once = x.nbytes // 32
    flops = []
    for kernel, reads in (("softmax_three_reads", 3), ("softmax_online", 2)):
        out = np.empty_like(x)
        p = count(kernel, 8, 128, x, out)
        assert (p.global_load.sectors, p.global_store.sectors) == (reads * once, once)
        np.testing.assert_allclose(out, exact, rtol=0, atol=1e-6)
        flops.append(p.flops)
    assert once == 16_384 and flops[1] / flops[0] == pytest.approx(1.5)  # "half as much arithmetic again"


def counted_in_triton(kernel, grid, rows, cols):
    """(input, result, profile) of a Triton kernel of the chapter on random numbers."""
    import torch

    pytest.importorskip("triton")
    page = tempfile.NamedTemporaryFile("w", suffix=".py")  # triton.jit reads its kernels' source files
    with page:
        page.write("import triton\nimport triton.language as tl\n" + cell_with("05-memory", f"def {kernel}"))
        page.flush()
        x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(5))
        out = torch.empty_like(x)
        launch = runpy.run_path(page.name)[kernel][(grid,)]
        return x, out, warplab.profile(launch, x, out, rows=rows, cols=cols)


@pytest.mark.slow
def test_the_online_softmax_asks_for_the_same_sectors_in_three_languages():
    x, in_triton, triton = counted_in_triton("softmax_columns", 1, 32, 128)
    text = cell_with("05-memory", "softmax(const float").split('"""')[1]
    in_numba, in_cpp, rough = np.empty((3, 32, 128), np.float32)
    numba = count("softmax_online", 1, 128, x.numpy(), in_numba)
    plain, short = (
        warplab.profile(warplab.cuda_kernel(source, "softmax")[1, 128], x.numpy(), out, 32, 128)
        for source, out in ((text, in_cpp), (text.replace("expf(", "__expf("), rough))
    )
    once = 32 * 128 * 4 // 32
    for p in (numba, triton, plain, short):
        assert (p.global_load.sectors, p.global_store.sectors) == (2 * once, once)
    for out in (in_numba, in_cpp, rough, in_triton.numpy()):
        np.testing.assert_allclose(out, x.softmax(0), rtol=0, atol=1e-6)
    assert numba.flops == plain.flops  # "Both spend several more"
    assert triton.flops == short.flops == 12 * x.numel()  # "for the same 12 FLOP"
    assert numba.warp_instructions / plain.warp_instructions == pytest.approx(
        1.5, abs=0.1
    )  # "1.5 times as many"


@pytest.mark.slow
def test_the_tile_of_triton_reads_each_number_once():
    import torch

    x, out, p = counted_in_triton("softmax_tile", 2, 128, 64)
    assert (p.global_load.sectors, p.global_store.sectors) == (128 * 64 * 4 // 32,) * 2
    torch.testing.assert_close(out, x.softmax(0), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("n", "tile"), [(512, 64), (100, 64), (7, 3)])
def test_attention_by_tiles_is_attention(n, tile):
    q, k, v = np.random.default_rng(n).standard_normal((3, n, 64))
    weights = np.exp(q @ k.T / 8)
    exact = weights @ v / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(chapter()["attention_by_tiles"](q, k, v, tile), exact, atol=1e-12)


def test_the_walk_visits_every_link_once_in_both_orders():
    book = chapter()
    for shuffled in (False, True):
        links, place, seen = book["round_trip"](64 * 100, shuffled), 0, []
        for _ in range(100):
            seen.append(place)
            place = int(links[place])
        assert place == 0 and len(set(seen)) == 100
        at = np.zeros(1, np.int64)
        for walked in range(10, 101, 10):  # ten walks, each from where the last one stopped
            book["walk"](links, at, 10)
            assert at[0] == (seen + [0])[walked]


def test_the_desk_the_door_and_the_walk():
    bandwidth, fp32 = H100["memory_bandwidth"].si, H100["peak_fp32"].si
    assert round(fp32 / 2 / (bandwidth / 12)) == 120
    for key in ("h100-sxm", "rtx-4090"):
        spec = specs.get(key)
        assert round(1e3 * spec["memory_capacity"].si / spec["memory_bandwidth"].si) == 24  # ms
        assert round(spec["memory_bandwidth"].si / spec["memory_capacity"].si) == 42  # tokens a second
    assert specs.get("epyc-9654")["memory_bandwidth"].si / (1.2e12 / 8) == pytest.approx(3, abs=0.1)
    registers = 4 * H100["registers_per_sm"].value
    assert registers == H100["unified_cache_per_sm"].si == 256 * 1024
    assert round(4528.92 * 2**30 / 1e12, 1) == round(H100["l2_measured"].si / 1e12, 1)  # mt4g, bytes a second
    latency = 834 / H100["boost_clock"].si
    assert latency == pytest.approx(421e-9, abs=0.5e-9)
    under_way = bandwidth * latency
    assert under_way == pytest.approx(1.4e6, rel=0.01)
    assert under_way / H100["sms"].value == pytest.approx(10.7e3, rel=0.005)
    assert round(under_way / H100["sms"].value / 128) == 84 > H100["max_warps_per_sm"].value


def test_what_must_be_under_way_at_each_level():
    """128 bytes a clock for 38 clocks; what was measured of L2 for 219; HBM's data sheet for 834."""
    bytes_of = {
        level: bandwidth.si * cycles / H100["boost_clock"].si / H100["sms"].value
        for level, bandwidth, cycles in (
            ("L1", H100["l1_bandwidth"], 38),
            ("L2", H100["l2_measured"], 219),
            ("HBM", H100["memory_bandwidth"], 834),
        )
    }
    assert bytes_of["L1"] == pytest.approx(128 * 38)
    warps = {level: n / 128 for level, n in bytes_of.items()}
    full = H100["max_warps_per_sm"].value
    assert [round(warps[level] / full, 1) for level in ("L1", "L2")] == [0.6, 0.5]  # "50 to 60 %"
    assert warps["HBM"] > full and round(warps["HBM"] / 4) == 21
    ring, clock = taken("latency", "H100"), H100["boost_clock"].si
    ours = [round(ring["one thread", 2**power] * clock) for power in (14, 22, 30)]
    of_ours = [warps[level] * n / said for level, n, said in zip(warps, ours, (38, 219, 834), strict=True)]
    assert [math.ceil(n) for n in of_ours] == [55, 48, 69] and full == 64  # 86 %, 75 %, and too many
    assert ours[2] < 700 and round(ring["one thread", 2**20] * clock) == 296
    fit = 4 * (H100["registers_per_sm"].value // 4 // (17 * 256))  # a warp's 132 · 32, rounded up
    assert fit == 12 and fit * 32 * 32 == 12_288 > bytes_of["HBM"]


def from_page(text, *names):
    """The named values of the chapter's one cell that holds ``text``, whatever else it prints or profiles."""
    source = cell_with("05-memory", text).split("\nx, out")[0]
    space = {**chapter()}
    exec(compile(source, "05-memory.md", "exec"), space)
    return [space[name] for name in names]


@pytest.mark.slow
def test_a_wide_load_makes_a_quarter_of_the_requests_for_the_same_sectors():
    x, out = np.random.default_rng(0).random((2, 4096), np.float32)
    counts = []
    for text, blocks in zip(from_page("float4*", "narrow", "wide"), (16, 4), strict=True):
        p = warplab.profile(warplab.cuda_kernel(text, "copy")[blocks, 256], x, out)
        np.testing.assert_array_equal(out, x)
        counts.append((p.global_load.requests, p.global_load.sectors, p.l1_wavefronts, p.warp_instructions))
    assert counts[0][:3] == (128, 512, 256) and counts[1][:3] == (32, 512, 256)
    assert counts[0][3] == 4 * counts[1][3]


def test_a_swizzled_tile_has_no_conflicts_and_no_padding():
    kernel = kernels.transpose_swizzled
    a, out = np.random.default_rng(0).random((2, 64, 64), np.float32)
    p = warplab.profile(kernel[(2, 2), (32, 32)], a, out)
    np.testing.assert_array_equal(out, a.T)
    assert (p.shared_load.bank_conflicts, p.shared_store.bank_conflicts, p.shared_bytes) == (0, 0, 4096)


@pytest.mark.slow
def test_the_copies_that_run_ahead_are_waited_for():
    """As many requests as the tiled product of chapter 4; a wait too early is told."""
    [fetch], [product] = from_page("void fetch", "fetch"), from_page("void product", "product_by_tiles")
    a, b = np.random.default_rng(0).random((2, 64, 64), np.float32)
    c = np.zeros_like(a)
    launch = warplab.cuda_kernel(fetch + product, "product")[(4, 4), (16, 16)]
    p = warplab.profile(launch, a, b, c, 64)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    warps, rounds = 64 * 64 // 32, 4
    assert (p.global_load.requests, p.shared_load.requests) == (warps * rounds * 2, warps * 64 * 2)
    early = warplab.cuda_kernel((fetch + product).replace("wait_prior(0)", "wait_prior(1)"), "product")
    with pytest.raises(warplab.UnfinishedCopy):
        early[(4, 4), (16, 16)](a, b, c, 64)


def test_the_street():
    each_way = H100["pcie_each_way"].si
    assert round(H100["memory_bandwidth"].si / each_way) == 52
    assert H100["memory_capacity"].si / each_way == 1.25
    sent = taken("host_device_transfer", "H100")
    rates = [2**28 / sent[f"{kind}, to the device", 2**28] for kind in ("pinned", "pageable")]
    assert [round(rate / 1e9) for rate in rates] == [47, 6]
    assert [f"{H100['memory_capacity'].si / rate:.2g}" for rate in rates] == ["1.7", "14"]
    assert round(6 * H100["peak_fp32"].si / each_way, -2) == 6_300  # 2 n^3 / (12 n^2 bytes)


def test_intensities_of_deep_learning():
    book, ridge = chapter(), H100["ridge_bf16"].value
    products = [np.divide(*book["product"](m, 4096, 4096)) for m in (1, 32, 512, 4096)]
    np.testing.assert_allclose(products, [1.0, 31.5, 409.6, 1365.3], rtol=1e-3)
    assert 100 * products[0] / ridge == pytest.approx(1 / 3, abs=0.02)
    assert products[1] < ridge < products[2]
    rows = ridge / (1 - ridge / 2048)
    assert rows == pytest.approx(345, abs=1) and np.divide(
        *book["product"](rows, 4096, 4096)
    ) == pytest.approx(ridge)
    layer_norm = 7 / 8
    assert layer_norm / H100["ridge_fp32"].value == pytest.approx(0.044, abs=0.001)


def test_the_sliver_of_the_arithmetic_and_its_share_of_the_floor():
    caught, space = {}, {**chapter()}
    space["figure"] = type("Chart", (), {"floors": caught.update})
    exec(compile(cell_with("05-memory", "def floor("), "05-memory.md", "exec"), space)
    flop, seconds = (sum(part[i] for part in caught.values()) for i in (0, 1))
    small = [caught[name] for name in ("softmax", "norms, additions, GELU")]
    assert 100 * sum(part[0] for part in small) / flop == pytest.approx(0.12, abs=0.005)
    assert 100 * sum(part[1] for part in small) / seconds == pytest.approx(20, abs=0.5)
    by_arithmetic = caught["attention's products"][0] / H100["peak_bf16"].si
    assert caught["attention's products"][1] > 2 * by_arithmetic  # memory-bound


def test_the_bytes_of_attention():
    n, d = 8192, 64
    stored, tiles, once = 8 * n * n + 8 * n * d, 4 * n * d + 4 * n * n * d / 128, 8 * n * d
    heads = math.ceil(H100["sms"].value / (n / 128))  # at work at a time, with a block for each 128 queries
    assert heads == 3
    # an eighth of L2
    assert round(heads * 4 * n * d / 1e6) == 6 and 8 * heads * 4 * n * d < 1.01 * H100["l2_cache"].si
    assert 2 * n * n > H100["l2_cache"].si
    alt = figures.attention_bytes().alt
    assert all(f"{round(b / 1e6)} MB" in alt for b in (stored, tiles, once))


@pytest.mark.slow
def test_what_others_measured_is_said_as_they_published_it():
    sources = [*published("transpose"), *published("copy_bandwidth")]
    points = {(e.cite, p.series, p.x): p.rate for e in sources for p in e.points}
    naive, tiled, padded, wide = (rate for (cite, _, _), rate in points.items() if cite == "yencal2025")
    assert [round(r / 1e9) for r in (naive, tiled, padded, wide)] == [476, 996, 1693, 2772]
    assert [round(r, 1) for r in (tiled / naive, padded / tiled)] == [2.1, 1.7]
    for card, factor in ("H100", 3.7), ("H200", 3.1):
        took = taken("transpose", card)
        bare, clear = (
            took["transpose_naive", 16384] / took[f"transpose_{way}", 16384] for way in ("tiled", "padded")
        )
        assert round(bare, 1) == factor and bare < 4.5 < clear
    strided = [points["kernelforge2026", "strided copy", s] for s in (1, 8, 128)]
    assert round(strided[0] / 1e12, 2) == 1.38 and round(strided[1] / strided[2]) == 8
    lines = [2 * 4 * 2**20 * s for s in (8, 16)]  # bytes of both arrays' cache lines
    assert lines[0] < specs.get("rtx-4090")["l2_cache"].si < lines[1] == 128 << 20
    drawn = figures.random_reads(warplab.measure("random_reads"))
    assert "stride 8: 7.8 times (published)" in drawn.alt and "256 MiB: 32.2 times (published)" in drawn.alt


@pytest.mark.slow
def test_only_the_tiled_blurs_wavefronts_take_longer_than_what_it_fetches():
    def at_l1(kernel):
        p = warplab.profile(chapter()[kernel][(9, 9), (32, 32)], *np.ones((2, 288, 288), np.float32))
        return 128 * p.l1_wavefronts / H100["l1_bandwidth"].si

    fetched = 288 * 288 * 4 / H100["memory_bandwidth"].si
    assert at_l1("blur_naive") < fetched < at_l1("blur_tiled") < 1.03 * fetched  # "by 2 %"


def test_flash_attention_4_reaches_the_share_that_the_table_says():
    assert round(1605e12 / specs.get("b200")["peak_bf16"].si, 2) == 0.71


def test_chapter_4_is_placed_where_its_counters_put_it():
    n, stored = 256, 256 * 256 * 4
    flop = 2 * n**3
    asked = {
        "matmul, naive": 64 * 2**20,
        "matmul, tile of 32": 80 * 2**20 / 20,
        "matmul, register tile": 64 * 2**20 / 32,
    }
    for name, loaded in asked.items():
        drawn, to_bytes = figures.CHAPTER_4[name]
        assert drawn / to_bytes == pytest.approx(flop / (loaded + stored), rel=5e-3)


def test_a_gpu_that_nobody_measured_is_not_given_a_time():
    drawn = figures.strides({1: 4, 2: 8}, {1: 1e-3, 2: 2e-3}, {})
    said = "none on this machine, records follow"
    assert said in drawn.body and said in drawn.alt and "live" not in drawn.alt
