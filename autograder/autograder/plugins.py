"""Our places in nbgrader's own pipeline: what its commands and formgrader's buttons do is what `autograder grade` does."""

import json
import shutil
from pathlib import Path

from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from traitlets import Bool

from autograder.errors import UserError
from autograder.gradebook import Book
from autograder.grade import Grading
from autograder.judge.judge import Verdict
from autograder.layout import GRADES, SUBMITTED, find_root, load_assignment
from autograder.report import feedback_page
from autograder.results import Results
from autograder.sandbox.choose import choose


class Judge(NotebookExporter):
    """`nbgrader autograde` of one submission: student code runs in the sandbox, never in a kernel.

    nbgrader converts each notebook twice, out of submitted/ and then in grades/autograded/. At the first, `autograder grade` does its
    work on this student and leaves the notebook; the second takes it as it is. Raises UserError where there is nothing to score.
    """

    unsafe = Bool(False, help="Grade without a sandbox, as `autograder grade --unsafe` does.").tag(config=True)

    def from_filename(self, filename, resources=None, **options):
        root, about = find_root(), resources["nbgrader"]
        if Path(filename).resolve().is_relative_to((root / SUBMITTED).resolve()):
            grading = Grading(root, about["assignment"], root / SUBMITTED, root / GRADES, sandbox=choose(self.unsafe), student=about["student"])
            (row,) = grading.rows()
            if row.score is None:
                raise UserError(f"{about['student']}: {row.status}: {row.reason}")
            filename = grading.autograded(about["student"])
            leave_only(filename.parent, (filename.name, "timestamp.txt"))
        return super().from_filename(str(filename), resources, **options)


def leave_only(folder, names):
    """Remove what nbgrader copied along: formgrader serves this folder, and a page that a student put there would run as the instructor."""
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


class Feedback(HTMLExporter):
    """`nbgrader generate_feedback` writes our page: students' text escaped, nothing fetched from elsewhere, ungraded told from 0."""

    def from_filename(self, filename, resources=None, **_):
        root, about = find_root(), resources["nbgrader"]
        assignment, student = load_assignment(root, about["assignment"]), about["student"]
        record = Results(root / GRADES, assignment.name).read(student)
        if record is None:
            raise UserError(f"{root / GRADES} holds no result of {student} for {assignment.name}; run `autograder grade {assignment.name}`")
        notebook = json.loads(Path(filename).read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        with Book(root / GRADES) as book:
            page = feedback_page(assignment, student, record, notebook, Verdict.from_dict(record["verdict"]), book.by_hand(assignment, student))
        return page, resources | {"output_extension": ".html", "outputs": {}}


def markdown2html(source):
    """Markdown to HTML in formgrader's pages, where stock nbgrader lets a student's <script> run as the instructor: markup is shown as text."""
    return MarkdownWithMath(renderer=IPythonRenderer(escape=True, allow_harmful_protocols=False)).render(source)
