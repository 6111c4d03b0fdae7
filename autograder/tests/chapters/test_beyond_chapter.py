"""Chapter 12: its array multiplies, its counts follow from the schedule, its bounds
from functools import cache, partial
from the registry, its numbers from their sources.
"""

import math
import re
from functools import cache, partial

import numpy as np
import pytest
from conftest import ROOT
from page_code import code_of, defined, text_of

import warplab
from warplab.figures import beyond as figures
from warplab.hardware import prices, specs
from warplab.models import vram

BOOK = ROOT / "chapters"
H100 = specs.get("h100-sxm")
TEXT = text_of("12-beyond")
CHIPS = "h100-sxm h200-sxm b200 b300 mi300x mi325x mi355x tpu-v5p tpu-v6e tpu-v7x trainium2 gaudi3".split()


chapter = cache(partial(defined, "12-beyond", np=np, specs=specs, h100=H100))


def run(beginning, **known):
    """The names after running the one cell that contains `beginning`, its figures drawn by nobody."""
    (source,) = [source for source in code_of("12-beyond") if beginning in source]
    drawn = {}
    catcher = type(
        "Figures", (), {"__getattr__": lambda self, name: lambda *args, **kw: drawn.update({name: args})}
    )()
    names = {**chapter(), "warplab": warplab, "figure": catcher, **known}
    exec(compile(source, "12-beyond.md", "exec"), names)
    return names | {"drawn": drawn}


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (7, 3), (16, 64), (64, 8)])
def test_the_array_multiplies_fetches_each_number_once_and_needs_m_plus_2n_minus_2_clocks(n, m):
    rng = np.random.default_rng(n)
    A, W = rng.integers(-128, 128, (m, n), dtype=np.int8), rng.integers(-128, 128, (n, n), dtype=np.int8)
    C, clocks, fetched = chapter()["systolic"](A, W)
    np.testing.assert_array_equal(C, A.astype(int) @ W.astype(int))
    assert (clocks, fetched) == (m + 2 * n - 2, m * n)


@pytest.mark.slow
def test_the_schedule_gives_every_cell_m_clocks_of_work():
    n, m = 6, 4
    busy = sum(
        (chapter()["row_at"](t, n) >= 0) & (chapter()["row_at"](t, n) < m) for t in range(m + 2 * n - 2)
    )
    assert (busy == m).all()
    alt = figures.wave(n, m, chapter()["row_at"], at=(2, 6, 11)).alt
    assert "clock 2: 6 of 36 cells busy" in alt and "clock 11: 6 of 36" in alt


def test_the_numbers_about_the_array():
    macs = 256 * 256 * 0.7e9
    bandwidth, mean = macs / 1350, np.mean([12.3, 9.7, 3.7, 2.8, 86.0, 14.1])  # jouppi2017: ridge, table 3
    derived = f"{bandwidth / 1e9:.0f} GB/s", f"{2 * bandwidth * 200 / 1e12:.1f} TOP/s", f"{mean:.1f} TOP/s"
    for said in ("766", "131,072", "1,048,576", "33.6 million", "12.3", *derived):
        assert said in TEXT


@pytest.mark.slow
def test_the_figure_of_filling_shows_counts_on_the_curve():
    counted = run("counted = {}", rng=np.random.default_rng(1))["counted"]
    for (n, m), share in counted.items():
        assert share == m / (m + 2 * n - 2)
    assert "256 rows through 256 x 256: 33.4%" in figures.filling(counted).alt


def test_an_mi300x_beats_an_h100_on_paper_by_what_the_chapter_says():
    rival = specs.get("mi300x")
    times = [rival[fact].si / H100[fact].si for fact in ("memory_capacity", "memory_bandwidth", "peak_bf16")]
    assert [round(t, 1) for t in times] == [2.4, 1.6, 1.3]


def test_the_warps_kernel_sums_each_warp_and_the_text_in_hip_differs_in_the_lines_that_say_32():
    assert np.array_equal(run("void warp_sums")["out"], np.arange(256.0).reshape(8, 32).sum(1))
    page = (BOOK / "12-beyond.md").read_text(encoding="utf-8")
    cuda_text, hip_text = (
        re.search(r"\{\n    int i = blockIdx.*?\n\}", part, re.S).group(0).splitlines()
        for part in page.split("And in {term}`HIP`")
    )
    changed = [(a, b) for a, b in zip(cuda_text, hip_text, strict=True) if a != b]
    assert len(changed) == 4 and all("warpSize" in b or "__shfl_down(" in b for _, b in changed)
    assert "four lines differ" in TEXT


@pytest.mark.slow
def test_every_ridge_lies_where_the_chapter_says():
    ridges = [specs.get(key)["ridge_bf16"].value for key in CHIPS]
    assert (round(min(ridges)), round(max(ridges))) == (166, 560)
    assert len(CHIPS) == 12 and len({specs.get(key).vendor for key in CHIPS}) == 5
    assert f":devices: {' '.join(CHIPS)} m4-max" in TEXT and "Twelve designs by five makers" in TEXT
    m4 = specs.get("m4-max")
    assert m4["memory_bandwidth"].si / H100["memory_bandwidth"].si == pytest.approx(1 / 6, abs=0.005)
    assert m4["memory_capacity"].si > H100["memory_capacity"].si
    assert "560" in figures.ridges(CHIPS, (4e10, 1e10)).alt
    assert "this machine, measured in fp32: 4" in figures.ridges(CHIPS, (4e10, 1e10)).alt.lower()


def test_bounds_against_an_h100():
    def ratio(key, rows):
        return chapter()["bound"](specs.get(key), rows) / chapter()["bound"](H100, rows)

    assert [round(ratio("tpu-v6e", rows), 2) for rows in (1, 4096)] == [0.49, 0.93]
    assert [round(ratio("h200-sxm", rows), 2) for rows in (1, 4096)] == [1.43, 1]
    # what the figure's caption says
    assert ratio("h200-sxm", 1) > ratio("gaudi3", 1) and ratio("h200-sxm", 4096) < ratio("gaudi3", 4096)
    for rows in (1, 4096):
        ordered = sorted(CHIPS, key=lambda key: ratio(key, rows))
        assert set(ordered[-4:]) == {"mi355x", "b300", "b200", "tpu-v7x"}
    assert chapter()["bound"](H100, 4096) == H100["peak_bf16"].si


def test_machines_whose_weights_stay_on_the_chip():
    weights = 14e9
    bounds = {}
    for key in ("h100-sxm", "m4-max", "groq-lpu", "wse-3"):
        chips = math.ceil(weights / specs.get(key)["memory_capacity"].si)
        bounds[key] = chips, chips * specs.get(key)["memory_bandwidth"].si / weights
    assert bounds["h100-sxm"][0] == 1 and round(bounds["h100-sxm"][1]) == 239
    assert bounds["groq-lpu"][0] == 61 and bounds["groq-lpu"][1] / bounds["h100-sxm"][1] > 1000
    assert bounds["wse-3"][1] > 1e6
    assert bounds["groq-lpu"][1] / 750 == pytest.approx(500, rel=0.1)


def test_heat_and_rent():
    assert 8 * H100["tdp"].si == 5600
    names = run("share = ")
    assert names["share"] == pytest.approx(0.7 * prices.electricity() / prices.cheapest("h100-sxm").gpu_hour)
    assert names["share"] < 0.05  # "hardly"
    assert 23.3 / specs.get("b200")["memory_bandwidth"].value == pytest.approx(3, abs=0.05)


def test_a_board_at_the_edge_stays_below_its_memorys_bound_and_far_below_its_tops(capsys):
    run("measured = {68e9")
    printed = capsys.readouterr().out
    shares = [int(share) for share in re.findall(r"(\d+)%", printed)]
    assert len(shares) == 4 and (min(shares), max(shares)) == (65, 82) and "65 to 82 %" in TEXT
    by_tops = 67e12 / (2 * 8.0e9)
    assert f"{by_tops:,.0f} tokens" in printed


def test_the_heat_of_a_rack_in_air_and_in_water():
    names = run("heat = 120e3")
    assert 72 * specs.get("b200")["tdp"].si < 86.4e3 < names["heat"]
    density, warming = 1.2, 15  # kg/m³, K
    assert names["air"] * density * 1005 * warming == pytest.approx(120_000)
    assert names["air"] / (0.6 * 2) == pytest.approx(5.5, abs=0.05)  # m/s in front of the rack
    assert names["water"] == pytest.approx(1.9, abs=0.05)
    assert names["water"] / 1000 / (math.pi * 0.02**2) == pytest.approx(1.5, abs=0.05)  # m/s in the pipe
    box = 8 * H100["tdp"].si / 1000
    assert [round(box * pue, 1) for pue in (1, 1.54, 1.1)] == [5.6, 8.6, 6.2]


def test_announced_chips_and_the_racks_beside_them():
    b200 = specs.get("b200")
    growth = 22e12 / b200["memory_bandwidth"].si, 4e15 / b200["peak_bf16"].si
    assert [round(times, 1) for times in growth] == [2.9, 1.8]
    reads = [
        specs.get(key)["memory_capacity"].si / specs.get(key)["memory_bandwidth"].si * 1e3 for key in CHIPS
    ]
    assert (round(min(reads)), round(max(reads))) == (21, 43) and "21 to 43 ms" in TEXT


def test_seven_links_together_are_one_nvlink_port():
    assert 7 * 64 == pytest.approx(H100["nvlink_each_way"].value, rel=0.01)


def test_the_carbon_of_a_kilowatt_hour():
    hours, tonnes = 39.3e6, 11_390
    kwh = hours * H100["tdp"].si / 1000
    assert round(kwh / 1e6, 1) == 27.5 and round(tonnes * 1e6 / kwh) == 414


@pytest.mark.slow
def test_the_way_from_a_pixel_to_a_bill():
    picojoules = {"DRAM": 640.0}
    path = run("path = [", weights=14e9, picojoules=picojoules, rent=prices.cheapest("h100-sxm").gpu_hour)[
        "path"
    ]
    numbers = [number for number, _, _ in path]
    assert numbers[:10] == [
        "995 M",
        "132",
        "20 ×",
        "20 ×",
        "1 of 120",
        "16 B",
        "15 ×",
        "2.7 ×",
        "239",
        "1.75",
    ]
    assert numbers[10].startswith("$") and numbers[11] == "173 ×" and len(path) == 12
    assert sum(vram.training_bytes(1).values()) == 16
    assert "995 M a second" in figures.journey(path).alt
    assert [chapter for _, chapter, _ in path] == list(figures.PICTURES)  # each has its picture
    assert figures.journey([*path, path[0]]).alt.startswith("13 chapters")  # one more is drawn, too


def test_the_quiz():
    assert H100["ridge_bf16"].value / 2 == pytest.approx(148, abs=0.5)
    cache = vram.kv_cache_bytes(80, 8192, 1000, 1, groups=8)
    free = H100["memory_capacity"].si - 35e9
    assert math.floor(free / cache) == 137
    assert 2 * 30 / 0.5 == 120 < H100["ridge_bf16"].value < 4 * 74 and 4 * 73 < H100["ridge_bf16"].value
    full = 2 * 70e9 * 137 / H100["peak_bf16"].si, 137 * cache / H100["memory_bandwidth"].si
    assert [round(1e3 * seconds) for seconds in full] == [19, 13]  # products, caches
