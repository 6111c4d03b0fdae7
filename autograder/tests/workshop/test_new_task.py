"""`python -m workshop new-task`: what it writes runs at once, and says where a person must decide."""

import json
import runpy
import shutil
import subprocess
import sys

import corpus_files
import pytest
import yaml
from conftest import ROOT
from corpus_files import entries_of, given_to, required, solution_of
from typer.testing import CliRunner

from autograder.release.release import release
from autograder.user_error import UserError
from warplab.tasks import registry
from warplab.tasks.declaration import DECLARED
from warplab.tasks.feedback import report_on
from workshop.__main__ import app
from workshop.new_task.skeleton import CORPUS, TASKS, kinds, with_next, write_skeleton

SET = "ps05"
NOTEBOOK = "solutions/ps05_memory.py"
NEW = {f"{SET}/new_{kind}": (kind, "numba") for kind in kinds()} | {
    f"{SET}/new_in_cpp": ("kernel", "cuda-cpp")
}


def copy_of_a_set(folder):
    """What the command reads and writes of one problem set; the corpus is empty."""
    for name in (f"{TASKS}/{SET}.py", f"{TASKS}/{SET}_hints.yml", NOTEBOOK, "nbgrader_config.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / CORPUS).mkdir(parents=True)
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def declared():
    """The tasks that are declared meanwhile are forgotten afterwards."""
    before = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(before)


@pytest.fixture(scope="module")
def checkout(declared, tmp_path_factory):
    """A copy of set 5 with a new task of every kind, which are registered and whose corpus is found."""
    root = copy_of_a_set(tmp_path_factory.mktemp("checkout"))
    for name, (kind, language) in NEW.items():
        write_skeleton(root, name, kind, language)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(corpus_files.SOLUTIONS, SET, root / NOTEBOOK)
        patch.setattr(corpus_files, "CORPUS", root / CORPUS)
        runpy.run_path(str(root / TASKS / f"{SET}.py"))
        yield root


@pytest.fixture(scope="module")
def released(checkout):
    """{task: what a student finds in the cell of its solution}."""
    release(checkout, [SET])
    cells = json.loads((checkout / "exercises" / SET / "ps05_memory.ipynb").read_text())["cells"]
    return {f"{SET}/{cell['id']}": "".join(cell["source"]) for cell in cells}


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_the_reference_earns_every_point(checkout, name):
    report = report_on(name, *solution_of(name))
    assert report.score == registry.get(name).points == 10, report


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_one_right_and_one_wrong_answer_get_what_they_say(checkout, name):
    right, wrong = entries_of(name)
    assert (right.kind, wrong.kind) == ("correct", "wrong") and wrong.points < right.points == 10
    for entry in (right, wrong):
        report = report_on(name, entry.namespace()[registry.get(name).entry])
        assert report.score == entry.points, (entry.id, report)
        lost = [line.key for line in report.lines if line.points < line.max]
        (asked,) = required(name)
        assert lost == asked["lost without it"].get(entry.name, [])


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_the_stub_earns_nothing(released, name):
    namespace = dict(given_to(name))
    assert "BEGIN SOLUTION" not in released[name]
    exec(compile(released[name], "stub", "exec"), namespace)
    assert report_on(name, namespace[registry.get(name).entry]).score == 0


@pytest.mark.parametrize("name", NEW)
def test_every_row_gets_three_hints(checkout, name):
    hints = yaml.safe_load((checkout / TASKS / f"{SET}_hints.yml").read_text())[name.split("/")[1]]
    assert list(hints) == [item.key for item in registry.get(name).items]
    assert all(len(set(three)) == 3 for three in hints.values())


@pytest.mark.parametrize("name", NEW)
def test_a_person_is_asked_to_decide_in_every_place(checkout, name):
    places = [checkout / CORPUS / name / file for file in ("correct_another_way.py", "edits.yml")]
    texts = [path.read_text() for path in places]
    texts += [yaml.safe_load((checkout / "solutions" / "after.yml").read_text())[name], str(required(name))]
    texts += [solution for solution in corpus_files.cells_for(name)[-1:]]
    texts += [registry.get(name).__doc__, *(item.title for item in registry.get(name).items)]
    assert all("DECIDE: " in text for text in texts), texts


def test_new_cells_stand_before_the_question_that_is_graded_by_hand(checkout):
    text = (checkout / NOTEBOOK).read_text()
    last = max(text.index(f'grade="{name}"') for name in NEW)
    assert text.index('grade="ps05/flash_attention"') < last < text.index("Predict and explain")


@pytest.mark.slow
def test_what_it_writes_has_the_form_of_the_project(checkout):
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "autograder" / "pyproject.toml")]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [*ruff, *command, *config, TASKS, NOTEBOOK], cwd=checkout, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_set_begins_with_its_notebook(declared, tmp_path, monkeypatch):
    root = copy_of_a_set(tmp_path)
    notebook = root / "solutions" / "ps99_sorting.py"
    notebook.write_text("# %%\nfrom warplab.check import grade\n")
    write_skeleton(root, "ps99/first", "function")
    monkeypatch.setitem(corpus_files.SOLUTIONS, "ps99", notebook)
    runpy.run_path(str(root / TASKS / "ps99.py"))
    assert report_on("ps99/first", *solution_of("ps99/first")).score == 10
    assert list(yaml.safe_load((root / TASKS / "ps99_hints.yml").read_text())) == ["first"]


@pytest.mark.parametrize(
    ("name", "kind", "language", "told"),
    [
        ("ps05/transpose", "kernel", "numba", r'@task\("ps05/transpose".* stands in .* already'),
        ("ps05/picture", "kernel", "numba", "'class Picture' stands in .* already"),
        ("ps05/elsewhere", "kernel", "numba", "'class Elsewhere' stands in .*other.py already"),
        ("ps05/column_reader", "kernel", "numba", r"'def column_reader\(' stands in .* already"),
        ("ps05/taken", "kernel", "numba", "taken exists already"),
        ("ps05/class", "kernel", "numba", '"ps05/class" is no name of a task'),
        ("gather", "kernel", "numba", '"gather" is no name of a task; write psNN/name'),
        ("ps06/gather", "kernel", "numba", 'no problem set "ps06".*begins with its notebook'),
        ("ps05/gather", "kernle", "numba", r'unknown kind "kernle" \(did you mean kernel'),
        ("ps05/gather", "kernel", "rust", 'unknown language "rust"'),
        ("ps05/gather", "vjp", "cuda-cpp", "only a kernel is written in cuda-cpp"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(tmp_path, name, kind, language, told):
    root = copy_of_a_set(tmp_path)
    (root / CORPUS / "ps05" / "taken").mkdir(parents=True)
    (root / TASKS).with_name("other.py").write_text("class Elsewhere:\n    pass\n")
    before = contents(root)
    with pytest.raises(UserError, match=told):
        write_skeleton(root, name, kind, language)
    assert contents(root) == before


def test_it_works_in_a_checkout_only(tmp_path):
    (tmp_path / "nbgrader_config.py").touch()
    with pytest.raises(UserError, match="no checkout of the course's repository.*clone the repository"):
        write_skeleton(tmp_path, "ps05/gather", "kernel")


def test_the_command_tells_what_it_wrote_and_what_comes_next(tmp_path):
    root = copy_of_a_set(tmp_path)
    done = CliRunner().invoke(app, ["new-task", "ps05/gather", "--kind", "kernel", "--course", str(root)])
    assert done.exit_code == 0
    written = [
        line.removesuffix(": written") for line in done.output.splitlines() if line.endswith(": written")
    ]
    assert written == [
        "autograder/warplab/tasks/ps05.py",
        "autograder/warplab/tasks/ps05_hints.yml",
        "solutions/ps05_memory.py",
        "solutions/after.yml",
        "autograder/tests/corpus/ps05/gather/correct_another_way.py",
        "autograder/tests/corpus/ps05/gather/edits.yml",
        "autograder/tests/corpus/ps05/requirements.yml",
    ]
    assert "pytest autograder/tests/tasks -k ps05" in done.output


def test_what_comes_next_stands_behind_that_of_its_set():
    text = "# why\nps04/last: >-\n  Next.\nps05/a: >-\n  Next.\nps07/b: Next.\n"
    for name, before in {"ps05/new": "ps07/b", "ps06/new": "ps07/b", "ps04/new": "ps05/a"}.items():
        assert with_next(text, name) == text.replace(
            f"{before}:", f"{name}: >-\n  DECIDE: what one would do next on a GPU.\n{before}:"
        )
    assert list(yaml.safe_load(with_next(text, "ps09/new")))[-1] == "ps09/new"
