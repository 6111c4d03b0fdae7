"""A figure is drawn for a column of the book and once more for a phone, by one function."""

import json
import re
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from warplab import plots
from warplab.evidence.measure import shown_without_running
from warplab.plots.figure import LETTER
from warplab.plots.measured import measured


@plots.responsive
def line(label="an axis", columns=1):
    figure, axes = plots.new(plots.COLUMN, 3, columns=columns)
    for ax in figure.axes:
        ax.plot([0, 1], [0, 1], label="a line")
        ax.set_xlabel(label)
    return plots.show(figure, alt="A line.", caption="It rises.")


def width(svg):
    return float(re.search(r'<svg[^>]*? width="([\d.]+)"', svg)[1])


def test_a_notebook_sees_the_wide_drawing_and_on_a_phone_the_narrow_one():
    text = line()._repr_html_()
    assert (
        "svg.wide + svg.narrow { display: block !important }"
        in re.search(r"<style>@media.*?</style>", text)[0]
    )
    wide, narrow = re.findall(r"<svg[^>]*>", text)
    assert 'class="wide"' in wide and "display: block" in wide
    assert 'class="narrow"' in narrow and "display: none" in narrow
    assert text.count("<figcaption>") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (900, "wide")])
def test_without_the_books_style_sheet_one_drawing_is_seen(browser, width, shown):
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.set_content(line()._repr_html_())
    seen = [name for name in ("wide", "narrow") if page.locator(f"svg.{name}").is_visible()]
    page.close()
    assert seen == [shown]


def test_letters_of_the_narrow_drawing_are_as_large_and_the_drawing_is_narrower():
    figure = line()
    # inches times 96: 7.6 and 4.2
    assert width(figure.body) == pytest.approx(729.6) and width(figure.narrow.body) == pytest.approx(403.2)
    sizes = [
        re.findall(r"font: ([\d.]+)px|font-size: ([\d.]+)px", body)
        for body in (figure.body, figure.narrow.body)
    ]
    assert set(sizes[0]) == set(sizes[1]) != set()


def test_the_two_drawings_share_no_id():
    figure = line()
    one, two = (set(re.findall(r'\bid="([^"]+)"', body)) for body in (figure.body, figure.narrow.body))
    assert one and two and not one & two


def test_two_plots_side_by_side_come_to_stand_one_above_the_other():
    figure = line(columns=2)
    shape = [tuple(map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', body).groups()))
             for body in (figure.body, figure.narrow.body)]  # fmt: skip
    assert shape[0][0] > shape[0][1] and shape[1][1] > shape[1][0]


def test_words_along_an_axis_break_on_a_phone_before_they_leave_the_drawing():
    said = "FLOP for each byte that a kernel asks of memory, counted on PTX and on nothing else"
    assert len(said) * LETTER > plots.PHONE
    figure = line(said)
    assert f">{said}</text>" in figure.body and f">{said}</text>" not in figure.narrow.body


@pytest.mark.parametrize(("words", "columns"), [(["one", "two", "three"], 3), (["a" * 60, "b" * 60], 1)])
def test_a_legend_has_as_many_columns_as_the_drawing_has_room_for(words, columns):
    figure, ax = plots.new(plots.COLUMN, 2)
    for word in words:
        ax.plot([0, 1], [0, 1], label=word)
    plots.legend(figure)
    assert figure.legends[0]._ncols == columns


def test_the_figure_is_called_by_the_functions_name_and_says_its_evidence():
    figure = line()
    figure.evidence = ("live", "theory")
    assert 'data-name="line" data-evidence="live theory"' in figure._repr_html_()


def test_after_a_mistake_in_the_narrow_drawing_the_next_figure_is_wide_again():
    @plots.responsive
    def fails_on_a_phone():
        if plots.on_phone():
            raise ZeroDivisionError
        return line()

    with pytest.raises(ZeroDivisionError):
        fails_on_a_phone()
    assert not plots.on_phone()


@pytest.mark.slow
def test_the_narrow_drawing_of_measurements_tells_the_lab_its_own_axes():
    figure = measured(shown_without_running("latency"))
    wide, narrow = (json.loads(drawing.data["axes"]) for drawing in (figure, figure.narrow))
    assert wide["box"] != narrow["box"] and (wide["x"], wide["per"]) == (narrow["x"], narrow["per"])
    assert '<svg class="narrow" data-measured="latency" data-axes=' in figure._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy_bandwidth", "matmul_by_size", "reduction", "rooflines", "softmax"])
def test_the_name_of_a_peak_covers_no_point(name):
    wide = measured(shown_without_running(name).own)
    for drawing in (wide.drawing, wide.narrow.drawing):
        (ax,) = drawing.axes
        drawing.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.texts]
        points = [
            at
            for line in ax.lines
            for at in line.get_transform().transform(line.get_xydata())
            if line.get_marker() not in ("None", "")
        ]
        assert boxes and points and not any(box.padded(2).contains(*at) for box in boxes for at in points)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["bias_and_gelu", "random_reads", "reduction", "softmax", "training_by_format"]
)
def test_the_numbers_along_an_axis_stand_apart_on_a_phone(name):
    drawing = measured(shown_without_running(name).own).narrow.drawing
    drawing.draw_without_rendering()
    (ax,) = drawing.axes
    low, high = ax.get_xlim()
    labels = [text for text in ax.get_xticklabels() if low <= text.get_position()[0] <= high]
    boxes = sorted((text.get_window_extent() for text in labels if text.get_text()), key=lambda box: box.x0)
    assert len(boxes) > 2 and all(left.x1 + 3 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.slow
def test_names_stand_at_the_ends_of_their_lines_where_each_has_room():
    """PyTorch's FP16 ends on BF16: with it, and on a phone, the names stay in the legend."""
    own = shown_without_running("matmul_by_size").own
    some = ((e, tuple(p for p in e.points if p.series != "torch fp16")) for e in own.evidence)
    apart = replace(own, evidence=tuple(replace(e, points=points) for e, points in some))
    for shown, in_legend in ((measured(apart), False), (measured(apart).narrow, True), (measured(own), True)):
        drawing = shown.drawing
        drawing.draw_without_rendering()
        (ax,), (legend,) = drawing.axes, drawing.legends
        named = [text for text in ax.texts if text.get_text() == "naive product"]
        assert ("naive product" in [text.get_text() for text in legend.get_texts()]) == in_legend
        assert len(named) == (0 if in_legend else 1)
        boxes = [text.get_window_extent() for text in ax.texts]
        assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))
