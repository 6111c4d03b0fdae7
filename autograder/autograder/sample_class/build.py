"""Make the sample submissions: class.yml applied to the released notebooks and the solutions, the same bytes on every run."""

import copy
from pathlib import Path

import yaml

from autograder.errors import UserError
from autograder.layout import load_assignment
from autograder.release.release import solution_files
from autograder.release.source import source_notebook, stable_json
from autograder.results import write_atomic

CLASS = Path(__file__).with_name("class.yml")


def members():
    """{"ps01": {"perfect": {...}, ...}, ...} as class.yml has it."""
    return yaml.safe_load(CLASS.read_text(encoding="utf-8"))


def build_class(root, name, folder):
    """Write the submissions of one problem set to FOLDER/<student>/<notebook>. Only files that change are touched.

    Raises UserError when an edit no longer fits the solution.
    """
    assignment = load_assignment(root, name)
    solutions = {cell["id"]: "".join(cell["source"]) for cell in source_notebook(solution_files(root)[name])["cells"]}
    for student, recipe in members()[name].items():
        data = submission(assignment, solutions, recipe, f"{name}/{student}")
        target = Path(folder) / student / assignment.filename
        if not target.exists() or target.read_bytes() != data:
            write_atomic(target, data)


def submission(assignment, solutions, recipe, where):
    """The bytes of one submitted notebook. solutions: cell id -> text with the answer in it."""
    notebook = copy.deepcopy(assignment.document)
    answers = {grade_id: spec for grade_id, spec in assignment.cells.items() if spec.kind != "grade"}
    if recipe["start"] == "solution":
        for cell in notebook["cells"]:
            if cell["id"] in answers:
                cell["source"] = without_markers(solutions[cell["id"]])
    for edit in recipe.get("edits", ()):
        apply(edit, notebook, answers, where)
    data = stable_json(notebook)
    return data[: int(len(data) * recipe["cut"])] if "cut" in recipe else data


def apply(edit, notebook, answers, where):
    """Carry out one edit on the notebook, in place."""
    if edit["cell"] not in answers:
        raise UserError(f"sample class {where}: no cell {edit['cell']!r} to edit; put class.yml right")
    cell = next(cell for cell in notebook["cells"] if cell["id"] == answers[edit["cell"]].cell_id)
    if edit.get("drop"):
        notebook["cells"].remove(cell)
    elif edit.get("blank"):
        cell["source"] = answers[edit["cell"]].source
    elif cell["source"].count(edit["old"]) != 1:
        raise UserError(f"sample class {where}: {edit['old'][:50]!r} stands {cell['source'].count(edit['old'])} times in {edit['cell']}, "
                        "expected once; put class.yml right")
    else:
        cell["source"] = cell["source"].replace(edit["old"], edit["new"])


def without_markers(source):
    """The text as a student would hand it in: no BEGIN and END lines."""
    return "\n".join(line for line in source.split("\n") if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line)
