"""Times of arrival: the collector's word, in plain ISO, never what a student wrote beside the notebook."""

import csv
import json
import os
from datetime import datetime

import pytest
from grading import answers, judged_here, make_course, notebook
from grading import grading as made_grading
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from autograder.receipt import exchange_time, received_times, utc
from autograder.sandbox import Unsafe
from autograder.user_error import UserError

TEN = """
from nbgrader.plugins import LateSubmissionPlugin
class Ten(LateSubmissionPlugin):
    def late_submission_penalty(self, *_):
        return 10
c.AssignLatePenalties.plugin_class = Ten
"""
DUE = "2026-02-01 12:00:00"
LATE, PUNCTUAL = "2026-02-01T12:00:01Z", "2026-02-01T11:59:59Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-02 10:00", datetime(2026, 3, 2, 10)),
        ("2026-03-02 10:00 UTC", datetime(2026, 3, 2, 10)),
        ("2026-03-02T10:00:07Z", datetime(2026, 3, 2, 10, 0, 7)),
        ("2026-03-02T10:00:00+01:00", datetime(2026, 3, 2, 9)),
        ("2026-03-02 10:00:00 -0530", datetime(2026, 3, 2, 15, 30)),
        ("2026-03-02 10:00:00.250000 UTC", datetime(2026, 3, 2, 10, 0, 0, 250_000)),
    ],
)
def test_an_iso_time_is_told_in_utc(text, moment):
    assert utc(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "tomorrow",
            "2026-02-30 10:00",
            "2026-03-02",
            "10:00",
            "2026-03-02 25:00",
            "2026-03-02 10:00 CET",
        ),
        *(
            "2001-01-01 12:00:00 ..",
            "12h20010101120000 x /etc/passwd",
            "2026-03-02 10:00 UTC\n",
            "20260302T1000",
        ),
        *(
            "0001-01-01 00:00 +23:59",
            "9999-12-31 23:59 -2359",
            "\u0662026-03-02 10:00",
            "2026-03-02 10:00:00.1234567",
        ),
    ],
)
def test_any_other_text_is_no_time(text):
    assert utc(text) is None


@pytest.mark.slow
@given(st.text() | st.from_regex(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( [+-]\d{4})?", fullmatch=True))
def test_no_text_is_an_error(text):
    moment = utc(text)
    assert moment is None or moment.tzinfo is None


def test_a_list_of_times_is_read_by_its_columns(tmp_path):
    file = tmp_path / "times.csv"
    file.write_text(
        '\ufeffgroup,student,time\na,ada,2026-03-02T10:00:00Z\nb,"Lovelace, Ada", 2026-03-02 11:00 \n'
    )
    assert received_times(file) == {
        "ada": datetime(2026, 3, 2, 10),
        "Lovelace, Ada": datetime(2026, 3, 2, 11),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ada,2026-03-02T10:00:00Z\n", "columns student and time"),
        ("", "columns student and time"),
        ("student,time\nada,soon\n", "line 2: 'soon' is no time"),
        ("student,time\nada\n", "line 2: '' is no time"),
        ("student,time\nada,2026-03-02 10:00\nada,2026-03-02 11:00\n", "line 3: 'ada' stands there twice"),
        (b"student,time\n\xff,2026-03-02 10:00\n", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_a_list_that_is_none_is_told_by_its_line(tmp_path, text, why):
    file = tmp_path / "times.csv"
    if text is not None:
        file.write_bytes(text if type(text) is bytes else text.encode())
    with pytest.raises(UserError, match=why):
        received_times(file)


def test_the_exchange_leaves_a_plain_file(tmp_path):
    file = tmp_path / "timestamp.txt"
    assert exchange_time(tmp_path) is None
    file.write_text("2026-03-02 10:00:00.5 UTC\n")
    assert exchange_time(tmp_path) == datetime(2026, 3, 2, 10, 0, 0, 500_000)
    file.rename(tmp_path / "other")
    for make in (
        lambda: file.symlink_to("other"),
        file.mkdir,
        lambda: os.mkfifo(file),
        lambda: file.symlink_to("/dev/zero"),
        lambda: file.write_bytes(b"\xff" * 100),
        lambda: file.write_text(" " * 100 + "2026-03-02 10:00"),
    ):
        make()
        assert exchange_time(tmp_path) is None
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    with judged_here():
        root, assignment = make_course(tmp_path_factory.mktemp("receipt") / "course")
        with open(root / "nbgrader_config.py", "a") as config:
            config.write(TEN)
        right = json.dumps(notebook(assignment, **answers(root)))
        home = root / "submitted/ada/ps01"
        home.mkdir(parents=True)
        (home / "ps01_tiny.ipynb").write_text(right)
        yield root


def graded(root, **options):
    """The row of grades.csv, and who has no time."""
    grading = made_grading(
        root, "ps01", root / "submitted", root / "grades", seed=1, sandbox=Unsafe(), **options
    )
    (row,) = grading.rows()
    with open(root / "grades/grades.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert row.score == float(line["score"])
    return line["score"], line["late_penalty"], row.fresh, grading.without_time


@pytest.mark.slow
def test_lateness_follows_the_one_who_collects(course, tmp_path):
    assert graded(course) == ("30", "0", True, []), "no due date: nobody asks for times"
    with Gradebook(f"sqlite:///{course / 'grades/gradebook.db'}") as gradebook:
        gradebook.update_or_create_assignment("ps01", duedate=DUE)
    stamp, times = course / "submitted/ada/ps01/timestamp.txt", tmp_path / "times.csv"

    def say(text):
        times.write_text(f"student,time\nada,{text}\n")
        return times

    stamp.write_text("2001-01-01 12:00:00 UTC")
    assert graded(course) == ("30", "0", False, ["ada"]), "what the student wrote is not read"
    assert graded(course, received=say(LATE)) == ("20", "10", False, [])
    assert graded(course) == ("20", "10", False, []), "the gradebook keeps the time"
    next((course / "grades/feedback").rglob("*.html")).unlink()
    assert graded(course) == ("20", "10", True, []), "also when the same file is graded again"
    assert graded(course, received=say(PUNCTUAL)) == ("30", "0", False, [])
    assert graded(course, received=say(LATE)) == ("20", "10", False, [])
    file = stamp.with_name("ps01_tiny.ipynb")
    file.write_text(file.read_text() + "\n")
    assert graded(course) == ("30", "0", True, ["ada"]), "an earlier notebook's time says nothing of this one"
    stamp.write_text(LATE)
    assert graded(course) == ("30", "0", False, ["ada"])
    assert graded(course, exchange=True) == ("20", "10", False, [])
