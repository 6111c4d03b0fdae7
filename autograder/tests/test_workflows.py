"""The workflows for the course's users: valid, pinned, read-only, and made of commands that exist."""

import re
import shlex
import subprocess
import sys

import pytest
import yaml
from conftest import ROOT
from typer.main import get_command

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
by_name = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def load(path):
    workflow = yaml.safe_load(path.read_text())
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads the key `on` as true
    return workflow


def steps(path):
    return [step for job in load(path)["jobs"].values() for step in job["steps"]]


def test_there_are_two_workflows():
    assert [path.stem for path in WORKFLOWS] == ["ci", "grade"]


def test_workflows_follow_githubs_schema():
    check = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        *map(str, WORKFLOWS),
    ]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@by_name
def test_actions_are_pinned_to_a_commit_and_say_which_version(path):
    uses = re.findall(r"uses: *(.+)", path.read_text())
    assert uses
    assert [
        one for one in uses if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)
    ] == []


@by_name
def test_the_token_can_only_read(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert all(
        step["with"]["persist-credentials"] is False
        for step in steps(path)
        if "checkout" in step.get("uses", "")
    )


def test_ci_runs_on_every_push_and_pull_request():
    assert load(WORKFLOWS[0])["on"] == {"push": None, "pull_request": None}


def test_grading_starts_by_hand_or_on_its_own_branch_never_from_a_pull_request():
    grade = load(WORKFLOWS[1])
    assert set(grade["on"]) == {"workflow_dispatch", "push"}
    assert grade["on"]["push"] == {"branches": ["grading"]}
    assert grade["jobs"]["grade"]["runs-on"] == ["self-hosted", "gpu"]


def test_grading_checks_for_a_gpu_before_it_grades_and_keeps_what_it_made():
    order = [step.get("name", "") for step in steps(WORKFLOWS[1])]
    assert order.index("Refuse to start without a GPU") < order.index("Grade")
    kept = steps(WORKFLOWS[1])[-1]
    assert kept["uses"].startswith("actions/upload-artifact@") and kept["if"] == "always()"
    assert kept["with"]["path"] == "_build/grades"


@by_name
def test_inputs_reach_a_shell_only_through_the_environment(path):
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


@by_name
def test_every_run_step_is_a_command_that_exists(path):
    targets = set(re.findall(r"^([a-z][a-z-]*)(?= |:)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(path):
        for line in step.get("run", "").splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "make":
                assert words[1] in targets, line
            elif words[0].endswith("/autograder"):
                check_verb(words[1:], line)
            else:
                assert words[0] in ("nvidia-smi", ".venv/bin/python") or words[:2] == ["sudo", "sysctl"], line


def check_verb(words, line):
    from autograder.cli import app

    command = get_command(app).commands.get(words[0])
    assert command, f"autograder has no verb {words[0]}: {line}"
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in words[1:] if word.startswith("--")} <= known, line


def test_the_ci_script_is_bash_that_calls_the_readmes_test_command():
    script = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert script.read_text().rstrip().endswith("make test")
    assert "make test" in (ROOT / "README.md").read_text()
