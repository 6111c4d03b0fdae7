"""Plugins for nbgrader, named in nbgrader_config.py.

With them nbgrader's commands and formgrader's buttons grade as `autograder grade` does, and formgrader's
pages run no markup of a student's.
"""

import html
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import nbformat
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from mistune import HTMLRenderer
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from traitlets import Bool, default

from autograder.grade import Asked, Grading
from autograder.gradebook import CourseGradebook
from autograder.layout import GRADES, SUBMITTED, find_root, load_assignment
from autograder.report.page import Pages, read_autograded
from autograder.results import Results
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from autograder.worked import worked
from autograder.workers.pool import Threads
from autograder.written_answers import OurHtml, panels

MOST_CHARACTERS, LONGEST_LINE = 10_000, 2_000  # of a cell rendered as Markdown; the sets have 3,020 and 318
LINKED = ("https://", "http://", "mailto:")  # addresses that stay links; others become text


class Judge(NotebookExporter):
    """`nbgrader autograde` of one submission: student code runs in the sandbox, never in a kernel.

    nbgrader converts each notebook twice, first from submitted/, then in grades/autograded/. The first time
    this runs `autograder grade` for the one student, which writes the judged notebook; the second time it
    passes that notebook on unchanged. Raises UserError where the submission got no score.
    """

    rounds: ClassVar[WeakKeyDictionary[object, int]] = WeakKeyDictionary()
    """{the nbgrader command (`parent`): its round of inputs}: all that one command converts share a round."""

    unsafe = Bool(False, help="Grade without a sandbox, as `autograder grade --unsafe`.").tag(config=True)

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        assert resources is not None  # nbgrader's commands always give them
        root, about = find_root(), resources["nbgrader"]
        if Path(filename).resolve().is_relative_to((root / SUBMITTED).resolve()):
            # nbgrader's own command has taken the time of arrival from the exchange already
            asked = Asked(students=[about["student"]], exchange=True, fresh=self.rounds.get(self.parent))
            pool, folders = Threads(choose(self.unsafe)), (root / SUBMITTED, root / GRADES)
            grading = Grading(root, about["assignment"], *folders, asked, pool=pool)
            self.rounds[self.parent] = grading.fresh
            (row,) = grading.rows()
            if row.score is None:
                raise UserError(f"{about['student']}: {row.status}: {row.reason}")
            judged = grading.pages.autograded(about["student"])
            leave_only(judged.parent, (judged.name, "timestamp.txt"))
            filename = str(judged)
        return super().from_filename(filename, resources, **options)


def leave_only(folder: Path, names: Collection[str]) -> None:
    """Remove everything but `names` from a folder into which nbgrader has copied a submission.

    formgrader serves this folder, so a student's HTML file in it would run with the instructor's session.
    """
    for path in folder.iterdir():
        if path.name in names:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class Feedback(HTMLExporter):
    """`nbgrader generate_feedback` that writes the page of autograder.report.

    Students' text is escaped, no other server is asked, and ungraded is shown apart from 0.
    """

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **_: Any
    ) -> tuple[str, dict[str, Any]]:
        assert resources is not None  # nbgrader's commands always give them
        root, about = find_root(), resources["nbgrader"]
        assignment, student = load_assignment(root, about["assignment"]), about["student"]
        record = Results(root / GRADES, assignment.name).read(student)
        if record is None:
            raise UserError(
                f"{root / GRADES} holds no result of {student} for {assignment.name}; "
                f"run `autograder grade {assignment.name}`"
            )
        with CourseGradebook(root / GRADES) as book:
            pages = Pages(root / GRADES, assignment, worked(root, assignment.name))
            page = pages.page(book, record, read_autograded(Path(filename)))
        return page, resources | {"output_extension": ".html", "outputs": {}}


def markdown2html(source: str) -> str:
    """Markdown to HTML for formgrader's pages, with HTML in it shown as text.

    Stock nbgrader would run a student's <script> with the instructor's session.
    """
    if isinstance(source, OurHtml):
        return source
    if not renders_quickly(source):
        return verbatim(source)
    return MarkdownWithMath(renderer=InertRenderer(escape=True)).render(source)


class InertRenderer(HTMLRenderer):
    """Renders Markdown to HTML that loads nothing, runs nothing and has no ids.

    It stands in for nbconvert's renderer, which MarkdownWithMath expects. That one passes a diagram's text on
    as HTML, fails at a pasted image, and gives headings ids, although formgrader finds its fields for points
    by id. An image would be a request with the instructor's cookies: one of /logout would end the session.
    """

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """The image's text and address, as text."""
        return f"[{text}: {html.escape(url)}]"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """An external link, opened without a referrer; any other address as text."""
        if not url.lower().startswith(LINKED):
            return f"{text} ({html.escape(url)})"
        return f'<a href="{html.escape(url)}" target="_blank" rel="noopener noreferrer">{text}</a>'

    def inline_math(self, body: str) -> str:
        """The formula's source for MathJax, escaped; so do the next two."""
        return f"${html.escape(body)}$"

    def block_math(self, body: str) -> str:
        return f"$${html.escape(body)}$$"

    def latex_environment(self, name: str, body: str) -> str:
        return f"\\begin{{{html.escape(name)}}}{html.escape(body)}\\end{{{html.escape(name)}}}"


def highlight_code(source: str, language: str | None = None, metadata: dict[str, Any] | None = None) -> str:
    """Python code to highlighted HTML for formgrader's pages."""
    if not renders_quickly(source):
        return verbatim(source)
    return Highlight2HTML(pygments_lexer="ipython3")(source, language, metadata)


class SubmissionExporter(HTMLExporter):
    """Formgrader's page of a submission, with mathjax.html.j2 of written_answers/ in place of nbconvert's."""

    @default("extra_loaders")
    def _ours_first(self) -> list[FileSystemLoader]:
        return [FileSystemLoader(Path(__file__).with_name("written_answers"))]


class PageOfASubmission(Preprocessor):
    """Prepares formgrader's page of a submission: escapes or hides names, adds rubrics to written answers."""

    anonymous = Bool(False, help="Show no name, and say so on the page.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Insert a panel after each written answer; a script of the page moves it to the answer's side."""
        told = ("student", "first_name", "last_name", "notebook_path")
        shown = {key: html.escape(resources[key]) for key in told if resources.get(key)}
        cells = list(nb.cells)
        if self.anonymous:
            shown = dict.fromkeys(told, "") | {"student": "(name withheld)"}
            note = '<p class="withheld">Names are withheld: PageOfASubmission.anonymous</p>'
            cells.insert(0, nbformat.v4.new_markdown_cell(OurHtml(note)))
        root = find_root()
        database = f"sqlite:///{root / GRADES / 'gradebook.db'}"
        assignment = load_assignment(root, resources["assignment_id"])
        for cell, panel in panels(root, assignment, database, markdown2html).items():
            at = [one.metadata.get("nbgrader", {}).get("grade_id") for one in cells].index(cell)
            cells.insert(at + 1, nbformat.v4.new_markdown_cell(panel))
        nb.cells = cells
        return nb, resources | shown


def escaping_environment(**options: Any) -> Environment:
    """The Jinja2 environment of formgrader's other pages, which escapes addresses and student names.

    Stock nbgrader's environment escapes nothing, so that a link to formgrader could carry a script.
    """
    return Environment(autoescape=True, finalize=_escaped, **options)


def _escaped(value: object) -> object:
    """Escape a string, except for apostrophes: formgrader puts ids such as O'Brien into a script's text."""
    return Markup(html.escape(value, quote=False).replace('"', "&#34;")) if type(value) is str else value


def renders_quickly(source: str) -> bool:
    """Whether Markdown or Python of this length surely renders within a second.

    Some patterns of mistune and Pygments take time quadratic in a line's or the text's length: a cell of
    200,000 characters blocks formgrader's only thread for minutes.
    """
    return len(source) <= MOST_CHARACTERS and max(map(len, source.split("\n"))) <= LONGEST_LINE


def verbatim(source: str) -> str:
    """Text as preformatted HTML."""
    return f"<pre>{html.escape(source)}</pre>"
