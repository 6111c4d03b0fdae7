"""Grading on a cluster: whatever happens to workers, scheduler and messages, each submission is graded once,
with the scores of one machine, and the log tells what happened.
"""

import json
import signal
import sqlite3
import time
from collections import Counter

import dask
import pytest
from grading import answers, hand_in, make_course, notebook, one_course_version, rows_of
from grading import grading as made_grading

pytest.importorskip("distributed")
from dask_processes import (  # noqa: E402
    ONE_VERSION,
    TWICE,
    Cluster,
    grader,
    made_certificates,
    stopped,
    tls_settings,
)

WRONG = {"launch_plan": "launch_plan = None"}


def class_of(root, assignment, size):
    """Hand in: every third has the first task wrong, one is malformed, one is missing."""
    good = answers(root)
    for number in range(size - 2):
        document = notebook(assignment, **(good if number % 3 else good | WRONG))
        hand_in(root / "submitted", f"student{number:03}", document)
    hand_in(root / "submitted", "broken", "{")
    (root / "submitted/nobody").mkdir()


def events(out):
    path = out / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def decided(out):
    """Who was decided about for good, once for each time."""
    mine = [event for event in events(out) if event["event"] == "decided" and event["fresh"]]
    return [event["student"] for event in mine if event["status"] != "not graded"]


def finish(root, *words, done=False):
    """Run until nothing is set aside: on a machine that is out of breath a reader may get no processor."""
    for _ in range(3):
        if not done:
            run = grader(root, *words)
            complained = run.communicate(timeout=1800)[1]
            done = run.returncode == 0
    assert done, complained


def grade_here(root, out):
    """On this machine, in this process. Returns of each whether this run graded it."""
    with one_course_version():
        grading = made_grading(root, "ps01", root / "submitted", out, seed=5, jobs=2)
        return [row.fresh for row in grading.rows()]


def until(condition, process, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def scores(out):
    about = ("status", "score", "manual_points_pending")
    return {student: tuple(row[what] for what in about) for student, row in rows_of(out).items()}


def entered(out):
    with sqlite3.connect(out / "gradebook.db") as database:
        return dict(database.execute("select student_id, count(*) from submitted_assignment group by 1"))


def grade_through_losses(tmp_path, size, workers, pause):
    """Kill -9 a worker a fifth of the way, stop the scheduler, have every message twice."""
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, size)
    with Cluster(tmp_path, ONE_VERSION + TWICE) as cluster:
        processes = [cluster.start_worker() for _ in range(workers)]
        run = grader(root, "--out", "cluster", "--scheduler", cluster.address)
        out = root / "cluster"
        until(lambda: len(decided(out)) >= size // 5, run)
        processes[0].kill()
        until(lambda: any(event["event"] == "worker-left" for event in events(out)), run)
        with stopped(cluster.scheduler):
            time.sleep(pause)
        said, complained = run.communicate(timeout=1800)
        assert run.returncode in (0, 1), (said, complained)
        finish(root, "--out", "cluster", "--scheduler", cluster.address, done=run.returncode == 0)
    return root, said


def check_each_graded_once(root, size):
    out = root / "cluster"
    assert Counter(decided(out)).most_common(1)[0][1] == 1 and len(decided(out)) == size
    points = {f"student{number:03}": "30" if number % 3 else "15" for number in range(size - 2)}
    graded = {student: ("graded", score, "5") for student, score in points.items()}
    assert scores(out) == graded | {"broken": ("malformed", "", ""), "nobody": ("missing", "", "")}
    assert set(entered(out).values()) == {1} and len(entered(out)) == size - 1


@pytest.mark.slow
def test_a_killed_worker_and_doubled_messages_change_no_grade(tmp_path):
    root, said = grade_through_losses(tmp_path, size=6, workers=2, pause=0)
    check_each_graded_once(root, 6)
    assert "left; what it was judging" in said and "1 of 1 workers may judge" not in said
    told = [event["event"] for event in events(root / "cluster")]
    assert (
        told.index("workers") < told.index("started") < told.index("worker-left")
    )  # the log was not open yet


@pytest.mark.full
def test_two_hundred_on_three_workers_through_all_losses(tmp_path):
    """A worker is killed with SIGKILL, the scheduler stands still for 20 s, each message comes twice."""
    root, said = grade_through_losses(tmp_path, size=200, workers=3, pause=20)
    check_each_graded_once(root, 200)
    kinds = {event["event"] for event in events(root / "cluster")}
    assert {"workers", "worker-left", "finished"} <= kinds
    assert "waiting for the scheduler, which does not answer" in said


@pytest.mark.full
def test_a_scheduler_that_dies_and_comes_back_empty_is_sent_the_rest(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 30)
    with Cluster(tmp_path) as cluster:
        cluster.start_worker()
        run = grader(root, "--out", "cluster", "--scheduler", cluster.address)
        until(lambda: len(decided(root / "cluster")) >= 8, run)
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        time.sleep(5)
        assert cluster.start_scheduler(cluster.address) == cluster.address
        cluster.start_worker()
        said, complained = run.communicate(timeout=600)
        assert run.returncode == 0, (said, complained)
    students = decided(root / "cluster")
    assert len(students) == len(set(students)) == 30
    waited = [event["for_what"] for event in events(root / "cluster") if event["event"] == "waiting"]
    assert "the scheduler, which does not answer" in waited


POISON = """
from autograder.workers.machine_judge import MachineJudge
def rule(self, conditions, notebook):
    if b"POISON" in notebook:
        import os; os.kill(os.getpid(), 9)
    return self.honest(conditions, notebook)
if not hasattr(MachineJudge, "honest"):  # Dask loads a file of this kind more than once
    MachineJudge.honest, MachineJudge.rule = MachineJudge.rule, rule
"""


@pytest.mark.full
@pytest.mark.parametrize("workers", [2, 1])
def test_a_submission_that_takes_its_workers_with_it_is_set_aside_and_no_other(tmp_path, workers):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 8)
    hand_in(root / "submitted", "poison", notebook(assignment, launch_plan="# POISON"))
    with Cluster(tmp_path, ONE_VERSION + POISON) as cluster:
        processes = [cluster.start_worker() for _ in range(workers)]
        run = grader(root, "--out", "cluster", "--scheduler", cluster.address)
        while run.poll() is None:  # as systemd, Slurm or Kubernetes would
            for number, process in enumerate(processes):
                if process.poll() is not None:
                    processes[number] = cluster.start_worker()
            time.sleep(0.5)
        assert run.returncode == 1, run.communicate()
    table = scores(root / "cluster")
    assert table.pop("poison")[0] == "not graded"
    assert {status for status, _, _ in table.values()} == {"graded", "malformed", "missing"}
    assert (
        json.loads((root / "cluster/results/ps01/poison.json").read_text())["reason"]
        == "each worker that judged it died, also when it was judged alone"
    )


@pytest.mark.full
def test_a_cluster_behind_tls_grades_whoever_has_its_key_and_nobody_else(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 5)
    ours, others = made_certificates(tmp_path / "ours"), made_certificates(tmp_path / "others")
    with Cluster(tmp_path, certificates=ours) as cluster:
        cluster.start_worker()
        with dask.config.set(tls_settings(ours)):
            run = grader(root, "--out", "tls", "--scheduler", cluster.address)
            said, complained = run.communicate(timeout=300)
        assert run.returncode == 0, (said, complained)
        assert cluster.address.startswith("tls://")
        open_address = cluster.address.replace("tls://", "tcp://")
        for settings, address in ((tls_settings(others), cluster.address), ({}, open_address)):
            with dask.config.set(settings):
                run = grader(root, "--out", "refused", "--scheduler", address)
                said, complained = run.communicate(timeout=300)
            assert run.returncode == 2 and "no Dask scheduler answers at" in complained, (said, complained)
    grade_here(root, root / "alone")
    assert scores(root / "tls") == scores(root / "alone")


@pytest.mark.full
@pytest.mark.slow
def test_ctrl_c_on_a_cluster_keeps_what_is_graded_and_the_next_run_does_the_rest(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 8)
    with Cluster(tmp_path) as cluster:
        cluster.start_worker()
        run = grader(root, "--out", "cluster", "--scheduler", cluster.address)
        until(lambda: len(decided(root / "cluster")) >= 2, run)
        run.send_signal(signal.SIGINT)
        assert "what was graded is kept" in run.communicate(timeout=120)[1] and run.returncode == 130
    first = len(decided(root / "cluster"))
    assert sorted(grade_here(root, root / "cluster")) == [False] * first + [True] * (8 - first)
    fresh = [event["student"] for event in events(root / "cluster") if event.get("fresh")]
    assert len(fresh) == len(set(fresh)) == 8


@pytest.mark.slow
def test_an_address_where_nobody_is_is_one_line(tmp_path, monkeypatch):
    root, assignment = make_course(tmp_path / "course")
    hand_in(root / "submitted", "ada", notebook(assignment))
    monkeypatch.setattr("autograder.workers.connecting.TRY", 1.0)
    run = grader(root, "--scheduler", "tcp://127.0.0.1:9")
    said = run.communicate(timeout=120)[1]
    assert run.returncode == 2 and said.count("\n") == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in said
