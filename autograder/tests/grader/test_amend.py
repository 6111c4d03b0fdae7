"""Changes after hand-in: previewed, made, taken back; a tiny course, judged in this process."""

import re
import shutil
from dataclasses import asdict
from datetime import datetime

import pytest
from grading import answers, grading, hand_in, judged_here, make_course, notebook, page_of, rows_of
from typer.testing import CliRunner

from autograder.cli import app
from autograder.grade import grading_lock
from autograder.gradebook import CourseGradebook
from autograder.judge.judge import CellVerdict, Verdict
from autograder.report.page import Pages
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from warplab.tasks.rubric import Line

POINTS = {"launch_plan-test": 15.0, "time_it-test": 15.0, "explain": 5.0}
HELD = {
    "ada": {"launch_plan-test": 15.0, "time_it-test": 12.0},
    "bob": {"launch_plan-test": 0.0, "time_it-test": 15.0},
}


def verdict(held):
    cells = {}
    for name, most in POINTS.items():
        task = f"ps01/{name.removesuffix('-test')}" if name != "explain" else None
        points = held.get(name)
        state = "manual" if points is None else "full" if points == most else "partial" if points else "lost"
        line = Line("right", "correctness", "right", points or 0.0, most, state, "seen") if task else None
        cells[name] = CellVerdict(name, points, most, state, task, None, [asdict(line)] if line else [])
    return Verdict("graded", "", cells, "in this process", 0.0)


class Judge:
    """Stands in for judge_notebook: what the student's first line says is held."""

    def __init__(self):
        self.held = HELD

    def __call__(self, assignment, checked, *_):
        text = next(cell["source"] for cell in checked.notebook["cells"] if cell["id"] == "launch_plan")
        return verdict(self.held[text.splitlines()[0].removeprefix("# ")])


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(the course: ada and bob are graded, 4 and 3 of 5 points given by hand; its judge)."""
    folder, assignment = make_course(tmp_path_factory.mktemp("amend") / "course")
    by_hand = {"ada": 4.0, "bob": 3.0}
    for student in by_hand:
        right = answers(folder) | {"explain": "The host does not wait."}
        right["launch_plan"] = f"# {student}\n{right['launch_plan']}"
        hand_in(folder / "submitted", f"{student}/ps01", notebook(assignment, **right))
    judge = Judge()
    with judged_here(judge):
        grade(folder)
        with CourseGradebook(folder / "grades") as book:
            for student, points in by_hand.items():
                edits = {"comment explain": "[1] +3: the host\n[2] +1: waits\n<script>"}
                edits |= {"score explain": points}
                book.enter_again(assignment, student, HELD[student], edits)
        grade(folder)
        assert scores(folder) == {"ada": (31, 35), "bob": (18, 35)}
        for text in ("31 of 35 points", "graded by hand: 4 of 5 points", "[2] +1: waits\n&lt;script&gt;"):
            assert text in page_of(folder, "ada")
        yield folder, judge


@pytest.fixture
def judge(graded):
    yield graded[1]
    graded[1].held = HELD


@pytest.fixture
def root(graded, tmp_path):
    return shutil.copytree(graded[0], tmp_path / "course")


def grade(root, **asked):
    rows = list(
        grading(root, "ps01", root / "submitted", root / "grades", sandbox=choose(True), **asked).rows()
    )
    assert all(row.status == "graded" for row in rows), rows


def scores(root):
    """{student: (score, of how many)} in grades.csv."""
    lines = rows_of(root / "grades").items()
    return {student: (float(row["score"]), float(row["max_score"])) for student, row in lines}


def say(root, *words, status=0):
    done = CliRunner().invoke(
        app, [*words, "--course", str(root)], catch_exceptions=False, env={"COLUMNS": "200"}
    )
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words, ada, bob, told",
    [
        # 15 for launch_plan to both; 12 and 15 for time_it, 4 and 3 by hand
        (["void", "ps01/launch_plan"], (31, 35), (33, 35), "everybody has its 15 points"),
        # 15 points on 20: the others count 1.75 times: (12 + 4) * 1.75 and (15 + 3) * 1.75
        (["void", "ps01/launch_plan", "--leave-out"], (28, 35), (31.5, 35), "1.75 times as much"),
        # the written answer: both get 5; left out, the others count 7/6: 27 * 7/6 and 15 * 7/6
        (["void", "ps01/explain"], (32, 35), (20, 35), "everybody has its 5 points"),
        (["void", "ps01/explain", "--leave-out"], (31.5, 35), (17.5, 35), "is left out"),
        # 12 of 15 are 8 of 10; 4 of 5 are 8 of 10
        # 15 + 4 and 0 + 3 of 20 points
        (["void", "ps01/time_it", "--leave-out"], (33.25, 35), (5.25, 35), "1.75 times as much"),
        (["points", "ps01/time_it", "10"], (27, 30), (13, 30), "worth 10 points instead of 15"),
        (["points", "ps01/explain", "10"], (35, 40), (21, 40), "worth 10 points instead of 5"),
    ],
)
def test_a_change_is_shown_first_then_made_and_undone(root, words, ada, bob, told):
    before = scores(root)
    output = say(root, *words, status=1)
    assert told in output and "nothing was changed" not in output and scores(root) == before
    moved = sum(now != was for now, was in zip((ada, bob), before.values(), strict=True))
    assert f"grades that move: {moved}" in output
    say(root, *words, "--yes")
    assert scores(root) == {"ada": ada, "bob": bob}
    assert "Changed after hand-in" in page_of(root, "ada") and f"{ada[0]:g} of {ada[1]:g} points" in page_of(
        root, "ada"
    )
    grade(root)
    assert scores(root) == {"ada": ada, "bob": bob}, "a further `grade` keeps it"
    grade(root, regrade=True)
    assert scores(root) == {"ada": ada, "bob": bob}, "and so does one that judges again"
    say(root, "undo", "--yes")
    assert scores(root) == before and "Changed after hand-in" not in page_of(root, "ada")
    assert "no change is left" in str(CliRunner().invoke(app, ["undo", "--course", str(root)]).exception)


@pytest.mark.slow
def test_changes_add_up_and_are_undone_from_the_last_on(root):
    say(root, "points", "ps01/time_it", "30", "--yes")
    assert scores(root) == {"ada": (43, 50), "bob": (33, 50)}
    say(root, "void", "ps01/time_it", "--yes")
    assert scores(root) == {"ada": (49, 50), "bob": (33, 50)}
    say(root, "undo", "--yes")
    say(root, "undo", "--yes")
    assert scores(root) == {"ada": (31, 35), "bob": (18, 35)}


@pytest.mark.slow
def test_who_hands_in_after_a_change_has_it_too(root, judge):
    say(root, "void", "ps01/launch_plan", "--yes")
    judge.held = HELD | {"cyd": {"launch_plan-test": 0.0, "time_it-test": 15.0}}
    late = (root / "submitted/bob/ps01/ps01_tiny.ipynb").read_text().replace("# bob", "# cyd")
    hand_in(root / "submitted", "cyd/ps01", late)
    grade(root)
    assert scores(root)["cyd"] == (30, 35)


def test_who_hands_in_again_keeps_points_by_hand_and_waits_for_a_person(root):
    text = (root / "submitted/ada/ps01/ps01_tiny.ipynb").read_text()
    hand_in(root / "submitted", "ada/ps01", text.replace("does not wait", "waits"))
    with CourseGradebook(root / "grades") as book:
        assert not book.gradebook.find_grade("explain", "ps01_tiny", "ps01", "ada").needs_manual_grade
    grade(root)
    with CourseGradebook(root / "grades") as book:
        assert book.gradebook.find_grade("explain", "ps01_tiny", "ps01", "ada").needs_manual_grade
    assert scores(root)["ada"] == (31, 35)


@pytest.mark.slow
def test_an_extension_is_nbgraders_own_and_gives_a_penalty_back(root):
    with open(root / "nbgrader_config.py", "a") as config:
        config.write('c.AssignLatePenalties.plugin_class = "autograder.gradebook.late_policy.PerDay"\n')
    assert "has no due date" in str(
        CliRunner().invoke(app, ["extend", "ps01", "ada", "--hours", "48", "--course", str(root)]).exception
    )
    with CourseGradebook(root / "grades") as book:
        book.gradebook.update_or_create_assignment("ps01", duedate=datetime(2026, 3, 1, 12))
    times = root / "times.csv"
    times.write_text("student,time\nada,2026-03-02T12:00Z\nbob,2026-03-02T00:00Z\n")
    grade(root, received=times)
    assert scores(root) == {"ada": (27.9, 35), "bob": (17.1, 35)}, "10 and 5 per cent"
    assert "1 day, 0:00:00 late: 3.1 points taken off" in page_of(root, "ada")
    assert "27.9 of 35, 3.1 off for lateness" in say(root, "extend", "ps01", "ada", "--hours", "48", status=1)
    say(root, "extend", "ps01", "ada", "--hours", "48", "--yes")
    assert scores(root) == {"ada": (31, 35), "bob": (17.1, 35)}
    assert "in time after an extension of 2 days" in page_of(root, "ada")
    grade(root, received=times)
    assert scores(root)["ada"] == (31, 35)
    say(root, "undo", "--yes")
    assert scores(root)["ada"] == (27.9, 35)
    # 19 + 12 * 5.019 / 15 = 23.0152 points, of which 2.30152 are taken off as 2.3
    assert "20.72 of 25.02, 2.3 off" in say(root, "points", "ps01/time_it", "5.019", "--yes")
    assert scores(root)["ada"] == (20.72, 25.02) and "20.72 of 25.02" in page_of(root, "ada")


@pytest.mark.slow
def test_a_mended_check_judges_those_concerned_and_says_why(root, judge):
    judge.held = HELD | {"bob": {"launch_plan-test": 15.0, "time_it-test": 15.0}, "ada": {}}
    output = say(root, "regrade", "ps01", "--task", "ps01/launch_plan", "--unsafe", status=1)
    assert "bob" in output and "right 0 to 15: seen" in output and "ada" not in output
    assert scores(root)["bob"] == (18, 35)
    say(root, "regrade", "ps01", "--task", "ps01/launch_plan", "--unsafe", "--yes")
    assert scores(root) == {"ada": (31, 35), "bob": (33, 35)} and "33 of 35" in page_of(root, "bob")
    say(root, "undo", "--yes")
    assert scores(root)["bob"] == (18, 35) and "18 of 35" in page_of(root, "bob")


@pytest.mark.slow
def test_a_rubric_changed_after_half_is_read_counts_for_what_was_ticked(root):
    solution = root / "solutions/ps01_tiny.py"
    told = "# The clock runs on the host, so it must wait.\n"
    marking = "# **Marking.** 2 points: the host's clock. 2 points: waits.\n"
    solution.write_text(solution.read_text().replace(told, told + marking))
    say(root, "rubric", "ps01", "--yes")
    # [1] from 3 to 2 points, [2] from 1 to 2: the sum stays; bob's 3 points had one taken off by hand
    assert scores(root) == {"ada": (31, 35), "bob": (18, 35)}
    solution.write_text(solution.read_text().replace("2 points: waits.", "3 points: waits for it."))
    assert "grades that move: 2" in say(root, "rubric", "ps01", "--yes")
    assert scores(root) == {"ada": (32, 35), "bob": (19, 35)}
    assert "[2] +3: waits for it." in page_of(root, "bob")
    say(root, "undo", "--yes")
    assert scores(root) == {"ada": (31, 35), "bob": (18, 35)} and "[2] +2: waits." in page_of(root, "bob")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, why",
    [
        ("void ps01/launch", "no task"),
        ("void ps02/x", "ps02"),
        ("void ps01/explain", "everybody has all points of ps01/explain already"),
        ("void ps01/time_it", "counts nothing already"),
        ("void ps01/time_it --leave-out", "counts nothing already"),
        ("points ps01/time_it 20", "has 0 points"),
        ("points ps01/explain 8.75", "has 8.75 points and cannot have 8.75"),
        ("points ps01/launch_plan 0", "void ps01/launch_plan --leave-out"),
        ("points ps01/launch_plan nan", "cannot have nan"),
        ("points ps01/launch_plan 1e9", "1,000 at most"),
        ("extend ps01 adda --hours 2", "did you mean ada"),
        ("extend ps01 ada --hours -1", "expected 0 to 8,784"),
        ("extend ps01 ada --hours nan", "expected 0 to 8,784"),
        ("extend ps01 ada --hours 1e300", "expected 0 to 8,784"),
        ("rubric ps01", "no ticked item has other points or words"),
        ("regrade ps01 --unsafe --task ps01/launch", "no task"),
        ("regrade ps01 --unsafe --task ps02/launch_plan", "no task"),
    ],
)
def test_what_cannot_be_changed_is_refused(changed, words, why):
    failed = CliRunner().invoke(app, [*words.split(), "--course", str(changed)]).exception
    assert isinstance(failed, UserError) and why in str(failed)


@pytest.fixture(scope="module")
def changed(graded, tmp_path_factory):
    """A course whose written answer is void, and time_it left out."""
    root = shutil.copytree(graded[0], tmp_path_factory.mktemp("changed") / "course")
    say(root, "void", "ps01/explain", "--yes")
    say(root, "void", "ps01/time_it", "--leave-out", "--yes")
    return root


@pytest.mark.slow
def test_who_is_stopped_halfway_takes_all_of_it_back(root, monkeypatch):
    write = Pages.write_feedback

    def full(self, book, record):
        if record["student"] == "bob":
            raise OSError(28, "No space left on device")
        write(self, book, record)

    say(root, "points", "ps01/time_it", "30", "--yes")
    for words in (["void", "ps01/launch_plan"], ["undo"]):
        with monkeypatch.context() as patch:
            patch.setattr(Pages, "write_feedback", full)
            failed = CliRunner().invoke(app, [*words, "--yes", "--course", str(root)]).exception
        assert (
            isinstance(failed, UserError)
            and "No space left" in str(failed)
            and "autograder undo" in str(failed)
        )
    say(root, "undo", "--yes")
    assert scores(root) == {"ada": (43, 50), "bob": (33, 50)}, "and the change before stands"


@pytest.mark.slow
def test_changes_that_somebody_takes_out_by_hand_are_out_at_the_next_grade(root):
    say(root, "void", "ps01/launch_plan", "--yes")
    listed = root / "grades/changes.jsonl"
    text = listed.read_text()
    listed.write_text(text[:-20])
    failed = CliRunner().invoke(app, ["undo", "--course", str(root)]).exception
    assert isinstance(failed, UserError) and f"{listed} is damaged" in str(failed)
    listed.write_text("")
    grade(root)
    assert scores(root) == {"ada": (31, 35), "bob": (18, 35)} and "18 of 35" in page_of(root, "bob")


def test_nobody_else_changes_grades_while_one_is_asked(root):
    with grading_lock(root / "grades"):
        failed = CliRunner().invoke(app, ["void", "ps01/time_it", "--course", str(root)]).exception
    assert isinstance(failed, UserError) and "changes grades there" in str(failed)


@pytest.mark.slow
def test_undo_of_a_regrade_leaves_what_was_handed_in_since(root, judge):
    judge.held = HELD | {"bob": {"launch_plan-test": 15.0, "time_it-test": 15.0}}
    say(root, "regrade", "ps01", "--unsafe", "--yes")
    anew = (root / "submitted/bob/ps01/ps01_tiny.ipynb").read_text().replace("# bob", "# cyd")
    hand_in(root / "submitted", "bob/ps01", anew)
    judge.held |= {"cyd": {"launch_plan-test": 10.0, "time_it-test": 10.0}}
    grade(root)
    assert scores(root)["bob"] == (23, 35)
    assert "grades that move: 0" in say(root, "undo", "--yes")
    assert scores(root)["bob"] == (23, 35)


@pytest.mark.slow
def test_a_student_who_is_forgotten_is_in_no_change_and_the_others_keep_theirs(root, judge):
    judge.held = {name: {"launch_plan-test": 15.0, "time_it-test": 15.0} for name in HELD}
    say(root, "regrade", "ps01", "--unsafe", "--yes")
    say(root, "void", "ps01/explain", "--yes")
    names = re.compile(r"\bada\b")  # the letters alone may stand in a digest
    assert names.search((root / "grades/changes.jsonl").read_text())
    say(root, "forget", "ada", "--yes")
    changes = (root / "grades/changes.jsonl").read_text()
    assert not names.search(changes) and "(forgotten)" not in changes  # nor her results without a name
    assert scores(root) == {"bob": (35, 35)}
    say(root, "undo", "--yes")
    say(root, "undo", "--yes")
    assert scores(root) == {"bob": (18, 35)}
