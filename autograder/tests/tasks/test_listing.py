"""The feedback page's listings: numbered lines, the cited ones marked; and no word of running a file that was
never run.
"""

import html
import re

import pytest
from grading import grading as made_grading
from grading import hand_in, make_course, notebook

from autograder.sandbox import Unsafe

ANSWER = """def launch_plan(width, height, block):
    columns = -(-width // block[0])
    return columns / 0  # the third line of the cell
"""


@pytest.fixture(scope="module")
def feedback(tmp_path_factory):
    """Of each student the feedback page of a tiny class."""
    folder = tmp_path_factory.mktemp("listing")
    root, assignment = make_course(folder / "course")
    hand_in(folder / "submitted", "ada", notebook(assignment, launch_plan=ANSWER))
    hand_in(folder / "submitted", "bob", "{not a notebook")
    rows = made_grading(
        root, "ps01", folder / "submitted", folder / "out", seconds=20, seed=3, sandbox=Unsafe()
    ).rows()
    assert {row.student: row.status for row in rows} == {"ada": "graded", "bob": "malformed"}
    return {
        name: (folder / f"out/feedback/{name}/ps01/ps01_tiny.html").read_text() for name in ("ada", "bob")
    }


@pytest.mark.slow
def test_an_answer_is_shown_line_by_line_with_the_lines_marked_that_the_report_names(feedback):
    assert "line 3" in feedback["ada"]
    assert re.findall("<mark>(.*)</mark>", feedback["ada"]) == [
        "    return columns / 0  # the third line of the cell",
        "    raise NotImplementedError()",  # the stub that ada left in the other task
    ]
    shown = re.search('<pre class="listing"[^>]*>(.*?)</pre>', feedback["ada"], re.DOTALL)[1]
    assert html.unescape(re.sub("<[^>]*>", "", shown)).rstrip("\n") == ANSWER.rstrip("\n")
    assert shown.count('<span class="line">') == ANSWER.count("\n") + 1


@pytest.mark.slow
def test_only_who_was_run_is_told_so(feedback):
    assert "Your code ran unsafe" in feedback["ada"]
    assert "Your code ran" not in feedback["bob"] and "Your code was not run." in feedback["bob"]
