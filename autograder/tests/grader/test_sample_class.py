"""The bundled class: six kinds of submission for two sets, some for others, and the exact grade of each."""

import json

import pytest
from grading import grading as made_grading

from autograder.layout import load_assignment
from autograder.sample_class.build import build_class, members
from autograder.sample_class.run import SEED, compare, expected_grades
from warplab.tasks import registry

SETS = list(members())
KINDS = ["perfect", "blank", "partly-right", "no-bounds-check", "crashing", "malformed"]


@pytest.mark.parametrize("name", ["ps01", "ps04"])
def test_each_set_has_the_six_kinds_and_an_expected_grade_for_each(name):
    assert list(members()[name]) == list(expected_grades()[name]) == KINDS


def test_every_submission_has_an_expected_grade():
    assert {name: list(of) for name, of in members().items()} == {
        name: list(of) for name, of in expected_grades().items()
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SETS)
def test_building_twice_gives_the_same_bytes(root, tmp_path, name):
    build_class(root, name, tmp_path / "a")
    build_class(root, name, tmp_path / "b")
    first = {
        path.relative_to(tmp_path / "a"): path.read_bytes() for path in (tmp_path / "a").rglob("*.ipynb")
    }
    assert first == {
        path.relative_to(tmp_path / "b"): path.read_bytes() for path in (tmp_path / "b").rglob("*.ipynb")
    }
    assert len(set(first.values())) == len(members()[name])


@pytest.mark.parametrize("name", SETS)
def test_expected_scores_add_up_and_name_every_graded_cell(root, name):
    assignment = load_assignment(root, name)
    most = {cell.grade_id: cell.points for cell in assignment.graded()}
    for student, want in expected_grades()[name].items():
        if "cells" not in want:
            assert want == {"status": "malformed"}
            continue
        assert want["cells"].keys() == most.keys(), f"give a score to each in expected.yml: {name}, {student}"
        numbers = {key: value for key, value in want["cells"].items() if not isinstance(value, str)}
        assert want["score"] == sum(numbers.values())
        assert all(0 <= value <= most[key] for key, value in numbers.items())
        assert {value for value in want["cells"].values() if isinstance(value, str)} <= {"manual", "ungraded"}


@pytest.mark.parametrize("name", SETS)
def test_the_solution_gets_everything_that_a_machine_can_give_and_blank_gets_0(root, name):
    most = {cell.grade_id: cell.points for cell in load_assignment(root, name).graded()}
    found = expected_grades()[name]
    perfect = found["perfect"]["cells"] if "perfect" in found else {}
    assert all(value in ("manual", "ungraded") or value == most[key] for key, value in perfect.items())
    assert "blank" not in found or found["blank"]["score"] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name in SETS if "perfect" in members()[name]])
def test_no_answer_marker_is_handed_in(root, tmp_path, name):
    build_class(root, name, tmp_path)
    text = next((tmp_path / "perfect").glob("*.ipynb")).read_text()
    assert "BEGIN SOLUTION" not in text and "YOUR CODE HERE" not in text
    json.loads(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "ps01" else pytest.mark.full) for one in SETS]
)
def test_every_submission_gets_exactly_its_grade(root, tmp_path, name):
    if not all(registry.get(task).is_judged_here() for task in load_assignment(root, name).tasks()):
        pytest.skip("Triton has no wheel for this machine")
    build_class(root, name, tmp_path / "in")
    grading = made_grading(root, name, tmp_path / "in", tmp_path / "out", seed=SEED, jobs=2, seconds=60)
    expected = {want["status"] for want in expected_grades()[name].values()}
    assert {row.status for row in grading.rows()} == expected
    assert compare(name, grading) == []
