"""nbgrader's settings for this course: `nbgrader generate_assignment`, `autograde`,
`formgrader`, `generate_feedback`, `export`.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader provides it)

root = Path(__file__).resolve().parent

c.CourseDirectory.course_id = "how-a-gpu-works"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "_build/source"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "grades/autograded"
c.CourseDirectory.feedback_directory = "grades/feedback"
c.CourseDirectory.db_url = f"sqlite:///{root / 'grades' / 'gradebook.db'}"
(root / "grades").mkdir(mode=0o700, exist_ok=True)
# nbgrader calls the program alembic when it makes a gradebook; it stands beside this
# Python, on the PATH or not.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# Written answers have no test: the whole text is the stub.
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# Student code never runs in nbgrader's kernel: `autograder grade` does the work for its
# commands too, late penalties included.
c.Autograde.exporter_class = "autograder.plugins.Judge"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = []
c.GenerateFeedback.exporter_class = "autograder.plugins.Feedback"
c.ExportApp.plugin_class = "autograder.gradebook.export.GradesExport"

# Formgrader shows students' Markdown in the instructor's browser, beside a server that
# runs what it is told: no markup of theirs, and no text that keeps that server for minutes.
c.HTMLExporter.filters = {
    "markdown2html": "autograder.plugins.markdown2html",
    "highlight_code": "autograder.plugins.highlight_code",
}
# Its templates take names and addresses for HTML, too. The sample answer stands beside a written one.
c.HTMLExporter.preprocessors = ["autograder.plugins.PageOfASubmission"]
# c.PageOfASubmission.anonymous = True   # shows no names while you read
if "nbgrader.server_extensions.formgrader.formgrader" in sys.modules:
    from autograder.plugins import SubmissionExporter, escaping_environment

    formgrader = sys.modules["nbgrader.server_extensions.formgrader.formgrader"]
    formgrader.Environment = escaping_environment
    formgrader.HTMLExporter = SubmissionExporter
