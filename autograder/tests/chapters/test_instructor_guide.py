"""The instructor's guide: each of its commands exists, and its bash blocks run as they stand."""

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
from typer.main import get_command

from autograder.layout import load_assignment
from autograder.release import release
from autograder.sandbox.choose import NoSandbox, choose

GUIDE = ROOT / "chapters"
PAGES = ["release", "collect", "grade", "review", "return", "operate"]  # in the order in which a class goes
BLOCK = re.compile(r"^```(bash|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ALL = [GUIDE / "instructor.md", *(GUIDE / f"instructor-{name}.md" for name in [*PAGES, "change", "teach"])]


def blocks(path, language):
    return [text for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


def written(path):
    """Every `autograder ...` of a page, in blocks and in sentences."""
    text = path.read_text(encoding="utf-8")
    lines = [line for kind in ("bash", "text") for block in blocks(path, kind) for line in block.splitlines()]
    inline = [" ".join(one.split()) for one in re.findall(r"`(autograder\s[^`]+)`", text)]
    return [line.strip() for line in [*lines, *inline] if line.strip().startswith("autograder ")]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_command_of_a_page_has_its_verb_and_its_options(path):
    from autograder.cli import app
    from autograder.settings import Grade

    verbs = get_command(app).commands
    settings = {f"--Grade.{name}" for name in Grade.class_trait_names(config=True)}
    for line in written(path):
        words = shlex.split(line, comments=True)[1:]
        assert words[0] in verbs, line
        known = {flag for parameter in verbs[words[0]].params for flag in parameter.opts}
        known |= {word for word in words if words[0] == "grade" and word.partition("=")[0] in settings}
        assert {word for word in words if word.startswith("--") and word != "--help"} <= known, line


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
    assert "ada" not in (course / "grades" / "grades.csv").read_text()
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
