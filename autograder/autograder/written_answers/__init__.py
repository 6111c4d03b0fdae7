"""Written answers in formgrader: the sample answer and the rubric beside the student's text."""

from collections import Counter
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook

from autograder.gradebook.standing import whole_class
from autograder.layout import Assignment
from autograder.release.sample_answer import TICKED, sample_answers
from warplab.rendering import render

REUSED = 12  # earlier comments that are offered for an answer


class OurHtml(str):
    """HTML made by the grader, which formgrader shows as it is; a notebook file never contains one."""


def panels(root: Path, assignment: Assignment, database: str, html: Any) -> dict[str, OurHtml]:
    """{grade id: HTML to show beside the written answer}. database: URL. html: renders Markdown to HTML."""
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
    """{grade id: how often each line occurs in comments on this answer}, without ticked rubric items."""
    found: dict[str, Counter[str]] = {}
    with Gradebook(database) as book:
        for submission in whole_class(book, name).values():
            for comment in (comment for part in submission.notebooks for comment in part.comments):
                lines = TICKED.sub("", comment.manual_comment or "").splitlines()
                found.setdefault(comment.name, Counter()).update(filter(None, map(str.strip, lines)))
    return found
