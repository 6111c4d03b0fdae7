"""Our places in nbgrader's own pipeline.

What its commands and formgrader's buttons do is what `autograder grade` does.
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

MOST_CHARACTERS, LONGEST_LINE = 10_000, 2_000  # that formgrader renders; the problem sets have 3,020 and 318
ELSEWHERE = ("https://", "http://", "mailto:")


class Judge(NotebookExporter):
    """`nbgrader autograde` of one submission: student code runs in the sandbox, never in a kernel.

    nbgrader converts each notebook twice, out of submitted/ and then in grades/autograded/. At the first,
    `autograder grade` does its work on this student and leaves the notebook; the second takes it as it is.
    Raises UserError where there is nothing to score.
    """

    rounds: ClassVar[WeakKeyDictionary[object, int]] = WeakKeyDictionary()
    """One round of inputs for all that one command converts: `parent` is that command."""

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
    """Remove what nbgrader copied along.

    formgrader serves this folder, and a page that a student put there would run as the instructor.
    """
    for path in folder.iterdir():
        if path.name in names:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class Feedback(HTMLExporter):
    """`nbgrader generate_feedback` writes our page.

    Students' text is escaped, nothing is fetched from elsewhere, ungraded is told from 0.
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
    """Markdown to HTML in formgrader's pages, with markup shown as text.

    Stock nbgrader lets a student's <script> run there as the instructor.
    """
    if isinstance(source, OurHtml):
        return source
    if not is_soon_read(source):
        return as_it_is(source)
    return MarkdownWithMath(renderer=Quiet(escape=True)).render(source)


class Quiet(HTMLRenderer):
    """HTML that does nothing in a browser until somebody clicks on a link, and names no part of the page.

    nbconvert's renderer, which MarkdownWithMath expects, passes a diagram's text on as HTML, ends with an
    error at a pasted image, and gives headings ids: formgrader finds its fields for points by ids. An image
    is a request with the instructor's cookies, so that one of /logout would end their session.
    """

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """What it is called and where it would come from."""
        return f"[{text}: {html.escape(url)}]"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link to elsewhere, which learns nothing of this server; any other as text."""
        if not url.lower().startswith(ELSEWHERE):
            return f"{text} ({html.escape(url)})"
        return f'<a href="{html.escape(url)}" target="_blank" rel="noopener noreferrer">{text}</a>'

    def inline_math(self, body: str) -> str:
        """For MathJax, as the two below."""
        return f"${html.escape(body)}$"

    def block_math(self, body: str) -> str:
        return f"$${html.escape(body)}$$"

    def latex_environment(self, name: str, body: str) -> str:
        return f"\\begin{{{html.escape(name)}}}{html.escape(body)}\\end{{{html.escape(name)}}}"


def highlight_code(source: str, language: str | None = None, metadata: dict[str, Any] | None = None) -> str:
    """Coloured Python in formgrader's pages."""
    if not is_soon_read(source):
        return as_it_is(source)
    return Highlight2HTML(pygments_lexer="ipython3")(source, language, metadata)


class SubmissionExporter(HTMLExporter):
    """Formgrader's page of a submission, with our file in place of nbconvert's that loads MathJax."""

    @default("extra_loaders")
    def _ours_first(self) -> list[FileSystemLoader]:
        return [FileSystemLoader(Path(__file__).with_name("written_answers"))]


class PageOfASubmission(Preprocessor):
    """What formgrader's page of a submission shows: names as text, or none; the rubric beside an answer."""

    anonymous = Bool(False, help="Show no name, and say so on the page.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Puts what stands beside a written answer behind it; a script moves it."""
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
    """For formgrader's other pages: what stands in an address, or in a student's name, is text there.

    Stock nbgrader's environment escapes nothing, so that a link to formgrader itself may hold a script.
    """
    return Environment(autoescape=True, finalize=_escaped, **options)


def _escaped(value: object) -> object:
    """As Jinja2 does it, but with the apostrophe of O'Brien, whose id stands in a script's text."""
    return Markup(html.escape(value, quote=False).replace('"', "&#34;")) if type(value) is str else value


def is_soon_read(source: str) -> bool:
    """Whether Markdown and Python of this length are surely rendered within a second.

    The patterns of mistune and Pygments take time with the square of a line's length, some of the text's:
    a cell of 200,000 characters keeps formgrader's one thread for minutes.
    """
    return len(source) <= MOST_CHARACTERS and max(map(len, source.split("\n"))) <= LONGEST_LINE


def as_it_is(source: str) -> str:
    """Text as HTML that shows it, letter by letter."""
    return f"<pre>{html.escape(source)}</pre>"
