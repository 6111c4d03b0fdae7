"""nbgrader's own commands with our nbgrader_config.py, and `autograder grade`: two ways to the same grades,
line by line. A stand-in judges; `make full` has the judge, with the sample class.
"""

import shutil

import forked_commands
import pytest
from grading import (
    TIMED,
    TINY,
    answers,
    by_text,
    hand_in,
    judged_here,
    make_course,
    notebook,
    page_of,
    rows_of,
)
from grading import grading as made_grading
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

import warplab
from autograder.gradebook import CourseGradebook
from autograder.gradebook.export import COLUMNS
from autograder.layout import load_assignment
from autograder.release.release import nbgrader_config, release
from autograder.sample_class.build import build_class
from autograder.sample_class.run import launcher_for_our_own

pytestmark = pytest.mark.slow
SEED = "7\n"
DUE = "2026-02-01 12:00:00 UTC"
LATE = """
from nbgrader.plugins import LateSubmissionPlugin


class TenPerCentADay(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score * total_seconds_late / 864_000


c.AssignLatePenalties.plugin_class = TenPerCentADay
"""


@pytest.fixture(scope="module", autouse=True)
def without_a_gpu():
    if warplab.device().kind == "cuda":
        pytest.skip("here timed points are given, and these tests need some left open")


def nbgrader(root, *words):
    """Run one of nbgrader's commands in the course folder; returns what it printed."""
    unsafe = words[0] == "autograde" and launcher_for_our_own().isolation.startswith("unsafe")
    return forked_commands.nbgrader(root, [*words, *["--Judge.unsafe=True"] * unsafe])[0]


def grade(root, name="ps01"):
    """`autograder grade`, in this process."""
    where, how = (root, name, root / "submitted", root / "grades"), {"jobs": 2, "exchange": True}
    return list(made_grading(*where, sandbox=launcher_for_our_own(), **how).rows())


def states(root, name="ps01"):
    """{(student, cell): (points by the judge, points by hand, needs manual grade)} of the gradebook."""
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as gradebook:
        return {
            (one.student_id, grade.name): (grade.auto_score, grade.manual_score, grade.needs_manual_grade)
            for one in gradebook.assignment_submissions(name)
            for part in one.notebooks
            for grade in part.grades
        }


def give(root, student, cell, points):
    """Points as formgrader enters them."""
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as gradebook:
        grade = gradebook.find_grade(cell, "ps01_tiny", "ps01", student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


@pytest.fixture(scope="module")
def courses(tmp_path_factory):
    """(ours, theirs): one class in two copies of a course of 40 points, 5 of them timed
    and 5 written; dot is two days late.
    """
    base = tmp_path_factory.mktemp("nbgrader")
    root, assignment = make_course(base / "ours", TINY + TIMED)
    with open(root / "nbgrader_config.py", "a") as config:
        config.write(LATE)
    good = answers(root)
    for student, document in {
        "ada": notebook(assignment, **good),
        "bob": notebook(assignment),
        "cyd": notebook(
            assignment, **good | {"launch_plan": "import os\ndef launch_plan(*_):\n    os._exit(0)\n"}
        ),
        "dot": notebook(assignment, **good),
        "eve": "{",
    }.items():
        hand_in(root / "submitted", f"{student}/ps01", document)
    (root / "submitted/dot/ps01/timestamp.txt").write_text("2026-02-03 12:00:00 UTC")
    (root / "submitted/ada/ps01/plot.html").write_text("<script>document.title = 'taken'</script>")
    hand_in(root / "submitted", "fay/ps01", notebook(assignment, **good), name="another.ipynb")
    (root / "grades").mkdir(exist_ok=True)
    (root / "grades/.seed").write_text(SEED)
    theirs = shutil.copytree(root, base / "theirs")
    told = [nbgrader(theirs, "generate_assignment", "ps01", "--force")]
    for course in (root, theirs):
        with CourseGradebook(course / "grades") as book:
            book.gradebook.update_or_create_assignment("ps01", duedate=DUE)
    with judged_here(by_text):
        grade(root)
        told += [nbgrader(theirs, *words) for words in (["autograde", "ps01"], ["export"])]
    print(*told)
    return root, theirs


def test_generate_assignment_writes_what_release_writes(courses):
    assert [one.state for one in release(courses[1], check=True)] == ["unchanged"]


def test_autograde_gives_every_cell_what_the_command_gives(courses):
    ours, theirs = courses
    expected = states(ours)
    assert {key: state for key, state in states(theirs).items() if key[0] != "fay"} == expected
    assert {cell: expected["ada", cell] for student, cell in expected if student == "ada"} == {
        "launch_plan-test": (15, None, False),
        "time_it-test": (15, None, False),
        "explain": (None, None, True),
        "matmul_register_tiled-time": (None, None, True),
    }
    assert all(state == (None, None, True) for (student, _), state in expected.items() if student == "eve")


def test_formgraders_folder_holds_nothing_of_a_students_but_the_notebook(courses):
    """nbgrader copies all that was handed in, and formgrader serves it to the
    instructor's browser from the address of the server.
    """
    for course in courses:
        there = (course / "grades/autograded/ada/ps01").iterdir()
        assert [path.name for path in there] == ["ps01_tiny.ipynb"]


def test_export_has_the_commands_lines(courses):
    ours, theirs = (rows_of(course / "grades") for course in courses)
    assert (theirs.pop("fay")["status"], ours.pop("fay")["status"]) == ("not graded", "missing")
    assert theirs == ours
    told = {student: row["status"] for student, row in ours.items()}
    assert told == dict.fromkeys(("ada", "bob", "dot"), "graded") | {"cyd": "crashed", "eve": "malformed"}


def test_the_header_and_a_line_of_the_export_are_as_an_instructor_would_write_them(courses):
    """30 of the 40 points are earned, 5 wait for a GPU, 5 for a reader; two days late
    cost two tenths of 30.
    """
    lines = (courses[0] / "grades/grades.csv").read_text().splitlines()
    isolation = launcher_for_our_own().isolation
    assert (
        lines[0] == "assignment,student_id,status,score,max_score,ungraded_points,manual_points_pending,"
        "late_penalty,reason,isolation,attempt" == ",".join(COLUMNS)
    )
    quoted = f'"{isolation}"' if "," in isolation else isolation
    assert [line for line in lines if line.startswith("ps01,dot")] == [
        f"ps01,dot,graded,24,40,5,5,6,,{quoted},1"
    ]


@pytest.mark.full
def test_export_of_some_students_leaves_the_others_out(courses):
    nbgrader(courses[1], "export", "--to=some.csv", '--student=["ada", "dot"]', '--assignment=["ps01"]')
    assert set(rows_of(courses[1], "some.csv")) == {"ada", "dot"}


def test_generate_feedback_writes_the_page_that_the_command_writes(courses):
    ours, theirs = courses
    before = page_of(theirs, "ada")
    (theirs / "grades/feedback/ada/ps01/ps01_tiny.html").unlink()
    nbgrader(theirs, "generate_feedback", "ps01", "--student=ada", "--force")
    assert page_of(theirs, "ada") == before == page_of(ours, "ada")


@judged_here(by_text)
def test_a_late_penalty_survives_a_regrade_both_ways_and_counts_points_given_by_hand(courses):
    """34 points two days late: 6.8 off. nbgrader's own CSV shows the same, and counts open points as lost."""
    ours, theirs = courses
    assert "6 points taken off" in page_of(ours, "dot") and page_of(theirs, "dot") == page_of(ours, "dot")
    for course in courses:
        give(course, "dot", "explain", 4)
    assert not any(row.fresh for row in grade(ours))
    nbgrader(theirs, "autograde", "ps01", "--student=dot", "--force")
    nbgrader(theirs, "export")
    for course in courses:
        row, page = rows_of(course / "grades")["dot"], page_of(course, "dot")
        told = ("score", "late_penalty", "ungraded_points", "manual_points_pending")
        assert [row[field] for field in told] == ["27.2", "6.8", "5", "0"]
        assert "27.2 of 40 points" in page and "6.8 points taken off" in page
    nbgrader(ours, "export", "--exporter=nbgrader.plugins.export.CsvExportPlugin", "--to=stock.csv")
    stock = rows_of(ours, "stock.csv")
    told = ("raw_score", "late_submission_penalty", "score", "max_score")
    assert [float(stock["dot"][field]) for field in told] == [34, 6.8, 27.2, 40]
    assert (stock["ada"]["score"], stock["eve"]["score"]) == ("30.0", "0.0")


@pytest.mark.full
@pytest.mark.parametrize("name", ["ps01", "ps04"])
def test_the_sample_class_gets_the_same_grades_both_ways(root, tmp_path, name):
    ours = tmp_path / "ours"
    (ours / "solutions").mkdir(parents=True)
    for path in (root / "solutions").glob(f"{name}_*.py"):
        shutil.copy(path, ours / "solutions")
    shutil.copy(root / "nbgrader_config.py", ours)
    release(ours)
    build_class(ours, name, tmp_path / "class")
    for folder in (tmp_path / "class").iterdir():
        shutil.copytree(folder, ours / "submitted" / folder.name / name)
    (ours / "grades").mkdir(exist_ok=True)
    (ours / "grades/.seed").write_text(SEED)
    theirs = shutil.copytree(ours, tmp_path / "theirs")
    grade(ours, name)
    for words in (["generate_assignment", name, "--force"], ["autograde", name], ["export"]):
        nbgrader(theirs, *words)
    assert states(theirs, name) == states(ours, name)
    assert rows_of(theirs / "grades") == rows_of(ours / "grades")
    cells = len(load_assignment(ours, name).graded())
    assert len(states(ours, name)) == cells * len(list((ours / "submitted").iterdir()))


@judged_here()
def test_formgrader_takes_for_graded_what_has_its_time_from_a_file(tmp_path):
    """It compares the gradebook's time with the one that nbgrader's exchange leaves beside the notebook."""
    root, assignment = make_course(tmp_path / "course")
    for student in ("ada", "bob"):
        hand_in(root / "submitted", f"{student}/ps01", notebook(assignment))
    times = tmp_path / "times.csv"
    times.write_text("student,time\nada,2026-03-02T10:00:00+01:00\n")
    sandbox = launcher_for_our_own()
    grading = made_grading(root, "ps01", root / "submitted", root / "grades", sandbox=sandbox, received=times)
    assert {row.status for row in grading.rows()} == {"graded"}
    assert (root / "submitted/ada/ps01/timestamp.txt").read_text() == "2026-03-02 09:00:00 UTC\n"
    config = nbgrader_config(root)
    config.CourseDirectory.root = str(root)
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    assert api.get_autograded_students("ps01") == {"ada", "bob"}
    (root / "submitted/ada/ps01/timestamp.txt").unlink()
    assert api.get_autograded_students("ps01") == {"bob"}
