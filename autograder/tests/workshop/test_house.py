"""The house is in order: a file is found by its name, a name means one thing, and each
room says what it is for.
"""

import ast
from collections import defaultdict

import pytest
from conftest import TESTS
from corpus_files import of_all_sets

HOUSE = TESTS.parent
PACKAGES = ("warplab", "autograder", "workshop")
ROOMS = set("crossing evidence figures hardware models plots puzzles simt tasks timing".split())
FILES = [path for package in PACKAGES for path in sorted((HOUSE / package).rglob("*.py"))]


def shown(paths):
    return ", ".join(str(path.relative_to(HOUSE)) for path in paths)


def test_no_file_name_stands_twice():
    places = defaultdict(list)
    for path in FILES:
        # a module of figures has the name of its page
        if not path.stem.startswith("__") and path.parent.name != "figures":
            places[path.name].append(path)
    twice = {name: shown(paths) for name, paths in places.items() if len(paths) > 1}
    assert not twice, f"give one of them the name of what it holds: {twice}"


@pytest.mark.slow
@of_all_sets
def test_no_public_class_name_stands_twice():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    twice = {name: shown(paths) for name, paths in places.items() if len(paths) > 1}
    assert not twice, f"one name, one meaning: {twice}"


def test_warplab_has_its_rooms_and_no_other():
    found = {path.parent.name for path in (HOUSE / "warplab").glob("*/__init__.py")}
    assert found == ROOMS


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "__init__.py"], ids=lambda path: path.parent.name
)
def test_a_room_says_what_it_is_for(path):
    purpose = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert purpose and len(purpose.splitlines()[0]) <= 110, (
        f"{shown([path])} begins with one line on its purpose"
    )


@pytest.mark.slow
def test_no_function_is_longer_than_sixty_lines_and_no_constructor_takes_more_than_seven_arguments():
    long, wide = [], []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines, arguments = node.end_lineno - node.lineno + 1, [*node.args.args, *node.args.kwonlyargs]
            if lines > 60:
                long.append(f"{shown([path])}: {node.name} has {lines} lines")
            if node.name == "__init__" and len(arguments) - 1 > 7:
                wide.append(f"{shown([path])}:{node.lineno} takes {len(arguments) - 1} arguments")
    assert (long, wide) == ([], [])
