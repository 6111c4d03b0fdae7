"""A grader that is killed with SIGKILL, wherever it stands, goes on where it was:
nothing lost, nothing graded twice.
"""

import json
import os
import signal
import sqlite3
import subprocess
import time

import forked_commands
import pytest
from grading import (
    answers,
    by_text,
    hand_in,
    judged_here,
    make_course,
    notebook,
    one_course_version,
    rows_of,
)
from grading import grading as made_grading
from nbgrader.api import Gradebook


def in_a_while(*given):
    time.sleep(0.1)
    return by_text(*given)


def start(root):
    """`autograder grade ps01` in a process group of its own, with the judge that this process has."""
    return forked_commands.autograder(
        ["grade", "ps01", "--Grade.seed=5", "--Grade.jobs=2"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        start_new_session=True,
    )


def done(root):
    """{student: time of writing} of the results that are there."""
    return {
        path.stem: path.stat().st_mtime_ns for path in (root / "grades/results/ps01").glob("student*.json")
    }


@pytest.fixture(params=["stands in", pytest.param("behind walls", marks=pytest.mark.full)])
def judge(request):
    with judged_here(in_a_while) if request.param == "stands in" else one_course_version():
        yield


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_every_grade_made_once(tmp_path, judge):
    students, goals = [f"student{n:02}" for n in range(12)], (1, 4, 8)
    root, assignment = make_course(tmp_path / "course")
    good = answers(root)
    for number, student in enumerate(students):
        right = good if number % 3 else good | {"launch_plan": "launch_plan = None"}
        hand_in(root / "submitted", student, notebook(assignment, **right))
    kept, kills, killed_with = {}, 0, []
    for goal in goals:
        grader = start(root)
        deadline = time.monotonic() + 120
        while len(done(root)) < goal and grader.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.03 * kills)  # another place in the work each time
        if grader.poll() is None:
            os.killpg(grader.pid, signal.SIGKILL)
            kills += 1
        grader.communicate()
        now = done(root)
        assert {student: now[student] for student in kept} == kept, (
            "a result of before the kill was made again"
        )
        for student in now:
            record = json.loads((root / f"grades/results/ps01/{student}.json").read_text())
            assert record["status"] == "graded"
        kept = now
        killed_with.append(len(now))
    assert kills == len(goals), "the class was graded before it could be killed"
    last = start(root)
    out, err = last.communicate()
    assert last.returncode == 0, err
    assert (
        f"{len(kept)} of {len(students)} unchanged since the last run: not graded again" in out
        or len(kept) == 0
    )
    now = done(root)
    assert {student: now[student] for student in kept} == kept
    scores = {student: float(row["score"]) for student, row in rows_of(root / "grades").items()}
    assert scores == {student: 30.0 if number % 3 else 15.0 for number, student in enumerate(students)}
    with sqlite3.connect(root / "grades/gradebook.db") as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as gradebook:
        assert len(gradebook.assignment_submissions("ps01")) == len(students)
        assert {one.student_id: one.score for one in gradebook.assignment_submissions("ps01")} == scores
    for student in students:
        assert (root / f"grades/feedback/{student}/ps01/ps01_tiny.html").exists()
    assert not list((root / "grades").rglob("*.new"))
    print(f"killed {kills} times, with {killed_with} of {len(students)} results")


@pytest.mark.slow
@judged_here()
def test_killed_between_the_gradebook_and_the_result_it_grades_that_one_again_and_changes_nothing(tmp_path):
    """The one place where work is repeated: the result that says "done" is written last."""
    root, assignment = make_course(tmp_path / "course")
    hand_in(root / "submitted", "ada", notebook(assignment, **answers(root)))

    def graded():
        return [
            row.fresh
            for row in made_grading(root, "ps01", root / "submitted", root / "grades", seed=5).rows()
        ]

    assert graded() == [True]
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as gradebook:
        grade = gradebook.find_grade("explain", "ps01_tiny", "ps01", "ada")
        grade.manual_score, grade.needs_manual_grade = 4, False
        gradebook.db.commit()
    (root / "grades/results/ps01/ada.json").unlink()
    assert graded() == [True]
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as gradebook:
        assert [one.score for one in gradebook.assignment_submissions("ps01")] == [34]
