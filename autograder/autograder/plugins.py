"""Our places in nbgrader's own pipeline: `nbgrader autograde` restores, judges and scores exactly as `autograder grade`."""

import json

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool

from autograder import results
from autograder.judge.judge import judge_notebook, make_cases
from autograder.layout import find_root, load_assignment
from autograder.report import autograded_notebook
from autograder.sandbox.choose import choose
from autograder.validate.check import Defect, Malformed, parse
from autograder.validate.restore import restore


class Restore(NbGraderPreprocessor):
    """In place of OverwriteCells: metadata and test cells come from the released notebook; a malformed one fails alone."""

    def preprocess(self, nb, resources):
        assignment = load_assignment(find_root(), resources["nbgrader"]["assignment"])
        notebook, defects = restore(parse(json.dumps(nb).encode()), assignment, Defect)
        if any(defect.fatal for defect in defects):
            raise Malformed(defects)
        return nbformat.from_dict(notebook), resources


class Judge(NbGraderPreprocessor):
    """In place of Execute: student code runs in the sandbox, never in a kernel; reports become the outputs of test cells."""

    unsafe = Bool(False, help="Grade without a sandbox, as `autograder grade --unsafe` does.").tag(config=True)

    def preprocess(self, nb, resources):
        root = find_root()
        assignment = load_assignment(root, resources["nbgrader"]["assignment"])
        notebook = json.loads(json.dumps(nb))
        seed = results.secret_seed(root / "grades")
        verdict = judge_notebook(assignment, notebook, make_cases(assignment, seed), choose(self.unsafe))
        resources["nbgrader"]["points"] = {key: cell.points for key, cell in verdict.cells.items()}
        return nbformat.from_dict(autograded_notebook(notebook, verdict)), resources


class SaveJudged(SaveAutoGrades):
    """Scores are the judge's; None ("ungraded" or "by hand") is stored as "needs manual grade", never as 0 or full marks."""

    def _add_score(self, cell, resources):
        name = cell.metadata["nbgrader"]["grade_id"]
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        grade.auto_score = resources["nbgrader"]["points"][name]
        grade.needs_manual_grade = grade.auto_score is None or grade.manual_score is not None
        self.gradebook.db.commit()
