"""What the grading tests share: a tiny course with two tasks that need no kernel, and ways to hand in."""

import contextlib
import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autograder import cli, grade
from autograder.judge.attempts import NotebookStep, run_all
from autograder.judge.judge import CellVerdict, Verdict
from autograder.layout import load_assignment
from autograder.reader.contents import NoNotebook, cells_of
from autograder.release.release import release
from autograder.release.source import without_markers
from autograder.results import Results
from autograder.validate import Defect, Malformed, checked
from autograder.workers import machine_judge
from autograder.workers.pool import Threads
from warplab.tasks import registry, scoring

ROOT = Path(__file__).resolve().parents[2]

TINY = '''# %% [markdown]
# # A tiny set
# %%
import numpy as np
from warplab.check import grade

HALF = 2
# %% solution="launch_plan"
def launch_plan(width, height, block):
    """The smallest grid and its idle threads."""
    ### BEGIN SOLUTION
    secret_columns = -(-width // block[0])
    secret_rows = -(-height // block[1])
    return (secret_columns, secret_rows), secret_columns * block[0] * secret_rows * block[1] - width * height
    ### END SOLUTION
# %% grade="ps01/launch_plan"
grade("ps01/launch_plan", launch_plan)
# %%
print("a demonstration", launch_plan(100, 50, (32, 8)))
# %% solution="time_it"
def time_it(device, work, repeats):
    """Median seconds of one launch."""
    ### BEGIN SOLUTION
    for _ in range(10 // HALF):
        device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return float(np.median(samples))
    ### END SOLUTION
# %% grade="ps01/time_it"
grade("ps01/time_it", time_it)
# %% [markdown] manual="explain" points=5
# ### BEGIN SOLUTION
# The clock runs on the host, so it must wait.
# ### END SOLUTION
'''
# added to it: five points that wait for a GPU
TIMED = """# %% solution="matmul_register_tiled"
from numba import cuda

@cuda.jit
def matmul_register_tiled(a, b, c):
    ### BEGIN SOLUTION
    pass
    ### END SOLUTION
# %% grade="ps04/matmul_register_tiled" rubric="time"
grade("ps04/matmul_register_tiled", matmul_register_tiled)
"""


def make_course(folder, text=TINY):
    """A course folder with one released set, ps01 (35 points: 15 + 15 + 5). Returns (root, Assignment)."""
    folder = Path(folder)
    (folder / "solutions").mkdir(parents=True)
    (folder / "solutions" / "ps01_tiny.py").write_text(text)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    release(folder)
    return folder, load_assignment(folder, "ps01")


def answers(root):
    """{grade id: solution text without markers} of the tiny set."""
    document = json.loads((Path(root) / "_build/source/ps01/ps01_tiny.ipynb").read_text())
    return {cell["id"]: without_markers("".join(cell["source"])) for cell in document["cells"]}


def notebook(assignment, **sources):
    """A submission as a dict: the released notebook with some cells' text replaced, by grade id."""
    document = json.loads(assignment.path.read_text())
    for cell in document["cells"]:
        if cell["id"] in sources:
            cell["source"] = sources[cell["id"]]
    return document


def hand_in(folder, student, document, name="ps01_tiny.ipynb"):
    """Write a submission: a dict becomes JSON, text and bytes stay as they are."""
    path = Path(folder) / student / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document) if isinstance(document, dict) else document
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def own_cell(source, identity="mine"):
    """A code cell that a student adds to a notebook."""
    code = {"cell_type": "code", "id": identity, "metadata": {}, "source": source}
    return code | {"outputs": [], "execution_count": None}


def read_here(data, assignment, process):
    """Stands in for read_submission, in this process."""
    try:
        return checked(cells_of(data), assignment)
    except NoNotebook as problem:
        raise Malformed([Defect(problem.code, str(problem))]) from None


def full_marks(assignment, *_):
    """Stands in for judge_notebook: every test passes, and the written answer waits."""
    return verdict_of(assignment, {spec.grade_id: spec.points for spec in assignment.graded()})


def by_text(assignment, checked, *_):
    """Stands in for judge_notebook: an answer that returns something has its points, timed ones wait, and who
    ends the process has crashed.
    """
    text = {cell["id"]: cell["source"] for cell in checked.notebook["cells"]}
    points = {
        spec.grade_id: spec.points * ("return" in text[spec.grade_id.removesuffix("-test")])
        for spec in assignment.graded()
        if spec.kind != "manual" and not spec.rubric
    }
    crashed = any("os._exit" in source for source in text.values())
    return replace(verdict_of(assignment, points), status="crashed" if crashed else "graded")


def verdict_of(assignment, points, isolation="in this process"):
    """A Verdict with so many points for each cell that a machine grades; timed ones may be left out."""
    cells = {}
    for spec in assignment.graded():
        got, open_ = points.get(spec.grade_id), "ungraded" if spec.rubric else "manual"
        got = None if spec.kind == "manual" else got
        state = open_ if got is None else "full" if got == spec.points else "partial" if got else "lost"
        cells[spec.grade_id] = CellVerdict(spec.grade_id, got, spec.points, state, spec.task, spec.rubric)
    return Verdict("graded", "", cells, isolation, 0.1)


@contextlib.contextmanager
def one_course_version():
    """The key of a result holds a hash of our own sources, which somebody may be editing meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.results.course_version", lambda: "test")
        yield


@contextlib.contextmanager
def judged_here(judge=full_marks):
    """Grading starts no process: notebooks are read here, and `judge` stands in for judge_notebook."""
    with one_course_version(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_judge, "reader", contextlib.nullcontext)
        patch.setattr(machine_judge, "read_submission", read_here)
        patch.setattr(machine_judge, "judge_notebook", judge)
        yield


def grading(root, name, submissions, out, *, sandbox=None, jobs=1, pool=None, events=None, **asked):
    """A Grading with what `asked` names, in `jobs` threads behind the walls of `sandbox`."""
    pool = pool or Threads(sandbox or grade.choose(), jobs)
    return grade.Grading(root, name, submissions, out, grade.Asked(**asked), pool=pool, events=events)


def run_notebook(steps, launcher, limits):
    """(Run, {task: score}) of cells given as text and tasks given by name; every case has an outcome."""
    made = [
        NotebookStep(str(number), "task", task=what)
        if "/" in what and "\n" not in what and " " not in what
        else NotebookStep(str(number), "cell", source=what)
        for number, what in enumerate(steps)
    ]
    cases = {step.task: registry.get(step.task).cases(3) for step in made if step.kind == "task"}
    done = run_all(made, cases, launcher, limits)
    scores = {}
    for name, mine in cases.items():
        assert sorted(one.case for one in done.outcomes[name]) == sorted(case.name for case in mine)
        scores[name] = scoring.judge(registry.get(name), mine, done.outcomes[name]).score
    return done, scores


def rows_of(out, name="grades.csv"):
    """{student: line} of the table of grades in a folder."""
    with open(Path(out) / name, newline="") as table:
        return {row["student_id"]: row for row in csv.DictReader(table)}


def page_of(root, student):
    """The feedback page of a student of the tiny course."""
    return (root / f"grades/feedback/{student}/ps01/ps01_tiny.html").read_text()


def record(student, name, **more):
    """What a judge stores of a submission of which no test looks closer."""
    known = {"key": "k", "status": "graded", "reason": "", "notes": [], "isolation": "sandboxed"}
    return {"student": student, "assignment": name, "verdict": None} | known | more


def stored_verdict(assignment, points, lines_of):
    """A verdict as it is stored: the graded cells' points in turn; lines_of(cell, points) are its rubric."""
    cells = {}
    for cell, got in zip(assignment.graded(), points, strict=True):
        about = {"grade_id": cell.grade_id, "points": got, "max": cell.points, "state": "graded"}
        about |= {"task": cell.task, "rubric": cell.rubric, "lines": lines_of(cell, got)}
        cells[cell.grade_id] = about
    return {"status": "graded", "reason": "", "cells": cells, "isolation": "sandboxed", "seconds": 1.0}


def enter(grades, student, assignment, document, **more):
    """Store a judged notebook and its record, as far as what is made of them afterwards needs it."""
    name = assignment.name
    hand_in(grades / "autograded", student, document, f"{name}/{assignment.filename}")
    Results(grades, name).write(student.replace("/", "_"), record(student, name, **more))


def command(folder, *words):
    """`autograder ...` in a folder, in this process: (exit status, what it printed, what it complained)."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.argv", ["autograder", *map(str, words)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with pytest.raises(SystemExit) as left:
                cli.main()
    told = out.getvalue(), err.getvalue()
    assert "Traceback" not in "".join(told)
    return left.value.code or 0, *told
