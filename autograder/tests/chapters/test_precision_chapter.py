"""Chapter 7: its formats are torch's, its predictions the engine's counts, its ratios
the registry's, and its live runs show what it says.
"""

import re
from functools import partial

import numpy as np
import page_code
import pytest
import torch
from conftest import ROOT

import warplab
from warplab.hardware import specs

BOOK = ROOT / "chapters"
figures = page_code.figures("precision")
TEXT = page_code.text("07-precision")
DTYPES = {
    "FP32": torch.float32,
    "BF16": torch.bfloat16,
    "FP16": torch.float16,
    "FP8 E4M3": torch.float8_e4m3fn,
    "FP8 E5M2": torch.float8_e5m2,
    "INT8": torch.int8,
}
# one small launch is enough to count, and a kernel taken from a page has no source file
pytestmark = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


cells = partial(page_code.cells, "07-precision")


def said(*numbers):
    assert [number for number in numbers if number not in TEXT] == []


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in ("FP32", "BF16", "INT8")])
def test_the_figures_list_exactly_the_values_that_torch_has(name):
    width = 16 if name == "FP16" else 8
    codes = torch.arange(2 ** (width - 1), dtype=torch.int32).to(torch.int16 if width == 16 else torch.uint8)
    every = codes.view(DTYPES[name]).double()
    np.testing.assert_array_equal(figures().values(name), every[every.isfinite()].numpy())


def test_the_largest_values_are_torchs():
    for name, dtype in DTYPES.items():
        info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        assert figures().largest(name) == info.max
    assert figures().largest("TF32") == (2 - 2**-10) * 2.0**127 and figures().largest("INT4") == 7
    said("65,504", "448", "57,344")


@pytest.fixture
def explorer(browser, tmp_path):
    """The explorer on a page of its own, and the errors of its console."""
    file, errors = tmp_path / "formats.html", []
    body = figures().explorer()._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8><title>formats</title>{body}", encoding="utf-8")
    page = browser.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    yield page
    page.close()
    assert errors == []


def numbers():
    """Doubles that try every rounding: random ones over the range, all halfway points
    of the small formats, and the special ones.
    """
    rng = np.random.default_rng(7)
    x = rng.standard_normal(2000) * 2.0 ** rng.integers(-30, 20, 2000)
    values = np.concatenate(
        [figures().values(name) for name in ("FP8 E4M3", "FP8 E5M2")] + [np.arange(130.0)]
    )
    ties = (values[:-1] + values[1:]) / 2
    halves = figures().values("FP16")
    return np.concatenate(
        [
            x,
            values,
            ties,
            -ties,
            halves[::97],
            (halves[:-1] + halves[1:])[::89] / 2,
            [65519.9, 65520, 65504, 6e-8, 3e-8, 2.9e-8, 0.1, 0.0],
        ]
    )


@pytest.mark.browser
@pytest.mark.parametrize("name", DTYPES)
def test_the_explorers_encoder_gives_torchs_bits(explorer, name):
    x = numbers()
    get = (
        f"(xs) => {{ const c = document.querySelector('.format-explorer').formats; return xs.map((x) => "
        f"c.encode(x, c.table['{name}'])); }}"
    )
    bits = np.array(explorer.evaluate(get, x.tolist()))
    if name == "INT8":
        np.testing.assert_array_equal(bits.astype(np.uint8).view(np.int8), np.clip(np.round(x), -128, 127))
        return
    width = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}[DTYPES[name].itemsize]
    expected = torch.from_numpy(x).to(DTYPES[name]).view(width).long().numpy()
    np.testing.assert_array_equal(bits, expected)


@pytest.mark.browser
@pytest.mark.parametrize("name", ["FP16", "BF16", "FP8 E4M3", "FP8 E5M2"])
def test_the_explorers_decoder_and_neighbours_agree_with_torch_for_every_pattern(explorer, name):
    codes = list(range(2 ** (8 * DTYPES[name].itemsize)))
    get = (
        f"(codes) => {{ const c = document.querySelector('.format-explorer').formats, f = c.table['{name}'];"
        "return codes.map((b) => [c.decode(b, f), c.neighbour(b, f, true)]); }"
    )
    found = explorer.evaluate(get, codes)
    width = torch.uint8 if len(codes) == 256 else torch.int16
    expected = torch.tensor(codes).to(width).view(DTYPES[name]).double().numpy()
    np.testing.assert_array_equal(np.array([np.nan if v is None else v for v, _ in found], float), expected)
    above = {code: up for code, (_, up) in zip(codes, found, strict=True)}
    finite = np.unique(expected[np.isfinite(expected)])
    for code, value in zip(codes, expected, strict=True):
        if np.isfinite(value) and value < finite[-1]:
            assert expected[above[code]] == finite[np.searchsorted(finite, value, side="right")]


@pytest.mark.browser
def test_the_explorer_can_be_used_with_the_keyboard_alone(explorer):
    assert "0x2E66 is 0.0999755859375" in explorer.locator(".status").inner_text()
    bits = explorer.locator(".bits button")
    assert bits.count() == 16 and bits.first.get_attribute("aria-label") == "bit 15: sign"
    bits.first.focus()
    explorer.keyboard.press("Space")
    assert "-0.0999755859375" in explorer.locator(".status").inner_text()
    explorer.keyboard.press("ArrowRight")
    assert (
        explorer.evaluate("document.activeElement.getAttribute('aria-label')") == "bit 14: exponent, worth 16"
    )
    explorer.locator("input").fill("65520")
    assert "0x7C00 is Infinity" in explorer.locator(".status").inner_text()
    explorer.locator("input").fill("three")
    assert "is not a number" in explorer.locator(".status").inner_text()
    explorer.locator("select").select_option("INT4")
    explorer.locator("input").fill("9")
    assert bits.count() == 4 and "INT4 0x7 is 7" in explorer.locator(".status").inner_text()
    assert explorer.locator(".up").is_disabled()


def test_the_explorer_brings_everything_with_it():
    text = figures().explorer()._repr_html_()
    assert (
        "http" not in text
        and text.count("</script>") == 1
        and 'role="status"' in text
        and "needs JavaScript" in text
    )


MMA = """
extern "C" __global__ void product(const unsigned* a, const unsigned* b, float* out)
{
    int lane = threadIdx.x;
    float d[4];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[lane * 4]), "r"(a[lane * 4 + 1]), "r"(a[lane * 4 + 2]), "r"(a[lane * 4 + 3]),
          "r"(b[lane * 2]), "r"(b[lane * 2 + 1]), "f"(0.0f));
    for (int i = 0; i < 4; i++) out[lane * 4 + i] = d[i];
}
"""


def test_the_lanes_of_the_fragment_figure_are_the_engines():
    held, rng = figures().owners(), np.random.default_rng(7)
    a, b = rng.integers(-8, 8, (16, 16)).astype(np.float16), rng.integers(-8, 8, (16, 8)).astype(np.float16)
    # a lane's elements in the manual's order: down within a half of the columns for A,
    # down for B, along rows for C
    order = {"A": lambda place: (place[1] >= 8, place), "B": lambda place: place, "C": lambda place: place}
    places = {
        n: [sorted(map(tuple, np.argwhere(tile == lane)), key=order[n]) for lane in range(32)]
        for n, tile in held.items()
    }
    assert {name: {len(p) for p in each} for name, each in places.items()} == {"A": {8}, "B": {4}, "C": {4}}
    fa = np.array([[a[p] for p in each] for each in places["A"]], np.float16).view(np.uint32)
    fb = np.array([[b[p] for p in each] for each in places["B"]], np.float16).view(np.uint32)
    out = np.zeros((32, 4), np.float32)
    warplab.cuda_kernel(MMA, "product")[1, 32](fa.copy(), fb.copy(), out)
    c = np.zeros((16, 8))
    for each, sums in zip(places["C"], out, strict=True):
        for place, value in zip(each, sums, strict=True):
            c[place] = value
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))
    assert {r for r, _ in places["C"][9]} == {2, 10}
    said("in rows 2 and 10", "32 numbers, and holds eight")


def test_the_prose_quotes_the_registrys_peaks_and_ratios():
    sxm, pcie = specs.get("h100-sxm"), specs.get("h100-pcie")
    bf16 = sxm["peak_bf16"].si
    assert round(bf16 / sxm["peak_fp32"].si) == 15 and round(bf16 / sxm["peak_tf32"].si, 1) == 2.0
    assert round(sxm["peak_fp8"].si / sxm["peak_fp32"].si) == 30
    assert round(sxm["peak_bf16_sparse"].si / pcie["peak_bf16"].si, 1) == 2.6
    assert (round(pcie["peak_bf16"].value), round(bf16 / 1e12), round(sxm["peak_bf16_sparse"].value)) == (
        756,
        989,
        1979,
    )
    assert sxm["peak_fp8"].si == pytest.approx(
        sxm["peak_bf16_sparse"].si, rel=1e-3
    )  # the same number for two things
    assert specs.get("v100-sxm2")["tensor_cores"].value == 640


@pytest.mark.parametrize(
    "found",
    [
        r"V100 SXM2: 640 cores, 64 FMA a clock",
        r"A100 SXM: 432 cores, 256 FMA a clock",
        r"H100 SXM: 528 cores, 512 FMA a clock",
        r"64 requests, 250 sectors, 2000 FLOP, 960 instructions\n64 requests, 250 sectors, 2000 FLOP, 640",
        r"torch.float32 90000 1e-08 2049\ntorch.bfloat16 \d+ 1\.\d+e-08 2048\ntorch.float16 inf 0 2048",
        r"5000 x 1: 2048.0, .*\n5000 x 0.1: 256.0",
        r"torch.float16 1.0\ntorch.bfloat16 1.0\ntorch.float32 1.244140625",  # 1 + 1000 / 4096
        r"torch.bfloat16 torch.float32 torch.float32 torch.float32",  # autocast keeps weights and loss
        r"0.0999755859375 0.0999755859375",  # (1 + 614/1024) / 16, by hand and by torch
        r"exact in INT32: True",
        r"log2 of the scale: 33 .*\b33 32",  # backs off from 34, grows, and backs off again
    ],
)
def test_the_page_prints_what_its_prose_says(found):
    assert re.search(found, page_code.printed("07-precision"))


def test_training_in_the_chapter_learns_and_fp16_loses_gradients_that_scaling_saves():
    printed = page_code.printed("07-precision")
    assert float(re.search(r"([\d.]+)% of the sums right", printed)[1]) > 80
    lost = {kind: float(off) for kind, off in re.findall(r"torch\.(\w+, scale \d+): ([\d.]+)% lost", printed)}
    assert lost["float16, scale 1"] > 5 and lost["bfloat16, scale 1"] == lost["float16, scale 65536"] == 0


def test_rounded_weights_answer_where_the_page_says_so():
    printed = page_code.printed("07-precision")
    pairs = re.findall(
        r"(FP32|\d bits, [\w ]+?|nearest|scaled|carried) *: ([\d.]+)%[^,]*, twin ([\d.]+)%", printed
    )
    right = {name: (float(own), float(twin)) for name, own, twin in pairs}
    base, twin = right["FP32"]
    one, row = right["8 bits, one scale"], right["8 bits, scale a row"]
    assert base == twin and one[0] > base - 2 and min(row) > base - 2 and one[1] < base - 10
    assert max(right["4 bits, one scale"][0], *right["4 bits, scale a row"]) < base
    assert min(right["scaled"][1], right["carried"][1]) > right["nearest"][1] + 30
    off = re.findall(r"(\d) bits, (nearest|carried): ([\d.]+)% off, ([\d.]+)% right", printed)
    off = {(bits, how): (float(error), float(answers)) for bits, how, error, answers in off}
    assert len(off) == 4 and all(off[n, "carried"][0] < off[n, "nearest"][0] / 2 for n in "43")
    assert off["3", "carried"][1] > off["3", "nearest"][1] + 15


def test_the_wmma_kernel_of_chapter_and_experiment_counts_what_was_predicted():
    from warplab.evidence.experiments.precision import WMMA

    a, b = np.random.default_rng(7).standard_normal((2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    p = warplab.profile(warplab.cuda_kernel(WMMA, "matmul")[(4, 4), 32], a, b, c, 64)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), atol=1e-4)
    # 16 tiles, 4 steps, a load of A and of B in each: of 16 rows and so 16 sectors
    assert (p.global_load.requests, p.global_load.sectors) == (16 * 4 * 2, 16 * 4 * 2 * 16)
    assert p.shared_load.requests == 0 and p.flops == 2 * 64**3
    tiles, warps = 256, 2048  # at 256: 16 steps; chapter 4's tiled product has 2,048 warps and 16 rounds
    said(f"{tiles * 16 * 2:,} requests", f"{tiles * 16 * 2 * 16:,}", f"{tiles * 16:,} `mma_sync`")
    said(f"{warps * 16 * 2:,} requests", f"{warps * 16 * 8:,} sectors", f"{256**3 // 32:,} warp-wide")


def test_the_answers_of_the_quiz():
    e4m3 = torch.tensor(5.5).to(torch.float8_e4m3fn)
    assert e4m3.view(torch.uint8).item() == 0b0_1001_011 and e4m3.item() == 5.5
    bf16 = torch.tensor(0.0, dtype=torch.bfloat16)
    for _ in range(4096):
        bf16 = bf16 + 0.25
    assert bf16.item() == 64
    assert np.float16(1e-8) == 0 and np.float16(2.0**-25) == 0


def test_floats_of_four_and_eight_bits_by_hand_are_the_formats():
    space = {"torch": torch}
    exec(next(source for source in cells() if source.startswith("def to_float")), space)
    below, least = [0.0, 0.5], 1.0  # E2M1: subnormal step 0.5, then 1 and 1.5 times 1, 2, 4
    values = below + [least * power * part for power in (1, 2, 4) for part in (1, 1.5)]
    assert space["e2m1"](torch.linspace(0, 6, 601)).unique().tolist() == values
    numbers = torch.randn(10_000) * torch.logspace(-4, 2, 10_000)
    theirs = numbers.to(torch.float8_e4m3fn).float()
    assert torch.equal(space["e4m3"](numbers), theirs)


def test_a_scale_for_each_16_brings_four_bits_back():
    space = {"torch": torch}
    torch.manual_seed(7)
    for start in ("def to_float", "def blocks"):
        exec(next(source for source in cells() if source.startswith(start)), space)
    clean = torch.arange(1024) != 5
    exact = space["outliers"][:, clean]
    off = {
        name: ((rounded[:, clean] - exact).norm() / exact.norm()).item()
        for name, rounded in space["formats"].items()
    }
    assert off["E2M1, one scale"] == 1  # all of them rounded to zero
    assert off["NVFP4"] < 0.15 and off["MXFP8"] < 0.03 and off["E4M3, one scale"] < 0.03


@pytest.fixture(scope="module")
def rounding():
    """The chapter's two ways to round a layer's weights."""
    space = {"torch": torch}
    for source in cells():
        if source.startswith(("def quantise(", "def compensated(", "def scaled(")):
            exec(source.split("\nw = ")[0], space)
    return space


def both_ways(rounding, w, x, bits=3):
    """(to the nearest, compensated): the weights, and how far their outputs are off."""
    q, s = rounding["quantise"](w, True, bits)
    ways = q * s, rounding["compensated"](w, x, bits)
    exact = w @ x.T
    return ways, [((way @ x.T - exact).norm() / exact.norm()).item() for way in ways], s


def test_compensated_weights_stay_on_the_grid_and_more_than_halve_the_output_error_of_common_inputs(rounding):
    torch.manual_seed(1)
    w, x = torch.randn(32, 64), torch.randn(2000, 8) @ torch.randn(8, 64) + 0.1 * torch.randn(2000, 64)
    (_, carried), (nearest_off, carried_off), s = both_ways(rounding, w, x)
    steps = carried / s
    torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-4)
    assert steps.abs().max() < 3.5 and carried_off < nearest_off / 2


def test_scaling_by_the_inputs_saves_small_weights_that_meet_large_inputs(rounding):
    """Row maximum 1, so a step of 1/7 in four bits: 1/32 rounds to zero unless its column is scaled up.

    Of an output's error the lost column is about 0.77, the other 63 together 0.04 * 63**0.5 = 0.33.
    """
    torch.manual_seed(3)
    w, x = torch.rand(32, 64) * 0.5 + 0.5, torch.randn(500, 64)
    w[:, 5], x[:, 5] = w[:, 5] / 32, x[:, 5] * 32
    q, s = rounding["quantise"](w, True, 4)
    saved = rounding["scaled"](w, x, 4)
    assert not q[:, 5].any() and saved[:, 5].min() > 0
    assert (x @ (saved - w).T).norm() < (x @ (q * s - w).T).norm() / 2
