"""What the tests of the tasks read: the reference solutions, and the corpus of right
and wrong answers (corpus/README.md).
"""

import ast
import linecache
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

from autograder.sandbox import Unsafe
from autograder.sandbox.choose import NoSandbox, choose
from warplab.tasks import registry
from workshop.mutants import notebook_cells
from workshop.mutants.notebook_cells import bare, run_cells

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
SOLUTIONS = {path.stem.split("_")[0]: path for path in (HERE.parents[1] / "solutions").glob("ps*.py")}
SCORE = re.compile(r"([\d.]+) points: ")
BELOW = "Below what the notebook gives."  # in the docstring of a file that uses it


def of_all_sets(test):
    """A test of all sets at once, which `pytest -k ps05` selects, too: by names assigned to its function."""
    vars(test).update(dict.fromkeys(SOLUTIONS, True))
    return test


def stated(path):
    """(points, source) of one corpus file: its docstring begins with the score that it must get."""
    source = path.read_text()
    match = SCORE.match(ast.get_docstring(ast.parse(source)) or "")
    assert match, f"{path}: the docstring must begin with '<n> points: '"
    return float(match[1]), source


def cells_for(name):
    """Sources of the cells that a task's solution needs, its own last."""
    problem_set, short = name.split("/")
    return notebook_cells.cells_for(SOLUTIONS[problem_set], short)


def solution_of(name):
    """(entry, plan) of a task as its solution notebook defines them."""
    task = registry.get(name)
    namespace = run_cells(cells_for(name), SOLUTIONS[name.split("/")[0]])
    return namespace[task.entry], namespace.get(task.plan_entry)


def timed_tasks():
    """Names of the tasks with a row for time."""
    names = [name for problem_set in sorted(SOLUTIONS) for name in registry.names(problem_set)]
    return [name for name in names if any(item.kind == "time" for item in registry.get(name).items)]


def given_to(name):
    """What a notebook has defined before the cell of a task's solution. Shared: copy it
    before anything runs in it.
    """
    problem_set, short = name.split("/")
    return notebook_cells.given_to(SOLUTIONS[problem_set], short)


@cache
def _one_of_each_attack() -> frozenset[str]:
    """Of each row of attacks in corpus/README.md the first file of each folder: "cells/loops"."""
    first: set[str] = set()
    for row in (CORPUS / "README.md").read_text(encoding="utf-8").splitlines():
        of_row: dict[str, str] = {}
        for name in re.findall(r"`((?:cells|notebooks|boundary|timed)/[\w/]+)\.py`", row):
            of_row.setdefault(name.split("/")[0], name)
        first.update(of_row.values())
    return frozenset(first)


def attacks(*folders: str) -> list:
    """The files of these folders of the corpus as pytest parameters: of each row of attacks in its README.md
    one file of a folder is tried in `make test`, all in `make full`. Answers that are no attacks are always
    tried.
    """
    found = []
    for path in (path for folder in folders for path in sorted((CORPUS / folder).rglob("*.py"))):
        name = path.relative_to(CORPUS).with_suffix("").as_posix()
        honest = name.startswith(("boundary", "timed")) and not path.stem.startswith("cheat_")
        marks = () if honest or name in _one_of_each_attack() else pytest.mark.full
        found.append(pytest.param(path, marks=marks, id=name.partition("/")[2]))
    return found


@dataclass(frozen=True)
class Entry:
    """One answer to a task with the score that it must get: a file, or an edit of the
    task's reference or of a file beside it.
    """

    task: str
    name: str
    edit: dict | None = None  # what edits.yml says of it; None: it is a file

    @property
    def id(self) -> str:
        return f"{self.task}/{self.name}"

    @property
    def kind(self) -> str:
        """correct, part, wrong or cheat."""
        return self.name.split("_")[0]

    @property
    def points(self) -> float:
        return stated(self.path(self.name))[0] if self.edit is None else float(self.edit["points"])

    @property
    def edits_the_reference(self) -> bool:
        return self.edit is not None and "base" not in self.edit

    @property
    def below_the_notebook(self) -> bool:
        """Whether it stands below what its notebook gives, whose names it may use."""
        return self.edits_the_reference or BELOW in self.source()

    @property
    def in_full_alone(self) -> bool:
        """Whether `make test` leaves it out (corpus/tried.yml)."""
        tried = make_test_tries()
        return (
            self.id in tried["full"]
            or self.kind != "correct"
            and self.name not in tried["tried"].get(self.task, [self.name])
        )

    def path(self, name) -> Path:
        return CORPUS / self.task / f"{name}.py"

    def source(self) -> str:
        """The answer's text. ValueError if an edit does not fit its base."""
        if self.edit is None:
            return self.path(self.name).read_text()
        if "given" in self.edit:
            return given_program(self.task, self.edit["given"])
        base = (
            cells_for(self.task)[-1] if self.edits_the_reference else self.path(self.edit["base"]).read_text()
        )
        if "mutant" in self.edit:
            return mutant_of(base, self.edit["mutant"])
        try:
            return edited(base, self.edit["edits"])
        except ValueError as problem:
            told = self.edit.get("base", f"the reference in {SOLUTIONS[self.task.split('/')[0]].name}")
            raise ValueError(
                f"corpus/{self.task}/edits.yml: {self.name} no longer fits {told}: {problem}"
            ) from None

    def cells(self) -> list[str]:
        """The cells of a notebook with this answer."""
        return [*(cells_for(self.task)[:-1] if self.below_the_notebook else ()), self.source()]

    def namespace(self) -> dict:
        """What the answer defines, where it stands; its lines can be looked up."""
        file = str(self.path(self.name))
        source = self.source()
        namespace = dict(given_to(self.task)) if self.below_the_notebook else {}
        namespace["__name__"] = "submission"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), namespace)
        return namespace


def mutant_of(base, operator):
    """The first text that an operator of workshop.mutants makes of `base`."""
    from workshop.mutants.operators import mutated  # here: a bare CUDA machine has no mutmut

    return next(text for name, text in mutated(base) if name == operator)


def given_program(name, names):
    """The functions that a notebook gives to be mended, {given name: name that the task asks for}."""
    tree = ast.parse(SOLUTIONS[name.split("/")[0]].read_text(encoding="utf-8"))
    given = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for old, new in names.items():
        given[old].name = new
    return "\n\n".join(ast.unparse(given[old]) for old in names) + "\n"


def edited(base, edits):
    """The bare text of `base` with all edits made. Each {"replace": lines, "with":
    lines} must fit exactly one place, and no two may overlap.
    """
    lines = bare(base)
    places = []
    for edit in edits:
        old = bare(textwrap.dedent(edit["replace"]))
        found = [start for start in range(len(lines)) if matches(lines[start : start + len(old)], old)]
        if len(found) != 1 or not old:
            raise ValueError(f"it has {edit['replace'].strip()!r} {len(found)} times, not once")
        places.append((found[0], found[0] + len(old), edit["with"]))
    places.sort(reverse=True)
    for (later, _, _), (_, end, text) in zip(places, places[1:], strict=False):
        if end > later:
            raise ValueError(f"the edit to {text.strip()!r} overlaps the next one")
    for start, end, text in places:
        lines[start:end] = textwrap.indent(text, indentation(lines[start:end])).splitlines()
    return "\n".join(lines) + "\n"


def matches(lines, old):
    """Whether some lines of the base are those of an edit, wherever they are indented."""
    return textwrap.dedent("\n".join(lines)).splitlines() == old


def indentation(lines):
    """The white space with which all the lines begin."""
    return min((re.match(r"\s*", line)[0] for line in lines), key=len)


@cache
def entries_of(task):
    """The entries in one task's folder, sorted by name; a tuple, since every caller gets the same."""
    files = [Entry(task, path.stem) for path in (CORPUS / task).glob("*.py")]
    written = CORPUS / task / "edits.yml"
    edits = yaml.load(written.read_text(encoding="utf-8"), yaml.CSafeLoader) if written.exists() else {}
    entries = [*files, *(Entry(task, name, edit) for name, edit in edits.items())]
    return tuple(sorted(entries, key=lambda entry: entry.name))


@cache
def make_test_tries():
    """corpus/tried.yml: {"full": right answers left out, "tried": {task: wrong ones that are tried}}."""
    return yaml.safe_load((CORPUS / "tried.yml").read_text(encoding="utf-8"))


@cache
def required(name):
    """What the text of a task asks for, as requirements.yml of its set says it (corpus/README.md)."""
    problem_set, short = name.split("/")
    written = CORPUS / problem_set / "requirements.yml"
    return yaml.safe_load(written.read_text(encoding="utf-8")).get(short, []) if written.exists() else []


def all_entries():
    """Every answer to a task in the corpus, set by set."""
    folders = sorted({path.parent for path in CORPUS.glob("ps*/*/*")})
    return [entry for folder in folders for entry in entries_of("/".join(folder.parts[-2:]))]


def entry_of(identity):
    """The entry "ps04/matmul_tiled/wrong_naive_kernel". KeyError if there is none."""
    found = {entry.id: entry for entry in entries_of(identity.rsplit("/", 1)[0])}
    return found[identity]


def launcher_here():
    """The sandbox of this machine, or an ordinary process where there is none."""
    try:
        return choose()
    except NoSandbox:
        return Unsafe()
