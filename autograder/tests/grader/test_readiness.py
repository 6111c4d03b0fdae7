"""`autograder doctor --class`: each thing that would stop an evening of grading is told before."""

import re
import shutil

import pytest
from conftest import ROOT
from grading import hand_in, make_course, notebook
from rich.console import Console

from autograder import readiness
from autograder.grade import grading_lock
from autograder.gradebook import CourseGradebook
from autograder.layout import assignment_names
from autograder.readiness import check_class, references, show_class
from autograder.results import secret_seed
from autograder.sandbox.limits import Limits


@pytest.fixture(scope="module")
def course_once(tmp_path_factory):
    root, assignment = make_course(tmp_path_factory.mktemp("ready") / "course")
    for student in ("ada", "bob"):
        hand_in(root / "submitted", student, notebook(assignment), "ps01/ps01_tiny.ipynb")
    with CourseGradebook(root / "grades") as book:
        book.add_assignment(assignment)
    secret_seed(root / "grades")
    return root


@pytest.fixture
def course(course_once, tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "references", lambda *_: ())  # the tests of these ask for them
    return shutil.copytree(course_once, tmp_path / "course")


def checks(root, jobs=1, names=("ps01",)):
    found = check_class(root, list(names), root / "submitted", root / "grades", Limits(), jobs)
    return {one.what: (one.state, one.detail) for one in found}


@pytest.mark.slow
def test_a_class_that_is_ready_is_ready(course):
    found = checks(course)
    assert not [what for what, (state, _) in found.items() if state == "not ready"]
    assert found["submissions of ps01"] == ("ready", "2 of 2 students")
    assert (
        found["gradebook"][0]
        == found["released exercises"][0]
        == found["seed of the hidden inputs"][0]
        == "ready"
    )
    assert found["disk"][1].endswith("students: 2")


def test_who_handed_in_nothing_is_named(course):
    (course / "submitted" / "cyd").mkdir()
    assert checks(course)["submissions of ps01"] == ("note", "2 of 3 students; none of cyd")


def test_stale_exercises_and_changed_cells_are_named(course):
    solution = course / "solutions" / "ps01_tiny.py"
    solution.write_text(solution.read_text().replace("points=5", "points=6"))
    assert checks(course)["released exercises"][0] == "not ready"
    assert "ps01" in checks(course)["released exercises"][1]
    from autograder.release.release import release

    release(course)
    found = checks(course)
    assert found["released exercises"][0] == "ready"
    assert found["gradebook"][0] == "not ready" and "ps01" in found["gradebook"][1]


def test_a_damaged_gradebook_is_found(course):
    (course / "grades" / "gradebook.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    state, detail = checks(course)["gradebook"]
    assert state == "not ready" and "is damaged" in detail


def test_a_seed_that_others_can_read_is_told_with_the_command(course):
    seed = course / "grades" / ".seed"
    seed.chmod(0o644)
    assert checks(course)["seed of the hidden inputs"] == (
        "not ready",
        f"others can read {seed}: chmod 600 {seed}",
    )
    seed.chmod(0o600)
    seed.write_text("not a number")
    assert checks(course)["seed of the hidden inputs"][0] == "not ready"


def test_another_run_into_the_folder_is_told(course):
    with grading_lock(course / "grades"):
        state, detail = checks(course)["folder grades/"]
    assert state == "not ready" and "another run is grading into" in detail


def test_no_submissions_is_told(course):
    shutil.rmtree(course / "submitted")
    state, detail = checks(course)["submissions"]
    assert state == "not ready" and "no submissions folder" in detail


def test_more_jobs_than_memory_is_a_note_with_a_number(course):
    state, detail = checks(course, jobs=10_000)["memory"]
    assert state == "note" and re.search(r"Grade\.jobs = \d+ stays below", detail)


def test_another_version_than_the_locks_is_named(course, monkeypatch):
    lock = course / "autograder" / "constraints.txt"
    lock.parent.mkdir()
    lock.write_text(
        "# made by a tool\nnumpy==0.0.1\nno-such-thing==1\nnumba==0.1 ; sys_platform == 'abacus'\n"
    )
    state, detail = checks(course)["versions"]
    assert (
        state == "not ready"
        and detail.startswith("numpy ")
        and "not 0.0.1:" in detail
        and "numba" not in detail
    )


def test_few_descriptors_and_a_full_disk_are_told(course, monkeypatch):
    monkeypatch.setattr(readiness.resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(readiness.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    found = checks(course)
    assert found["open files"] == ("not ready", "256 allowed; say ulimit -n 1024 first")
    assert found["disk"][0] == "not ready"


@pytest.mark.sampled(1)  # tests/tasks/test_tasks.py tries them all, without the notebooks around them
@pytest.mark.slow
@pytest.mark.parametrize("name", assignment_names(ROOT))
def test_the_right_answers_to_a_set_get_all_points_behind_the_walls(name):
    (found,) = references(ROOT, [name], Limits.of(60), 1)
    assert found.state == "ready", found.detail


@pytest.mark.slow
def test_a_right_answer_that_loses_points_on_this_machine_is_named_with_what_it_lost(course):
    (right,) = references(course, ["ps01"], Limits(), 1)
    assert (right.what, right.state) == ("right answers to ps01", "ready")
    assert right.detail.startswith("all 30 points that can be given here, in ")
    solution = course / "solutions" / "ps01_tiny.py"
    solution.write_text(solution.read_text().replace("10 // HALF", "open('/proc/cpuinfo') and 5"))
    (wrong,) = references(course, ["ps01"], Limits(), 1)
    assert wrong.state == "not ready" and wrong.detail.startswith("15 of the 30 points that can be given he")
    assert "0 of 5" in wrong.detail and "No such file" in wrong.detail and "same error" not in wrong.detail


@pytest.mark.slow
def test_a_right_answer_that_takes_too_long_here_is_told_with_what_helps(course):
    solution = course / "solutions" / "ps01_tiny.py"
    solution.write_text(solution.read_text().replace("10 // HALF", "__import__('time').sleep(9) or 5"))
    (slow,) = references(course, ["ps01"], Limits.of(4), 1)
    assert slow.state == "not ready" and "ran longer than the limit of 4 s" in slow.detail
    assert slow.detail.endswith(readiness.SLOW) and "Grade.time_limit" in slow.detail


def test_other_work_on_the_processors_is_a_note_with_what_helps(course, monkeypatch):
    monkeypatch.setattr(readiness.psutil, "getloadavg", lambda: (15.4, 9.0, 5.0))
    monkeypatch.setattr(readiness.os, "cpu_count", lambda: 2)
    state, detail = checks(course)["processors"]
    assert state == "note" and detail.startswith("15.4 processes run or wait for 2 processors; grade when ")


def test_the_table_says_no_in_capitals():
    console = Console(record=True, width=120)
    bad = readiness.Check("disk", "not ready", "full")
    assert show_class(console, [readiness.Check("GPU", "note", "none")]) is True
    assert show_class(console, [bad]) is False
    assert "NOT READY" in console.export_text()
