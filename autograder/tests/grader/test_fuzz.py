"""Notebooks damaged at random: the grader does not crash, and nobody earns a point that
the answers in it do not.

The start is a notebook with one right answer (15 points) and one blank (0). However its JSON,
metadata and cells are changed, the blank one's task stays at 0 and the whole at 15 at most.
"""

import copy
import json

import nbformat
import pytest
from corpus_files import launcher_here
from grading import answers, hand_in, make_course, notebook, own_cell, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.judge.judge import judge_notebook, make_cases
from autograder.report.page import autograded_notebook, feedback_page
from autograder.sandbox import Limits
from autograder.validate import Malformed, check_file

SOURCES = (
    "",
    "1000",
    "15.0",
    "launch_plan",
    "def time_it(device, work, repeats):\n    return 1000",
    "raise SystemExit",
    "import os; os._exit(0)",
    "from warplab.tasks.feedback import grade\ngrade('ps01/time_it', None)",
    "%%bash\nexit 1",
    "get_ipython()",
    "time_it = lambda *_: float('nan')",
    "class time_it(float):\n    pass",
    "\x00",
    "\ud800".encode("utf-8", "replace").decode(),
    "if",
    "time_it-test",
    "{{ x }}<script>",
    "🦊 = 1",
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([*SOURCES, "cell", "code", "raw"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
IDS = ["launch_plan", "launch_plan-test", "time_it", "time_it-test", "explain"]
ABOUT = "grade solution locked task points grade_id schema_version cell_type checksum".split()
NUMBER = st.integers(0, 10**6)
CHANGES = st.one_of(
    st.tuples(st.just("value"), NUMBER, VALUES),
    st.tuples(st.just("remove"), NUMBER, st.none()),
    st.tuples(st.just("about"), NUMBER, st.tuples(st.sampled_from(ABOUT), VALUES | st.sampled_from(IDS))),
    st.tuples(st.just("source"), NUMBER, st.sampled_from(SOURCES) | st.text(max_size=60)),
    st.tuples(st.just("type"), NUMBER, st.sampled_from(["code", "markdown", "raw", "heading"])),
    st.tuples(st.just("copy"), NUMBER, NUMBER),
    st.tuples(st.just("move"), NUMBER, NUMBER),
    st.tuples(st.just("drop"), NUMBER, st.none()),
    st.tuples(st.just("swap ids"), NUMBER, NUMBER),
    st.tuples(st.just("new"), NUMBER, st.sampled_from(SOURCES)),
)
DAMAGE = st.lists(CHANGES, min_size=1, max_size=4)


def places(value):
    """Every (container, key) of a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


def change(document, kind, number, what):
    """Carry out one change, in place, where the document still has what it changes."""
    spots, cells = list(places(document)), document.get("cells")
    if kind in ("value", "remove"):
        container, key = spots[number % len(spots)]
        if kind == "remove":
            del container[key]
        else:
            container[key] = copy.deepcopy(what)
        return
    if not isinstance(cells, list) or not cells or not all(isinstance(one, dict) for one in cells):
        return
    cell = cells[number % len(cells)]
    if kind == "about" and isinstance(cell.get("metadata"), dict):
        about = cell["metadata"].setdefault("nbgrader", {})
        if isinstance(about, dict):
            about[what[0]] = what[1]
    elif kind == "source":
        cell["source"] = what
    elif kind == "type":
        cell["cell_type"] = what
        if what != "code":
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
    elif kind == "copy":
        cells.insert(what % len(cells), copy.deepcopy(cell))
    elif kind == "move":
        cells.insert(what % len(cells), cells.pop(number % len(cells)))
    elif kind == "drop":
        cells.remove(cell)
    elif kind == "swap ids":
        other = cells[what % len(cells)]
        cell["metadata"], other["metadata"] = other.get("metadata", {}), cell.get("metadata", {})
    elif kind == "new":
        cells.insert(number % len(cells), own_cell(what, f"n{number}"))


class Grader:
    """Reads and judges damaged notebooks; feedback and notebook are made of each, too."""

    def __init__(self, folder):
        self.folder = folder
        root, self.assignment = make_course(folder / "course")
        self.cases, self.launcher = make_cases(self.assignment, 11), launcher_here()
        self.start = notebook(self.assignment, launch_plan=answers(root)["launch_plan"])

    def read(self, damage):
        """The notebook as the judge takes it, with each graded cell as it was released, or None for one that
        is set aside.
        """
        document = copy.deepcopy(self.start)
        for one in damage:
            change(document, *one)
        try:
            text = json.dumps(document)
        except ValueError:
            return None
        try:
            checked = check_file(hand_in(self.folder, "ada", text), self.assignment)
        except Malformed as malformed:
            assert malformed.defects and all(defect.code and defect.text for defect in malformed.defects)
            told = record("ada", "ps01", status="malformed", reason=str(malformed), isolation="")
            assert "Not graded" in feedback_page(self.assignment, "ada", told)
            return None
        cells = [one for one in checked.notebook["cells"] if "nbgrader" in one["metadata"]]
        known = {one["metadata"]["nbgrader"]["grade_id"]: one["metadata"] for one in cells}
        assert known == {name: spec.metadata for name, spec in self.assignment.cells.items()}
        return checked

    def grade(self, damage):
        if (checked := self.read(damage)) is None:
            return None
        limits = Limits(step_seconds=10, total_seconds=60)
        verdict = judge_notebook(self.assignment, checked, self.cases, self.launcher, limits)
        notes = [note.text for note in checked.notes]
        told = record("ada", "ps01", status=verdict.status, reason=verdict.reason, notes=notes)
        page = feedback_page(self.assignment, "ada", told, checked.notebook, verdict)
        assert "<script" not in page
        nbformat.validate(nbformat.from_dict(autograded_notebook(checked.notebook, verdict)))
        return verdict


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    return Grader(tmp_path_factory.mktemp("fuzz"))


def holds(grader, damage):
    verdict = grader.grade(damage)
    if verdict is None:
        return
    assert list(verdict.cells) == ["launch_plan-test", "time_it-test", "explain"]
    assert 0 <= verdict.cells["launch_plan-test"].points <= 15
    assert verdict.cells["time_it-test"].points == 0
    assert verdict.so_far({}, 0.0)[0] <= 15
    assert [cell.max for cell in verdict.cells.values()] == [15, 15, 5]


CALM = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
def test_without_damage_the_right_answer_earns_its_points_and_the_blank_one_none(grader):
    verdict = grader.grade([])
    assert {key: cell.points for key, cell in verdict.cells.items()} == {
        "launch_plan-test": 15,
        "time_it-test": 0,
        "explain": 0,
    }


@pytest.mark.slow
@settings(max_examples=150, **CALM)
@given(damage=DAMAGE)
def test_damaged_notebooks_are_refused_or_repaired(grader, damage):
    grader.read(damage)


@pytest.mark.slow
@settings(max_examples=20, **CALM)
@given(damage=DAMAGE)
def test_some_damaged_notebooks_are_judged(grader, damage):
    holds(grader, damage)


@pytest.mark.full
@settings(max_examples=3000, **CALM)
@given(damage=st.lists(CHANGES, min_size=1, max_size=12))
def test_thousands_of_notebooks_damaged_beyond_recognition(grader, damage):
    holds(grader, damage)
