"""What the engine found crosses to the judge as small, checked data, and a student reads it in the table."""

import copy

import numpy as np
import pytest
from numba import cuda, float32

from warplab import crossing
from warplab.crossing.findings import MOST
from warplab.tasks.feedback import Table, report_on

ACT = {
    "thread": [1, 0, 0],
    "block": [0, 0, 0],
    "does": "reads",
    "what": "tile[3]",
    "file": 7,
    "line": 12,
}
FINDING = {"text": "", "acts": [ACT, ACT | {"does": "writes"}]}


def test_what_the_engine_makes_passes_the_check():
    assert crossing.checked_findings([FINDING]) == (FINDING,)
    assert crossing.checked_findings([]) == ()


def broken(**changes):
    finding = copy.deepcopy(FINDING)
    finding["acts"][0] |= changes
    return [finding]


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [FINDING] * (MOST + 1),
        [FINDING | {"more": 1}],
        [{"text": "x" * 2000, "acts": []}],
        [{"text": 1, "acts": []}],
        [{"text": "", "acts": [ACT] * 3}],
        broken(does="is <b>bold</b>"),
        broken(what="x" * 300),
        broken(thread=[1, 2]),
        broken(thread=[1, 2, True]),
        broken(line=-1),
        broken(line=1.0),
        broken(block=[1, 2, np.int64(3)]),
    ],
)
def test_a_record_that_the_engine_does_not_make_is_refused(data):
    with pytest.raises(crossing.Refused):
        crossing.checked_findings(data)


@cuda.jit
def racing(x, total):
    table = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    table[t] = x[t] if t < x.size else float32(0)
    if t == 0:
        total[0] = table[255]


@cuda.jit
def losing(x, total):
    i = cuda.grid(1)
    if i < x.size:
        total[0] += x[i]


def test_a_race_is_drawn_as_two_threads_with_their_lines():
    report = report_on("ps03/reduce_tree", racing)
    line = report.lines[0]
    (drawing,) = line.drawings
    first, second = drawing["acts"]
    assert (first["does"], first["what"]) == ("writes", "table[255]")
    assert first["source"] == "table[t] = x[t] if t < x.size else float32(0)"
    assert (second["thread"], second["does"]) == ([0, 0, 0], "reads")
    html = Table(report)._repr_html_()
    assert "nothing orders these two: they may come in either order" in html
    assert "First thread (255, 0, 0) of block (0, 0, 0) writes table[255]" in html
    assert "only a barrier makes all of them wait" in html


def test_a_warning_of_the_engine_stands_under_why_and_brings_its_hints():
    line = report_on("ps03/reduce_atomic", losing).lines[0]
    assert line.state == "lost"
    assert any(text.startswith("global-memory conflict in kernel losing") for text in line.warnings)
    assert line.hints[2] == "`cuda.atomic.add(total, 0, mine)` in the place of `total[0] += mine`"


def test_a_warning_is_told_once_in_a_table():
    html = Table(report_on("ps03/reduce_atomic", losing))._repr_html_()
    assert html.count("Look at: blocks run in any order") == 1
