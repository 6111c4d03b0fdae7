"""What a student learns from one attempt is worth nothing in the next, nor to anybody else in a later run.

The attackers here know more than feedback tells: every input that an attempt was judged on, and the right
answer to each. Their notebooks are tables. Judging is real, but in this process.
"""

import csv
import json

import numpy as np
import pytest
from grading import answers, hand_in, judged_here, make_course, notebook
from grading import grading as made_grading

from autograder.gradebook import CourseGradebook
from autograder.judge.judge import CellVerdict, Verdict, _judged
from autograder.results import secret_seed, seed_of_round
from autograder.sandbox import Unsafe
from autograder.workers import machine_judge
from warplab import crossing
from warplab.tasks import registry, scoring

SEED = 11
TASK = "ps01/launch_plan"


def judge(assignment, checked, cases, launcher, limits):
    """The first task's points, by the judge's own comparison; the student's code runs here."""
    space = {}
    for cell in checked.notebook["cells"]:
        if cell["id"] == "launch_plan":
            exec(cell["source"], space)
    task = registry.get(TASK)
    outcomes = [crossing.try_here(task, case, space.get("launch_plan"), None) for case in cases[TASK]]
    report = scoring.judge(task, cases[TASK], outcomes)
    cells = {
        spec.grade_id: _judged(spec, report)
        if spec.task == TASK
        else CellVerdict(spec.grade_id, 0.0, spec.points, "lost")
        for spec in assignment.graded()
    }
    return Verdict("graded", "", cells, "in this process", 0.0)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    with judged_here(judge):
        root, assignment = make_course(tmp_path_factory.mktemp("fresh") / "course")
        CourseGradebook(root / "empty").__exit__()  # made once: it takes seconds
        yield root, assignment


@pytest.fixture
def room(course, tmp_path):
    return Room(course, tmp_path)


class Room:
    """A class: hand in, and grade."""

    def __init__(self, course, folder):
        self.root, self.assignment = course
        self.submitted, self.out = folder / "submitted", folder / "out"
        self.out.mkdir()
        (self.out / "gradebook.db").write_bytes((self.root / "empty/gradebook.db").read_bytes())

    def hand_in(self, student, source):
        document = source if source == "{" else notebook(self.assignment, launch_plan=source)
        hand_in(self.submitted, student, document)

    def grade(self):
        self.grading = made_grading(self.root, "ps01", self.submitted, self.out, seed=SEED, sandbox=Unsafe())
        return {row.student: row.score for row in self.grading.rows()}

    def stored(self, student):
        return json.loads((self.out / f"results/ps01/{student}.json").read_text())

    def round_of(self, student):
        record = self.stored(student)
        return record["attempts"][record["attempt"] - 1][1]

    def table(self, *rounds):
        """The notebook of who knows all inputs of these rounds and the right answers."""
        task, known = registry.get(TASK), {}
        for number in rounds:
            for case in task.cases(seed_of_round(SEED, number)):
                want = task.reference(case.inputs)
                plan = tuple(map(int, want["grid"])), int(want["idle"])
                known[repr(list(case.inputs.values()))] = plan
        return f"KNOWN = {known}\ndef launch_plan(*given):\n    return KNOWN[repr(list(given))]\n"


@pytest.fixture
def right(course):
    return answers(course[0])["launch_plan"]


@pytest.mark.slow
def test_a_table_of_ones_own_last_attempt_is_worth_nothing(room):
    room.hand_in("eve", "def launch_plan(*given):\n    raise ValueError(given)\n")
    assert room.grade() == {"eve": 0}
    room.hand_in("eve", room.table(0))
    assert room.grade() == {"eve": 0}
    room.hand_in("eve", room.table(0, 1))
    assert room.grade() == {"eve": 0}
    assert (room.stored("eve")["attempt"], room.round_of("eve")) == (3, 2)


@pytest.mark.slow
def test_a_table_of_somebody_elses_attempt_is_worth_nothing(room, right):
    room.hand_in("ada", right)
    assert room.grade() == {"ada": 15}
    room.hand_in("bob", room.table(0))
    assert room.grade() == {"ada": 15, "bob": 0}
    assert (room.stored("bob")["attempt"], room.round_of("bob")) == (1, 1)


def test_without_fresh_inputs_the_table_would_get_all_points(room, monkeypatch):
    monkeypatch.setattr("autograder.results.seed_of_round", lambda seed, number: seed_of_round(seed, 0))
    room.hand_in("eve", "def launch_plan(*given):\n    raise ValueError(given)\n")
    room.grade()
    room.hand_in("eve", room.table(0))
    assert room.grade() == {"eve": 15}


def test_equal_work_in_one_run_has_equal_inputs(room, right, monkeypatch):
    made = []
    real = machine_judge.make_cases
    monkeypatch.setattr(machine_judge, "make_cases", lambda *given: made.append(given) or real(*given))
    for student in ("ada", "bob", "cyd"):
        room.hand_in(student, right)
    room.grade()
    assert [room.round_of(student) for student in ("ada", "bob", "cyd")] == [0, 0, 0]
    assert len(made) == 1, "inputs are made once a round"


@pytest.mark.slow
def test_the_same_notebook_keeps_its_inputs_whatever_came_in_between(room, right):
    table = room.table(0)
    room.hand_in("eve", table)
    assert room.grade() == {"eve": 15}, "as good as right on the inputs that it was made for"
    for between in ("{", right + "#", None):
        if between:
            room.hand_in("eve", between)
        else:
            (room.submitted / "eve/ps01_tiny.ipynb").unlink()
        room.grade()
    room.hand_in("eve", table)
    assert room.grade() == {"eve": 15}
    assert (room.stored("eve")["attempt"], room.round_of("eve")) == (1, 0)
    room.hand_in("eve", table + "#")
    assert room.grade() == {"eve": 0}
    assert (room.stored("eve")["attempt"], room.round_of("eve")) == (3, 2)
    with open(room.out / "grades.csv", newline="") as file:
        assert [row["attempt"] for row in csv.DictReader(file)] == ["3"]


@pytest.mark.slow
def test_what_is_graded_again_for_another_reason_has_its_own_inputs(room, right):
    room.hand_in("ada", room.table(0))
    room.grade()
    room.hand_in("bob", right)
    room.grade()
    for lost in room.out.rglob("*.html"):
        lost.unlink()
    assert room.grade() == {"ada": 15, "bob": 15}
    assert (room.round_of("ada"), room.round_of("bob")) == (0, 1)


def test_a_round_tells_nothing_of_another():
    seeds = [seed_of_round(SEED, number) for number in range(200)]
    assert len({SEED, *seeds}) == 201
    told = {seed_of_round(seeds[0], number) for number in range(200)}
    assert not told & set(seeds), "a machine that judged in the first round knows the others"
    assert min(abs(one - other) for at, one in enumerate(seeds) for other in seeds[:at]) > 8


def test_a_disk_that_is_full_at_the_first_run_leaves_no_empty_seed(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("os.write", full)
        secret_seed(tmp_path)
    assert secret_seed(tmp_path) == secret_seed(tmp_path) == int((tmp_path / ".seed").read_text())


def same(one, other):
    if type(one) is np.ndarray:
        return type(other) is np.ndarray and one.dtype == other.dtype and np.array_equal(one, other, True)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or repr(one) == repr(other)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", [name for name in registry.names() if name.startswith("ps")])
def test_no_row_of_a_task_has_the_same_inputs_whatever_the_seed(name):
    """Or a table would earn that row: the worst of a row's cases decides, so one that changes is enough."""
    task = registry.get(name)
    drawn = [task.cases(seed) for seed in (1, 2, 3)]
    for item in task.items:
        inputs = [[case.inputs for case in cases if case.item == item.key] for cases in drawn]
        assert item.kind == "time" or not (same(inputs[0], inputs[1]) and same(inputs[0], inputs[2])), (
            item.key
        )
