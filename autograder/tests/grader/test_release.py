"""solutions/ -> exercises/: the same bytes every time, nothing hidden comes through, drift is found."""

import json
import shutil

import nbformat
import pytest
from corpus_files import SOLUTIONS
from grading import TINY
from nbgrader.nbgraderformat import MetadataValidator

from autograder.layout import load_assignment
from autograder.release.release import release, solution_files
from autograder.release.source import source_notebook, stable_json
from autograder.user_error import UserError

SETS = tuple(sorted(SOLUTIONS.keys() - {"ps00"}))


@pytest.fixture(scope="module")
def copy_of_course(root, tmp_path_factory):
    """solutions/ and nbgrader_config.py of this course in a folder of their own, released there."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copytree(root / "solutions", folder / "solutions", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "nbgrader_config.py", folder)
    release(folder)
    return folder


def text_of(path):
    return "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])


def regions(text):
    """(lines inside solution regions, lines outside) of a solution notebook, stripped
    of indent and comment marks.
    """
    inside, outside, hidden = set(), set(), False
    for line in text.splitlines():
        if "### BEGIN SOLUTION" in line or "### END SOLUTION" in line:
            hidden = "BEGIN" in line
            continue
        (inside if hidden else outside).add(line.strip().removeprefix("# ").strip())
    return inside, outside


@pytest.mark.slow
@pytest.mark.parametrize("name", ("ps00", *SETS))
def test_the_committed_exercises_are_what_the_solutions_give(root, copy_of_course, name):
    path = load_assignment(root, name).path.relative_to(root)
    assert (root / path).read_bytes() == (copy_of_course / path).read_bytes(), (
        f"run: autograder release {name}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_no_line_of_a_solution_region_reaches_the_students(root, copy_of_course, name):
    inside, outside = regions(solution_files(root)[name].read_text())
    given = "\n".join(outside)
    secret = {line for line in inside if len(line) > 8 and line not in given}
    assert len(secret) > 20
    released = text_of(load_assignment(copy_of_course, name).path)
    assert [line for line in secret if line in released] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_each_set_is_worth_100_points_of_which_5_are_by_hand(copy_of_course, name):
    assignment = load_assignment(copy_of_course, name)
    assert assignment.max_score == 100
    assert sum(cell.points for cell in assignment.graded() if cell.kind == "manual") == 5


@pytest.mark.parametrize("folder", ["_build/source", "exercises"])
@pytest.mark.parametrize("name", SETS)
def test_notebooks_satisfy_jupyter_and_nbgrader(copy_of_course, folder, name):
    path = next((copy_of_course / folder / name).glob("*.ipynb"))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)


def test_an_edit_changes_the_id_of_no_other_cell(tmp_path):
    path = tmp_path / "ps01_tiny.py"
    path.write_text(TINY)
    before = [cell["id"] for cell in source_notebook(path)["cells"]]
    path.write_text(TINY.replace("# # A tiny set", "# # Another title"))
    after = [cell["id"] for cell in source_notebook(path)["cells"]]
    assert before[0] != after[0]
    assert before[1:] == after[1:]


def test_equal_cells_get_different_ids(tmp_path):
    path = tmp_path / "ps01_tiny.py"
    path.write_text("# %%\nx = 1\n\n# %%\nx = 1\n")
    ids = [cell["id"] for cell in source_notebook(path)["cells"]]
    assert ids[1] == f"{ids[0]}-2"


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        ('grade="ps01/launch_plan"', 'grade="ps01/lunch_plan"', "did you mean ps01/launch_plan"),
        (
            '    ### END SOLUTION\n# %% grade="ps01/launch_plan"',
            '# %% grade="ps01/launch_plan"',
            "END SOLUTION",
        ),
        ('solution="time_it"', 'solution="launch_plan"', "used twice"),
        ('solution="time_it"', 'solution="time it"', "is no id"),
        (' solution="time_it"', "", "a solution region stands in a cell without"),
        ('manual="explain" points=5', 'manual="explain"', "needs points"),
        ('grade="ps01/time_it"', 'grade="ps01/time_it" rubric="speed"', "rubric='speed' is not known"),
        ('grade="ps01/time_it"', 'grade="ps01/time_it" rubric="time"', "has no timed points"),
    ],
)
def test_a_wrong_marker_is_one_sentence_with_the_file(tmp_path, old, new, complaint):
    path = tmp_path / "ps01_tiny.py"
    assert old in TINY
    path.write_text(TINY.replace(old, new))
    with pytest.raises(UserError, match=complaint) as caught:
        source_notebook(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stable_json_does_not_depend_on_the_order_of_keys():
    one, other = stable_json({"b": 1, "a": [2]}), stable_json({"a": [2], "b": 1})
    assert one == other == b'{\n "a": [\n  2\n ],\n "b": 1\n}\n'
