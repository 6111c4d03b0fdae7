"""The table of a class: only counts of the judge, only right answers, nobody's name."""

import csv

import pytest
from grading import make_course
from grading import record as record_of

from autograder.class_report.class_table import pseudonyms, rankings, write_table
from autograder.results import Results
from autograder.user_error import UserError
from warplab.tasks import registry

TASK = "ps01/box_blur"
CASE, OTHER = "sectors, 64 x 64", "sectors, 32 x 32"


def record(student, sectors, right="full", case=CASE, task=TASK):
    """A graded answer whose structure row counted so many sectors."""
    item = next(item for item in registry.get(task).items if item.kind == "structure")
    counter = next(
        registry.get(task).bounds_of(one)[item.key].counter
        for one in registry.get(task).cases(0)
        if one.item == item.key
    )
    lines = [
        {"key": "a", "kind": "correctness", "state": right, "counters": {}},
        {
            "key": item.key,
            "kind": "structure",
            "state": "partial",
            "counters": {
                case: {counter.split(" + ")[0]: sectors} | dict.fromkeys(counter.split(" + ")[1:], 0)
            },
        },
    ]
    verdict = {"cells": {"c": {"task": task, "lines": lines}}}
    return record_of(student, "ps01", verdict=verdict)


def test_who_counts_least_stands_first_and_a_wrong_result_or_another_case_in_no_place():
    records = {
        "ada": record("ada", 900),
        "bob": record("bob", 500),
        "cy": record("cy", 1, right="partial"),
        "dan": record("dan", 2, case=OTHER),
        "eve": {"verdict": None},
        "fay": record("fay", float("nan")),
    }
    names = {student: student.upper() for student in records}
    (row,) = [one for one in rankings(registry.get(TASK), records, names) if one.places]
    assert row.case == CASE and row.places == [("BOB", 500), ("ADA", 900)]


def test_pseudonyms_are_one_each_the_same_in_every_run_and_others_with_another_seed():
    students = [f"s{number}" for number in range(600)]  # more than there are pairs of words
    names = pseudonyms(students, 1)
    assert len(set(names.values())) == 600 and names == pseudonyms(reversed(students), 1)
    assert names != pseudonyms(students, 2)


def test_the_page_names_nobody_and_the_list_beside_it_does(tmp_path):
    root, _ = make_course(tmp_path / "course")
    evil = "<b>bob</b>"
    for number, (student, sectors) in enumerate({"ada-lovelace": 900, evil: 1234567}.items()):
        Results(root / "grades", "ps01").write(f"s{number}", record(student, sectors))
    page = root / "grades" / "table.html"
    listed = write_table(root, TASK, root / "grades", page)
    text = page.read_text()
    assert "lovelace" not in text and "bob" not in text and "1,234,567" in text and "900" in text
    with open(listed, newline="") as file:
        names = {row["student"]: row["name"] for row in csv.DictReader(file)}
    assert set(names) == {"ada-lovelace", evil} and all(name in text for name in names.values())
    for wrong, why in (("ps01/box_blurr", "no task is called"), ("ps01/launch_plan", "nobody's answer")):
        with pytest.raises(UserError, match=why):
            write_table(root, wrong, root / "grades", page)
