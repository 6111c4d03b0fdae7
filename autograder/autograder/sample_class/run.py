"""Grades the sample class and compares every grade with expected.yml."""

from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from autograder.grade import Asked, Grading
from autograder.layout import load_assignment
from autograder.release.source import get_task
from autograder.results import StoredRecord
from autograder.sample_class.build import build_class, members
from autograder.sandbox import Launcher
from autograder.sandbox.choose import NoSandbox, choose
from autograder.user_error import UserError, tell
from autograder.workers.pool import Threads

EXPECTED = Path(__file__).with_name("expected.yml")
SEED = 2026


def expected_grades() -> dict[str, dict[str, dict[str, Any]]]:
    """{"ps01": {"perfect": {status, score, ungraded, manual, cells}, ...}, ...}"""
    return yaml.safe_load(EXPECTED.read_text(encoding="utf-8"))


def grade_sample(root: str | Path, out: str | Path, console: Console) -> list[str]:
    """Build and grade the class in `out`; print its tables and where to look next.

    Returns the differences from expected.yml as sentences.
    """
    from autograder.follow import follow
    from autograder.show import grades_table

    wrong: list[str] = []
    old = total = 0
    pool = Threads(launcher_for_our_own(), 2)
    pages: list[Path] = []
    for name in members():
        if not all(get_task(task).is_judged_here() for task in load_assignment(root, name).tasks()):
            tell(console, f"{name} is left out: there is no Triton for this machine.")
            continue
        submissions = Path(out) / "submitted" / name
        build_class(root, name, submissions)
        grading = Grading(root, name, submissions, Path(out) / "grades", Asked(seed=SEED), pool=pool)
        rows = follow(console, grading)
        console.print(grades_table(grading.assignment.notebook, grading.assignment.max_score, rows))
        failed = [row for row in rows if row.status == "not graded"]
        if failed:
            raise UserError(f"sample class {name}/{failed[0].student}: {failed[0].reason}")
        wrong += compare(name, grading)
        pages.append(grading.pages.feedback("partly-right"))
        old, total = old + sum(not row.fresh for row in rows), total + len(rows)
    right = total - len({text.split(":")[0] for text in wrong})
    tell(
        console,
        f"Sample class: {total} submissions, {right} graded as expected, {old} unchanged since the last run.",
    )
    tell(console, f"Student code ran {pool.isolation}.")
    tell(console, f"Look at {out}/grades/grades.csv")
    tell(console, f"and open {pages[-1]}")
    tell(console, f"Table of the class: autograder report ps13 --grades {out}/grades --table ps13/train_mlp")
    return wrong


def launcher_for_our_own() -> Launcher:
    """A sandbox, or Unsafe where none works: for the course's own code, which needs none."""
    try:
        return choose()
    except NoSandbox:
        return choose(unsafe=True)


def compare(name: str, grading: Grading) -> list[str]:
    """A sentence "ps04/perfect: ..." for every stored result that differs from expected.yml."""
    wrong: list[str] = []
    for student, want in expected_grades()[name].items():
        got = outcome(grading.stored.read(student))
        if got != want:
            keys = [key for key in want if got.get(key) != want[key]]
            differences = ", ".join(f"{key} is {got.get(key)}, expected {want[key]}" for key in keys)
            wrong.append(f"{name}/{student}: {differences}")
    return wrong


def outcome(record: StoredRecord | None) -> dict[str, Any]:
    """A stored record in the form of expected.yml."""
    if record is None or record["verdict"] is None:
        return {"status": record["status"] if record else "missing"}
    cells = {
        key: cell["points"] if cell["points"] is not None else cell["state"]
        for key, cell in record["verdict"]["cells"].items()
    }
    return {
        "status": record["status"],
        "score": round(sum(points for points in cells.values() if not isinstance(points, str)), 2),
        "cells": cells,
    }
