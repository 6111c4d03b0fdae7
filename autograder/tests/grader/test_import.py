"""Source notebooks edited in formgrader come back into solutions/; nothing that nobody
touched changes by a byte.
"""

import json
import shutil
from pathlib import Path

import pytest
from grading import make_course

from autograder.release import import_edits, release
from autograder.release.release import solution_files
from autograder.release.source import source_notebook
from autograder.user_error import UserError


@pytest.fixture
def course(tmp_path):
    """(root, solution file, source notebook, function that edits it as Jupyter saves)."""
    root, _ = make_course(tmp_path / "course")
    source = root / "_build/source/ps01/ps01_tiny.ipynb"

    def edit(change):
        document = json.loads(source.read_text())
        change(document, {cell["id"]: cell for cell in document["cells"]})
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "ran"}]
        source.write_text(json.dumps(document))

    return root, root / "solutions/ps01_tiny.py", source, edit


@pytest.mark.parametrize("name", ["ps01", "ps04"])
def test_the_courses_own_solutions_come_back_as_they_are(root, tmp_path, name):
    (tmp_path / "solutions").mkdir()
    path = Path(shutil.copy(solution_files(root)[name], tmp_path / "solutions"))
    shutil.copy(root / "nbgrader_config.py", tmp_path)
    release(tmp_path)
    before = solution_files(tmp_path)[name].read_bytes()
    assert import_edits(tmp_path, name) == (path, False)
    assert solution_files(tmp_path)[name].read_bytes() == before


def test_an_edit_is_refused_by_release_with_the_command_that_takes_it(course):
    root, solution, source, edit = course
    edit(
        lambda document, cells: cells["launch_plan"].update(
            source=cells["launch_plan"]["source"] + ["\n# edited"]
        )
    )
    kept = source.read_bytes()
    with pytest.raises(UserError, match="`autograder import ps01` brings the edit into ps01_tiny.py"):
        release(root)
    assert source.read_bytes() == kept


def test_edited_text_new_cells_and_other_points_of_a_written_answer_come_back(course):
    root, solution, source, edit = course
    before = solution.read_text()

    def change(document, cells):
        cells["launch_plan"]["source"] = [
            line.replace("secret_columns", "columns") for line in cells["launch_plan"]["source"]
        ]
        cells["explain"]["metadata"]["nbgrader"]["points"] = 7
        document["cells"].insert(
            1,
            {
                "cell_type": "markdown",
                "id": "new",
                "metadata": {},
                "source": "A *new* paragraph.\n\n# %% not a cell",
            },
        )
        document["cells"].insert(
            2,
            {
                "cell_type": "code",
                "id": "new2",
                "metadata": {"tags": ["hide"]},
                "source": "%time x = 1",
                "outputs": [],
                "execution_count": 3,
            },
        )

    edit(change)
    assert import_edits(root, "ps01") == (solution, True)
    text = solution.read_text()
    assert "secret_columns" not in text and "### BEGIN SOLUTION\n    columns =" in text
    assert 'manual="explain" points=7' in text and "A *new* paragraph." in text
    unchanged = before.split('# %% solution="time_it"')[1].split('# %% grade="ps01/time_it"')[0]
    assert unchanged in text
    cells = source_notebook(solution)["cells"]
    assert [cell["cell_type"] for cell in cells[:3]] == ["markdown", "markdown", "code"]
    assert "".join(cells[2]["source"]) == "%time x = 1" and cells[2]["metadata"] == {"tags": ["hide"]}
    assert [one.state for one in release(root)] == ["written"]
    assert release(root, check=True)[0].state == "unchanged"


@pytest.mark.parametrize(
    "change, complaint",
    [
        (
            lambda cells: cells["time_it-test"]["metadata"]["nbgrader"].update(points=1),
            "points and ids of tests belong to warplab/tasks",
        ),
        (
            lambda cells: cells["time_it-test"]["metadata"].pop("warplab"),
            "no task of warplab/tasks stands behind it",
        ),
        (lambda cells: cells["time_it"].update(source="pass"), "has no '### BEGIN SOLUTION'"),
        (lambda cells: cells["explain"]["metadata"]["nbgrader"].update(grade_id="time_it"), "is used twice"),
    ],
)
def test_what_a_solution_file_cannot_say_is_refused_and_nothing_is_written(course, change, complaint):
    root, solution, source, edit = course
    edit(lambda document, cells: change(cells))
    before = solution.read_bytes(), source.read_bytes()
    with pytest.raises(UserError, match=complaint):
        import_edits(root, "ps01")
    assert (solution.read_bytes(), source.read_bytes()) == before


def test_an_unknown_set_or_no_notebook_is_one_sentence(course):
    root, _, source, _ = course
    with pytest.raises(UserError, match="no solution notebook"):
        import_edits(root, "ps99")
    source.unlink()
    with pytest.raises(UserError, match="autograder release ps01"):
        import_edits(root, "ps01")
