"""Ctrl-C comes between two pieces of work, wherever it was pressed."""

import os
import signal

import pytest
from grading import answers, hand_in, make_course, notebook
from grading import grading as made_grading

from autograder.gradebook import CourseGradebook
from autograder.sandbox import Unsafe
from autograder.workers.interrupts import deferred_interrupts, stop_if_asked


@pytest.fixture(autouse=True)
def heeded():
    """Ctrl-C as a person's terminal has it, also where these tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_it_is_kept_until_somebody_looks_and_a_second_one_is_not():
    with deferred_interrupts():
        press()
        with pytest.raises(KeyboardInterrupt):
            stop_if_asked()
        stop_if_asked()
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_where_it_is_ignored_it_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupts():
            press()
            stop_if_asked()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_grade_that_is_being_written_is_written_whole(tmp_path, monkeypatch):
    root, assignment = make_course(tmp_path / "course")
    for student in ("ada", "bob", "eve"):
        hand_in(tmp_path / "in", student, notebook(assignment, **answers(root)))
    save = CourseGradebook.save

    def interrupted(*arguments):
        press()
        return save(*arguments)

    monkeypatch.setattr(CourseGradebook, "save", interrupted)

    def rows():
        return made_grading(root, "ps01", tmp_path / "in", tmp_path / "out", seed=3, sandbox=Unsafe()).rows()

    with pytest.raises(KeyboardInterrupt):
        list(rows())
    monkeypatch.setattr(CourseGradebook, "save", save)
    first = [row.student for row in rows() if not row.fresh]
    assert len(first) == 1
