"""Figures follow the page's theme, name themselves to a screen reader, and come out the same every time."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from warplab import plots

WHITE, DARK = "#ffffff", "#14181e"  # the two page backgrounds of the book's theme
ALT = "A falling line. It starts at 3 and ends at 1."


def line(colour=None):
    figure, ax = plots.new(6.4, 2)
    ax.plot([0, 1], [3, 1], marker="o", color=colour or plots.PALETTE["blue"], markerfacecolor=plots.PAPER)
    ax.text(0.2, 2, "falling")
    ax.text(0.2, 1.5, "code()", family="DejaVu Sans Mono")
    ax.grid()
    return figure


def svg(figure=None, alt=ALT):
    return plots.show(figure or line(), alt=alt).body


def attribute(name, text):
    return re.search(rf'{name}="([^"]*)"', text)[1]


def ids(text):
    return re.findall(r'\bid="([^"]+)"', text)


def contrast(a, b):
    """WCAG 2 contrast ratio of two #rrggbb colours."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_a_drawing_follows_the_page_and_brings_no_style_of_its_own():
    """Ink is the page's text colour, paper its background, gridlines are faint; text is text in its fonts."""
    text = svg()
    assert "currentColor" in text and "--pst-color-background" in text and "#ffffff" not in text
    assert plots.INK not in text and plots.PAPER not in text
    assert "stroke: currentColor; stroke-opacity: 0.15" in text
    assert plots.PALETTE["orange"] in svg(line(plots.PALETTE["orange"]))
    assert not re.search(r"<style|<metadata|<\?xml|DOCTYPE", text)
    assert ">falling</text>" in text and "DejaVu" not in text
    assert "system-ui" in text and "ui-monospace" in text


@pytest.mark.parametrize("alt", ["", "   ", None])
def test_alt_text_is_required(alt):
    with pytest.raises(ValueError, match="alt text"):
        plots.show(line(), alt=alt)
    with pytest.raises(ValueError, match="alt text"):
        plots.picture(np.zeros((2, 2), np.uint8), alt=alt)


def test_alt_text_becomes_title_and_description_that_label_the_image():
    root = ElementTree.fromstring(svg())
    title, desc = root[0], root[1]
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert (title.text, desc.text) == ("A falling line", "It starts at 3 and ends at 1.")


@pytest.mark.slow
def test_a_drawing_comes_out_the_same_and_two_share_no_id_and_every_reference_resolves():
    assert svg() == svg()
    one, two = svg(line()), svg(line(plots.PALETTE["green"]))
    assert not set(ids(one)) & set(ids(two)) and not set(ids(one)) & set(ids(svg(alt="Another. One.")))
    for text in (one, two):
        assert len(ids(text)) == len(set(ids(text)))
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', text)) <= set(ids(text))


def test_a_phone_scales_the_figure_down():
    text = svg()
    assert attribute("viewBox", text) == "0 0 460.8 144" and attribute(" width", text) == "614.4"
    assert "max-width: 100%; height: auto" in attribute(" style", text)
    assert not re.search(r"<svg[^>]* height=", text)


def test_html_has_one_figure_and_an_escaped_caption_with_code():
    text = plots.show(line(), alt=ALT, caption="`x < 3` & falling")._repr_html_()
    assert text.count("<figure") == text.count("<svg") == 1
    assert "<figcaption><code>x &lt; 3</code> &amp; falling</figcaption>" in text


def test_figure_saves_as_svg_with_both_themes_and_as_png(tmp_path):
    figure = plots.show(line(), alt=ALT)
    figure.save(tmp_path / "a.svg")
    figure.save(tmp_path / "a.png")
    assert "prefers-color-scheme:dark" in (tmp_path / "a.svg").read_text()
    ElementTree.parse(tmp_path / "a.svg")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        figure.save(tmp_path / "a.pdf")


def test_picture_is_one_data_uri_with_alt_text_that_scales():
    text = plots.picture(np.zeros((4, 6, 3), np.uint8), alt='six "by" four', zoom=10)._repr_html_()
    assert text.count("data:image/png;base64,") == 1 and 'alt="six &quot;by&quot; four"' in text
    assert 'width="60" height="40"' in text and "max-width: 100%" in text and "pixelated" in text


def test_picture_refuses_floats_and_says_what_to_do():
    with pytest.raises(ValueError, match="astype"):
        plots.picture(np.zeros((4, 4)), alt="grey")


@pytest.mark.parametrize("name", plots.PALETTE)
@pytest.mark.parametrize("page", [WHITE, DARK])
def test_every_palette_colour_shows_on_white_and_on_dark(name, page):
    assert contrast(plots.PALETTE[name], page) >= 3


def test_no_two_kinds_of_evidence_share_a_marker():
    styles = [*plots.MARKERS.values(), plots.COUNTED]
    assert len({(style["marker"], style["markerfacecolor"]) for style in styles}) == len(plots.MARKERS) + 1
    assert plots.COUNTED["marker"] not in {style["marker"] for style in plots.MARKERS.values()}


def test_times_marks_each_row_by_its_kind_and_says_what_was_not_recorded():
    rows = [
        plots.Time("loop", 90.0, "extrapolated"),
        plots.Time("NumPy", 0.25),
        plots.Time("CUDA", None, "missing"),
    ]
    text = svg(plots.times(rows, budget=1 / 120, budget_label="one frame"))
    told = "1.5 min; 250 ms; not recorded yet; one frame; extrapolated from; live: measured"
    assert [words for words in told.split("; ") if words not in text] == []
    assert "recorded on another machine" not in text


@pytest.mark.parametrize("arguments", [("x", 1.0, "simulated"), ("x", None, "live"), ("x", 1.0, "missing")])
def test_a_time_without_honest_evidence_is_refused(arguments):
    with pytest.raises(ValueError, match="^x: "):
        plots.Time(*arguments)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5e-9, "5 ns"),
        (1.5e-5, "15 µs"),
        (4.2e-3, "4.2 ms"),
        (0.9999, "1 s"),
        (90.0, "1.5 min"),
        (1500.0, "25 min"),
    ],
)
def test_durations_read_as_a_person_would_say_them(seconds, text):
    assert plots.duration(seconds) == text


def test_tiles_outline_every_block_of_the_smallest_covering_grid():
    text = svg(plots.tiles(np.ones((13, 22, 3)) * 0.5, (8, 8)))
    for x in range(3):
        for y in range(2):
            assert f">{x}, {y}</text>" in text
    assert ">3, 0</text>" not in text and ">0, 2</text>" not in text
