"""Chapter 7: its formats are torch's, its predictions the engine's counts, its ratios
the registry's, and its live runs show what it says.
"""

import re
import subprocess
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from conftest import ROOT
from page_code import code_of, text_of

import warplab
from warplab.evidence.measure import records
from warplab.figures import precision as figures
from warplab.hardware import specs

BOOK = ROOT / "chapters"
TEXT = text_of("07-precision")
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


def said(*numbers):
    assert [number for number in numbers if number not in TEXT] == []


@pytest.fixture(scope="module")
def lived():
    """The names that all cells of the chapter bind, run in order; its figures are drawn by nobody."""
    names, threads = {"figure": MagicMock()}, torch.get_num_threads()
    for source in code_of("07-precision"):
        if not any(skipped in source for skipped in ("figures import", "bench(", "measured(")):
            exec(compile(source, "07-precision.md", "exec"), names)
    torch.set_num_threads(threads)
    return names


@pytest.fixture
def printed(printed_in_book):
    return printed_in_book("07-precision")


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in ("FP32", "BF16", "INT8")])
def test_the_figures_list_exactly_the_values_that_torch_has(name):
    width = 16 if name == "FP16" else 8
    codes = torch.arange(2 ** (width - 1), dtype=torch.int32).to(torch.int16 if width == 16 else torch.uint8)
    every = codes.view(DTYPES[name]).double()
    np.testing.assert_array_equal(figures.values(name), every[every.isfinite()].numpy())


def test_the_largest_values_are_torchs():
    for name, dtype in DTYPES.items():
        info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        assert figures.largest(name) == info.max
    assert figures.largest("TF32") == (2 - 2**-10) * 2.0**127 and figures.largest("INT4") == 7
    said("65,504", "448", "57,344")


@pytest.fixture
def explorer(browser, tmp_path):
    """The explorer on a page of its own, and the errors of its console."""
    file, errors = tmp_path / "formats.html", []
    body = figures.explorer()._repr_html_()
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
    values = np.concatenate([figures.values(name) for name in ("FP8 E4M3", "FP8 E5M2")] + [np.arange(130.0)])
    ties = (values[:-1] + values[1:]) / 2
    halves = figures.values("FP16")
    halfway, special = (
        (halves[:-1] + halves[1:])[::89] / 2,
        [65519.9, 65520, 65504, 6e-8, 3e-8, 2.9e-8, 0.1, 0.0],
    )
    return np.concatenate([x, values, ties, -ties, halves[::97], halfway, special])


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(2)
@pytest.mark.browser
@pytest.mark.parametrize("name", ["FP8 E4M3", "FP16", "FP8 E5M2", "BF16"])
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
    text = figures.explorer()._repr_html_()
    assert "http" not in text and text.count("</script>") == 1 and 'role="status"' in text
    assert "needs JavaScript" in text


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
    held, rng = figures.owners(), np.random.default_rng(7)
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
    peaks = pcie["peak_bf16"].si, bf16, sxm["peak_bf16_sparse"].si
    assert [round(peak / 1e12) for peak in peaks] == [756, 989, 1979]
    # the same number for two things
    assert sxm["peak_fp8"].si == pytest.approx(sxm["peak_bf16_sparse"].si, rel=1e-3)
    assert specs.get("v100-sxm2")["tensor_cores"].value == 640


@pytest.mark.slow
def test_what_the_page_prints_is_what_the_text_says(printed):
    fma = [("640", "64"), ("432", "256"), ("528", "512")]
    assert re.findall(r"(\d+) cores, (\d+) FMA a clock", printed) == fma
    both = (f"64 requests, 250 sectors, 2000 FLOP, {threads}" for threads in (960, 640))  # both saxpys
    assert [said for said in both if said not in printed] == []
    assert 'identifier "i" is undefined' in printed
    assert printed.count("0.0999755859375") == 2  # a tenth in FP16, as worked out by hand
    scales = [int(n) for n in re.search(r"log2 of the scale: ([\d ]+)", printed)[1].split()]
    steps = np.diff([34, *scales])  # the scaler backs off, grows, and backs off again
    assert steps[0] == -1 and 1 in steps and -1 in steps[list(steps).index(1) :]
    assert "torch.bfloat16 torch.float32 torch.float32 torch.float32" in printed  # weights and loss: FP32
    assert "exact in INT32: True" in printed
    off = float(re.search(r"against FP32: ([\d.]+)% off", printed)[1])
    assert 0 < off < 3


@pytest.mark.slow
def test_the_runs_of_the_page_end_as_the_text_says(printed):
    assert "torch.float16 inf 0 2048" in printed and "torch.float32 90000 1e-08 2049" in printed
    assert re.search(r"torch.bfloat16 \d+ 1\.\d+e-08 2048", printed)
    assert "5000 x 1: 2048.0" in printed and "5000 x 0.1: 256.0" in printed
    assert float(re.search(r"([\d.]+)% of the sums right", printed)[1]) > 80
    lost = {m[0]: float(m[1]) for m in re.findall(r"(torch\.\w+, scale \d+): ([\d.]+)% lost", printed)}
    assert lost["torch.float16, scale 1"] > 5
    assert lost["torch.bfloat16, scale 1"] == lost["torch.float16, scale 65536"] == 0
    assert "torch.float16 1.0\n" in printed and "torch.bfloat16 1.0\n" in printed  # small updates are lost
    assert f"torch.float32 {1 + 1000 * 2**-12}" in printed
    found = re.findall(r"(\d bits, [^:]+): ([\d.]+)%, twin ([\d.]+)%", printed)
    right = {key.strip(): (float(own), float(twin)) for key, own, twin in found}
    base, twin = map(float, re.search(r"FP32: ([\d.]+)%, twin ([\d.]+)%", printed).groups())
    one, row = right["8 bits, one scale"], right["8 bits, scale a row"]
    assert base == twin and one[0] > base - 2 and min(row) > base - 2 and one[1] < base - 10
    assert max(right["4 bits, one scale"][0], *right["4 bits, scale a row"]) < base
    found = re.findall(r"(nearest|scaled|carried): ([\d.]+)% right, twin ([\d.]+)%", printed)
    right = {name: (float(own), float(twin)) for name, own, twin in found}
    assert min(right["scaled"][1], right["carried"][1]) > right["nearest"][1] + 30
    assert abs(right["scaled"][0] - right["nearest"][0]) < 5
    found = re.findall(r"(\d) bits, (nearest|carried): ([\d.]+)% off, ([\d.]+)% right", printed)
    of = {(int(bits), how): (float(off), float(right)) for bits, how, off, right in found}
    assert len(of) == 4 and all(of[n, "carried"][0] < of[n, "nearest"][0] / 2 for n in (4, 3))
    assert of[3, "carried"][1] > of[3, "nearest"][1] + 15


@pytest.mark.full
def test_the_wmma_kernel_counts_what_was_predicted(lived):
    counted = lived["counted"]
    assert (counted.global_load.requests, counted.global_load.sectors) == (256 * 16 * 2, 256 * 16 * 2 * 16)
    assert counted.shared_load.requests == 0 and counted.flops == 2 * 256**3
    assert counted.flops / counted.global_load.bytes == 8
    assert abs(lived["C"] - lived["exact"]).max() < 1e-4
    tiled = 2048 * 16 * 2, 2048 * 16 * (4 + 4)  # chapter 4: 2,048 warps, 16 rounds
    said(
        f"| {tiled[0]:,} | 8,192 |", f"| {tiled[1]:,} | 131,072 |", f"{256**3 // 32:,} FMA | 4,096 `mma_sync`"
    )


@pytest.mark.full
def test_the_assembler_makes_two_hmma_of_a_product_and_four_loads_of_a_tile(lived, tmp_path):
    from warplab.simt.toolchain.nvrtc import compile_ptx, prepare
    from warplab.simt.toolchain.ptxas import find

    disassembler = Path(find()).with_name("nvdisasm")
    if not disassembler.exists():
        pytest.skip("no nvdisasm beside ptxas: the nvidia-cuda-nvcc wheel has it")
    wmma = next(source for source in code_of("07-precision") if "mma_sync" in source)
    names = {"tiles": lived["tiles"]}
    exec(compile(wmma, "07-precision.md", "exec"), names)
    ptx, _ = compile_ptx(prepare(names["source"], "matmul"), "matmul", "sm_90")
    (tmp_path / "k.ptx").write_text(ptx)
    subprocess.run([find(), "-arch=sm_90", tmp_path / "k.ptx", "-o", tmp_path / "k.cubin"], check=True)
    sass = subprocess.run(
        [disassembler, "-c", tmp_path / "k.cubin"], check=True, capture_output=True, text=True
    ).stdout
    assert len(re.findall(r"\bHMMA\.16816\.F32\b", sass)) == 2 * ptx.count("wmma.mma")
    assert len(re.findall(r"\bLDG\.E\b", sass)) == 4 * ptx.count("wmma.load")


@pytest.mark.full
def test_what_the_text_says_of_its_network_beyond_what_it_prints(lived):
    net = lived["copy"].deepcopy(lived["model"]).bfloat16().float()
    (lived["loss_of"](net, lived["rows"][:256]) / 4096).backward()
    weights_alone = torch.cat([p.grad.flatten() for p in net.parameters()])
    off, whole = ((g - lived["true"]).norm() for g in (weights_alone, lived["gradients"](torch.bfloat16)))
    assert 1 / 2 < off / whole < 1  # "More than half of it comes from rounding the weights"
    for by_row in (False, True):
        q, s = lived["quantise"](lived["w"], by_row)
        assert ((lived["w"] - q * s).abs() <= s / 2 * 1.0001).all() and q.abs().max() <= 127
    # the twin with outliers in its inputs is the same function
    assert lived["right"](lived["loud"]) == pytest.approx(lived["right"](lived["model"]), abs=0.002)


def test_the_answers_of_the_quiz():
    e4m3 = torch.tensor(5.5).to(torch.float8_e4m3fn)
    assert e4m3.view(torch.uint8).item() == 0b0_1001_011 and e4m3.item() == 5.5
    bf16 = torch.tensor(0.0, dtype=torch.bfloat16)
    for _ in range(4096):
        bf16 = bf16 + 0.25
    assert bf16.item() == 64


def test_adam_in_fp16_alone_breaks_as_quiz_6_says():
    from warplab.models import networks as models

    torch.manual_seed(7)
    net, (images, labels) = models.ConvNet().half(), models.pictures(32)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images.half()).float(), labels)
        loss.backward()
        optimizer.step()
    assert loss.isnan()


def test_floats_of_four_and_eight_bits_by_hand_are_the_formats():
    space = {"torch": torch}
    exec(next(source for source in code_of("07-precision") if source.startswith("def to_float")), space)
    below, least = [0.0, 0.5], 1.0  # E2M1: subnormal step 0.5, then 1 and 1.5 times 1, 2, 4
    values = below + [least * power * part for power in (1, 2, 4) for part in (1, 1.5)]
    assert space["e2m1"](torch.linspace(0, 6, 601)).unique().tolist() == values
    eight = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    span = eight[eight > 0].max() / eight[eight > 0].min()
    assert TEXT.count(f"{span:,.0f}") == 1
    numbers = torch.randn(10_000) * torch.logspace(-4, 2, 10_000)
    theirs = numbers.to(torch.float8_e4m3fn).float()
    assert torch.equal(space["e4m3"](numbers), theirs)


def test_a_scale_for_each_16_brings_four_bits_back():
    space = {"torch": torch}
    torch.manual_seed(7)
    for start in ("def to_float", "def blocks"):
        exec(next(source for source in code_of("07-precision") if source.startswith(start)), space)
    clean = torch.arange(1024) != 5
    exact = space["outliers"][:, clean]
    rounded = {name: numbers[:, clean] for name, numbers in space["formats"].items()}
    off = {name: ((found - exact).norm() / exact.norm()).item() for name, found in rounded.items()}
    assert off["E2M1, one scale"] == 1  # all of them rounded to zero
    assert off["NVFP4"] < 0.15 and off["MXFP8"] < 0.03 and off["E4M3, one scale"] < 0.03


@pytest.fixture(scope="module")
def rounding():
    """The chapter's two ways to round a layer's weights."""
    space = {"torch": torch}
    for source in code_of("07-precision"):
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


def test_where_inputs_have_nothing_in_common_there_is_nothing_to_carry(rounding):
    torch.manual_seed(2)
    w, x = torch.randn(8, 16), torch.linalg.qr(torch.randn(64, 16)).Q  # XᵀX is the identity
    (nearest, carried), (nearest_off, carried_off), _ = both_ways(rounding, w, x)
    torch.testing.assert_close(carried, nearest)
    assert nearest_off == pytest.approx(carried_off)


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


def test_where_all_inputs_are_of_a_size_scaling_rounds_to_the_nearest(rounding):
    torch.manual_seed(4)
    w, x = torch.randn(8, 16), 2 * torch.ones(50, 16)
    torch.testing.assert_close(rounding["scaled"](w, x, 4), torch.mul(*rounding["quantise"](w, True, 4)))


@pytest.mark.slow
def test_the_figures_of_published_rates_show_each_source_beside_its_peak():
    """A warp's WMMA without tiles: 11.3 % of 148 TFLOP/s is 17; 75 / 19 = 3.95, and 7689.5 / 6150 = 1.25."""
    rates = figures.eight_bits(warplab.measure("matmul_in_eight_bits")).alt
    assert "WMMA from global memory: 17, 11% of the peak" in rates and "FP8: 224, 76% of the peak" in rates
    training = figures.training(warplab.measure("training_by_format")).alt
    assert "FP32 to FP16: 3.95 times, peaks 8.0" in training
    assert "BF16 to FP8, a scale a tensor: 1.25 times, peaks 2.0" in training


@pytest.mark.slow
def test_our_records_are_as_the_page_reads_them():
    """Shares of the dense peak on the H200 at side 4,096; a training step's gains by width."""
    alt = figures.formats(4096, "NVIDIA H200", "h200-sxm").alt
    share = {name: float(of) for name, of in re.findall(r"([^:;.]+): [\d,]+, ([\d.]+)% of", alt)}
    share = {name.strip(): of for name, of in share.items()}
    assert all(
        66 <= of <= 81 for name, of in share.items() if name.startswith("library") and "INT8" not in name
    )
    assert share["library, INT8"] < 50
    gains = figures.by_width("NVIDIA H200").alt
    assert "TF32 256: 1.03" in gains and "BF16 256: 0.92" in gains and "2,048: 8.91" in gains

    def taken(experiment):
        record = next(r for r in records(experiment) if r.device == "NVIDIA H200")
        return {(p.series, p.x): p.median for p in record.points}

    steps, products = taken("training_by_format"), taken("matmul_by_size")
    for_a_step = [f"{1e3 * steps['bf16', width]:.1f} ms at width {width}" for width in (256, 512)]
    small = products["torch fp32", 256] / products["torch bf16", 256]
    said(*for_a_step, f"only {small:.1f} times as fast", "8.9 times as fast")


def test_from_cuda_cores_to_tensor_cores_is_the_large_step_but_on_the_rtx_4090():
    cards = {key: specs.get(key) for key in ("rtx-4090", "a100-sxm", "h100-sxm")}
    steps = {key: card["peak_fp16"].si / card["peak_fp32"].si for key, card in cards.items()}
    assert steps.pop("rtx-4090") == 2 and min(steps.values()) > 10
