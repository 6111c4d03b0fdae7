"""The explorables' models give what the Python gives that the chapters show: random settings of each."""

import importlib
from functools import cache

import numpy as np
import pytest
from conftest import ROOT
from page_code import defined
from test_explorables import ALL, loaded, loaded_as_in_its_chapter, models

from warplab.hardware import specs
from warplab.hardware.target import Target
from warplab.models import vram
from warplab.simt.toolchain.ptxas import blocks_per_sm

pytestmark = pytest.mark.browser
BOOK = ROOT / "chapters"
MANY = 40


@cache
def figures(name="explored"):
    return importlib.import_module(f"warplab.figures.{name}")


def functions(page):
    """The functions of a chapter, by name."""
    bandwidth = specs.get("h100-sxm")["memory_bandwidth"].si
    return defined(page, np=np, vram=vram, bandwidth=bandwidth, weights=7e9)


def chosen(seed, **ranges):
    """MANY settings: of each name one of its values."""
    rng = np.random.default_rng(seed)
    return [
        {name: rng.choice(np.array(values, object)) for name, values in ranges.items()} for _ in range(MANY)
    ]


@pytest.fixture
def page(browser):
    """Opens the explorable's page, and holds it to a console without errors."""
    opened = []

    def open_(name, data=None):
        opened.append(loaded(browser, name, data={name: data} if data else None))
        return opened[-1]

    yield open_
    for each in opened:
        assert each.problems == []
        each.close()


def test_the_ring_moves_and_sums_what_the_chapters_figure_does_and_takes_its_formulas_time(page):
    data, steps, time = (
        figures().links(),
        figures("many_gpus").ring_steps,
        functions("10-many-gpus")["ring_time"],
    )
    settings = chosen(1, ranks=range(2, 9), step=range(15), link=list(data["links"]["bandwidth"]),
                      size=["0.000001", "0.001", "1", "14"])  # fmt: skip
    for setting in settings:
        setting["step"] = min(setting["step"], 2 * (setting["ranks"] - 1))
    for setting, got in zip(settings, models(page("ring", data), "ring", settings, data), strict=True):
        n, step = setting["ranks"], setting["step"]
        counts, fresh = steps(n)[step]
        assert got["counts"] == counts and {((a + 1) % n, part) for a, part in got["moves"]} == fresh
        assert got["seconds"] == pytest.approx(
            time(n, float(setting["size"]) * 1e9, data["links"]["bandwidth"][setting["link"]])
        )
        assert got["sent"] == pytest.approx(step / n) and got["all"] == pytest.approx(2 * (n - 1) / n)


def test_the_desk_holds_the_bytes_of_vram(page):
    data = figures().desks()
    settings = chosen(2, model=list(data["models"]), recipe=list(vram.RECIPES), card=list(data["cards"]),
                      ranks=range(1, 9), tokens=range(9, 18), stage=list("0123"),
                      kept=["all", "inputs"])  # fmt: skip
    for setting, got in zip(settings, models(page("desk", data), "desk", settings, data), strict=True):
        shape = data["models"][setting["model"]]
        parts = vram.zero_bytes(
            shape["parameters"], setting["ranks"], int(setting["stage"]), setting["recipe"]
        )
        parts["activations"] = vram.activation_bytes(
            shape["layers"], shape["width"], 1, 2 ** setting["tokens"],
            number=4 if setting["recipe"].startswith("FP32") else 2,
            segments=None if setting["kept"] == "all" else shape["layers"],
        )  # fmt: skip
        assert got["parts"] == pytest.approx(parts)
        assert got["total"] == pytest.approx(sum(parts.values()))
        assert got["size"] == specs.get(setting["card"])["memory_capacity"].si


def test_the_server_answers_when_the_chapters_does(page):
    data, chapter = figures().requests(), functions("09-train-infer")
    gaps = np.random.default_rng(9).exponential(1.0, 4000)
    np.testing.assert_allclose(data["gaps"], gaps, atol=0.0005)
    settings = chosen(3, limit=list("1248") + ["16", "32", "64"], load=np.arange(0.25, 24, 0.25).tolist())
    answers = page("serving", data).evaluate(
        """([settings, data]) => settings.map((setting) => {
            const { p50, p95, wall, left, batches } = explorables.serving.model(setting, data);
            return { p50, p95, wall, left, last: batches.at(-1).finish, number: batches.length };
        })""",
        [settings, data],
    )
    for setting, got in zip(settings, answers, strict=True):
        limit, arrivals = int(setting["limit"]), np.cumsum(np.array(data["gaps"]) / setting["load"])
        finish = chapter["serve"](arrivals, limit)
        p50, p95 = np.percentile(finish - arrivals, (50, 95))
        assert (got["p50"], got["p95"]) == (pytest.approx(p50), pytest.approx(p95))
        assert got["wall"] == pytest.approx(limit / chapter["answer_time"](limit))
        assert got["last"] == pytest.approx(finish[-1]) and got["number"] == len(np.unique(finish))
        drawn = figures().batches(arrivals, limit, chapter["answer_time"])
        starts = np.repeat([b[2] for b in drawn], [b[1] - b[0] for b in drawn])
        assert got["left"] == np.sum(starts > arrivals[-1])
        np.testing.assert_allclose(np.repeat([b[3] for b in drawn], [b[1] - b[0] for b in drawn]), finish)


@pytest.mark.full
def test_the_scheduler_issues_in_the_cycles_of_the_chapters(page):
    data = figures().scheduler()
    share = functions("02-cores")["share_of_busy_cycles"]
    settings = chosen(4, warps=range(1, 17), loads=range(1, 9), arithmetic=range(101))
    for setting, got in zip(settings, models(page("latency", data), "latency", settings, data), strict=True):
        assert got["share"] == share(**setting)
        assert got["share"] <= got["law"] * 1.03 + 8 / 700  # the last round may be cut before its wait
        assert got["underWay"] == 4 * 128 * setting["warps"] * setting["loads"]


def test_the_areas_of_amdahls_picture_give_back_the_serial_share(page):
    settings = chosen(5, serial=range(51), workers=range(11), question=["same", "grows"])
    fitted = functions("03-parallel")["serial_share"]
    for setting, got in zip(settings, models(page("amdahl"), "amdahl", settings), strict=True):
        n, share = 2 ** setting["workers"], setting["serial"] / 100
        work = got["time"] * n * (1 - got["idle"])  # of all workers, less what idles
        if setting["question"] == "grows":
            assert got["time"] == pytest.approx(1) and got["speedup"] == pytest.approx(work)
            continue
        assert work == pytest.approx(1) and got["speedup"] == pytest.approx(1 / got["time"])
        if n > 1:
            assert fitted(got["speedup"], n) == pytest.approx(share, abs=1e-12)


def test_an_sm_takes_the_blocks_that_the_profiler_says(page):
    data = figures().limits()
    settings = chosen(6, arch=specs.archs(), threads=range(32, 1025, 32), registers=range(16, 256),
                      shared=range(228))  # fmt: skip
    for setting, got in zip(
        settings, models(page("occupancy", data), "occupancy", settings, data), strict=True
    ):
        limit = Target.of(setting["arch"]).limits
        fits = blocks_per_sm(setting["registers"], 1024 * setting["shared"], setting["threads"], limit)
        assert got["fits"] == fits and got["blocks"] == min(fits.values())
        assert got["occupancy"] == min(fits.values()) * setting["threads"] / 32 / limit.max_warps_per_sm


def test_what_can_be_chosen_is_what_python_knows(page):
    def options(name, control, data):
        return page(name, data).evaluate(
            "([name, control]) => explorables[name].controls.find((c) => c.name === control)"
            ".options.map(([v]) => v)",
            [name, control],
        )

    desks = figures().desks()
    assert options("desk", "recipe", desks) == sorted(
        vram.RECIPES, key=options("desk", "recipe", desks).index
    )
    assert set(options("desk", "card", desks)) == set(desks["cards"])
    assert set(options("desk", "model", desks)) == set(desks["models"])
    assert set(options("occupancy", "arch", figures().limits())) == set(specs.archs())
    assert set(options("ring", "link", figures().links())) == set(figures().links()["links"]["bandwidth"])


def test_what_the_chapters_say_of_the_pictures_is_what_they_show(page):
    desks = figures().desks()
    seven = {"model": "llama-7b", "recipe": "mixed, Adam", "card": "h100-sxm", "tokens": 11, "kept": "all"}
    full, two, seventy = models(page("desk", desks), "desk", [
        seven | {"ranks": 8, "stage": "0"}, seven | {"ranks": 2, "stage": "1"},
        seven | {"model": "llama-70b", "ranks": 8, "stage": "3"}], desks)  # fmt: skip
    assert full["total"] > 80e9 >= two["total"]
    assert seventy["total"] - seventy["parts"]["activations"] == pytest.approx(140e9)
    (crowd,) = models(page("amdahl"), "amdahl", [{"serial": 10, "workers": 10, "question": "same"}])
    assert round(100 * crowd["idle"]) == 99
    limits = figures().limits()
    at = {"arch": "sm_90", "threads": 256, "shared": 0}
    few, more = models(
        page("occupancy", limits), "occupancy", [at | {"registers": r} for r in (32, 33)], limits
    )
    assert few["resident"] - more["resident"] == few["most"] // 4


def figure_page(browser, made):
    """A page with a figure that brings its own script."""
    page = browser.new_page(viewport={"width": 700, "height": 800})
    page.set_content(made._repr_html_())
    return page


def test_the_number_lines_have_the_values_that_the_format_has_there(browser):
    precision = figures("precision")
    rng = np.random.default_rng(8)
    page = figure_page(browser, precision.explorer())
    for name in ("FP8 E4M3", "FP8 E5M2", "INT8", "INT4", "FP16"):
        positive = precision.values(name)
        own = np.unique(
            np.concatenate([-positive, positive] + ([[-(positive[-1] + 1)]] if "INT" in name else []))
        )
        centres = rng.choice(own[1:-1], 30) * rng.uniform(0.9, 1.1, 30)
        windows = [(c - abs(c) / 4 - 0.01, c + abs(c) / 4 + 0.01) for c in centres]
        ticks = page.evaluate(
            "([name, windows]) => { const f = document.querySelector('figure').formats;"
            "return windows.map(([low, high]) => f.between(low, high, f.table[name], 100000)); }",
            [name, windows],
        )
        for (low, high), found in zip(windows, ticks, strict=True):
            expected = own[(own >= low) & (own <= high)]
            np.testing.assert_array_equal(np.unique(found), expected, err_msg=f"{name} {low} {high}")
    page.close()


def test_the_calculators_cards_are_as_wide_as_their_memory_and_training_as_its_bytes(browser):
    fit = figures("fit")
    page = figure_page(browser, fit.calculator())
    drawn = page.evaluate(
        "[...document.querySelectorAll('figure svg rect')]"
        ".map((rect) => ['fill', 'width', 'height'].map((name) => rect.getAttribute(name)))"
    )
    rims = [float(width) - 2 for fill, width, _ in drawn if fill == "none"]
    fills = [float(width) for fill, width, height in drawn if fill != "none" and height == "20"]
    sizes = sorted(fit.cards())
    assert rims == pytest.approx(2 * [rims[0] * size / sizes[0] for size in sizes])
    training = 112e9 + vram.activation_bytes(32, 4096, 32, 2048)
    running = 14e9 + vram.kv_cache_bytes(32, 4096, 2048)
    assert sum(fills) / rims[0] * sizes[0] * 1e9 == pytest.approx(3 * (training + running))
    page.close()


RANDOM_WALK = """(name) => {
    const { controls, figures: [live] } = explorables[name], outside = [];
    const data = JSON.parse(document.querySelector("script.explorable-data")?.textContent ?? "{}");
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let i = 0; i < 12; i++) {
        for (const control of controls) {
            const edge = (which) => explorables.limit(control, which, live.state, data);
            const { options = [], kind } = control;
            live.set(control.name, kind === "range" ? edge("min") + random() * (edge("max") - edge("min"))
                : options[Math.floor(random() * options.length)][0]);
        }
        const svg = document.querySelector(".explorable-stage svg"), box = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll("text")) {
            const { left, right, top, bottom } = text.getBoundingClientRect();
            if (Math.min(left - box.left, box.right - right, top - box.top, box.bottom - bottom) < -2) {
                outside.push(text.textContent);
            }
        }
        const said = document.querySelector(".explorable-said").textContent;
        if (/NaN|undefined|Infinity/.test(svg.outerHTML + said)) outside.push(JSON.stringify(live.state));
    }
    return outside;
}"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", [360, 820])
@pytest.mark.parametrize("name", ALL)
def test_in_random_settings_every_label_is_inside_its_picture_and_is_a_number(browser, name, width):
    page = loaded_as_in_its_chapter(browser, name, viewport={"width": width, "height": 900})
    assert page.evaluate(RANDOM_WALK, name) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.problems == []
    page.close()
