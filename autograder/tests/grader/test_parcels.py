"""Grading elsewhere: no name leaves, what comes back is checked, and the grades are those of one machine."""

import json
import shutil

import pytest
from grading import answers, hand_in, judged_here, make_course, notebook, verdict_of
from grading import command as run_command
from grading import grading as made_grading

from autograder.sandbox.choose import choose
from autograder.workers import machine_judge


def by_length(assignment, checked, *_):
    """Stands in for the judge: 3 points a test cell for an answer, 0 for the stub."""
    solved = any("secret_columns" in cell["source"] for cell in checked.notebook["cells"])
    points = dict.fromkeys(assignment.cells, 3.0 if solved else 0.0)
    return verdict_of(assignment, points, "sandboxed (test)")


STUDENTS = ("ada-lovelace", "bob-the-builder", "cyd-charisse")


@pytest.fixture(scope="module")
def course_once(tmp_path_factory):
    root, assignment = make_course(tmp_path_factory.mktemp("shards") / "course")
    for student in STUDENTS[:2]:
        hand_in(root / "submitted", student, notebook(assignment, **answers(root)), "ps01/ps01_tiny.ipynb")
    hand_in(root / "submitted", STUDENTS[2], notebook(assignment), "ps01/ps01_tiny.ipynb")
    with judged_here(by_length):
        rows = list(
            made_grading(root, "ps01", root / "submitted", root / "one", sandbox=choose(unsafe=True)).rows()
        )
    assert [(row.student, row.score) for row in sorted(rows, key=lambda row: row.student)] == [
        (STUDENTS[0], 6.0),
        (STUDENTS[1], 6.0),
        (STUDENTS[2], 0.0),
    ]
    shutil.copytree(root / "one", root / "grades", dirs_exist_ok=True)
    shutil.rmtree(root / "grades" / "results")
    return root


@pytest.fixture
def command(course_once, tmp_path, monkeypatch):
    """Run `autograder ...` in a copy of that class, with a judge that starts no process."""
    root = shutil.copytree(course_once, tmp_path / "course")
    monkeypatch.setattr(machine_judge, "course_version_of_this_process", lambda: "test")
    monkeypatch.setattr(machine_judge, "own_judge", lambda _: machine_judge.MachineJudge(choose(unsafe=True)))

    def run(*words):
        with judged_here(by_length):
            status, *told = run_command(root, *words)
        return status, "".join(told)

    run.root = root
    return run


def scores(out):
    records = [json.loads(path.read_text()) for path in sorted((out / "results" / "ps01").glob("*.json"))]
    return {
        record["student"]: {key: cell["points"] for key, cell in record["verdict"]["cells"].items()}
        for record in records
        if record["verdict"]
    }


PARCELS = "--Grade.parcels=parcels"


def sent_and_judged(command):
    status, told = command("grade", "ps01", PARCELS)
    assert status == 0 and told.count("waits to be judged in parcels") == 3
    assert oct((command.root / "parcels").stat().st_mode)[-3:] == "700"
    for share in (1, 2):
        status, told = command("judge", "parcels", "--jobs", 1, "--share", share, "--of", 2)
        assert status == 0, told
    return sorted(command.root.glob("parcels/*.ruling.json"))


@pytest.mark.slow
def test_shares_give_the_grades_of_one_machine_and_then_nothing_is_sent_again(command):
    assert len(sent_and_judged(command)) == 3
    status, told = command("grade", "ps01", PARCELS)
    assert status == 0, told
    assert scores(command.root / "grades") == scores(command.root / "one")
    assert (command.root / "grades/feedback/ada-lovelace/ps01/ps01_tiny.html").exists()
    assert "sandboxed (test)" in (command.root / "grades/results/ps01/ada-lovelace.json").read_text()
    assert "3 of 3 unchanged" in command("grade", "ps01", "--Grade.parcels=again")[1]
    assert not list(command.root.glob("again/*"))


def test_no_students_name_goes_along(command):
    sent_and_judged(command)
    files = [path for path in command.root.glob("parcels/**/*") if path.is_file()]
    everything = b"".join(str(path.relative_to(command.root)).encode() + path.read_bytes() for path in files)
    assert len(files) == 9 and not any(student.encode() in everything for student in STUDENTS)


@pytest.mark.slow
def test_a_ruling_that_no_judge_gives_is_nobodys_grade(command):
    """test_workers.py has all that may be wrong with one."""
    first = sent_and_judged(command)[0]
    told = json.loads(first.read_text())
    told["verdict"]["cells"].popitem()
    first.write_text(json.dumps(told))
    status, told = command("grade", "ps01", PARCELS)
    assert status == 1 and "not graded" in told
    reasons = [
        json.loads(path.read_text())["reason"] for path in command.root.glob("grades/results/ps01/*.json")
    ]
    assert sum("other cells than the problem set" in reason for reason in reasons) == 1
    assert len(scores(command.root / "grades")) == 2


@pytest.mark.slow
def test_what_did_not_come_back_fails_the_run_and_the_next_folder_gets_those_alone(command):
    lost = sent_and_judged(command)[:2]
    for path in lost:
        path.unlink()
    status, told = command("grade", "ps01", PARCELS)
    assert status == 1 and told.count("no ruling came back") == len(lost)
    assert command("grade", "ps01", "--Grade.parcels=more")[0] == 0
    assert len(list(command.root.glob("more/*.ipynb"))) == len(lost)


@pytest.mark.slow
def test_another_kind_of_machine_judges_all_again(command):
    sent_and_judged(command)
    command("grade", "ps01", PARCELS)
    command("grade", "ps01", "--Grade.parcels=gpus", "--Grade.machines=gpu")
    assert len(list(command.root.glob("gpus/*.ipynb"))) == 3


@pytest.mark.slow
def test_a_link_is_no_ruling(command, tmp_path):
    first = sent_and_judged(command)[0]
    kept = shutil.move(first, tmp_path / "elsewhere")
    first.symlink_to(kept)
    assert command("grade", "ps01", PARCELS)[0] == 1


def test_mistakes_are_told_in_a_line(command):
    assert "no parcels in nowhere" in command("judge", "nowhere")[1]
    (command.root / "x").write_text("")
    assert "choose another Grade.parcels" in command("grade", "ps01", "--Grade.parcels=x")[1]
