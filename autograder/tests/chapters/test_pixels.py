"""Chapter 1: its kernel does what the page says, its numbers are right, and its shader
paints the kernel's moon.
"""

import math
import re
from functools import cache, partial

import numpy as np
import pytest
from conftest import ROOT
from page_code import defined, text_of

import warplab
from warplab.figures import pixels as figures
from warplab.hardware import specs

BOOK = ROOT / "chapters"


TEXT = text_of("01-pixels")
chapter = cache(partial(defined, "01-pixels"))


@pytest.mark.parametrize("shape", [(270, 480), (37, 53), (1, 1)])
def test_loop_numpy_and_kernel_paint_the_same_moon(shape):
    book = chapter()
    loop, kernel = np.full(shape, -1, np.float32), np.full(shape, -1, np.float32)
    book["moon_loop"](loop)
    grid = -(-shape[1] // 16), -(-shape[0] // 16)
    book["moon"][grid, (16, 16)](kernel, np.float32(0.45 * shape[0]))
    np.testing.assert_allclose(book["moon_numpy"](*shape), loop, atol=1e-5)
    np.testing.assert_allclose(kernel, loop, atol=1e-5)


def test_the_kernel_does_six_operations_in_the_sky_and_twelve_on_the_moon():
    book, image = chapter(), np.zeros((270, 480), np.float32)
    counts = warplab.profile(book["moon"][(30, 17), (16, 16)], image, np.float32(0.45 * 270))
    x, y = (np.arange(480) - 240) / 121.5, (np.arange(270) - 135)[:, None] / 121.5
    moon = int((x * x + y * y < 1).sum())
    assert counts.flops == 6 * (image.size - moon) + 12 * moon
    # 480 float32 are 60 whole sectors: none is cut
    assert counts.global_store.bytes == image.nbytes == 518_400


def test_the_unchecked_kernel_names_the_first_pixel_past_the_end():
    book, image = chapter(), np.zeros((270, 480), np.float32)
    named = r"paint_white.*thread \(0, 14, 0\) of block \(0, 16, 0\).*element \[270, 0\].*\[269, 479\]"
    with pytest.raises(warplab.OutOfBounds, match=named):
        warplab.profile(book["paint_white"][(30, 17), (16, 16)], image)


def test_the_numbers_in_the_prose():
    blocks = math.ceil(1000 / 16) * math.ceil(700 / 16)
    for number in (
        3840 * 2160 * 120 // 10**6,
        blocks,
        blocks * 256,
        blocks * 256 - 700_000,
        320 * 180,
        1024 * 4096,
        33 * 33,
    ):
        assert f"{number:,}" in TEXT
    bandwidth, picture = specs.get("h100-sxm")["memory_bandwidth"].si, 7680 * 4320 * 4
    assert round(bandwidth / (3840 * 2160 * 4 * 120), -2) == 800
    least = f"take at least {picture / bandwidth * 1e6:.1f} µs"
    assert f"{picture / 1e6:.0f} MB at {bandwidth / 1e12} TB/s {least}" in TEXT


@pytest.mark.slow
def test_the_grid_in_the_figure_has_98_idle_threads():
    assert "98 of the 384" in figures.grid_over_image().caption


@pytest.mark.slow
def test_the_rim_of_the_warp_map_is_what_the_engine_sees_diverge():
    sky, moon, both = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) warps:", figures.warp_map().body)
    )
    assert sky + moon + both == 480 * 270 // 32
    book, image = chapter(), np.zeros((270, 480), np.float32)
    counts = warplab.profile(book["moon"][(30, 17), (16, 16)], image, np.float32(0.45 * 270))
    assert counts.divergent_branches == both == 246
    assert "the 246 warps at the rim of the map" in TEXT


@pytest.mark.slow
def test_a_gpu_that_nobody_measured_is_not_given_a_time():
    text = figures.race(4.0, 0.09, 0.015).body
    assert "CUDA kernel, a GPU" in text and "not recorded yet" in text and "engine" not in text


def test_the_shader_uses_the_kernels_formula_and_sun():
    shader, script = (
        (ROOT / "autograder/warplab/figures" / name).read_text(encoding="utf-8")
        for name in ("moon.wgsl", "moon.js")
    )
    assert "1 - x * x - y * y" in shader and "0.48 * y" in shader and "0.45 * frame.y" in shader
    angle = float(re.search(r"2 \* Math.PI - ([\d.]+)", script)[1])
    reach = math.hypot(0.64, 0.6)
    assert "Math.hypot(0.64, 0.6)" in script
    np.testing.assert_allclose((-reach * math.sin(angle), reach * math.cos(angle)), (-0.64, 0.6), atol=0.01)


def test_the_live_moon_brings_everything_with_it_and_keeps_its_still_picture():
    text = figures.live_moon(np.zeros((9, 16), np.uint8))._repr_html_()
    assert "http" not in text and text.count("</script>") == 1
    assert re.search(r'<img src="data:image/png;base64,[^"]+" alt="[^"]{20,}"', text)
    assert "<canvas hidden" in text and 'role="status"' in text


@pytest.mark.browser
def test_without_webgpu_the_still_picture_stays_and_the_console_has_no_error(browser, tmp_path):
    file = tmp_path / "moon.html"
    body = figures.live_moon(np.zeros((9, 16), np.uint8))._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8><title>moon</title>{body}", encoding="utf-8")
    page, errors = browser.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("!document.querySelector('.status').textContent.includes('Looking')")
    assert page.locator("img").is_visible() and page.locator("canvas").is_hidden()
    assert page.locator(".status").inner_text().startswith("Still picture, computed by the kernel above")
    page.close()
    assert errors == []
