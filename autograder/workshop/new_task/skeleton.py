"""Write the skeleton of a task: class, hints, notebook cells, the text shown after full marks, and first
answers in the corpus with the points that they lose.

Each crossing has one template (kernel.j2, driver.j2 ...) with all texts in sequence. It solves a trivial
problem, which the author replaces.
"""

import ast
import keyword
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import jinja2

from autograder.layout import SOLUTIONS
from autograder.results import write_atomic
from autograder.user_error import UserError, nearest

TASKS = "autograder/warplab/tasks"
CORPUS = "autograder/tests/corpus"
LANGUAGES = ("numba", "cuda-cpp")
NAME = re.compile(r"(ps\d\d)/([a-z][a-z0-9_]*)")
SECTION = re.compile(r"^==== (\w+)\n", re.M)
CELL = re.compile(r"^# %%.*$", re.M)
HEADING = "# %% [markdown]\n# ## "
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
EMPTY_SET = '''"""Problem set {number}. DECIDE: its subject, and what its tasks have in common."""

import numpy as np

from warplab.tasks.rubric import Case, Item
'''
EMPTY_HINTS = "# Three hints a row, shown for lost points: where to look, the idea, and nearly the answer.\n"


Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Places:
    """The files of one task, in a checkout. tasks and hints need not exist yet; the notebook does."""

    problem_set: str
    short: str
    tasks: Path
    hints: Path
    notebook: Path
    corpus: Path


def kinds() -> tuple[str, ...]:
    """The crossings that have a template, sorted."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.j2")))


def write_skeleton(root: Path, name: str, kind: str, language: str = "numba") -> list[Path]:
    """Write the skeleton of the task `name`, for example "ps05/gather"; returns the files written.

    kind: its crossing, one of kinds(). language: of a kernel, "numba" or "cuda-cpp".
    Raises UserError, before anything is written, for an invalid or taken name, a set without a notebook, an
    unknown kind or language, and if `root` is not a checkout.
    """
    if kind not in kinds():
        raise UserError(f'unknown kind "{kind}"{nearest(kind, kinds())}')
    if language not in LANGUAGES:
        raise UserError(f'unknown language "{language}"{nearest(language, LANGUAGES)}')
    if language != "numba" and kind != "kernel":
        raise UserError(f"only a kernel is written in {language}; leave --language out for a {kind} task")
    places = places_of(root, name)
    class_name = "".join(word.capitalize() for word in places.short.split("_"))
    written = texts(places, class_name, kind, language)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())
    return list(written)


def places_of(root: Path, name: str) -> Places:
    """The Places of task `name`. Raises UserError as write_skeleton does."""
    found = NAME.fullmatch(name)
    if not found or keyword.iskeyword(found[2]):
        raise UserError(f'"{name}" is no name of a task; write psNN/name, with the name of its function')
    problem_set, short = found.groups()
    tasks, corpus = root / TASKS, root / CORPUS
    if not (tasks.is_dir() and corpus.is_dir()):
        raise UserError(
            f"{root} is no checkout of the course's repository, where tasks are written: it has no {TASKS} "
            f"or no {CORPUS}; clone the repository and run this there"
        )
    notebooks = {path.stem.split("_")[0]: path for path in (root / SOLUTIONS).glob("ps[0-9][0-9]_*.py")}
    if problem_set not in notebooks:
        raise UserError(
            f'there is no problem set "{problem_set}"{nearest(problem_set, notebooks)}; '
            f"a new set begins with its notebook, {SOLUTIONS}/{problem_set}_<word>.py"
        )
    module, hints = tasks / f"{problem_set}.py", tasks / f"{problem_set}_hints.yml"
    return Places(problem_set, short, module, hints, notebooks[problem_set], corpus / problem_set / short)


def texts(places: Places, class_name: str, kind: str, language: str) -> dict[Path, str]:
    """{file: its complete new text}. Raises UserError if the name is already used in one of the files."""
    number = places.problem_set.removeprefix("ps").lstrip("0")
    tasks = text_of(places.tasks, EMPTY_SET.format(number=number))
    hints = text_of(places.hints, EMPTY_HINTS)
    notebook = text_of(places.notebook)
    taken = {
        places.tasks: rf'@task\("{places.problem_set}/{places.short}"',
        places.hints: rf"^{places.short}:",
        places.notebook: rf'="(\w+/)?{places.short}"|^def {places.short}\(|^{places.short} =',
    }
    for path, text in zip(taken, (tasks, hints, notebook), strict=True):
        found = re.search(taken[path], text, re.M)
        if found:
            raise UserError(f"{found[0]!r} stands in {path} already; choose another name")
    for path in sorted(places.tasks.parents[2].glob("[!t]*/**/*.py")):  # packages; tests may reuse it
        if re.search(rf"^class {class_name}\b", text_of(path), re.M):
            raise UserError(f"'class {class_name}' stands in {path} already; choose another name")
    if places.corpus.exists():
        raise UserError(f"{places.corpus} exists already; choose another name")
    name = f"{places.problem_set}/{places.short}"
    parts = rendered(kind, name=name, short=places.short, class_name=class_name, cpp=language == "cuda-cpp")
    rows = re.findall(r'Item\("(\w+)"', parts["task"])
    after, asked = places.notebook.with_name("after.yml"), places.corpus.parent / "requirements.yml"
    return {
        places.tasks: with_imports(tasks, parts["imports"]).rstrip("\n") + "\n\n\n" + parts["task"],
        places.hints: hints.rstrip("\n") + "\n\n" + hints_text(places.short, rows),
        places.notebook: with_cells(with_imports(notebook, parts["needs"]), parts["cells"]),
        after: with_next(text_of(after), name),
        places.corpus / "correct_another_way.py": parts["correct"],
        places.corpus / "edits.yml": parts["edits"],
        asked: f"{text_of(asked)}\n{parts['requirements']}".lstrip("\n"),
    }


def text_of(path: Path, default: str = "") -> str:
    """A file's text, or `default` where there is no such file."""
    return path.read_text(encoding="utf-8") if path.exists() else default


def rendered(kind: str, **values: object) -> dict[str, str]:
    """{name: text} of a template's sections, each after a line `==== name`; a text ends with one newline."""
    _, *pieces = SECTION.split(TEMPLATES.get_template(f"{kind}.j2").render(values))
    return {name: text.strip("\n") + "\n" for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def hints_text(short: str, rows: list[str]) -> str:
    """Placeholders for three hints per row."""
    lines = [f"{short}:"]
    for row in rows:
        lines += [
            f"  {row}:",
            '    - "DECIDE: where to look, as a question."',
            '    - "DECIDE: the idea, without the code."',
            '    - "DECIDE: nearly the answer."',
        ]
    return "\n".join(lines) + "\n"


def with_next(after: str, name: str) -> str:
    """The texts shown after full marks, with a placeholder for `name` after those of its set."""
    later = (found.start() for found in re.finditer(r"^ps\d\d", after, re.M) if found[0] > name[:4])
    place = next(later, len(after))
    return f"{after[:place]}{name}: >-\n  DECIDE: what one would do next on a GPU.\n{after[place:]}"


def with_cells(notebook: str, cells: str) -> str:
    """The notebook with `cells` before the section of the manually graded question, or at the end."""
    starts = [match.start() for match in CELL.finditer(notebook)]
    manual = notebook.find('manual="')
    sections = [start for start in starts if start < manual and notebook.startswith(HEADING, start)]
    place = sections[-1] if sections else len(notebook)
    before, after = notebook[:place].rstrip("\n"), notebook[place:]
    return f"{before}\n\n{cells}\n{after}" if after else f"{before}\n\n{cells}"


def with_imports(text: str, lines: str) -> str:
    """A module or notebook with the imports in `lines`, one per line, merged into its first imports."""
    for wanted in first_imports(lines):
        have = first_imports(text)
        same = [node for node in have if _order(node) == _order(wanted)]
        if not same:
            text = _with_line(text, have, wanted)
        elif isinstance(wanted, ast.ImportFrom):
            text = _with_names(text, same[0], wanted)
    return text


def first_imports(text: str) -> list[Import]:
    """The import statements before a text's first other statement; a docstring may come before them."""
    found: list[Import] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif found or not isinstance(node, ast.Expr):
            break
    return found


def _with_names(text: str, have: Import, wanted: ast.ImportFrom) -> str:
    """The text with the names of `wanted` added to `have`, which imports from the same module."""
    names = {alias.name for node in (have, wanted) for alias in node.names}
    if len(names) == len(have.names):
        return text
    lines = text.splitlines(keepends=True)
    joined = f"from {wanted.module} import {', '.join(sorted(names, key=_rank))}\n"
    lines[have.lineno - 1 : have.end_lineno] = [joined]
    return "".join(lines)


def _with_line(text: str, have: list[Import], wanted: Import) -> str:
    """The text with `wanted` as a new line at its place among the imports."""
    lines = text.splitlines(keepends=True)
    later = [node.lineno - 1 for node in have if _order(node) > _order(wanted)]
    if not have:
        raise UserError(f"{text[:40]!r}... has no import before its first statement; write one")
    lines.insert(later[0] if later else have[-1].end_lineno or 0, f"{ast.unparse(wanted)}\n")
    return "".join(lines)


def _order(node: Import) -> tuple[bool, bool, str]:
    """Sort key of an import in ruff's order: standard library first, `import` before `from`, then by name."""
    module = str(node.module) if isinstance(node, ast.ImportFrom) else node.names[0].name
    return module.split(".")[0] not in sys.stdlib_module_names, isinstance(node, ast.ImportFrom), module


def _rank(name: str) -> tuple[int, str]:
    """Sort key of a name within an import in ruff's order: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def next_steps(name: str) -> str:
    """The message that tells the author what to do next."""
    return f"""It runs as it is, and solves a problem too small to be set. Put yours in its place:
"A task" in CONTRIBUTING.md says how, step by step from each "DECIDE: ..." (git diff shows them) on.
autograder/tests/crossing_examples.py has a worked task for each way of crossing.
pytest autograder/tests/tasks -k {name.split("/")[0]}     says what is still open"""
