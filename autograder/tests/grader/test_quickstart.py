"""nbgrader's own example course, graded by nbgrader in a kernel and by nbgrader with
our sandbox in the kernel's place.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import forked_commands
import pytest
from conftest import TESTS
from nbgrader.api import Gradebook

from autograder.sandbox.choose import NoSandbox, choose
from autograder.sandbox.messages import Cell
from autograder.sandbox.student import execute

OURS = """
c.Autograde.autograde_preprocessors = [
    "autograder.ordinary_courses.InSandbox",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
"""
HALF = "if n < 1:\n        raise ValueError('n')\n    return [i * i for i in range(1, n + 1)]"


def nbgrader(folder, *words):
    # nbgrader calls the program alembic by its bare name
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path}
    if words[0] == "quickstart":  # it starts nbgrader several times
        env["PYTHONPATH"] = str(TESTS / "without_grammars")
    return forked_commands.nbgrader(folder, words, env=env)[0]


def hand_in(course, student, change):
    """The released notebooks, with the text of each cell given through `change(grade id, text)`."""
    for path in (course / "release/ps1").glob("*.ipynb"):
        document = json.loads(path.read_text())
        for cell in document["cells"]:
            grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
            cell["source"] = change(grade_id, "".join(cell["source"]))
        target = course / "submitted" / student / "ps1" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(document))
    shutil.copy(course / "source/ps1/jupyter.png", target.parent)


@pytest.fixture(scope="module")
def courses(tmp_path_factory):
    """(stock, ours): two copies of the quickstart course with the same submissions, autograded."""
    try:
        choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))
    base = tmp_path_factory.mktemp("quickstart")
    stock, ours = base / "stock", base / "ours"
    nbgrader(base, "quickstart", "stock")
    written = nbgrader(stock, "generate_assignment", "ps1")
    assert (stock / "release/ps1/problem1.ipynb").exists(), written
    answers = {}
    for path in (stock / "source/ps1").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            text = "".join(cell["source"])
            answers[cell["metadata"].get("nbgrader", {}).get("grade_id")] = re.sub(
                r"\n? *### (BEGIN|END) SOLUTION", "", text
            )
    half = {
        "squares": f"def squares(n):\n    {HALF}",
        "sum_of_squares": "def sum_of_squares(n):\n    return sum(i * i for i in range(1, n + 1))",
    }
    edited = [
        key
        for key in answers
        if key
        in (
            "squares",
            "sum_of_squares",
            "sum_of_squares_equation",
            "sum_of_squares_application",
            "part-a",
            "part-b",
        )
    ]
    hand_in(stock, "ada", lambda key, text: answers[key] if key in edited else text)
    hand_in(stock, "bob", lambda key, text: half.get(key, text))
    hand_in(stock, "cyd", lambda key, text: text)
    hand_in(stock, "dan", lambda key, text: "def squares(n):\n    return []" if key == "squares" else text)
    hand_in(
        stock,
        "eve",
        lambda key, text: (
            text + "\nassert False" if key == "squares" else answers[key] if key in edited else text
        ),
    )
    shutil.copytree(stock, ours)
    with open(ours / "nbgrader_config.py", "a") as config:
        config.write(OURS)
    told = [nbgrader(course, "autograde", "ps1") for course in (stock, ours)]
    return stock, ours, told


def grades(course):
    """{(student, notebook, cell): (points, needs manual grade)} of the gradebook."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            (submission.student_id, notebook.name, grade.name): (grade.auto_score, grade.needs_manual_grade)
            for submission in gradebook.assignment_submissions("ps1")
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


@pytest.mark.full
def test_honest_work_gets_the_scores_of_stock_nbgrader(courses):
    stock, ours, told = courses
    expected, got = grades(stock), grades(ours)
    assert len({student for student, *_ in expected}) == 5, told[0]
    assert got == expected, told[1]
    scores = {
        student: sum(points or 0 for (who, *_), (points, _) in got.items() if who == student)
        for student, *_ in got
    }
    assert scores == {"ada": 3, "bob": 2.5, "cyd": 0, "dan": 0, "eve": 0.5}  # of the 3 points that tests give


@pytest.mark.full
def test_feedback_and_export_work_on_it(courses):
    ours = courses[1]
    nbgrader(ours, "generate_feedback", "ps1")
    nbgrader(ours, "export")
    assert (ours / "feedback/ada/ps1/problem1.html").exists()
    assert "ada" in (ours / "grades.csv").read_text()


@pytest.mark.parametrize(
    "source, value",
    [
        ("1.5", 1.5),
        ("x = 3\nx / 2", 1.5),
        ("def f():\n    return y\ny = 2\nf()", 2),
        ("assert True", None),
        ("f(", None),
        ("", None),
        ("1 / 0", None),
        ("for i in (1, 2):\n    i", None),
    ],
)
def test_a_last_expression_is_partial_credit(source, value):
    namespace = {"give": lambda: "of the cell before"}
    error = execute(Cell("c", source, keep="give"), namespace)
    assert namespace["give"]() == value if value is not None else "give" not in namespace
    assert bool(error) == (source in ("f(", "1 / 0"))


def test_a_cells_last_expression_is_left_alone_where_nobody_asks_for_it():
    namespace = {}
    assert execute(Cell("c", "x = 2\nx"), namespace) is None and set(namespace) == {"x", "__builtins__"}
