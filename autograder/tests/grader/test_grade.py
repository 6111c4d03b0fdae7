"""Grading a folder: whatever one submission does, the others keep their grades, and
nothing that was earned is lost.
"""

import json
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace

import forked_commands
import numpy as np
import pytest
from grading import answers, hand_in, judged_here, make_course, notebook, one_course_version, rows_of
from grading import grading as made_grading
from nbgrader.api import Gradebook

from autograder.csv_tables import guard
from autograder.grade import grading_lock
from autograder.judge.attempts import NotebookStep, run_all
from autograder.judge.faults import InternalError
from autograder.judge.judge import _checked
from autograder.judge.process import NotStarted
from autograder.sandbox import Limits, Unsafe
from autograder.user_error import UserError
from warplab.tasks import registry
from warplab.tasks.rubric import Line

SEED = 11


@pytest.fixture(scope="module", autouse=True)
def one_version():
    with one_course_version():
        yield


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("grade") / "course")


def run(course, folder, out, **options):
    """Grade `folder` into `out`; returns {student: Row}."""
    options = {"seconds": 10, "seed": SEED, "jobs": 2} | options
    return {row.student: row for row in made_grading(course[0], "ps01", folder, out, **options).rows()}


def perfect(course, **sources):
    return notebook(course[1], **answers(course[0]) | sources)


def stored(out, student):
    return json.loads((out / "results" / "ps01" / f"{student}.json").read_text())


def points(out, student):
    return {key: cell["points"] for key, cell in stored(out, student)["verdict"]["cells"].items()}


LOOP = "def launch_plan(width, height, block):\n    while True:\n        pass\n"
SHOUT = (
    "import sys, subprocess\nsubprocess.Popen(['sleep', '313'])\nfor _ in range(2000):\n    "
    "sys.stdout.write('x' * 100_000)\n    sys.stderr.write('y' * 100_000)\n"
)


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """One class with everything in it, graded once. Returns (submissions, out, rows)."""
    folder = tmp_path_factory.mktemp("class")
    submitted, out = folder / "submitted", folder / "out"
    right = answers(course[0])["launch_plan"]
    for student, document in {
        "ada": perfect(course),
        "blank": notebook(course[1]),
        "shouter": perfect(course, launch_plan=SHOUT + right),
        "stopper": perfect(course, launch_plan="raise SystemExit('<script>alert(1)</script>')\n"),
        "=cmd()": perfect(course, launch_plan="import os\nos.kill(os.getpid(), 9)\n"),
        "broken": "{",
    }.items():
        hand_in(submitted, student, document)
    hand_in(submitted, "nested/ps01", perfect(course))
    (submitted / "nobody").mkdir()
    secret = hand_in(folder / "elsewhere", "teacher", perfect(course))
    (submitted / "linker").mkdir()
    (submitted / "linker" / "ps01_tiny.ipynb").symlink_to(secret)
    return submitted, out, run(course, submitted, out)


@pytest.mark.slow
def test_honest_work_gets_its_points_wherever_the_notebook_stands(graded):
    _, out, rows = graded
    assert (rows["ada"].status, rows["ada"].score, rows["ada"].manual) == ("graded", 30, 5)
    assert (
        points(out, "nested")
        == points(out, "ada")
        == {"launch_plan-test": 15, "time_it-test": 15, "explain": None}
    )


@pytest.mark.slow
def test_a_blank_notebook_is_an_earned_0_with_nothing_pending(graded):
    _, out, rows = graded
    assert (rows["blank"].score, rows["blank"].manual) == (0, 0)
    assert rows_of(out)["blank"]["score"] == "0"


@pytest.mark.slow
def test_a_crash_costs_its_own_task_only_and_each_of_its_rows_says_why(graded):
    _, out, rows = graded
    assert rows["=cmd()"].status == "crashed" and "SIGKILL" in rows["=cmd()"].reason
    assert points(out, "=cmd()") == {"launch_plan-test": 0, "time_it-test": 15, "explain": None}
    lines = stored(out, "=cmd()")["verdict"]["cells"]["launch_plan-test"]["lines"]
    assert all(line["reason"] for line in lines)


def test_output_and_child_processes_cost_nothing(graded):
    assert graded[2]["shouter"].score == 30


def test_an_exception_is_told_in_the_task_it_stopped(graded):
    _, out, rows = graded
    assert (rows["stopper"].status, rows["stopper"].score) == ("graded", 15)
    (line, *_) = stored(out, "stopper")["verdict"]["cells"]["launch_plan-test"]["lines"]
    assert "SystemExit: <script>" in line["reason"]


@pytest.mark.parametrize(
    "student, status, code",
    [
        ("broken", "malformed", "not-json"),
        ("linker", "malformed", "link-outside"),
        ("nobody", "missing", "no ps01_tiny.ipynb"),
    ],
)
def test_what_cannot_be_graded_fails_alone_and_is_not_a_0(graded, student, status, code):
    _, out, rows = graded
    row = rows_of(out)[student]
    assert rows[student].status == row["status"] == status
    assert code in row["reason"]
    assert row["score"] == row["ungraded_points"] == row["manual_points_pending"] == ""
    assert rows[student].score is None


def test_a_spreadsheet_takes_no_name_for_a_formula(graded):
    assert "'=cmd()" in rows_of(graded[1])
    kept = ("ada", "a=b", "a,-b", "a; b")
    assert tuple(map(guard, kept)) == kept
    changed = {"+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "a;=b": "a;'=b", 'a; "=b': "a;' \"=b"}
    assert {text: guard(text) for text in changed} == changed


def test_feedback_names_checks_and_points_and_escapes_what_the_student_wrote(graded):
    _, out, _ = graded
    page = (out / "feedback" / "stopper" / "ps01" / "ps01_tiny.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "15 of 35 points" in page
    assert [one.title for one in registry.get("ps01/launch_plan").items if one.title not in page] == []


@pytest.mark.slow
@judged_here()
def test_who_has_an_account_on_this_machine_reads_neither_grades_nor_seed(course, tmp_path):
    hand_in(tmp_path / "submitted", "ada", perfect(course))
    run(course, tmp_path / "submitted", tmp_path / "out", seed=None)
    assert [oct((tmp_path / name).stat().st_mode)[-3:] for name in ("out", "out/.seed")] == ["700", "600"]


def test_the_autograded_notebook_shows_the_report_and_no_output_of_the_students(graded):
    _, out, _ = graded
    document = json.loads((out / "autograded" / "ada" / "ps01" / "ps01_tiny.ipynb").read_text())
    outputs = {cell["id"]: cell["outputs"] for cell in document["cells"] if cell.get("outputs")}
    assert set(outputs) == {"launch_plan-test", "time_it-test"}
    assert "15 of 15 points" in outputs["time_it-test"][0]["data"]["text/plain"]


@pytest.mark.slow
@judged_here()
def test_a_second_run_grades_only_what_changed(course, tmp_path):
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    hand_in(submitted, "ada", perfect(course))
    hand_in(submitted, "bob", "{")
    hand_in(submitted, "cyd", notebook(course[1]))
    assert all(row.fresh for row in run(course, submitted, out).values())
    hand_in(submitted, "cyd", perfect(course))
    again = run(course, submitted, out)
    assert {student: row.fresh for student, row in again.items()} == {"ada": False, "bob": False, "cyd": True}
    assert again["cyd"].score == 30
    assert rows_of(out)["cyd"]["score"] == "30"
    assert run(course, submitted, out, seed=SEED + 1)["ada"].fresh


@pytest.mark.slow
@judged_here()
def test_stopping_half_way_keeps_what_is_graded_and_a_lost_result_is_graded_again(course, tmp_path):
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    for student in ("ada", "bob", "cyd"):
        hand_in(submitted, student, perfect(course))
    rows = made_grading(course[0], "ps01", submitted, out, seconds=10, seed=SEED).rows()
    first = next(rows)
    rows.close()
    assert rows_of(out)[first.student]["score"] == "30"
    again = run(course, submitted, out)
    assert [student for student, row in again.items() if not row.fresh] == [first.student]
    (out / "results" / "ps01" / "bob.json").write_text('{"half')
    assert run(course, submitted, out)["bob"].fresh


@pytest.mark.slow
@judged_here()
def test_a_failing_write_leaves_no_half_submission_in_the_gradebook(course, tmp_path, monkeypatch):
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    hand_in(submitted, "ada", "{")
    grading = made_grading(course[0], "ps01", submitted, out, seed=SEED)
    monkeypatch.setattr(Gradebook, "update_or_create_submission", lambda *a, **k: 1 / 0)
    (row,) = grading.rows()
    assert (row.status, row.reason) == (
        "not graded",
        "fault in the grader: ZeroDivisionError: division by zero",
    )
    with sqlite3.connect(out / "gradebook.db") as database:
        assert database.execute("select count(*) from student").fetchone() == (0,)


def test_points_outside_the_range_are_an_internal_error_never_credit():
    line = Line("a", "correctness", "t", 1.0, 2.0, "full")
    assert _checked(line).points == 1.0
    for wrong in (float("nan"), -1.0, 2.5, True, 1, np.float64(1.0), None):
        with pytest.raises(InternalError):
            _checked(Line("a", "correctness", "t", wrong, 2.0, "full"))


def test_a_stopped_sandbox_ends_at_once_and_leaves_no_folder(course, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    launcher = Unsafe()
    launcher.stopping.set()
    started = time.monotonic()
    with pytest.raises(NotStarted, match="stopped"):
        run_all(
            (
                NotebookStep("loop", "cell", source="while True: pass"),
                NotebookStep("t", "task", task="ps01/launch_plan"),
            ),
            {},
            launcher,
            Limits(),
        )
    assert time.monotonic() - started < 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_graded(course, tmp_path):
    hand_in(tmp_path / "submitted", "ada", perfect(course))
    hand_in(tmp_path / "submitted", "zed", perfect(course, launch_plan=LOOP))
    words = ["--submissions", tmp_path / "submitted", "--out", tmp_path / "out", "--course", course[0]]
    process = forked_commands.autograder(
        ["grade", "ps01", *words, "--Grade.jobs=1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 180
    while not (tmp_path / "out" / "results" / "ps01" / "ada.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert "what was graded is kept" in process.communicate(timeout=90)[1]
    assert process.returncode == 130
    assert rows_of(tmp_path / "out")["ada"]["score"] == "30"


def test_a_second_run_into_the_same_folder_is_refused(course, tmp_path):
    hand_in(tmp_path / "submitted", "ada", "{")
    with grading_lock(tmp_path), pytest.raises(UserError, match="another run is grading into"):
        run(course, tmp_path / "submitted", tmp_path)


@judged_here()
def test_points_that_were_changed_without_a_release_stop_the_run_before_it_touches_a_grade(course, tmp_path):
    hand_in(tmp_path / "in", "ada", perfect(course))
    assert run(course, tmp_path / "in", tmp_path / "out")["ada"].score == 30
    before = (tmp_path / "out/grades.csv").read_text()
    with pytest.MonkeyPatch.context() as patch:
        task = registry.get("ps01/launch_plan")
        patch.setattr(task, "items", tuple(replace(item, points=2 * item.points) for item in task.items))
        with pytest.raises(UserError, match=r"rows are worth 30 points, the released cell .* 15; run"):
            run(course, tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out/grades.csv").read_text() == before
