"""Hints: for every rubric row in psNN_hints.yml; for failures that can happen in any task in
failure_hints.yml.
"""

import functools
import re
from pathlib import Path

import yaml

SAID_BEFORE = r"^(running the kernel: |`[^`]*` does not exist: its cell stopped with )"  # by the grader


def hints_for(task_name, row):
    """The hints for one row of a rubric, from vague to nearly the answer; none for an unknown row."""
    problem_set, _, short = task_name.partition("/")
    return tuple(_hints_of_set(problem_set).get(short, {}).get(row, ()))


def hints_for_failure(sentence):
    """The hints for a common kind of failure, recognised by how its sentence begins; None for any other."""
    began = re.sub(SAID_BEFORE, "", sentence)
    return next((hints for says, hints in _kinds() if says.match(began)), None)


@functools.cache
def _kinds():
    """(pattern of the sentence's beginning, hints) of each common kind of failure."""
    text = (Path(__file__).parent / "failure_hints.yml").read_text(encoding="utf-8")
    return [(re.compile(kind["says"]), tuple(kind["hints"])) for kind in yaml.safe_load(text)]


@functools.cache
def _hints_of_set(problem_set):
    """{task: {key of a row: [hints]}} of one problem set; {} if it has no file."""
    path = Path(__file__).parent / f"{problem_set}_hints.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
