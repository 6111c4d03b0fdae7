"""What cannot be drawn costs itself, neither a page nor the points; and no page is endless."""

import copy
import resource

import numpy as np
import pytest
from grading import make_course, notebook

from autograder.judge.judge import LONGEST, CellVerdict, Verdict, legible
from autograder.report import page
from autograder.report.page import feedback_page
from warplab.plots import failures
from warplab.tasks import feedback
from warplab.tasks.drawn import values
from warplab.tasks.feedback import UNDRAWN, Table
from warplab.tasks.rubric import Line, Report

INDEX, PLACE = {"thread": [0, 0, 0], "block": [1, 0, 0]}, {"file": 7, "line": 3, "source": "tile[t] = x[i]"}
ACTS = [INDEX | PLACE | {"does": does, "what": "tile[0]"} for does in ("writes", "reads")]
LANES = [{"file": 7, "line": 3, "warps": 10, "threads": 200, "source": "for k in range(n):"}]
WANT = np.arange(40.0)
DRAWINGS = {
    "one": {"kind": "threads", "acts": ACTS[:1]},
    "two": {"kind": "threads", "acts": ACTS},
    "lanes": {"kind": "lanes", "acts": LANES},
    "values": values("out", WANT + 1, WANT, WANT > 3),
    "engines": {"kind": "engines", "spans": [["in", 0, 0.0, 1e-3, "copy"]], "more": False},
    "messages": {
        "kind": "messages",
        "size": 2,
        "messages": [[0, 1, 8, 1, 2], [1, 0, 8, 3, None]],
        "more": False,
    },
}
ACCESS = {
    "line": 3,
    "file": 7,
    "space": "global",
    "kind": "read",
    "array": "x",
    "width": 4,
    "lanes": [0, 1],
    "offsets": [0, 128],
    "requests": 2,
    "counted": 8,
    "wasted": 4,
    "of": 9.0,
    "unit": "sectors",
    "source": "y[i] = x[2 * i]",
}


def shown(drawing, access=ACCESS):
    """A table of a row with this drawing and this access."""
    counters = {"small": {"global_load.sectors": 9.0}}
    row = Line(
        "a",
        "structure",
        "Few sectors",
        2.0,
        5.0,
        "partial",
        "9 sectors",
        (),
        counters,
        access,
        (),
        (drawing,),
    )
    return Table(Report("ps01/x", (row,)))


def damaged(value):
    """Copies of nested data, each with one field gone, None, or of another type."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        for other in (None, "x", [], -1):
            copied = copy.copy(value)
            copied[key] = other
            yield copied
        if isinstance(value, dict):
            yield {name: one for name, one in value.items() if name != key}
        for deeper in damaged(inner):
            copied = copy.copy(value)
            copied[key] = deeper
            yield copied


@pytest.mark.parametrize("kind", DRAWINGS)
def test_no_field_of_a_drawing_is_needed_for_the_points(kind):
    whole = shown(DRAWINGS[kind])._repr_html_()
    assert "2 / 5" in whole and UNDRAWN not in whole and "<pre>" not in whole
    for drawing in damaged(DRAWINGS[kind]):
        table = shown(drawing)
        html = table._repr_html_()
        assert "2 / 5" in html and "9 sectors" in html and "<pre>" not in html, drawing
        assert "2 / 5" in repr(table)


def test_no_field_of_a_lines_record_is_needed_for_the_points():
    for access in damaged(ACCESS):
        table = shown(DRAWINGS["two"], access)
        assert "2 / 5" in table._repr_html_() and "2 / 5" in repr(table), access


def test_a_thread_without_the_text_of_its_line_is_drawn_without_it():
    acts = [{key: value for key, value in act.items() if key != "source"} for act in ACTS]
    html = shown({"kind": "threads", "acts": acts})._repr_html_()
    assert "they may come in either order" in html and "tile[0]" in html


def test_a_broken_picture_and_a_broken_template_are_told_and_the_points_stand(monkeypatch):
    def fails(*_, **__):
        raise KeyError("router")

    monkeypatch.setattr(failures, "svg_of", fails)
    html = shown(DRAWINGS["messages"])._repr_html_()
    assert UNDRAWN in html and "2 / 5" in html and "</table>" in html
    monkeypatch.setattr(feedback, "render", fails)
    assert "2 / 5" in shown(DRAWINGS["two"])._repr_html_()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("undrawable") / "course")[1]


def page_of(course, **sources):
    cells = {
        spec.grade_id: CellVerdict(spec.grade_id, 1.0, spec.points, "partial") for spec in course.graded()
    }
    record = {"student": "ada", "status": "graded", "reason": "", "notes": [], "isolation": "here"}
    verdict = Verdict("graded", "", cells, "here", 1.0)
    return feedback_page(course, "ada", record, notebook(course, **sources), verdict)


def test_a_page_that_cannot_be_made_is_a_list_of_points(course, monkeypatch):
    def fails(*_, **__):
        raise KeyError("page")

    monkeypatch.setattr(page, "render", fails)
    told = page_of(course)
    assert UNDRAWN in told and "ada" in told and told.count(": 1.0 of ") == len(course.graded())


def test_a_page_has_a_size_whatever_is_handed_in(course):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = [spec.grade_id for spec in course.cells.values() if spec.kind != "grade"]
    for text in ("\n" * 190_000, "x" * 190_000, "<&" * 95_000):
        html = page_of(course, **dict.fromkeys(names, text))
        assert len(html) < 300_000 * len(names) and "... and " in html
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    assert len(legible("\n" * 190_000)) == LONGEST + 4
