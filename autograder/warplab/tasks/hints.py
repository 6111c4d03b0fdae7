"""The hints of every rubric row: data in psNN_hints.yml, beside the tasks of the set."""

import functools
from pathlib import Path

import yaml


def hints_for(task_name, row):
    """Hints for one row of a rubric, from where to look to nearly the answer; none for an unknown row."""
    problem_set, _, short = task_name.partition("/")
    return tuple(_hints_of_set(problem_set).get(short, {}).get(row, ()))


@functools.cache
def _hints_of_set(problem_set):
    """{task: {key of a row: [hints]}} of one problem set; empty where it has no file."""
    path = Path(__file__).parent / f"{problem_set}_hints.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
