"""The workflows for the course's users: valid, pinned, read-only, and made of commands that exist."""

import csv
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

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


def by_schema(*files):
    """(exit status, what is wrong) by GitHub's schema of workflows."""
    check = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files)]
    done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout if done.returncode else ""


def zizmor(*paths):
    """(exit status, what it found)."""
    program = Path(sys.executable).with_name("zizmor")
    if not program.exists():
        pytest.skip("zizmor is not installed; make venv")
    command = [program, "--offline", "--no-progress", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def pins():
    """Every action of our workflows with its commit and version."""
    return {one for path in WORKFLOWS for one in re.findall(r"uses: *(.+)", path.read_text())}


@pytest.mark.slow
def test_workflows_follow_githubs_schema():
    status, said = by_schema(*WORKFLOWS)
    assert status == 0, said


@by_name
def test_actions_are_pinned_to_a_commit_and_say_which_version(path):
    uses = re.findall(r"uses: *(.+)", path.read_text())
    assert uses
    pinned = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [one for one in uses if not pinned.fullmatch(one)] == []


MORE = {
    ("book", "deploy"): {"pages", "id-token"},
    ("book", "notebooks"): {"contents"},  # to write one branch
    ("grade", "collect"): {"actions"},
}


@by_name
def test_a_token_reads_and_does_nothing_else_but_where_this_table_says_so(path):
    workflow = load(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        allowed = job.get("permissions", workflow["permissions"])
        more = {key for key, value in allowed.items() if (key, value) != ("contents", "read")}
        assert more == MORE.get((path.stem, name), set()), name
    assert all(
        step["with"]["persist-credentials"] is False
        for step in steps(path)
        if "checkout" in step.get("uses", "")
    )


def workflow(name):
    return load(next(path for path in WORKFLOWS if path.stem == name))


def test_ci_runs_on_every_push_and_pull_request():
    assert workflow("ci")["on"] == {"push": None, "pull_request": None}


def test_what_uses_your_own_machine_starts_by_hand_alone():
    for path in WORKFLOWS:
        own = "self-hosted" in path.read_text().split("jobs:")[1]
        assert own is (path.stem in ("grade", "record"))
        if own:
            assert set(load(path)["on"]) == {"workflow_dispatch"}


def test_grading_has_three_jobs_and_the_one_that_runs_student_code_gets_no_secret_and_no_name():
    jobs = workflow("grade")["jobs"]
    assert list(jobs) == ["collect", "grade", "publish"]
    assert [name for name, job in jobs.items() if job["runs-on"] != "ubuntu-latest"] == ["grade"]
    grade = jobs["grade"]
    text = yaml.safe_dump(grade)
    assert grade["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets\.|github\.token|GITHUB_TOKEN", text)
    fetched = [step["with"]["name"] for step in grade["steps"] if "download-artifact" in step.get("uses", "")]
    assert fetched == ["parcels"]
    assert "autograder judge" not in yaml.safe_dump([jobs["collect"], jobs["publish"]])


def test_grading_refuses_a_public_repository_before_anything_else():
    first = workflow("grade")["jobs"]["collect"]["steps"][0]
    for private, status in (("true", 0), ("false", 1), ("", 1)):
        done = subprocess.run(["bash", "-ec", first["run"]], env={"PRIVATE": private}, check=False)
        assert done.returncode == status


def test_grading_looks_for_a_gpu_and_for_walls_before_it_judges_and_leaves_nothing_behind():
    order = [step.get("name", "") for step in workflow("grade")["jobs"]["grade"]["steps"]]
    wanted = ["Refuse to start without a GPU", "Refuse to start without walls", "Judge", "Keep the rulings"]
    assert [name for name in order if name in wanted] == wanted
    assert order[-1] == "Leave nothing of the class on the machine"


KNOWN = "nvidia-smi .venv/bin/python PYTHONPATH=autograder test if then else elif fi".split()
KNOWN += ["mkdir", "echo", "rm", "git", "tar", "sed"]


def commands(text):
    """The simple commands of a shell text, as lists of words."""
    text = re.sub(r"\|\| \{.*?\}|\$\(.*?\)", "", text)
    text = re.sub(r'"[^"\n]*"', "quoted", text)
    for line in re.split(r"\n|;|&&|\|", text):
        words = shlex.split(line, comments=True) if line.strip() else []
        while words and words[0] in ("if", "then", "else"):
            words = words[1:]
        if words:
            yield words, line


def check_commands(text, more=()):
    targets = set(re.findall(r"^([a-z][a-z-]*)(?= |:)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words, line in commands(text):
        if words[0].startswith("WARPLAB_COMMIT"):
            words = words[1:]
        if words[0] == "make":
            assert words[1] in targets, line
        elif words[0].endswith("/autograder"):
            check_verb(words[1:], line)
        else:
            assert words[0] in (*KNOWN, *more) or words[:2] == ["sudo", "sysctl"], line


@by_name
def test_every_run_step_is_a_command_that_exists(path):
    for step in steps(path):
        check_commands(step.get("run", "").replace("| grep GPU", ""))


def test_the_development_containers_run_commands_that_exist():
    """None was built here: no builder of containers runs where this course is tested."""
    files = sorted((ROOT / ".devcontainer").rglob("devcontainer.json"))
    made = [json.loads(re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.M)) for file in files]
    assert len(made) == 2 and all(one["updateContentCommand"].startswith("make venv") for one in made)
    for one in made:
        check_commands(one["updateContentCommand"])


def check_verb(words, line):
    from autograder.cli import app
    from autograder.settings import Grade

    command = get_command(app).commands.get(words[0])
    assert command, f"autograder has no verb {words[0]}: {line}"
    known = {flag for parameter in command.params for flag in parameter.opts}
    settings = {f"--Grade.{name}" for name in Grade.class_trait_names(config=True)}
    known |= {word for word in words if word.partition("=")[0] in settings and words[0] == "grade"}
    assert {word for word in words[1:] if word.startswith("--")} <= known, line


def test_the_branch_of_the_notebooks_is_one_commit_whatever_it_was_before(tmp_path):
    (step,) = [step for step in workflow("book")["jobs"]["notebooks"]["steps"] if "run" in step]
    branch = tmp_path / "there.git"
    subprocess.run(["git", "init", "--quiet", "--bare", branch], check=True)
    script = re.sub(r'"https://[^"]*"', str(branch), step["run"])
    for number in (1, 2):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / f"{number}.ipynb").write_text("{}")
        run = {**os.environ, "GITHUB_SHA": f"abc{number}"}
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=run, check=True)
    asked = ["git", "-C", branch, "log", "--name-only", "--format=%s", "notebooks"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    assert [line for line in told if line] == ["Notebooks of abc2", "2.ipynb"]


def test_the_ci_script_is_bash_that_calls_the_readmes_test_command():
    script = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert script.read_text().rstrip().endswith("make test")
    assert "make test" in (ROOT / "README.md").read_text()


GITLAB = ROOT / ".gitlab-ci.yml"


@pytest.mark.slow
def test_gitlabs_pipeline_follows_gitlabs_schema():
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci", str(GITLAB)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_gitlabs_scripts_are_commands_that_exist_and_code_runs_where_no_name_comes():
    jobs = yaml.safe_load(GITLAB.read_text())
    for job in jobs.values():
        for line in job.get("script", ()) if isinstance(job, dict) else ():
            check_commands(line.replace("| grep GPU", ""), ("bash", "git", "tar", "mv"))
    assert jobs[".grade"]["needs"] == ["pack"] and jobs["pack"]["artifacts"]["paths"] == ["class/parcels"]
    assert jobs["collect"]["artifacts"]["access"] == jobs["publish"]["artifacts"]["access"] == "maintainer"


def test_zizmor_finds_nothing_in_the_workflows():
    status, said = zizmor(ROOT / ".github" / "workflows")
    assert status == 0, said


def run_steps(job, folder, artifacts, given):
    """Run one job's own commands in `folder`, with what passes between jobs kept in `artifacts`."""
    for step in job["steps"]:
        if step.get("if") == "inputs.previous != ''":
            continue
        options, text = step.get("with", {}), step.get("run")
        what = {key: substituted(value, given) for key, value in options.items()}
        if "upload-artifact" in step.get("uses", ""):
            kept = keep(folder, artifacts / what["name"], what["path"].split())
            assert kept or what["if-no-files-found"] == "ignore", what["path"]
        elif "download-artifact" in step.get("uses", ""):
            for one in artifacts.glob(what.get("name") or what["pattern"]):
                whole = "name" in what or what.get("merge-multiple") == "True"
                into = folder / what["path"] / ("" if whole else one.name)
                shutil.copytree(one, into, dirs_exist_ok=True)
        elif text and not text.startswith(
            ("make venv", 'if test "$RUNNER"', "sudo", "nvidia-smi", 'test "$PRIVATE"')
        ):
            environment = os.environ | {key: substituted(value, given) for key, value in job["env"].items()}
            environment |= {
                "GITHUB_OUTPUT": str(artifacts / "output"),
                "PYTHONPATH": str(folder / "autograder"),
            }
            done = subprocess.run(
                ["bash", "-ec", text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


def substituted(value, given):
    for key, text in given.items():
        value = str(value).replace("${{ " + key + " }}", text)
    return str(value)


def keep(folder, target, paths):
    """As upload-artifact: what lies under one path, or under the folder that several have in common.

    Returns whether there was anything. One file with a name that Windows does not have fails the job.
    """
    found = [one for path in paths for one in folder.glob(path)]
    everything = [path for one in found for path in (one, *one.rglob("*")) if path.is_file()]
    assert not any(set('":<>|*?\r\n') & set(str(path.relative_to(folder))) for path in everything)
    files = [path for path in paths if "*" in path or (folder / path).is_file()]
    base = folder / os.path.commonpath([path.rpartition("/")[0] if path in files else path for path in paths])
    for one in found:
        into = target / one.relative_to(base)
        if one.is_dir():
            shutil.copytree(one, into, dirs_exist_ok=True)
        else:
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(one, into)
    return bool(found)


@pytest.mark.full
def test_the_three_jobs_grade_a_class_from_clean_clones(tmp_path):
    from autograder.sample_class.build import build_class
    from autograder.sandbox.choose import NoSandbox, choose

    try:
        choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))
    build_class(ROOT, "ps01", tmp_path / "class")
    artifacts, jobs = tmp_path / "artifacts", workflow("grade")["jobs"]
    artifacts.mkdir()
    given = {"inputs.assignment": "ps01", "inputs.runner": "cpu"}

    subprocess.run(["git", "clone", "-q", "--bare", ROOT, tmp_path / "hub"], check=True)

    def machine(name):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "-q", "--shared", tmp_path / "hub", clone], check=True)
        (clone / ".venv").symlink_to(ROOT / ".venv")
        return clone

    first = machine("first")
    for student in ("perfect", "malformed"):
        shutil.copytree(tmp_path / "class" / student, first / "class" / "submitted" / student)
    (first / "class" / "submitted" / "malformed").rename(first / "class" / "submitted" / 'malformed: "?"')
    run_steps(jobs["collect"], first, artifacts, given)
    assert "sent=2" in (artifacts / "output").read_text()
    second = machine("second")
    for share in jobs["grade"]["strategy"]["matrix"]["share"]:
        run_steps(jobs["grade"], second, artifacts, given | {"matrix.share": share})
        assert not (second / "artifacts").exists()
    third = machine("third")
    run_steps(jobs["publish"], third, artifacts, given)
    subprocess.run(["tar", "-xf", artifacts / "grades" / "grades.tar", "-C", tmp_path], check=True)
    with open(tmp_path / "grades" / "grades.csv", newline="") as table:
        rows = [(row["student_id"], row["status"]) for row in csv.DictReader(table)]
    assert rows == [('malformed: "?"', "malformed"), ("perfect", "graded")]
    assert (tmp_path / "grades" / "feedback" / "perfect" / "ps01" / "ps01_pixels.html").exists()
    assert oct((tmp_path / "grades" / ".seed").stat().st_mode)[-3:] == "600"


@pytest.mark.slow
def test_the_published_book_knows_its_address_and_its_repository(tmp_path):
    (step,) = [one for one in steps(WORKFLOWS[0]) if one.get("name", "").startswith("Tell the book where")]
    shutil.copy(ROOT / "_config.yml", tmp_path)
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    place = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "lab/gpu-course",
        "GITHUB_REPOSITORY_OWNER": "lab",
    }
    subprocess.run(["bash", "-ec", step["run"]], cwd=tmp_path, check=True, env={**os.environ, **place})
    program = Path(sys.executable).with_name("jupyter-book")  # what it makes of the file for Sphinx
    subprocess.run([program, "config", "sphinx", "."], cwd=tmp_path, check=True, capture_output=True)
    made = runpy.run_path(str(tmp_path / "conf.py"))
    assert made["html_baseurl"] == "https://lab.github.io/gpu-course/"
    assert made["html_favicon"] == "chapters/_static/favicon.svg"
    options = made["html_theme_options"]
    assert options["repository_url"] == "https://github.com/lab/gpu-course"
    assert options["use_repository_button"] is True and "CC BY 4.0" in options["extra_footer"]
