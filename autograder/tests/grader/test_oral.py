"""The oral sheet: questions about a student's own lines, the same on every run; their text is no markup."""

import time

import pytest
from corpus_files import SOLUTIONS
from grading import enter

from autograder.layout import load_assignment
from autograder.oral.sheet import LEAST, MOST, questions_for, write_sheets
from autograder.release.source import source_notebook
from autograder.user_error import UserError

ROOT = SOLUTIONS["ps04"].parents[1]
EVIL = "<script>alert(1)</script>"
COUNTS = {
    "M=3 N=5": {"global_read.requests": 64.0, "global_read.sectors": 160.0},
    "more": {"global_read.requests": 1.0, "global_read.sectors": 1.0},
}
VERDICT = {
    "cells": {
        "matmul_naive-test": {
            "task": "ps04/matmul_naive",
            "lines": [{"counters": COUNTS, "access": {"line": 12}}],
        }
    }
}


def solved(name):
    """(Assignment, the cells of its solution)."""
    cells = source_notebook(SOLUTIONS[name])["cells"]
    return load_assignment(ROOT, name), [one | {"source": "".join(one["source"])} for one in cells]


def with_text(cells, name, text):
    return [one | {"source": text} if one["id"] == name else one for one in cells]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_every_set_gives_questions_about_different_lines(name):
    asked = questions_for(*solved(name), {})
    assert LEAST <= len(asked) <= MOST
    meant = [(one.cell, *(number for number, _, about in one.listing if about)) for one in asked]
    assert len(set(meant)) == len(meant) and all(len(one) == 2 for one in meant)
    assert all(f"line {at}" in one.ask.lower() for one, (_, at) in zip(asked, meant))


def test_a_barrier_is_asked_about_by_its_line_and_counts_come_last():
    asked = questions_for(*solved("ps04"), VERDICT)
    first, last = asked[0], asked[-1]
    assert first.cell == "matmul_tiled" and "Take it away" in first.ask
    assert [text.strip() for _, text, about in first.listing if about] == ["cuda.syncthreads()"]
    assert "M=3 N=5 your kernel made 64 load requests" in last.ask
    assert last.answer.startswith("160, 2.5 a request") and "it blames line 12" in last.answer
    assert asked == questions_for(*solved("ps04"), VERDICT)


def test_what_was_handed_out_is_not_asked_about():
    assignment, _ = solved("ps04")
    assert questions_for(assignment, assignment.document["cells"], {}) == []


def test_a_hostile_text_takes_no_time_and_stays_text():
    assignment, cells = solved("ps04")
    long = "if " + "<" * 90_000 + "size" + "-(" * 50_000
    text = (
        f"{long}\n" * 20
        + f"cuda.syncthreads()  # {EVIL}\nx = float32({EVIL})\n\u202eif x.size < {{line.__class__}}:"
    )
    started = time.monotonic()
    asked = questions_for(assignment, with_text(cells, "matmul_naive", text), {})
    assert time.monotonic() - started < 5
    shown = [text for one in asked for _, text, _ in one.listing]
    assert max(map(len, shown)) <= 110 and not any("\u202e" in text for text in shown)


def test_sheets_are_written_for_a_class_and_escape_what_students_wrote(tmp_path):
    assignment, cells = solved("ps04")
    for student, text in {"ada": "cuda.syncthreads()", "eve": f"cuda.syncthreads(); {EVIL}"}.items():
        document = {"cells": with_text(cells, "matmul_naive", text)}
        enter(tmp_path, student, assignment, document, verdict=VERDICT)
    pages = list(write_sheets(assignment, tmp_path, [], tmp_path / "oral"))
    assert [page.name for page in pages] == ["ada.html", "eve.html"]
    page = pages[1].read_text()
    assert EVIL not in page and "&lt;script&gt;" in page and "For whoever asks" in page
    with pytest.raises(UserError, match="did you mean ada"):
        list(write_sheets(assignment, tmp_path, ["adda"], tmp_path / "oral"))
    for student in ("ada", "eve"):
        (tmp_path / "autograded" / student / "ps04" / assignment.filename).write_text("{")
    with pytest.raises(UserError, match="no judged notebook of anybody"):
        list(write_sheets(assignment, tmp_path, [], tmp_path / "oral"))
