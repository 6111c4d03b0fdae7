"""The instructor's guide: each of its commands exists, and its bash blocks run as they stand."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from grading import TINY, answers, hand_in, notebook
from typer._click.exceptions import MissingParameter
from typer.main import get_command

from autograder.layout import load_assignment
from autograder.release.release import release
from autograder.sandbox.choose import NoSandbox, choose

GUIDE = ROOT / "chapters"
PAGES = ["release", "collect", "grade", "review", "return", "operate"]  # in the order in which a class goes
BLOCK = re.compile(r"^```(bash|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)  # of any language, one by one
TOLD = re.compile(r"^autograder( \S+)?: ")  # a command's answer
ALL = [GUIDE / "instructor.md", *(GUIDE / f"instructor-{name}.md" for name in [*PAGES, "change", "teach"])]
EVERY = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "autograder/README.md",
    ROOT / "exercises/AGENTS.md",
]
EVERY += sorted(GUIDE.glob("*.md"))


def blocks(path, language):
    return [text for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


def written(path, command="autograder"):
    """Every `autograder ...` of a page, in blocks and in sentences."""
    text = path.read_text(encoding="utf-8")
    blocks = (block for kind, block in FENCED.findall(text) if kind in ("bash", "text", ""))
    lines = [line for block in blocks for line in block.splitlines()]
    inline = [" ".join(one.split()) for one in re.findall(rf"`((?:\.venv/bin/)?{command}\s[^`]+)`", text)]
    commands = (line.strip().removeprefix(".venv/bin/") for line in [*lines, *inline])
    return [line for line in commands if line.startswith(f"{command} ") and not TOLD.search(line)]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_command_of_a_page_is_one_that_the_command_line_takes(path):
    """Parsed as it would be, and not run; in a sentence a command may stand without its arguments."""
    from autograder.cli import app
    from autograder.settings import Grade

    verbs = get_command(app).commands
    settings = {f"--Grade.{name}" for name in Grade.class_trait_names(config=True)}
    for line in written(path):
        name, *words = shlex.split(line.replace("...", "X"), comments=True)[1:]
        assert name in verbs, line
        strange = [word for word in words if word.startswith("--Grade.")]
        assert {word.partition("=")[0] for word in strange} <= (settings if name == "grade" else set()), line
        words = [word for word in words if word not in (*strange, "--help")]
        with contextlib.suppress(MissingParameter):
            context = verbs[name].make_context(name, words)
            assert not [word for word in context.args if word.startswith("-")], line
    targets = re.findall(r"^([a-z][\w -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    known = {name for names in targets for name in names.split()}
    for line in written(path, "make"):
        words = [word for word in shlex.split(line, comments=True)[1:] if "=" not in word]
        assert set(words) <= known, line


def test_the_guide_has_a_page_for_each_step_and_the_entry_leads_to_all():
    entry = ALL[0].read_text(encoding="utf-8")
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    for path in ALL[1:]:
        assert f"({path.name})" in entry and f"chapters/{path.stem}\n" in toc
    assert {path.name for path in GUIDE.glob("instructor*.md")} == {path.name for path in ALL}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course whose ps04 is a set of two quick tasks, with the work of two students."""
    try:
        choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))
    root = tmp_path_factory.mktemp("guide") / "course"
    (root / "solutions").mkdir(parents=True)
    (root / "solutions" / "ps04_matmul.py").write_text(TINY)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    release(root)
    assignment = load_assignment(root, "ps04")
    source = root / "_build/source/ps04/ps04_matmul.ipynb"
    tiny = root / "_build/source/ps01/ps01_tiny.ipynb"
    tiny.parent.mkdir(parents=True)
    shutil.copy(source, tiny)
    right = answers(root)
    shutil.rmtree(tiny.parent)
    hand_in(root / "submitted", "ada", notebook(assignment, **right), "ps04/ps04_matmul.ipynb")
    hand_in(root / "submitted", "bob", notebook(assignment), "ps04/ps04_matmul.ipynb")
    return root


def in_course(root, text):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "autograder")}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_the_guide_runs_as_it_stands_from_release_to_forgetting(course):
    for name in PAGES:
        page = GUIDE / f"instructor-{name}.md"
        for block in blocks(page, "text"):  # a file that the page shows, for the command after it
            if block.startswith("student,time"):
                (course / "times.csv").write_text(block)
        for block in blocks(page, "bash"):
            done = in_course(course, block)
            assert done.returncode == 0, (
                f"{page.name}:\n{block}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            )
    rows = (course / "grades-new" / "grades.csv").read_text().splitlines()
    assert [row.split(",")[1:3] for row in rows[1:]] == [["ada", "graded"], ["bob", "graded"]]
    assert not re.search(r"\bada\b", (course / "grades" / "grades.csv").read_text())
    assert not (course / "submitted" / "ada").exists()
    copy = subprocess.run(
        ["tar", "-tzf", course / "grades-copy.tgz"], capture_output=True, text=True, check=True
    )
    assert {"grades/gradebook.db", "grades/.seed"} <= set(copy.stdout.splitlines())
    assert (course / "gradebook-copy.db").stat().st_size > 0


@pytest.mark.full
def test_a_class_that_moved_house_is_not_graded_again(course, tmp_path):
    moved = shutil.copytree(course, tmp_path / "elsewhere")
    done = in_course(moved, "autograder grade ps04 --out grades-new")
    assert done.returncode == 0 and "1 of 1 unchanged since the last run" in done.stdout, (
        done.stdout + done.stderr
    )
