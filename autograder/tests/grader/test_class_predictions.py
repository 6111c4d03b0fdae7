"""What a class predicted: read from the judge's notebooks, held against what is counted, worth nothing."""

import pytest
import yaml
from corpus_files import SOLUTIONS
from grading import enter

from autograder.class_report.predictions import KEY, Predicted, predictions, value_of
from autograder.layout import SOLUTIONS as FOLDER
from autograder.layout import load_assignment
from warplab.puzzles.prediction import how_far

ROOT = SOLUTIONS["ps04"].parents[1]
EVIL = "<script>alert(1)</script>"
CLASS = {  # student: what stands in the two places of ps04's cell
    "ada": ("32", "20"),
    "bob": ("64 / 2", "32  # each is read 32 times"),
    "cy": ("32.0", "32,\n    # and more"),
    "dan": ("...", "..."),
    "eve": (repr(EVIL), "__import__('os').system('rm -rf /')"),
    "far": ("9" * 50_000, "1e999"),
}


@pytest.fixture
def graded(tmp_path):
    assignment = load_assignment(ROOT, "ps04")
    cell = next(text for text in assignment.given() if "predict(" in text)
    for student, (requests, sectors) in CLASS.items():
        text = cell.replace('"requests": ...', f'"requests":  {requests}')
        text = text.replace('"sectors": ...', f'"sectors": {sectors}')
        more = "" if student != "eve" else '\npredict({"requests": 1, "' + EVIL + '": 1}, print)'
        cells = [{"source": [text, more], "metadata": {}, "cell_type": "code", "id": "c"}]
        enter(tmp_path, student, assignment, {"cells": cells}, verdict={})
    return assignment, tmp_path


def test_a_class_is_told_by_question_the_least_known_first(graded):
    assignment, out = graded
    assert predictions(assignment, ROOT, out) == [
        Predicted("sectors", 3, "32", "20", 1),
        Predicted("requests", 4, "32", "32", 3),  # the word is counted, and is wrong
    ]


def test_without_the_counts_it_tells_what_was_said(graded, tmp_path):
    assignment, out = graded
    told = predictions(assignment, tmp_path, out)
    assert [(one.said, one.counted, one.hits) for one in told] == [("32", None, None)] * 2


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.", 4), (".5", 0.5), ("1 / 32", 1 / 32), ("1_000", 1000), ("'Overlap '", "overlap")]
    + [(text, None) for text in ("nan", "1e999", "1/0", "9" * 30, "2**2**99", "f()", "_", "'a' * 9", "")],
)
def test_a_value_is_read_and_never_computed(text, value):
    assert value_of(text) == value


def test_the_counts_of_every_question_stand_beside_the_solutions():
    counted = yaml.safe_load((ROOT / FOLDER / "predictions.yml").read_text())
    for name, known in counted.items():
        given = [text for text in load_assignment(ROOT, name).given() if "predict(" in text]
        asked = {key.strip("()").replace('"', "") for text in given for key in KEY.findall(text)}
        assert asked == set(known), name
    assert counted.keys() == {name for name, path in SOLUTIONS.items() if "predict(" in path.read_text()}


@pytest.mark.full
@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_counts_are_those_of_the_solutions(name, monkeypatch, tmp_path):
    from autograder.sandbox.messages import Cell
    from autograder.sandbox.student import execute
    from warplab import check
    from workshop.mutants.notebook_cells import code_cells

    came = {}

    def predict(predicted, count, found=""):
        came.update({what: count(what) for what in predicted})

    monkeypatch.setattr(check, "predict", predict)
    monkeypatch.setattr(check, "grade", lambda *asked, **named: 0.0)
    monkeypatch.setattr(check, "puzzle", lambda *asked: None)
    namespace = {"__name__": "__main__"}
    for number, (_, source) in enumerate(code_cells(SOLUTIONS[name])):
        execute(Cell(f"c{number}", source.strip()), namespace)
    counted = yaml.safe_load((ROOT / FOLDER / "predictions.yml").read_text()).get(name, {})
    labels = {", ".join(map(str, what)) if isinstance(what, tuple) else str(what): what for what in came}
    wrong = [label for label, said in counted.items() if how_far(said, came[labels[label]]) == "another"]
    wrong += [
        label
        for label, said in counted.items()
        if not isinstance(said, str) and abs(said - came[labels[label]]) > 1e-3 * abs(said)
    ]
    assert wrong == []
