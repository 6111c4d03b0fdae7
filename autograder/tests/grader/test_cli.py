"""The command line: a mistake is one line that says what, where and what next, and the
exit status tells the truth.
"""

import os
import subprocess
import sys
from functools import partial
from io import StringIO

import pytest
from conftest import ROOT
from grading import answers, hand_in, judged_here, make_course, notebook
from grading import command as run_command

from autograder import grade


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("cli") / "course")


@pytest.fixture
def command(course):
    return partial(run_command, course[0])


def one_line(text):
    assert text.endswith("\n") and text.count("\n") == 1, text
    return text


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["grade", "ps10"], 'unknown assignment "ps10" (did you mean ps01?)'),
        (["grade", "ps01"], "no submissions folder"),
        (
            ["grade", "ps01", "--submissions", "nowhere"],
            "no submissions folder nowhere; expected nowhere/<student>/ps01_tiny.ipynb",
        ),
        (["grade", "ps01", "--submissions", "solutions"], "solutions holds no student folders"),
        (["release", "ps77"], 'no solution notebook for "ps77"'),
        (["validate", "psxx_thing.ipynb"], 'unknown assignment "psxx"'),
        (["check", "mine.ipynb"], "mine.ipynb has to keep the name with which it was released"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(command, words, complaint):
    status, out, err = command(*words)
    assert status == 2
    assert complaint in one_line(err)


def test_outside_a_course_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.layout.__file__", str(tmp_path / "a" / "b" / "c" / "layout.py"))
    status, _, err = run_command(tmp_path, "release")
    assert status == 2
    assert "no course here" in one_line(err)


@pytest.mark.slow
def test_a_device_that_is_not_there_is_one_line(course):
    command = [sys.executable, "-m", "autograder.cli", "release", "--course", course[0]]
    done = subprocess.run(
        command, env=os.environ | {"WARPLAB_DEVICE": "abacus"}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "WARPLAB_DEVICE" in one_line(done.stderr)


def test_a_folder_that_cannot_be_written_is_one_line(command, course, tmp_path):
    hand_in(tmp_path, "ada", notebook(course[1]))
    (tmp_path / "file").write_text("")
    status, _, err = command(
        "grade", "ps01", "--submissions", tmp_path, "--out", tmp_path / "file" / "grades"
    )
    assert status == 2
    assert "cannot write to" in one_line(err)


@pytest.mark.slow
@judged_here()
@pytest.mark.parametrize(
    "words",
    [
        ("report", "--to", "file/report.html"),
        ("similar", "ps01", "--to", "file/similar.html"),
    ],
)
def test_where_no_file_can_be_written_every_command_says_so_in_one_line(command, course, tmp_path, words):
    out = course[0] / "grades"
    if not (out / "grades.csv").exists():
        hand_in(tmp_path / "in", "ada", notebook(course[1]))
        assert command("grade", "ps01", "--submissions", tmp_path / "in", "--out", out)[0] == 0
    (tmp_path / "file").write_text("")
    *words, target = words
    status, _, err = command(*words, tmp_path / target)
    assert status == 2 and f"cannot use {tmp_path / 'file'}" in one_line(err)


@pytest.mark.parametrize(
    "target, why",
    [
        ("/proc/x/page.html", ""),
        ("pipe", ""),
        ("pages", "Is a directory"),
        (f"{'x' * 247}.html", "File name too long; put"),  # though a longer one is written first, hidden
    ],
)
def test_a_place_that_takes_no_page_is_named_in_one_line_and_nothing_is_left(command, tmp_path, target, why):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pages").mkdir()
    status, _, err = command("worked", "ps01", "--to", tmp_path / target)
    told = one_line(err)
    assert status == 2 and "cannot use " in told and (not why or f"{tmp_path / target}: {why}" in told)
    assert (tmp_path / "pipe").is_fifo() and {path.name for path in tmp_path.iterdir()} == {"pipe", "pages"}


def test_a_plan_is_shown_before_it_is_written_and_writes_over_nothing(command, tmp_path, monkeypatch):
    asked = ("plan", "--course", ROOT, "--begin", "2027-02-01", "--to", tmp_path / "plan")
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    status, out, err = command(*asked, "--weeks", 12)
    assert status == 1 and "| 5 | 5 Memory: the desk and the door |" in out and "nothing was written" in err
    assert not (tmp_path / "plan").exists()
    assert command(*asked, "--weeks", 12, "--yes")[0] == 0
    assert "2027-02-01,given,ps01\n" in (tmp_path / "plan/dates.csv").read_text()
    status, _, err = command(*asked, "--hours", 8, "--yes")
    assert status == 2 and "syllabus.md is there and stays as it is" in one_line(err)


@pytest.mark.parametrize(
    "words, complaint",
    [
        ((), "say --weeks 12 or --hours 8"),
        (("--weeks", 12, "--hours", 8), "one of the two"),
        (("--hours", 0), "--hours 0: expected 1 to 40"),
        (("--weeks", 12, "--begin", "9999-12-31"), "--begin 9999-12-31: a plan ends before"),
        (("--hours", 8, "--study", 6), "say it with --weeks"),
        (("--weeks", 12, "--study", 2), "a chapter alone takes up to 3."),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(command, words, complaint):
    status, _, err = command("plan", "--course", ROOT, *words)
    assert status == 2 and complaint in one_line(err)


def test_a_file_in_the_place_of_a_folder_is_named_as_a_person_knows_it(command, course, tmp_path):
    (tmp_path / "submitted").touch()
    hand_in(tmp_path / "from", "ada", notebook(course[1]))
    status, _, err = command("collect", "ps01", "--from", tmp_path / "from", "--into", tmp_path / "submitted")
    told = f"stopped: cannot use {tmp_path / 'submitted'}: File exists; what was collected is kept, put"
    assert status == 2 and told in one_line(err)


def test_validate_tells_the_truth_by_its_status(command, course, tmp_path):
    good = hand_in(tmp_path, "ada", notebook(course[1], **answers(course[0])))
    assert command("validate", good)[:2] == (0, f"{good}: ready to hand in\n")
    document = notebook(course[1], **answers(course[0]) | {"explain": ""})
    cells = {cell["id"]: cell for cell in document["cells"]}
    cells["time_it"]["source"] += "\nraise NotImplementedError()"
    cells["launch_plan"]["source"] = "%timeit 1\ndef launch_plan(width, height, block:\n    return 1"
    left = hand_in(tmp_path, "cyd", document)
    status, out, _ = command("validate", left)
    assert status == 0 and out.startswith(f"{left}: can be handed in, but is not finished (3):\n")
    assert (
        'the cell "explain" is as it was handed out' in out and " is `raise NotImplementedError()` s" in out
    )
    assert 'note, syntax-error: the cell "launch_plan" does not run: ' in out and "(line 2)" in out
    bad = hand_in(tmp_path, "bob", "{")
    status, out, _ = command("validate", good, bad)
    assert status == 1
    assert f"{bad}: not-json: the file is not JSON" in out
    missing = tmp_path / "ps01_gone.ipynb"
    status, out, _ = command("validate", missing)
    assert (status, "not-found" in out) == (1, True)


def test_drift_names_the_file_and_the_command(command, course):
    assert command("release", "--check")[0] == 0
    kept = course[1].path.read_bytes()
    edited = kept.replace(b"smallest", b"largest")
    course[1].path.write_bytes(edited)
    status, _, err = command("release", "--check")
    assert status == 1 and course[1].path.read_bytes() == edited
    assert one_line(err) == (
        "autograder: exercises/ps01/ps01_tiny.ipynb is not what solutions/ gives; run `autograder release "
        "ps01`\n"
    )
    assert command("release")[1] == "exercises/ps01/ps01_tiny.ipynb: written, 35 points, not 100\n"
    assert course[1].path.read_bytes() == kept


@pytest.mark.slow
@judged_here()
def test_a_full_disk_is_one_line_and_keeps_what_is_graded(command, course, tmp_path, monkeypatch):
    where = ("--submissions", tmp_path / "in", "--out", tmp_path / "out")
    hand_in(tmp_path / "in", "ada", "{")
    assert command("grade", "ps01", *where)[0] == 0
    hand_in(tmp_path / "in", "bob", "{")
    real = grade.results.write_atomic

    def full(path, data):
        if "bob" in str(path):
            raise OSError(28, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(grade.results, "write_atomic", full)
    status, _, err = command("grade", "ps01", *where)
    assert status == 2
    assert "No space left on device" in one_line(err)
    assert "ada,malformed" in (tmp_path / "out" / "grades.csv").read_text()


@pytest.mark.slow
@judged_here()
def test_grade_prints_the_table_and_where_to_look(command, course, tmp_path):
    hand_in(tmp_path / "in", "ada", notebook(course[1], **answers(course[0])))
    hand_in(tmp_path / "in", "bob", "{")
    status, out, _ = command(
        "grade", "ps01", "--submissions", tmp_path / "in", "--out", tmp_path / "out", "--Grade.seed=5"
    )
    assert status == 0
    for text in ("ada", "graded", "30", "malformed", "not-json", "student code ran ", "grades.csv"):
        assert text in out
    again = command(
        "grade", "ps01", "--submissions", tmp_path / "in", "--out", tmp_path / "out", "--Grade.seed=5"
    )[1]
    assert "2 of 2 unchanged since the last run: not graded again" in again
