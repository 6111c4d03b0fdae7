"""Regrade requests: a file beside each student's notebook, and one table for the instructor's answers.

A request is Markdown in the format of GitHub's issue forms: the headings `### Task` and `### Why` for each
task. OUT/<set>.requests.csv lists the requests with the rubric rows that lost points; a person fills in its
column `answer`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from autograder.csv_tables import guard, read_rows
from autograder.discover import find_submissions
from autograder.layout import Assignment
from autograder.results import Results, StoredRecord, write_rows

COLUMNS = ("student", "task", "points", "rows", "asks", "answer")
PART = re.compile(r"^### *(Task|Why)\s*$\n", re.MULTILINE | re.IGNORECASE)


def requests_in(text: str) -> list[tuple[str, str]]:
    """[(task, why)] in one file; [("", the whole text)] where it lacks the headings."""
    _, *parts = PART.split(text)
    if not parts:
        return [("", text.strip())]
    found: list[tuple[str, str]] = []
    for kind, words in zip(parts[::2], parts[1::2], strict=True):
        if kind.lower() == "task":
            found.append((words.strip(), ""))
        elif found:
            found[-1] = (found[-1][0], words.strip())
    return found


def rows_of(record: StoredRecord | None, task: str) -> tuple[str, str]:
    """(points, rubric rows that lost points) of a task in a stored result, in words."""
    cells = (record and record["verdict"] or {"cells": {}})["cells"].values()
    mine = [cell for cell in cells if task in (cell["task"], cell["grade_id"])]
    if not mine:
        named = ", ".join(dict.fromkeys(cell["task"] or cell["grade_id"] for cell in cells))
        return "", f"no task of this name; there are {named}" if named else "no work was judged"
    points = " + ".join("open" if cell["points"] is None else f"{cell['points']:g}" for cell in mine)
    lost = [line for cell in mine for line in cell["lines"] if line["state"] in ("partial", "lost")]
    told = [f"{line['title']} {line['points']:g} of {line['max']:g}: {line['reason']}" for line in lost]
    return f"{points} of {sum(cell['max'] for cell in mine):g}", "; ".join(told)


def list_requests(assignment: Assignment, out: Path, submissions: Path) -> list[dict[str, str]]:
    """Write the table of requests anew, keeping the answers in it. Returns its rows as {column: text}."""
    known = {(row["student"], row["task"], row["asks"]): row["answer"] for row in answered(out, assignment)}
    records, rows = Results(out, assignment.name).all(), list[dict[str, str]]()
    for one in find_submissions(submissions, assignment):
        file, student = one.home / assignment.name / "regrade.md", one.student
        if file.is_file() and not file.is_symlink():
            for task, why in requests_in(file.read_text(encoding="utf-8", errors="replace")):
                points, lost = rows_of(records.get(student), task)
                told = [guard(" ".join(part.split())) for part in (student, task, points, lost, why)]
                rows.append(
                    dict(zip(COLUMNS, [*told, known.get((told[0], told[1], told[4]), "")], strict=True))
                )
    write_rows(out / f"{assignment.name}.requests.csv", [COLUMNS, *(row.values() for row in rows)])
    return rows


def answered(out: Path, assignment: Assignment) -> Iterator[dict[str, str]]:
    """Yield the rows of the table; none if there is no table."""
    file = out / f"{assignment.name}.requests.csv"
    if file.exists():
        yield from (row for _, row in read_rows(file, COLUMNS))
