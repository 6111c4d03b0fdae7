"""Pictures of failures: small, with a text for those who cannot see them; and when the last hint opens."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

from warplab.plots.failures import svg_of
from warplab.tasks import progress
from warplab.tasks.drawn import COLUMNS, ROWS, values
from warplab.tasks.feedback import Table, report_on
from warplab.tasks.rubric import Line, Report

GRID = ((3, 3, 1), (16, 16, 1))
DOTS = "{http://www.w3.org/2000/svg}"


def drawn(shape, where, launch=()):
    want = np.random.default_rng(1).random(shape)
    got, wrong = want.copy(), np.zeros(shape, bool)
    got[where], wrong[where] = np.nan, True
    return values("out", got, want, wrong, launch)


def test_one_wrong_column_of_a_large_array_is_not_lost_in_the_picture():
    drawing = drawn((1000, 2000), np.s_[:, 0])
    assert (len(drawing["wrong"]), len(drawing["wrong"][0])) == (ROWS, COLUMNS)
    assert all(row[0] == "f" and set(row[1:]) == {"0"} for row in drawing["wrong"])


def test_what_came_and_what_was_expected_have_one_scale_and_no_number_has_its_own_sign():
    drawing = drawn((8, 8), np.s_[0, 0])
    assert drawing["got"][0][0] == "." and drawing["got"][1:] == drawing["expected"][1:]


def test_block_edges_are_drawn_where_the_launch_covers_the_array():
    picture, told = svg_of(drawn((40, 48), np.s_[32:, 32:], GRID))
    assert told.endswith("orange marks what is wrong, lines are the edges of blocks.")
    assert len(ET.fromstring(picture).findall(f"{DOTS}line")) == 4  # at 16 and 32, in both directions
    assert "<line" not in svg_of(drawn((40, 48), np.s_[32:, 32:]))[0]


@pytest.mark.parametrize(("shape", "ends"), [((1000,), "[0] [999]"), ((1, 57), "[0, 0] [0, 56]")])
def test_a_strip_says_where_it_begins_and_ends(shape, ends):
    picture, _ = svg_of(drawn(shape, np.s_[..., 3:]))
    texts = [text.text for text in ET.fromstring(picture).findall(f"{DOTS}text")]
    assert " ".join(texts[-2:]) == ends


def test_a_short_row_is_drawn_number_by_number():
    want, got = np.array([4.0, 4, 2, 2, 2, 0]), np.array([4, 2, 2, np.nan, 99, 0])
    drawing = values("replicas", got, want, ~np.isclose(got, want))
    # a quarter of the range lies on either side
    assert drawing["curve"]["expected"] == [83, 83, 50, 50, 50, 17]
    assert drawing["curve"]["got"] == [83, 50, 50, None, 100, 17] and drawing["curve"]["range"] == ["0", "4"]
    picture, told = svg_of(drawing)
    colours = [dot.get("fill") for dot in ET.fromstring(picture).findall(f"{DOTS}circle")]
    assert len(colours) == 6 and len(set(colours)) == 3 and colours[3] == "none"
    assert "hollow is no number" in told and "lies further out" in told
    assert values("out", got[:5], want[:5], got[:5] != want[:5]) is None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=2), st.integers(0, 7))
def test_a_picture_of_any_array_is_small_and_has_a_text_and_no_script(shape, seed):
    wrong = np.random.default_rng(seed).random(shape) < 0.5
    wrong.flat[0] = True
    noise = np.random.default_rng(seed).normal(size=shape)
    drawing = values("out", noise, noise + wrong, wrong)
    if drawing is None:
        assert wrong.size < 16
        return
    picture, told = svg_of(drawing)
    root = ET.fromstring(picture)
    assert root.get("role") == "img" and f"{int(wrong.sum()):,} of" in root.get("aria-label")
    assert len(picture) < 40_000 and told and "script" not in picture and "nan" not in picture


@pytest.mark.parametrize("shape", [(40, 50), (12,)], ids=["image", "curve"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 0.0])
@pytest.mark.filterwarnings("error")
def test_no_value_is_too_odd_to_be_drawn(value, shape):
    """A student's array, and what is expected, may hold anything; the judge draws it."""
    got = np.full(shape, value)
    got[::2], got[2::3] = -value, 0.0
    ramp = np.arange(float(got.size)).reshape(shape)
    for want in (np.zeros(shape), got[::-1].copy(), np.full(shape, np.nan), ramp):
        with np.errstate(all="ignore"):
            drawing = values("out", got, want, np.ones(shape, bool))
        picture = svg_of(drawing)[0]
        assert picture.startswith("<svg") and "nan" not in picture.replace("range", "")
        json.dumps(drawing, allow_nan=False)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float16])
def test_arrays_of_every_dtype_are_drawn(kind):
    got = np.arange(256).reshape(16, 16).astype(kind)
    drawing = values("out", got, got, got.astype(bool))
    assert len(svg_of(drawing)[0]) < 20_000


def test_a_name_with_markup_is_text():
    drawing = drawn((8, 8), np.s_[0]) | {"name": "<script>"}
    assert "<script" not in svg_of(drawing)[0]


def test_the_engines_of_a_device_have_a_row_each():
    spans = [["in", 1, 0.0, 1e-3, "in"], ["compute", 1, 1e-3, 2e-3, "launch"], ["out", 2, 3e-3, 1e-3, "out"]]
    picture, told = svg_of({"kind": "engines", "spans": spans, "more": False})
    assert told.endswith("Busy: copy in 25%, compute 50%, copy out 25%.")
    boxes = [box for box in ET.fromstring(picture).findall(f"{DOTS}rect") if box.get("fill-opacity") == "1"]
    starts = [float(box.get("x")) for box in boxes]
    assert starts == sorted(starts) and len(boxes) == 3


def test_a_message_that_nobody_receives_is_dashed():
    rows = [[0, 1, 8, 1, 2], [1, 0, 8, 3, None], [0, 1, 0, None, 4]]
    picture, told = svg_of({"kind": "messages", "size": 2, "messages": rows, "more": False})
    assert told == (
        "Messages between 2 ranks, time downwards: 1 arrived; dashed: 1 send and 1 receive whose other half "
        "never came."
    )
    assert picture.count("stroke-dasharray") == 2
    picture, _ = svg_of({"kind": "messages", "size": 3, "messages": [[2, 0, 8, 0, None]], "more": False})
    (line,) = (one for one in ET.fromstring(picture).findall(f"{DOTS}line") if one.get("stroke-dasharray"))
    end = float(line.get("x2"))  # on its way, at no rank; the picture is 360 wide
    assert min(abs(end - 360 * (rank + 0.5) / 3) for rank in range(3)) > 20


@cuda.jit
def swapped(rgb, out):
    row, col = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = 0.299 * rgb[row, col, 0] + 0.587 * rgb[row, col, 1] + 0.114 * rgb[row, col, 2]


def test_a_wrong_image_is_drawn_in_the_table_and_kept_in_the_report():
    report = report_on("ps01/grayscale", swapped)
    assert "every column from 64 on" in report.lines[0].reason
    kinds = [drawing["kind"] for drawing in report.lines[0].drawings]
    assert kinds == ["values"] and report.lines[0].drawings[0]["block"] == [16, 16]
    again = Report(report.task, tuple(Line(**line) for line in report.as_dict()["lines"]))
    html = Table(again)._repr_html_()
    assert html == Table(report)._repr_html_() and "Left what came" in html


def test_the_last_hint_opens_after_a_second_changed_attempt():
    line = Line("k", "correctness", "Row", 0.0, 2.0, "lost", "wrong", ("where", "idea", "nearly the answer."))
    report = Report("ps99/opening", (line,))
    assert progress.changed_attempts(report, "first") == 1
    assert progress.changed_attempts(report, "first") == 1
    assert "nearly the answer." not in Table(report, again=False)._repr_html_()
    assert "opens after another attempt with changed code" in Table(report, again=False)._repr_html_()
    assert progress.changed_attempts(report, "second") == 2
    assert "nearly the answer." in Table(report, again=True)._repr_html_()


def test_a_right_attempt_opens_nothing():
    right = Report("ps99/right", (Line("k", "correctness", "Row", 2.0, 2.0, "full"),))
    assert progress.changed_attempts(right, "first") == progress.changed_attempts(right, "second") == 0
