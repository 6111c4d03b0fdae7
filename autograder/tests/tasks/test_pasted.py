"""A chapter's code, pasted into a task, earns at most a quarter of the task's points.

Every function and kernel of the chapters whose shape can stand in for a task's answer is put into its
submission cell under the task's name, with all that it uses of its chapter, and graded as a notebook does.
A launch plan that a task asks for beside its kernel is the reference's. `pytest -m full -s` prints the table.
"""

import ast
import contextlib
import io
import itertools
import linecache
import multiprocessing
import re
import resource
import symtable
import warnings
from functools import cache

import jupytext
import psutil
import pytest
from conftest import ROOT
from corpus_files import given_to, solution_of

from warplab import crossing
from warplab.crossing.endless import stopped_after
from warplab.tasks import registry
from warplab.tasks.feedback import report_on

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9][0-9]-*.md"))
SHARE = 0.25
LATER = "chapter 8 takes a whole kernel down to SASS, its bounds check included, four sets after this one"
EXCUSED = {  # (task, chapter, function) -> why it may earn more
    (task, "08-stack", function): LATER
    for task in ("ps04/matmul_naive", "ps04/matmul_tiled")
    for function in ("matmul", "fresh")
} | {
    ("ps00/atomic", "03-parallel", "sum_atomic"): "a warm-up's one line, in no grade, played before chapter 3"
}
LEFT_OUT = {("function", "job")}  # (crossing, function): a compiled loop that no signal stops
SECONDS = 5.0  # of computing, after which a case ends, where a notebook waits for longer
FREELY = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp)
FREELY += (ast.operator, ast.unaryop, ast.expr_context)
MEMORY = 4 << 30  # bytes, as a graded submission has a limit, too
OVERDUE = 60.0  # seconds, after which the process of a function that no signal stops is ended
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["test_pasted"])


@cache
def statements(chapter):
    """The top-level statements of all code cells of a chapter, in order; IPython's own lines left out."""
    cells = jupytext.reads(chapter.read_text(encoding="utf-8"), fmt="md:myst").cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    plain = [re.sub(r"(?m)^\s*[%!].*$", "", source) for source in sources if not source.startswith("%%")]
    return [node for source in plain for node in ast.parse(source).body]


def binds(node):
    """The names that a top-level statement defines, if pasting it would run no experiment."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign) and (compiled_again(node) or all_of(node.value, FREELY)):
        return [inner.id for inner in ast.walk(node.targets[0]) if isinstance(inner, ast.Name)]
    return []


def all_of(node, kinds):
    return all(isinstance(inner, kinds) for inner in ast.walk(node))


def globals_of(node):
    """The names that a statement takes from the notebook: neither parameters nor local variables."""
    tables, found = [symtable.symtable(ast.unparse(node), "chapter", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return found


def compiled_again(node):
    """The function of the chapter in `name = cuda.jit(function.py_func)`, or None."""
    found = re.fullmatch(r"\w+ = cuda\.jit\((\w+)\.py_func\)", ast.unparse(node))
    return found and found[1]


@cache
def defined(chapter):
    """{name: the statements that define it}; a constant may be set again between two kernels."""
    found = {}
    for node in statements(chapter):
        for name in binds(node):
            found.setdefault(name, []).append(node)
    return found


@cache
def functions(chapter):
    """The names of the functions and kernels that can stand as an answer."""
    return [
        name
        for name, nodes in defined(chapter).items()
        if isinstance(nodes[-1], ast.FunctionDef) or compiled_again(nodes[-1])
    ]


def parameters(chapter, name):
    """(parameters, whether it is a kernel) of a function; a device function is neither."""
    node = defined(chapter)[name][-1]
    if again := compiled_again(node):
        node = defined(chapter)[again][-1]
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    if any("device=True" in mark or "triton" in mark for mark in marks):
        return None, False
    return [arg.arg for arg in node.args.args], any(mark.startswith("cuda.jit") for mark in marks)


def stands_in(chapter, name, task):
    """Whether a function of a chapter has the shape of a task's answer."""
    given, kernel = parameters(chapter, name)
    fits = given and kernel == (task.crossing == "kernel") and len(given) == len(task.arguments)
    return fits and (task.crossing, name) not in LEFT_OUT


def needed(chapter, name, seen=()):
    """What must be pasted along with a function: the names that it uses, and what those use, in order."""
    found = []
    for node in defined(chapter)[name]:
        for other in sorted(globals_of(node) & set(defined(chapter)) - {name, *seen}):
            found += needed(chapter, other, (*seen, name, *found))
    return list(dict.fromkeys([*found, name]))


def pasted(chapter, name, task):
    """The texts to paste: one for each value that the chapter gives to the constants a function uses."""
    names = needed(chapter, name)
    choices = [defined(chapter)[other] for other in names]
    for choice in itertools.product(*choices):
        yield "\n\n".join(
            text_of(node, other == name, task) for node, other in zip(choice, names, strict=True)
        )


def text_of(node, answers, task):
    """A statement's text; that of the answer with its parameters in the task's order, if it has them."""
    node = ast.parse(ast.unparse(node)).body[0]
    if answers and isinstance(node, ast.FunctionDef):
        given = {arg.arg.lower(): arg for arg in node.args.args}
        if set(given) == {argument.lower() for argument in task.arguments}:
            node.args.args = [given[argument.lower()] for argument in task.arguments]
    return ast.unparse(node) + (f"\n\n{task.entry} = {binds(node)[0]}" if answers else "")


def points(chapter, name, task):
    """The most that a function of a chapter earns in a task's cell."""
    plan = reference_plan(task.name) if task.plan_entry else None
    return max(graded(text, chapter, task, plan) for text in pasted(chapter, name, task))


@cache
def reference_plan(name):
    with contextlib.redirect_stdout(io.StringIO()):
        return solution_of(name)[1]


def graded(text, chapter, task, plan):
    """Points of one text in a task's cell, below what its notebook has defined there."""
    file = f"{chapter.stem} pasted into {task.name}"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
        namespace = {**given_to(task.name), "__name__": "submission"}
        exec(compile(text, file, "exec"), namespace)
        try:
            return report_on(task.name, namespace[task.entry], plan).score
        finally:
            namespace.clear()  # numba-cuda keeps a kernel, and a kernel all that its file defines


def grade_each(name, pairs, channel):
    """In a process of its own: send the points of each (chapter, function) in turn."""
    crossing.stopped_after = lambda _: stopped_after(SECONDS)
    limit = psutil.Process().memory_info().data + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    with contextlib.suppress(MemoryError):
        for pair in pairs:
            channel.send(points(*pair, registry.get(name)))


def earned_by_each(name, pairs):
    """Points of each (chapter, function); 0 for one that ends its process or does not end."""
    earned = []
    while len(earned) < len(pairs):
        channel, end = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=grade_each, args=(name, pairs[len(earned) :], end))
        process.start()
        end.close()
        with contextlib.suppress(EOFError):
            while channel.poll(OVERDUE):
                earned.append(channel.recv())
        process.join(1.0)
        process.kill()
        process.join()
        assert process.exitcode != 1, "the test itself raised an exception, printed above"
        if len(earned) < len(pairs):
            print(f"{pairs[len(earned)][1]} has ended its process ({process.exitcode})")
            earned.append(0.0)
    return earned


def earned(name, chapters):
    """[(points, chapter, function)] of all that can be pasted into a task, the most first."""
    task = registry.get(name)
    pairs = [(chapter, other) for chapter in chapters for other in functions(chapter)]
    shaped = [pair for pair in pairs if stands_in(*pair, task)]
    rows = [(got, *pair) for got, pair in zip(earned_by_each(name, shaped), shaped, strict=True)]
    return sorted(rows, key=lambda row: -row[0])


def check(name, chapters):
    task = registry.get(name)
    rows = earned(name, chapters)
    for got, chapter, other in rows:
        print(f"{got:5g} of {task.points_for():3g}  {name:28} {chapter.stem}: {other}")
    limit = SHARE * task.points_for()
    too_much = [
        f"{chapter.stem}: {other} earns {got:g}"
        for got, chapter, other in rows
        if got > limit and (name, chapter.stem, other) not in EXCUSED
    ]
    assert not too_much, f"{name}: a chapter's code may earn {limit:g} points: {too_much}"


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in registry.names() if name.startswith("ps")])
def test_a_chapters_code_earns_at_most_a_quarter_of_a_task(name):
    check(name, CHAPTERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "chapter", "function", "earned"),
    [
        ("ps03/reduce_tree", "03-parallel", "sum_halves", None),  # imported: a step is left to the reader
        ("ps04/matmul_naive", "04-matmul", "matmul_naive", 5),  # squares that the blocks fit
        ("ps05/copy_strided", "05-memory", "copy_strided", 2),  # stride 1 and as many threads as numbers
        ("ps05/transpose", "05-memory", "transpose_tiled", None),
    ],
)
def test_what_a_chapter_leaves_to_the_task_is_what_pasting_does_not_earn(name, chapter, function, earned):
    (path,) = (path for path in CHAPTERS if path.stem == chapter)
    if earned is None:
        assert function not in functions(path)
        return
    assert earned_by_each(name, [(path, function)]) == [earned]
    assert earned <= SHARE * registry.get(name).points_for()
