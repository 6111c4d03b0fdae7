"""Chapter 4: what a tile costs an SM, what counts as an operation, and the picture of im2col."""

import inspect
import re
from functools import cache, partial

import numba
import numpy as np
import pytest
import torch
from numba import cuda
from page_code import cell_with, code_of, defined, text_of
from torch import nn

import warplab
from warplab.evidence.measure import shown_without_running
from warplab.figures import counted, disguises, kernels, matmul
from warplab.figures.taken import taken
from warplab.hardware import specs
from warplab.models.operations import operations

TEXT = text_of("04-matmul")
# one block is enough to count, and a kernel taken from a page has no source file
pytestmark = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


chapter = cache(partial(defined, "04-matmul", warplab=warplab, kernels=kernels))


def variant(name, old, new, **names):
    """The chapter's kernel ``name`` with ``old`` replaced by ``new``."""
    source = cell_with("04-matmul", f"def {name}(")
    assert old in source
    space = {**chapter(), **names}
    exec(compile(source.replace(old, new), "04-matmul.md", "exec"), space)
    return space[name]


@pytest.fixture(scope="module")
def square():
    rng = np.random.default_rng(0)
    return *rng.standard_normal((2, 64, 64)).astype(np.float32), np.zeros((64, 64), np.float32)


class Counted:
    """What the engine counts of the register-tiled product of two 256-square matrices, by hand.

    Of each of 16 blocks in 16 rounds: 8 warps read 8 numbers in each of 16 steps and load and store two tiles
    of 64 x 16, that of B with two rows of 64 words in each request, which meet in their banks; at the end
    each of 8 warps stores 16 answers a thread. What it asks global memory for are two rows of 16: banks
    again.
    """

    flops = 2 * 256**3
    l1_wavefronts = 16 * (16 * (8 * 16 * 8 + 2 * 64 * 16 // 32 * 3 + 32) + 8 * 16 * 2)


def test_the_budget_of_a_tile_by_hand():
    source = cell_with("04-matmul", "cycles = {")
    space = {"warplab": type("Lab", (), {"specs": specs}), "register_tiled": Counted}
    exec(compile(source, "04-matmul.md", "exec"), space)
    cuda_cores, tensor_cores, passes = space["cycles"].values()
    assert cuda_cores == 64 * 64 * 16 / 128 == 512
    assert space["tensor"] == pytest.approx(2048, rel=1e-3) and tensor_cores == pytest.approx(32, rel=1e-3)
    assert passes == 1024 + 2 * 64 + 64 + 32 + 2 * 8 == 1264 and passes > 2 * cuda_cores  # "more than twice"
    assert 1024 / passes == pytest.approx(4 / 5, abs=0.011)  # "four in five of them are reads"


def test_products_are_counted_twice_a_multiply_add_and_the_rest_once_a_number():
    counted = operations(nn.Sequential(nn.Linear(8, 5), nn.ReLU()), torch.zeros(3, 8))
    assert counted == {"dense layers": 2 * 3 * 8 * 5, "everything else": 3 * 5}


def test_a_model_without_products_has_only_the_rest():
    assert operations(nn.ReLU(), torch.zeros(7)) == {"everything else": 7}


@pytest.mark.slow
def test_the_drawn_columns_are_those_that_unfold_makes():
    picture = torch.arange(1.0, 17).reshape(1, 1, 4, 4)
    columns = nn.functional.unfold(picture, 3)[0].numpy()
    last = ", ".join(f"{pixel:.0f}" for pixel in columns[:, -1])
    assert last in disguises.im2col().alt
    everywhere = sorted(set.intersection(*(set(column) for column in columns.T)))
    assert np.array_equal(everywhere, [6, 7, 10, 11]) and "6, 7, 10 and 11" in disguises.im2col().caption


@pytest.mark.slow
def test_each_published_product_is_drawn_as_a_share_of_its_peak_or_named_without_one():
    figure = matmul.shares_of_peak(shown_without_running("matmul_by_size"))
    for said in ("60% at 4,096 of FP32", "78% at 4,096, 94% at 8,192 of BF16", "7.34 TFLOP/s at 4,096"):
        assert said in figure.alt
    series = "; " + figure.alt.partition("side. ")[2]
    found = dict(re.findall(r"; ([^;]*?): [^;]*?([\d.]+)% at [\d,]+ of", series))
    shares = {name: float(share) for name, share in found.items()}
    assert len(shares) == 16  # of 17 series: the GTX 1070 Ti is not in the registry
    assert all(share < 8 for name, share in shares.items() if "coalesced" in name or "in shared" in name)
    library = [share for name, share in shares.items() if "cuBLAS" in name or "torch" in name]
    assert (min(library), max(library)) == (60, 94)  # of each the largest side, 2,048 or more


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "grid", "block", "requests", "sectors", "shared"),
    [  # 64 x 64 x 64: 128 warps of outputs, 64 steps
        ("matmul_naive", (4, 4), (16, 16), 128 * 64 * 2, 128 * 64 * (2 + 2), 0),
        ("matmul_naive", (2, 2), (32, 32), 128 * 64 * 2, 128 * 64 * (1 + 4), 0),
        ("matmul_tiled", (4, 4), (16, 16), 128 * 4 * 2, 128 * 4 * (4 + 4), 128 * 64 * 2),
        ("matmul_register_tiled", (1, 1), (16, 16), 8 * 4 * 8, 8 * 4 * 8 * 4, 8 * 64 * 8),
    ],
)
def test_the_counts_derived_are_the_engines(square, kernel, grid, block, requests, sectors, shared):
    a, b, c = square
    kernel = kernels.tiled(16) if kernel == "matmul_tiled" else chapter()[kernel]
    p = warplab.profile(kernel[grid, block], a, b, c)
    counted = (p.global_load.requests, p.global_load.sectors, p.shared_load.requests)
    assert counted == (requests, sectors, shared)
    assert p.flops == 2 * 64**3
    assert p.shared_load.bank_conflicts == 0 and p.spill_bytes == 0
    np.testing.assert_allclose(c, a @ b, rtol=0, atol=64 * 1e-6)


@pytest.mark.slow
def test_a_bare_zero_makes_three_64_bit_instructions_of_one_fma_as_the_box_says():
    lists = (numba.float32[:, ::1],) * 3
    both = chapter()["matmul_naive"], variant("matmul_naive", "np.float32(0)", "0.0")
    good, bare = (cuda.compile_ptx(kernel.py_func, lists, cc=(9, 0))[0] for kernel in both)
    assert "fma.rn.f32" in good and "f64" not in good
    assert all(name in bare for name in ("mul.f32", "cvt.f64.f32", "add.f64")) and "fma" not in bare


@pytest.mark.slow
def test_swapped_indices_touch_33_sectors_a_step_as_quiz_2_says(square):
    swapped = variant("matmul_naive", "col, row = cuda.grid(2)", "row, col = cuda.grid(2)")
    p = warplab.profile(swapped[(2, 2), (32, 32)], *square)
    assert p.global_load.sectors == 128 * 64 * 33
    assert p.global_store.sectors == 128 * 32


@pytest.mark.slow
def test_a_padded_tile_removes_the_conflicts_of_quiz_5(square):
    padded = variant("matmul_register_tiled", "(16, 64)", "(16, 80)")
    launches = (kernel[(1, 1), (16, 16)] for kernel in (chapter()["matmul_register_tiled"], padded))
    conflicts = [warplab.profile(one, *square).shared_store.bank_conflicts for one in launches]
    assert conflicts == [8 * 4 * 4, 0]


@pytest.mark.slow
def test_numbers_in_a_row_take_two_wavefronts_where_numbers_16_apart_take_one(square):
    wavefronts = []
    for b_col in ("tx + 16 * j", "4 * tx + j"):
        multiply = inspect.getsource(kernels.multiply.py_func)
        assert "b_tile[k, tx + 16 * j]" in multiply
        space = dict(vars(kernels))
        exec(compile(multiply.replace("b_tile[k, tx + 16 * j]", f"b_tile[k, {b_col}]"), "04", "exec"), space)
        kernel = variant("matmul_register_tiled", "kernels.multiply", "multiply", multiply=space["multiply"])
        wavefronts.append(warplab.profile(kernel[(1, 1), (16, 16)], *square).shared_load.wavefronts)
    loads_of_one = 8 * 64 * 4  # warps, steps, numbers of A or of B
    assert wavefronts == [2 * loads_of_one, loads_of_one + 2 * loads_of_one]


@pytest.mark.slow
def test_what_the_text_says_of_passes_and_of_issue_holds_for_counts_and_records():
    launches = {
        "naive": chapter()["matmul_naive"][(4, 4), (32, 32)],
        "tiled": kernels.tiled(32)[(4, 4), (32, 32)],
        "register_tiled": chapter()["matmul_register_tiled"][(2, 2), (16, 16)],
    }
    a = np.ones((128, 128), np.float32)
    h100 = specs.get("h100-sxm")
    clocks = h100["sms"].value * h100["boost_clock"].si
    passes, issue, took = {}, {}, {}
    for name, launch in launches.items():
        p = warplab.profile(launch, a, a, np.empty_like(a))
        larger = 2 * 4096**3 / p.flops / clocks
        passes[name], issue[name] = p.l1_wavefronts * larger, p.warp_instructions / 4 * larger
        took[name] = taken("matmul_by_size", "H100")[f"course: matmul_{name}", 4096]
    assert issue["naive"] > 2 * passes["naive"]  # "issuing takes longer than the wavefronts"
    assert issue["tiled"] < passes["tiled"]  # "the wavefronts take longer"
    assert 1.25 < issue["register_tiled"] / passes["register_tiled"] < 1.4  # "longer, by a third"
    arithmetic = 2 * 4096**3 / h100["peak_fp32"].si
    assert took["naive"] > 3 * (passes["naive"] + arithmetic)  # "beyond the sum"
    assert 0.4 < issue["naive"] / took["naive"] < 0.5  # "nearly half of its time"
    a6000 = specs.get("rtx-a6000")
    slower = clocks / a6000["sms"].value / a6000["boost_clock"].si
    for name, boehms in (("naive", 1.9865e12), ("tiled", 2.9803e12)):
        assert 2 * 4096**3 / boehms > 2 * slower * passes[name]  # "more than twice their speed"
    key = "smsp__inst_executed.sum"
    more = {launch.name: launch.there[key] / launch.here[key] for launch in counted.counted()}
    assert [round(more[name], 2) for name in ("matmul_naive", "tiles of 32, 2048")] == [1.65, 0.92]
    machine = more["matmul_naive"] * issue["naive"]  # "three quarters", so 1.3 times that bound
    assert machine / took["naive"] == pytest.approx(0.75, abs=0.01)
    longest = [took[name] / max(passes[name], issue[name]) for name in ("tiled", "register_tiled")]
    assert [round(times, 1) for times in longest] == [1.6, 1.2]  # "1.2 to 1.6 times their longest bound"


def test_in_the_record_the_register_tile_is_the_slower_kernel_of_small_products():
    times = taken("matmul_by_size", "H100")
    ways = "register_tiled", "tiled"
    recorded = {n: [round(1e6 * times[f"course: matmul_{way}", n]) for way in ways] for n in (256, 1024)}
    assert recorded == {256: [36, 17], 1024: [147, 285]}
    for took in recorded.values():
        assert all(re.search(rf"\b{number}\b", TEXT) for number in took)


def test_the_share_of_the_peak_that_the_text_quotes_follows_from_the_speed_that_it_cites():
    assert 797.8e12 / specs.get("h100-sxm")["peak_bf16"].si == pytest.approx(0.8, abs=0.01)  # fastcu2024


@pytest.mark.slow
def test_products_are_more_than_99_percent_of_both_models_and_90_at_ten_times_the_price():
    """The cells of "Three disguises", run with the chart's data caught in place of the chart."""
    caught = {}
    silent = {name: lambda *_: None for name in ("im2col", "transformer_block")}
    chart = type("Chart", (), silent | {"shares": caught.update})
    page, space = code_of("04-matmul"), {"disguises": chart, "network": chart}
    first = next(i for i, source in enumerate(page) if source.startswith("import torch\n"))
    drawn = next(i for i, source in enumerate(page) if "disguises.shares(" in source)
    for source in page[first : drawn + 1]:
        exec(compile(source, "04-matmul.md", "exec"), space)
    assert list(caught) == ["transformer", "CNN"]
    for work in caught.values():
        rest = work["everything else"]
        products = sum(work.values()) - rest
        assert products / (products + rest) > 0.99
        assert products / (products + 10 * rest) > 0.90
