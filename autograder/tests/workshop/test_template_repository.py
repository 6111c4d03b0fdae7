"""The template of students' repositories: a valid workflow, whose commands do there what they say."""

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import forked_commands
import pytest
import yaml
from conftest import ROOT
from grading import answers, make_course, notebook
from test_workflows import by_schema, pins, zizmor

from autograder.release.template_repository import WORKFLOW, write_template
from autograder.user_error import UserError
from autograder.validate.public_checks import markdown, public_checks
from workshop.elsewhere import build_wheel

PACKAGE = "warplab[student] @ git+https://example.org/course@0123abc#subdirectory=autograder"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("template") / "course")


@pytest.fixture
def repository(course, tmp_path):
    write_template(course[0], ["ps01"], tmp_path / "repository", PACKAGE)
    return tmp_path / "repository"


def commands(repository):
    """{name of a step: its command} of the workflow."""
    steps = yaml.safe_load((repository / WORKFLOW).read_text())["jobs"]["check"]["steps"]
    return {step["name"]: step["run"] for step in steps if "run" in step}


def run(repository, command, env):
    """One step as the runner has it, but that `autograder` is forked from this process."""
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {command}"], cwd=repository, env=env, capture_output=True, text=True
    ).stdout.split()
    assert words[0] == "autograder"
    process = forked_commands.autograder(
        words[1:], env=env, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = process.communicate(timeout=120)
    return process.returncode, out + err


@pytest.mark.slow
def test_the_workflow_is_valid_pinned_as_ours_are_and_reads_only(repository):
    file = repository / WORKFLOW
    assert by_schema(file) == (0, "")
    used = re.findall(r"uses: *(.+)", file.read_text())
    assert used and set(used) <= pins()
    assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
    status, said = zizmor(file)
    assert status == 0, said


@pytest.mark.slow
def test_its_steps_show_a_students_points_in_the_summary_of_the_job(course, repository, tmp_path):
    """A right answer, one that raises, a written one: 15 of 35 points, and red until the second is right."""
    root, assignment = course
    file = repository / "ps01" / "ps01_tiny.ipynb"
    summary = tmp_path / "summary.md"
    env = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
    good = answers(root)
    bad = {"time_it": "def time_it(device, work, repeats):\n    raise ValueError('<b>|')\n"}
    file.write_text(json.dumps(notebook(assignment, **good | bad)))
    steps = commands(repository)
    assert run(repository, steps["Is it fit to hand in?"], env)[0] == 0
    assert run(repository, steps["Public checks"], env)[0] == 1
    text = summary.read_text()
    assert "### ps01_tiny: 15 of 35 points; 5 more cannot be given here" in text
    assert "| launch_plan | 15 of 15 |  |" in text and "| time_it | 0 of 15 |" in text
    assert "&lt;b&gt;&#124;" in text and "<b>" not in text
    assert "| explain | 0 of 5 | a written answer, read by a person |" in text
    file.write_text(json.dumps(notebook(assignment, **good)))
    status, said = run(repository, steps["Public checks"], env)
    assert status == 0, said
    assert "30 of 35 points" in summary.read_text()


def test_an_error_of_the_cell_that_should_define_a_function_is_told_in_its_checks_place(course, repository):
    file = repository / "ps01" / "ps01_tiny.ipynb"
    bad = {
        "launch_plan": "def launch_plan(width, height, block)\n    return 1\n",
        "time_it": "time_it = 1 / 0",
    }
    file.write_text(json.dumps(notebook(course[1], **answers(course[0]) | bad)))
    plan, timed, _ = public_checks(file, course[1])
    assert plan.losses() == ["SyntaxError: expected ':' (line 1: `def launch_plan(width, height, block)`)"]
    assert timed.losses() == ["ZeroDivisionError: division by zero (line 1: `time_it = 1 / 0`)"]


def test_rows_that_another_one_explains_are_told_in_one_line(course, repository):
    file = repository / "ps01" / "ps01_tiny.ipynb"
    bad = {"launch_plan": "def launch_plan(width, height, block):\n    print(width)\n"}
    file.write_text(json.dumps(notebook(course[1], **answers(course[0]) | bad)))
    first, others = public_checks(file, course[1])[0].losses()
    assert "returned None" in first and others.startswith("lost to that, too: All other images")


def test_as_it_is_handed_out_it_is_fit_to_hand_in_and_has_no_points(course, repository):
    cells = public_checks(repository / "ps01" / "ps01_tiny.ipynb", course[1])
    assert [one.points for one in cells] == [0, 0, 0] and not all(one.complete for one in cells)
    assert "### x: 0 of 35 points" in markdown("x", cells)


def test_it_holds_what_collect_looks_for_and_no_solution(course, repository):
    released = course[1].path.read_bytes()
    assert (repository / "ps01/ps01_tiny.ipynb").read_bytes() == released
    assert (repository / "exercises/ps01/ps01_tiny.ipynb").read_bytes() == released
    assert (repository / "requirements.txt").read_text() == f"{PACKAGE}\n"
    everything = b"".join(path.read_bytes() for path in repository.rglob("*") if path.is_file())
    assert b"secret_columns" not in everything


def test_a_wheel_goes_along(course, tmp_path):
    wheel = tmp_path / "warplab-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"x")
    write_template(course[0], ["ps01"], tmp_path / "made", str(wheel))
    assert (tmp_path / "made" / wheel.name).exists()
    assert (tmp_path / "made/requirements.txt").read_text() == f"./{wheel.name}[student]\n"


@pytest.mark.parametrize("package, complaint", [("warplab", "the extra"), ("no.whl", "there is no wheel")])
def test_a_package_that_students_could_not_install_is_refused(course, tmp_path, package, complaint):
    with pytest.raises(UserError, match=complaint):
        write_template(course[0], ["ps01"], tmp_path / "made", package)


def test_a_folder_with_work_in_it_is_left_alone(course, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        write_template(course[0], ["ps01"], tmp_path, PACKAGE)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["mine.txt"]


def test_the_command_writes_it_and_asks_for_the_package(course, tmp_path):
    def release(*words):
        process = forked_commands.autograder(
            ["release", "ps01", "--course", course[0], *words], stdout=-1, stderr=-1, text=True
        )
        return (*process.communicate(timeout=60), process.returncode)

    assert "--template and --package go together" in release("--template", tmp_path / "made")[1]
    assert release("--template", tmp_path / "made", "--package", PACKAGE)[2] == 0
    assert (tmp_path / "made" / WORKFLOW).exists()


@pytest.mark.full
def test_students_can_install_what_the_real_wheel_asks_for(tmp_path):
    """The wheel of this course in a template: its metadata has the extra, and the command that checks."""
    wheel = build_wheel(ROOT, tmp_path)
    write_template(ROOT, ["ps01"], tmp_path / "made", str(wheel))
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        about = packed.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "Provides-Extra: student" in about
    assert {"autograder/validate/public_checks.py", "autograder/release/template/check.yml"} <= set(names)
