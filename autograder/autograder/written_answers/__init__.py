"""Written answers in formgrader: the sample answer and the rubric beside the student's text."""

from collections import Counter
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook

from autograder.gradebook.standing import whole_class
from autograder.layout import Assignment
from autograder.release.sample_answer import TICKED, sample_answers
from warplab.rendering import render

REUSED = 12  # comments that are offered again


class OurHtml(str):
    """The source of a cell that formgrader shows as HTML; what a notebook's file holds is never one."""


def panels(root: Path, assignment: Assignment, database: str, html: Any) -> dict[str, OurHtml]:
    """{grade id: what stands beside the answer}. html: makes HTML of Markdown."""
    written = sample_answers(root, assignment)
    known = comments(database, assignment.name)
    return {
        cell: OurHtml(
            render(
                "autograder.written_answers",
                "panel.html.j2",
                cell=cell,
                text=html(answer.text),
                items=answer.lines.values(),
                comments=[text for text, _ in known.get(cell, Counter()).most_common(REUSED)],
            )
        )
        for cell, answer in written.items()
    }


def comments(database: str, name: str) -> dict[str, Counter[str]]:
    """{grade id: lines of comments that were written on this answer, with their number}, but no rubric's."""
    found: dict[str, Counter[str]] = {}
    with Gradebook(database) as book:
        for submission in whole_class(book, name).values():
            for comment in (comment for part in submission.notebooks for comment in part.comments):
                lines = TICKED.sub("", comment.manual_comment or "").splitlines()
                found.setdefault(comment.name, Counter()).update(filter(None, map(str.strip, lines)))
    return found
