"""The book's explorables in a real browser: what their scripts compute is what the engine counts."""

import functools
import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from numba import cuda, float32

import warplab
from warplab.figures import stills
from warplab.plots.palette import PALETTE

SCRIPTS = ROOT / "chapters/_static/explorables"
MOST_BYTES = 40_000
ALL = sorted(path.stem for path in SCRIPTS.glob("*.js") if path.stem != "explorable")
DIRECTIVE = re.compile(r"^`{3}\{explorable\} (\w+)\n((?::\w+: .*\n)*)", re.MULTILINE)
TESTS = sorted(Path(__file__).parent.glob("test_explorable*.py"))
OPTIONS = {  # of each explorable, what its chapter says of the picture for paper and of the script's data
    name: dict(re.findall(r"^:(\w+): (.*)$", options, re.MULTILINE))
    for page in sorted((ROOT / "chapters").glob("*.md"))
    for name, options in DIRECTIVE.findall(page.read_text(encoding="utf-8"))
}
FIGURE = """<figure class="explorable" id="explorable-{name}" data-explorable="{name}">
<p class="explorable-question">A question?</p><div class="explorable-still">On paper.</div>{data}
<figcaption><p>Look.</p></figcaption></figure>"""


def loaded(browser, *names, data=None, address="http://book.test/page.html", **context):
    """A page with the figures of these explorables and their scripts, as the book has them; `data`
    (name to what the directive embeds). What the page complains of fails the test that asks
    `page.problems`.
    """
    embedded = '<script type="application/json" class="explorable-data">{}</script>'
    figures = "".join(
        FIGURE.format(name=name, data=embedded.format(json.dumps(data[name])) if name in (data or {}) else "")
        for name in names
    )
    styles = "".join(
        f"<style>{(SCRIPTS.parent / sheet).read_text(encoding='utf-8')}</style>"
        for sheet in ("course.css", "explorables/explorable.css")
    )
    scripts = "".join(
        f"<script>{(SCRIPTS / name).with_suffix('.js').read_text(encoding='utf-8')}</script>"
        for name in ("explorable", *names)
    )
    text = (
        '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>t</title>'
        f'{styles}<body class="bd-article"><main><h1>A page</h1>{figures}</main>{scripts}'
    )
    page = browser.new_page(**context)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.goto(address)
    page.wait_for_function("!document.querySelector('figure.explorable:not([data-near])')")
    return page


def made(name, option):
    """What the function returns that the chapter names as the explorable's still or data; None if none."""
    module, _, function = OPTIONS[name].get(option, "").rpartition(".")
    return getattr(importlib.import_module(f"warplab.figures.{module}"), function)() if module else None


def loaded_as_in_its_chapter(browser, name, **context):
    data = made(name, "data")
    return loaded(browser, name, data={name: data} if data else None, **context)


def models(page, name, settings, data=None):
    """What the explorable's model says of each setting."""
    return page.evaluate(
        "([name, settings, data]) => settings.map((setting) => explorables[name].model(setting, data))",
        [name, settings, data],
    )


def test_every_explorable_stands_in_a_chapter_and_its_model_is_held_to_python():
    assert sorted(OPTIONS) == ALL
    tests = "".join(path.read_text(encoding="utf-8") for path in TESTS)
    held = re.findall(r'"(\w+)", settings|explorables\.(\w+)\.model\(setting', tests)
    missing = set(ALL) - {name for pair in held for name in pair}
    assert not missing, f"test_explorable_models.py compares no random settings of {sorted(missing)}"


def random_settings(how_many, **choices):
    random = np.random.default_rng(0)
    return [{name: random.choice(values).item() for name, values in choices.items()} for _ in range(how_many)]


@cuda.jit
def copy_strided(x, out, stride, offset):
    i = cuda.grid(1)
    out[i] = x[i * stride + offset]


@pytest.mark.browser
def test_the_sectors_of_a_load_are_those_that_the_engine_counts(browser):
    settings = random_settings(
        60, stride=range(33), offset=range(32), type=["int8", "float16", "float32", "float64"]
    )
    told = models(loaded(browser, "access"), "access", settings)
    for setting, said in zip(settings, told, strict=True):
        dtype = np.dtype(setting["type"]).str.replace("f", "i")  # the same size; numba has no plain float16
        x, out = np.zeros(1100, dtype), np.zeros(32, dtype)
        trace = warplab.step(copy_strided[1, 32], x, out, setting["stride"], setting["offset"])
        request = next(a for s in trace.steps for a in s.accesses if a.name == "x")
        assert said["places"] == list(request.offsets), setting
        assert (len(said["sectors"]), said["fewest"]) == request.cost, setting


TAKE = """extern __shared__ float tile[];
__global__ void take(float* out, int words, int number, int column) {
    int lane = threadIdx.x;
    for (int i = lane; i < 32 * words; i += 32) tile[i] = i;
    __syncthreads();
    out[lane] = column ? tile[lane * words + number] : tile[number * words + lane];
}"""


@pytest.mark.browser
def test_the_wavefronts_of_a_column_or_a_row_are_those_that_the_engine_counts(browser):
    settings = random_settings(40, width=range(32, 41), number=range(32), read=["column", "row"])
    told = models(loaded(browser, "banks"), "banks", settings)
    kernel = warplab.cuda_kernel(TAKE, "take")
    for setting, said in zip(settings, told, strict=True):
        out, width = np.zeros(32, np.float32), setting["width"]
        launch = kernel[1, 32, 0, 4 * 32 * width]
        trace = warplab.step(launch, out, width, setting["number"], int(setting["read"] == "column"))
        request = [a for s in trace.steps for a in s.accesses if a.space == "shared"][-1]
        assert request.kind == "read" and list(out) == said["wanted"]
        assert [offset // 4 for offset in request.offsets] == said["wanted"], setting
        assert said["wavefronts"] == request.cost[0] == said["conflicts"] + 1, setting


def product(block, patch, tiled):
    """Chapter 4's kernels, for any block and patch."""

    @cuda.jit
    def naive(A, B, C):
        col, row = cuda.grid(2)
        acc = np.float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc

    side = block * patch

    @cuda.jit
    def tile(A, B, C):
        a_tile, b_tile = cuda.shared.array((side, block), float32), cuda.shared.array((block, side), float32)
        acc = cuda.local.array((patch, patch), float32)
        acc[:] = 0
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = side * cuda.blockIdx.x + tx, side * cuda.blockIdx.y + ty
        for k0 in range(0, A.shape[1], block):
            for i in range(0, side, block):
                a_tile[ty + i, tx] = A[row + i, k0 + tx]
                b_tile[ty, tx + i] = B[k0 + ty, col + i]
            cuda.syncthreads()
            for k in range(block):
                for i in range(patch):
                    for j in range(patch):
                        acc[i, j] += a_tile[ty + block * i, k] * b_tile[k, tx + block * j]
            cuda.syncthreads()
        for i in range(patch):
            for j in range(patch):
                C[row + block * i, col + block * j] = acc[i, j]

    return tile if tiled else naive


@functools.cache
def counted(block, patch, tiled, side, steps):
    """(sectors of loads, shared loads, FLOP for each byte at L1, L2 and memory) on the engine."""
    A, B = np.ones((side, steps), np.float32), np.ones((steps, side), np.float32)
    C = np.zeros((side, side), np.float32)
    grid = side // (block * patch if tiled else block)
    launch = compiled(block, patch, tiled)[(grid, grid), (block, block)]
    p = warplab.profile(launch, A, B, C, caches="h100-sxm")
    assert (steps == C).all()
    requests = p.shared_load.requests + p.shared_store.requests  # bank conflicts are left out
    moved = {
        "l1": 128 * (p.global_load.passes + p.global_store.passes + requests),
        "l2": p.caches.l2_bytes,
        "memory": p.footprint.touched,
    }
    places = {level: p.flops / amount for level, amount in moved.items()}
    return p.global_load.sectors, p.shared_load.requests, places


compiled = functools.cache(product)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("how_many", [6, pytest.param(100, marks=pytest.mark.full)])
def test_the_race_of_the_tiles_is_what_the_engine_counts(browser, how_many):
    settings = random_settings(how_many, block=[8, 16, 32], patch=[1, 2, 4], step=range(8, 129, 8))
    roof = stills.roof() | {"side": 128}
    told = models(loaded(browser, "tiles", data={"tiles": roof}), "tiles", settings, roof)
    for setting, said in zip(settings, told, strict=True):
        block, patch, step = setting["block"], setting["patch"], setting["step"]
        rounds = -(-step // block) * block  # what is begun is fetched whole
        for name, kernel in (("naive", (1, False)), ("tile", (1, True)), ("patch", (patch, True))):
            length = rounds if kernel[1] else step
            sectors, shared, _ = counted(block, *kernel, 128, length)
            _, all_shared, places = counted(block, *kernel, 128, 128)
            kernel = said["kernels"][name]
            assert kernel["sectors"] == sectors, (setting, name)
            assert kernel["bytes"] == 32 * sectors
            assert kernel["shared"] * length == shared * step, (setting, name)
            assert kernel["reads"] == pytest.approx(all_shared / (128**3 / 32))
            for level, off in (("l1", 1e-6), ("l2", 0.1), ("memory", 1e-6)):  # L2's bytes are modelled
                assert kernel["places"][level] == pytest.approx(places[level], rel=off), (setting, name)


@pytest.mark.slow
def test_the_still_picture_of_the_race_says_what_the_engine_counts():
    for kernel in ((1, False), (1, True), (4, True)):
        sectors, _, _ = counted(16, *kernel, 128, 128)
        assert stills.loaded(128, 128, 16, kernel[1], kernel[0]) == 32 * sectors


@pytest.mark.slow
def test_a_patch_lifts_its_kernel_fourfold_and_a_wider_block_the_first_most():
    at_l1 = {
        (b, *k): counted(b, *k, 128, 128)[2]["l1"]
        for b in (8, 32)
        for k in ((1, False), (1, True), (4, True))
    }
    patch = [at_l1[block, 4, True] / at_l1[block, 1, True] for block in (8, 32)]
    wider = [at_l1[32, *kernel] / at_l1[8, *kernel] for kernel in ((1, False), (1, True), (4, True))]
    assert patch == pytest.approx([4, 4], rel=0.05) and wider == pytest.approx([2.5, 1.5, 1.5], rel=0.05)


@pytest.mark.browser
def test_the_setting_stands_in_the_address_and_beside_other_parameters_and_anchors(browser):
    page = loaded(
        browser, "access", "banks", address="http://book.test/page.html?q=1&banks.width=36#explorable-banks"
    )
    state = "name => explorables[name].figures[0].state"
    assert page.evaluate(state, "banks")["width"] == 36
    page.evaluate("explorables.access.figures[0].set('stride', 8)")
    page.wait_for_function("location.search.includes('access.stride=8')")
    assert page.evaluate("location.search + location.hash") == (
        "?q=1&banks.width=36&access.stride=8#explorable-banks"
    )
    page.evaluate("explorables.access.figures[0].set('stride', 1)")  # the default needs no word
    page.wait_for_function("!location.search.includes('access')")
    assert not page.problems


@pytest.mark.sampled(2)
@pytest.mark.browser
@pytest.mark.parametrize("address", ["stride=1e999", "stride=x", "stride=-3", "type=<b>", "stride=2.4"])
def test_a_setting_that_no_control_allows_becomes_one_that_it_does(browser, address):
    page = loaded(browser, "access", address=f"http://book.test/?access.{address}")
    state = page.evaluate("explorables.access.figures[0].state")
    assert state["type"] == "float32" and 0 <= state["stride"] <= 32 and state["stride"] % 1 == 0
    assert not page.problems


@pytest.mark.browser
@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("name", ALL)
def test_every_control_works_by_keyboard_and_nothing_is_wider_than_the_page(browser, name, width):
    page = loaded_as_in_its_chapter(browser, name, viewport={"width": width, "height": 800})
    figure = page.locator("figure.explorable")
    assert figure.locator(".explorable-still").is_hidden()
    assert figure.locator("svg[role=img]").get_attribute("aria-label") == (
        figure.locator(".explorable-said").inner_text()
    )
    seen = {figure.locator(".explorable-said").inner_text()}
    for control in page.evaluate(
        "name => explorables[name].controls.map(({ name, kind }) => [name, kind])", name
    ):
        field = f"#{name}-{control[0]}" if control[1] != "choice" else f"[name={name}-{control[0]}]:checked"
        first = page.evaluate("field => document.querySelector(field).selectedIndex === 0", field)
        away = "ArrowDown" if first else "ArrowUp"
        key = {"range": "ArrowRight", "select": away, "choice": "ArrowLeft"}[control[1]]
        before = page.evaluate("name => explorables[name].figures[0].state", name)[control[0]]
        figure.locator(field).focus()
        page.keyboard.press(key)
        after = page.evaluate("name => explorables[name].figures[0].state", name)[control[0]]
        assert before != after, control
        seen.add(figure.locator(".explorable-said").inner_text())
    assert len(seen) > 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('figure.explorable svg text')]"
        ".map((text) => Number(text.getAttribute('font-size')))"
    )
    assert min(sizes) >= 12
    page.wait_for_function("document.querySelector('.explorable-live').textContent")
    assert not page.problems


@pytest.mark.browser
def test_without_scripts_and_when_a_script_fails_the_still_picture_stands(browser):
    page = loaded(browser, "tiles")  # without the data that it needs
    assert page.problems
    assert page.locator(".explorable-still").is_visible()
    assert not page.locator(".explorable-controls").count()


@pytest.mark.browser
def test_on_paper_the_picture_and_its_sentence_stay_and_the_controls_go(browser):
    page = loaded(browser, "banks")
    page.emulate_media(media="print")
    assert page.locator("figure.explorable svg").is_visible()
    assert page.locator(".explorable-said").is_visible()
    assert page.locator(".explorable-controls").is_hidden() and page.locator(".explorable-tools").is_hidden()


@pytest.mark.browser
def test_the_script_has_the_colours_of_the_palette(browser):
    assert loaded(browser, "access").evaluate("explorables.COLOURS") == PALETTE


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_still_picture_has_something_to_read_aloud(name):
    assert "aria-label" in made(name, "still").body
