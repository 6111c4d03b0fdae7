"""grades.csv: nbgrader's scores, with what nbgrader cannot say: ungraded and pending points told apart from 0, and a status."""

import csv
import io
from pathlib import Path

from nbgrader.plugins import ExportPlugin

from autograder.results import Results, write_atomic

COLUMNS = ("assignment", "student_id", "status", "score", "max_score", "ungraded_points", "manual_points_pending",
           "late_penalty", "reason", "isolation")


class GradesExport(ExportPlugin):
    """`nbgrader export` with our configuration: the same file as `autograder grade` writes."""

    def export(self, gradebook):
        out = Path(gradebook.engine.url.database).parent
        write_csv(gradebook, out, Path(self.to or out / "grades.csv"), self.assignment, self.student)


def write_csv(gradebook, out, path, assignments=(), students=()):
    """Write one row for each student and assignment (default: all of them); manual scores given in formgrader count."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for assignment in sorted(gradebook.assignments, key=lambda one: one.name):
        if assignments and assignment.name not in assignments:
            continue
        records = Results(out, assignment.name).all()
        entered = {submission.student_id: submission for submission in assignment.submissions}
        for student in sorted(records.keys() | entered.keys()):
            if students and student not in students:
                continue
            row = row_of(assignment, entered.get(student), records.get(student, {"status": "not graded"}))
            writer.writerow({"assignment": assignment.name, "student_id": student} | row
                            | {key: guard(value) for key, value in (("student_id", student), ("reason", row["reason"]))})
    write_atomic(path, text.getvalue().encode())


def row_of(assignment, submission, record):
    """The figures of one row. A submission that could not be graded has empty figures, never 0."""
    row = dict.fromkeys(COLUMNS[3:], "") | {"status": record["status"], "max_score": f"{assignment.max_score:g}",
                                          "reason": record.get("reason", ""), "isolation": record.get("isolation", "")}
    if submission is None or record["status"] in ("malformed", "missing", "not graded"):
        return row
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    waiting = [grade for grade in grades if grade.auto_score is None and grade.manual_score is None]
    pending = {kind: sum(grade.max_score for grade in waiting if grade.cell.cell_type == kind) for kind in ("code", "markdown")}
    return row | {
        "score": figure(max(0.0, submission.score - submission.late_submission_penalty)),
        "late_penalty": figure(submission.late_submission_penalty),
        "ungraded_points": figure(pending["code"]),
        "manual_points_pending": figure(pending["markdown"]),
    }


def figure(points):
    """Points to the hundredth, as the feedback page has them."""
    return f"{round(points, 2):g}"


def guard(text):
    """A cell that no spreadsheet takes for a formula: a leading = + - @ tab or return gets an apostrophe."""
    text = " ".join(str(text).split("\n"))
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
