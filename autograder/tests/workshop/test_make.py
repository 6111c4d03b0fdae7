"""The build's own promises: one-line reasons when something is missing, and nothing done twice."""

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import tomllib
from collections import Counter, namedtuple
from importlib.metadata import distributions

import pytest
from conftest import ROOT
from packaging.requirements import Requirement

from autograder.user_error import UserError
from workshop import book, course

spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "autograder" / "workshop" / "bootstrap.py")
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)

Usage = namedtuple("Usage", "total used free")


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_python_310_is_refused_with_what_was_found_what_is_needed_and_the_next_step():
    with pytest.raises(bootstrap.Stop) as error:
        bootstrap.choose_python(running=(3, 10), which=lambda name: None)
    text = one_line(error)
    assert "found Python 3.10" in text and "3.11, 3.12 or 3.13" in text and "make course PYTHON=" in text


@pytest.mark.parametrize("running", [(3, 9), (3, 10), (3, 14)])
def test_a_supported_python_elsewhere_on_path_is_taken(running):
    there = {"python3.12": "/opt/bin/python3.12", "python3.11": "/opt/bin/python3.11"}
    chosen = bootstrap.choose_python(running, which=there.get, version=lambda path: (3, int(path[-2:])))
    assert chosen == "/opt/bin/python3.12"


def test_a_name_on_path_that_is_another_version_is_not_taken():
    with pytest.raises(bootstrap.Stop):
        bootstrap.choose_python((3, 10), which=lambda name: f"/shim/{name}", version=lambda path: (3, 10))


def test_too_little_disk_is_refused_with_both_numbers(tmp_path):
    with pytest.raises(bootstrap.Stop) as error:
        bootstrap.check_disk(tmp_path, need_gb=4.0, usage=lambda path: Usage(9e9, 8.5e9, 0.5e9))
    assert "0.5 GB free" in one_line(error) and "about 4 GB" in one_line(error)
    bootstrap.check_disk(tmp_path, need_gb=4.0, usage=lambda path: Usage(9e9, 1e9, 8e9))


def test_a_missing_venv_module_names_the_package_to_install(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; *) echo 3 11;; esac\n')
    python.chmod(0o755)
    with pytest.raises(bootstrap.Stop) as error:
        bootstrap.check_venv_module(str(python))
    assert "apt-get install python3.11-venv" in one_line(error)


def test_a_second_set_up_waits_for_the_first(tmp_path):
    said, order = [], []

    def second():
        with bootstrap.alone(tmp_path, said.append):
            order.append("second")

    with bootstrap.alone(tmp_path, said.append):
        thread = threading.Thread(target=second)
        thread.start()
        while not said:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"] and said == ["  another make is setting this up; waiting for it"]


@pytest.mark.slow
def test_no_network_is_one_line_and_not_a_traceback(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    nowhere = ["--index-url", "http://127.0.0.1:9/simple/", "--dry-run", "a-package-that-nobody-has"]
    with pytest.raises(bootstrap.Stop) as error:
        bootstrap.run_pip(sys.executable, nowhere, tmp_path / "install.log", say=lambda text: None)
    assert "did not answer" in one_line(error) and "run make again" in one_line(error)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk filled up",
        ),
        ("WARNING: Retrying after connection broken by NameResolutionError", "did not answer"),
        (
            "noise\nERROR: No matching distribution found for torch==9\n",
            "No matching distribution found for torch==9",
        ),
    ],
)
def test_pips_failure_becomes_one_reason(log, reason):
    assert reason in bootstrap.why_pip_failed(log)
    assert "\n" not in bootstrap.why_pip_failed(log)


def test_make_stops_with_one_line_and_no_traceback_on_an_old_python(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bootstrap, "supported", lambda version: False)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    monkeypatch.setattr(
        bootstrap.choose_python, "__defaults__", (None, lambda name: None, bootstrap.version_of)
    )
    assert bootstrap.main(["--venv", str(tmp_path / "venv")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("make: found Python 3.") and said.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_make_without_any_python_says_so(tmp_path):
    done = subprocess.run(
        [shutil.which("make"), "venv", "PYTHON="], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "no Python found" in done.stderr


def test_the_environment_is_installed_once_and_again_only_when_the_pins_change(tmp_path, monkeypatch):
    for name in bootstrap.WATCHED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    installs = []
    monkeypatch.setattr(bootstrap, "run_pip", lambda *arguments: installs.append(1))
    monkeypatch.setattr(bootstrap, "check_disk", lambda *arguments, **named: None)
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    made = [bootstrap.make_venv(tmp_path, venv, "", say=lambda text: None) for _ in range(2)]
    with open(tmp_path / "requirements.txt", "a") as pins:
        pins.write("six\n")
    made.append(bootstrap.make_venv(tmp_path, venv, "", say=lambda text: None))
    assert (made, len(installs)) == ([True, False, True], 2)


@pytest.fixture
def step(tmp_path):
    """A step that copies in.txt to out.txt, counts its runs in `runs`, and fails while in.txt says "bad"."""
    runs = []

    def run(root, say):
        text = (root / "in.txt").read_text()
        runs.append(text)
        if text == "bad":
            raise UserError("in.txt is bad")
        (root / "out.txt").write_text(text)

    (tmp_path / "in.txt").write_text("one")
    made = course.BuildStep("copy", "copy", ("in.txt",), lambda root: (root / "out.txt").exists(), run)
    return tmp_path, made, runs


def quietly(root, made):
    return course.run_step(root, made, say=lambda text: None)


def test_a_step_runs_once_until_its_input_changes(step):
    root, made, runs = step
    assert [quietly(root, made), quietly(root, made)] == [True, False]
    (root / "in.txt").write_text("two")
    assert quietly(root, made)
    (root / "out.txt").unlink()
    assert quietly(root, made)
    assert runs == ["one", "two", "two"]


def test_a_step_that_failed_is_tried_again_even_when_nothing_changed(step):
    root, made, runs = step
    quietly(root, made)
    (root / "in.txt").write_text("bad")
    for _ in range(2):
        with pytest.raises(UserError):
            quietly(root, made)
    assert runs == ["one", "bad", "bad"]


def test_a_result_that_somebody_edited_is_made_again(step):
    root, made, runs = step
    watched = dataclasses.replace(made, kept=("out.txt",))
    assert [quietly(root, watched), quietly(root, watched)] == [True, False]
    (root / "out.txt").write_text("edited")
    assert [quietly(root, watched), quietly(root, watched)] == [True, False]
    assert (root / "out.txt").read_text() == "one"


def test_a_damaged_stamp_counts_as_no_stamp(step):
    root, made, _ = step
    quietly(root, made)
    course.stamp_path(root, "copy").write_text("{")
    assert quietly(root, made)


def test_jupyter_book_2_is_refused():
    with pytest.raises(book.BookError, match="found jupyter-book 2.0.1"):
        book.check_version("2.0.1")
    book.check_version("1.0.4.post1")


@pytest.fixture
def small_book(tmp_path):
    """A two-page book with the course's own configuration; its second page computes 1 / `divisor`."""
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "chapters").mkdir()
    for name in ("_static", "_ext", "_templates"):
        shutil.copytree(ROOT / "chapters" / name, tmp_path / "chapters" / name)
    (tmp_path / "chapters" / "references.bib").write_text("")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: chapters/intro\nchapters:\n  - file: chapters/page\n"
    )
    (tmp_path / "chapters" / "intro.md").write_text("# Start\n\nText.\n")
    header = (
        "---\nkernelspec: {name: python3, display_name: Python 3, language: python}\nfile_format: "
        "mystnb\n---\n"
    )

    def write(divisor, prose="Text."):
        (tmp_path / "chapters" / "page.md").write_text(
            f"{header}# Page\n\n{prose}\n\n```{{code-cell}} ipython3\n1 / {divisor}\n```\n"
        )
        return tmp_path

    return write


def test_a_problem_whose_answer_no_cell_prints_is_among_the_complaints():
    said = "sphinx.errors.ExtensionError: chapters/05-memory: problem-5-1: no cell of its solution prints"
    log = f"Extension error:\nchapters/05-memory: ...\nTraceback:\n  File x\n{said}\n\nRuntimeError: \n==="
    assert book.complaints(log) == [said]


@pytest.mark.full
def test_a_failing_cell_or_a_warning_fails_the_build_every_time_until_it_is_put_right(small_book):
    def build(root):
        book.build(root, code_changed=False, say=lambda text: None)

    with pytest.raises(book.BookError, match="ZeroDivisionError"):
        build(small_book(0))
    build(small_book(2))
    assert book.missing_pages(small_book(2)) == []
    warned = small_book(2, prose="See {ref}`nowhere`.")
    for _ in range(2):
        with pytest.raises(book.BookError, match="page.md.*nowhere"):
            build(warned)
    build(small_book(2))


def test_the_folder_autograder_does_not_hide_the_package_of_that_name():
    ask = [sys.executable, "-c", "import autograder; print(autograder.__file__)"]
    done = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(ROOT / "autograder" / "autograder" / "__init__.py")


def pins() -> dict[str, str]:
    """{"numpy": "2.4.6", ...} of requirements.txt. Every line but the lock's and ./autograder's is a pin."""
    lines = (line.split(" #")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines())
    wanted = [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]
    assert all(str(one.specifier).startswith("==") and "*" not in str(one.specifier) for one in wanted)
    return {one.name.lower(): str(one.specifier)[2:] for one in wanted}


def declared() -> list[Requirement]:
    """The direct dependencies that pyproject.toml declares, those of the extras included."""
    project = tomllib.loads((ROOT / "autograder" / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [
        line for extra in project["optional-dependencies"].values() for line in extra
    ]
    return [one for one in map(Requirement, lines) if one.name != "warplab"]


def test_requirements_pin_just_the_declared_dependencies_and_agree_with_them():
    pinned = pins()
    assert {one.name.lower() for one in declared()} == set(pinned)
    assert [str(one) for one in declared() if pinned[one.name.lower()] not in one.specifier] == []


def lock() -> list[Requirement]:
    """The lines of the lock: a package more than once where Pythons or machines need other versions."""
    lines = (ROOT / "autograder" / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_the_lock_gives_every_package_one_version_and_says_how_it_is_made():
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in lock())
    names = Counter(one.name for one in lock() if one.marker is None)
    assert names and set(names.values()) == {1}
    head = (ROOT / "autograder" / "constraints.txt").read_text().split("\n", 2)[:2]
    assert "uv" in head[0] and "uv pip compile --universal" in head[1]


def test_the_direct_pins_are_the_locks():
    locked = {one.name: str(one.specifier)[2:] for one in lock()}
    assert {name: locked.get(name) for name in pins()} == pins()


@pytest.mark.slow
def test_what_is_installed_is_what_is_pinned_and_consistent():
    here = [one for one in lock() if one.marker is None or one.marker.evaluate()]
    # Not all of sys.path: setuptools puts copies of its own there when it is imported.
    site = distributions(path=[sysconfig.get_path("purelib")])
    installed = {one.metadata["Name"].lower().replace("_", "-"): one.version for one in site}
    present = {one.name: installed[one.name] for one in here if one.name in installed}
    assert set(pins()) <= set(present)
    assert {name: text.split("+")[0] for name, text in present.items()} == {
        one.name: str(one.specifier)[2:] for one in here if one.name in present
    }
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "No broken requirements found."


STUDENT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {name!r} in a student's environment")

sys.meta_path.insert(0, Missing())
import warplab, warplab.tasks.feedback, warplab.plots, warplab.hardware.specs, torch
from warplab.tasks import registry
registry.get("ps01/grayscale"), registry.get("ps04/matmul_tiled"), warplab.hardware.specs.get("h100-sxm")
sys.argv = ["autograder", "validate", *{notebooks}]
from autograder.cli import main
main()
"""


@pytest.mark.slow
def test_what_a_student_installs_is_enough_for_notebooks_and_for_validate():
    absent = {"nbgrader", "jupytext", "jupyter_book", "sphinx", "pytest", "hypothesis", "playwright"}
    notebooks = [str(path) for path in sorted((ROOT / "exercises").glob("*/*.ipynb"))][::4]
    code = STUDENT.replace("{absent}", repr(absent)).replace("{notebooks}", repr(notebooks))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("can be handed in, but is not finished") == len(notebooks)


@pytest.mark.full
def test_the_course_is_made_on_a_fresh_clone_with_an_empty_pip_cache(tmp_path):
    clone = tmp_path / "course"
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(clone)], check=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL")
    }
    fresh = {**inherited, "PIP_CACHE_DIR": str(tmp_path / "pip")}
    done = subprocess.run(
        ["make", "course"], cwd=clone, env=fresh, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert (clone / "_build" / "html" / "index.html").is_file()
    dirty = subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True
    ).stdout
    assert dirty == "", "a build changes committed files"
