"""Predictions: nothing is counted before everything is said, and then both stand side by side."""

import re

import pytest
from corpus_files import SOLUTIONS

from autograder.sandbox import student
from warplab import check
from warplab.puzzles import prediction

TWICE = ("ps05", "ps07")  # sets in which two cells predict


def refused(_):
    raise AssertionError("counted too early")


def test_nothing_is_counted_before_all_is_said(capsys):
    assert check.predict({1: ..., 8: ...}, refused) is False
    assert check.predict({1: 4, 8: ...}, refused) is False
    assert "Predict first" in (told := capsys.readouterr().out) and "(left: 8)" in told


def test_what_was_said_stands_beside_the_count(capsys):
    counts = {(1, 0): 4, (8, 0): 32, (1, 3): 5, "best": "overlap"}
    said = {(1, 0): 4, (8, 0): 8, (1, 3): 10, "best": "Overlap"}
    assert check.predict(said, counts.get) is True
    assert capsys.readouterr().out.splitlines() == [
        "1, 0: you said 4, counted 4: right",
        "8, 0: you said 8, counted 32: 4 times as much",
        "1, 3: you said 10, counted 5: 0.5 of it",
        "best: you said Overlap, counted overlap: right",
    ]


@pytest.mark.parametrize("said", [float("nan"), True, [4], None])
def test_what_cannot_be_compared_is_told_and_not_counted(said, capsys):
    assert check.predict({1: said}, refused) is False
    assert re.search("neither|Predict first", capsys.readouterr().out)


def test_a_stub_and_text_of_a_student_are_told_and_escaped(capsys):
    def stub(_):
        raise NotImplementedError()

    assert check.predict({1: 4}, stub) is False
    assert "There is nothing to compare with yet" in capsys.readouterr().out
    for nothing in (None, float("nan")):  # a kernel that wrote nothing, a function without a return
        assert check.predict({1: 4}, lambda _, nothing=nothing: nothing) is False
        assert "of 1 came" in capsys.readouterr().out
    assert "<b>" not in prediction.Compared([("<b>", "<b>", "1", "right")], "counted")._repr_html_()


def test_the_sets_ask_first_and_no_cell_prints_a_count_beside(capsys):
    for name, text in ((name, path.read_text()) for name, path in SOLUTIONS.items()):
        asked = text.count("predict(\n") + text.count("predict({")
        explained = text.count('manual="predict_explain"')
        assert asked == (2 if name in TWICE else explained), name
    assert student.unasked({1: ...}, refused, found="counted") is None
