"""What goes to a machine that judges and what comes back: bytes, checked, and recorded once."""

import contextlib
import io
import json
import shutil
from collections import Counter

import pytest
import yaml
from conftest import ROOT
from grading import answers, command, hand_in, make_course, notebook, verdict_of
from grading import grading as made_grading
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from rich.console import Console

from autograder import results
from autograder.follow import Follower, follow
from autograder.gradebook import CourseGradebook
from autograder.reader.contents import reduced
from autograder.sandbox import Limits, Unsafe
from autograder.sandbox.choose import NoSandbox
from autograder.settings import Grade, grade_settings
from autograder.user_error import UserError
from autograder.validate import checked
from autograder.workers import machine_judge
from autograder.workers.commission import Conditions
from autograder.workers.event_log import EventLog
from autograder.workers.ruling import BadRuling, Ruling, read_ruling

ID = results.key_of("a submission")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root, assignment = make_course(tmp_path_factory.mktemp("workers") / "course")
    CourseGradebook(root / "empty").__exit__()  # made once: it takes seconds
    return root, assignment


def grading_into(course, out, submitted, **options):
    out.mkdir(exist_ok=True)
    if not (out / "gradebook.db").exists():
        shutil.copy(course[0] / "empty/gradebook.db", out)
    return made_grading(course[0], "ps01", submitted, out, seed=1, **options)


def found(course):
    document = notebook(course[1], **answers(course[0]))
    for cell in document["cells"]:
        cell["source"] = "".join(cell["source"])
    return list(map(reduced, checked(list(map(reduced, document["cells"])), course[1]).notebook["cells"]))


def verdict(assignment):
    return verdict_of(assignment, dict.fromkeys(assignment.cells, 1.0))


def ruling(course):
    return Ruling(ID, "graded", "", ("a note",), found(course), verdict(course[1]), "in a test")


def test_a_ruling_crosses_and_is_the_same(course):
    there = ruling(course)
    here = read_ruling(there.as_bytes(), ID, course[1])
    assert here == there


def test_conditions_cross_without_a_name_and_without_a_folder(course):
    there = Conditions(ID, "v", course[1], 7, Limits.of(4))
    data = there.as_bytes()
    here = Conditions.of(data)
    assert (here.seed, here.limits) == (7, Limits.of(4))
    assert here.assignment.cells == course[1].cells and str(course[0]).encode() not in data


DAMAGES = {
    "no JSON": lambda told: b"{",
    "pickled": lambda told: b"\x80\x04N.",
    "text": lambda told: json.dumps(told),
    "another submission's": lambda told: told | {"id": results.key_of("another")},
    "a field too many": lambda told: told | {"grade": 100},
    "points as text": lambda told: with_cell(told, points="15"),
    "points of infinity": lambda told: with_cell(told, points=float("inf")),
    "no number": lambda told: with_cell(told, points=float("nan")),
    "more than all points": lambda told: with_cell(told, points=15.5),
    "negative": lambda told: with_cell(told, points=-1.0),
    "a larger maximum": lambda told: with_cell(told, max=100.0),
    "another task": lambda told: with_cell(told, task="ps02/other"),
    "a cell too many": lambda told: (
        told | {"verdict": told["verdict"] | {"cells": told["verdict"]["cells"] | {"gift": cell_of(told)}}}
    ),
    "a verdict without cells": lambda told: told | {"cells": None},
    "two statuses": lambda told: told | {"status": "crashed"},
    "a cell that is no part of the set": lambda told: (
        told | {"cells": [*told["cells"], told["cells"][0] | {"grade_id": "gift"}]}
    ),
}


def cell_of(told):
    return told["verdict"]["cells"]["launch_plan-test"]


def with_cell(told, **changes):
    cells = told["verdict"]["cells"] | {"launch_plan-test": cell_of(told) | changes}
    return told | {"verdict": told["verdict"] | {"cells": cells}}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_an_answer_that_no_judge_of_ours_gives_is_refused(course, damage):
    told = damage(json.loads(ruling(course).as_bytes()))
    data = json.dumps(told).encode() if isinstance(told, dict) else told
    with pytest.raises(BadRuling):
        read_ruling(data, ID, course[1])


def test_a_worker_with_another_version_of_the_course_refuses(course):
    asked = Conditions(ID, "another version", course[1], 7, Limits.of(4)).as_bytes()
    told = read_ruling(machine_judge.judge_as_worker(asked, b"{}", "tcp://there"), ID, course[1])
    assert (told.status, told.machine) == ("refused", "tcp://there")
    assert "has another version of the course" in told.reason and "another vers" in told.reason


def test_a_worker_without_a_sandbox_refuses_with_its_reason(course, monkeypatch):
    def none(unsafe=False):
        raise NoSandbox("no sandbox works here")

    monkeypatch.setattr(machine_judge, "choose", none)
    machine_judge.own_judge.cache_clear()
    version = machine_judge.course_version_of_this_process()
    asked = Conditions(ID, version, course[1], 7, Limits.of(4)).as_bytes()
    told = read_ruling(machine_judge.judge_as_worker(asked, b"{}"), ID, course[1])
    assert told.status == "refused" and "no sandbox works here" in told.reason
    assert "no sandbox works here" in json.loads(machine_judge.describe_worker(version, False))["refusal"]


@contextlib.contextmanager
def judged_at_once(course):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.results.course_version", lambda: "test")
        patch.setattr(
            machine_judge.MachineJudge,
            "rule",
            lambda self, conditions, data: replace(ruling(course), id=conditions.id),
        )
        yield


def test_a_submission_has_one_name_in_the_log_and_on_its_page(course, tmp_path):
    for student in ("ada", "bob"):
        hand_in(tmp_path / "in", student, notebook(course[1], **answers(course[0])))
    with judged_at_once(course):
        rows = list(grading_into(course, tmp_path / "out", tmp_path / "in", sandbox=Unsafe()).rows())
    assert sorted((row.student, row.score) for row in rows) == [("ada", 2), ("bob", 2)]
    log = [json.loads(line) for line in (tmp_path / "out/log.jsonl").read_text().splitlines()]
    assert Counter(one["event"] for one in log)["decided"] == 2 and log[-1]["event"] == "finished"
    names = {row.student: row.submission for row in rows}
    assert len({*names.values()}) == 2
    told = {(one["student"], one["submission"]) for one in log if one["event"] == "decided"}
    assert told == {*names.items()}
    for student, name in names.items():
        pages = (tmp_path / "out/feedback" / student).rglob("*.html")
        assert [f"Submission {name}." in page.read_text() for page in pages] == [True]


@pytest.mark.slow
def test_one_student_alone_and_again_and_an_unknown_one(course, tmp_path):
    for student in ("ada", "bob"):
        hand_in(tmp_path / "in", student, notebook(course[1], **answers(course[0])))

    def run(**options):
        grading = grading_into(course, tmp_path / "out", tmp_path / "in", sandbox=Unsafe(), **options)
        return {row.student: row.fresh for row in grading.rows()}

    with judged_at_once(course):
        assert run(students=["bob"]) == {"bob": True}
        assert run() == {"ada": True, "bob": False}
        assert run(regrade=True, students=["ada"]) == {"ada": True}
        kept = results.Results(tmp_path / "out", "ps01").read("ada")
        assert kept["attempts"][kept["attempt"] - 1][1] == 1, "judged again on the inputs of before"
        with pytest.raises(UserError, match=r"no folder adda in .*did you mean ada"):
            run(students=["adda"])


def test_a_log_gets_one_line_a_run_and_a_program_one_object_an_event(course, tmp_path):
    for number in range(5):
        hand_in(tmp_path / "in", f"s{number}", notebook(course[1], **answers(course[0])))
    page = io.StringIO()
    with judged_at_once(course):
        grading = grading_into(course, tmp_path / "out", tmp_path / "in", sandbox=Unsafe())
        follow(Console(file=page, width=200), grading)
    (line,) = page.getvalue().splitlines()
    assert line.startswith("ps01: 5 of 5, ") and line.endswith(" a minute")
    told = [json.loads(line) for line in (tmp_path / "out/log.jsonl").read_text().splitlines()]
    assert [one["student"] for one in told if one["event"] == "decided"] == [f"s{n}" for n in range(5)]
    assert (told[0]["event"], told[-1]["event"]) == ("started", "finished")


def test_the_pace_counts_what_was_judged_and_not_what_was_taken_over(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    follower = Follower(Console(file=io.StringIO()), "ps01", 10)
    now[0] = 100.0
    follower.hear({"event": "decided", "status": "graded", "fresh": False})
    for now[0] in (110.0, 120.0, 130.0):
        follower.hear({"event": "decided", "status": "graded", "fresh": True})
    # three in the thirty seconds since the last that was only looked at; six of ten are left
    assert follower.pace() == "6 a minute, about 60 s left"


def test_two_places_to_judge_are_refused():
    with pytest.raises(UserError, match="each name a place"):
        with Grade().pool(EventLog(), "tcp://x:1", workers=2):
            pass


@pytest.mark.parametrize(
    "word, why",
    [
        ("--Grade.time_limit=0", "1.0"),
        ("--Grade.sed=5", "no setting Grade.sed (did you mean seed?)"),
        ("--seed", "no option --seed, see `autograder grade --help`"),
    ],
)
def test_a_setting_that_is_none_is_one_line(tmp_path, word, why):
    status, _, told = command(tmp_path, "grade", "ps01", word)
    assert status == 2 and why in told and told.count("\n") == 1


def test_settings_stand_in_the_courses_configuration_and_a_run_may_say_otherwise(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.Grade.seed = 4\nc.Grade.jobs = 3\n")
    settings = grade_settings(tmp_path, ["--Grade.seed=7"])
    assert (settings.seed, settings.jobs, settings.time_limit) == (7, 3, 30.0)


def test_the_kubernetes_recipe_is_valid():
    """Its pods and its service against Kubernetes' own schema; unknown fields count."""
    schema = json.loads((ROOT / "autograder/tests/kubernetes-1.37.json").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "chapters/cluster/grading-workers.yaml").read_text(encoding="utf-8"))
    assert (recipe["apiVersion"], recipe["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    assert set(recipe["spec"]) == {"scheduler", "worker"}
    assert set(recipe["spec"]["worker"]) == {"replicas", "spec"}

    def mistakes(kind, data):
        (name,) = (name for name in schema["$defs"] if name.endswith(f".{kind}"))
        validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]

    for pod in (recipe["spec"]["scheduler"]["spec"], recipe["spec"]["worker"]["spec"]):
        assert mistakes("PodSpec", pod) == []
        assert mistakes("PodSpec", pod | {"hostUser": False})
    assert mistakes("ServiceSpec", recipe["spec"]["scheduler"]["service"]) == []


def test_each_submission_has_one_ruling_whatever_the_cluster_says_twice(course, monkeypatch):
    """Its worker is lost after the answer, or the task is run again: what was told once is not told again."""
    distributed = pytest.importorskip("distributed")
    from autograder.workers import dask_pool
    from autograder.workers.commission import Commission

    answer = ruling(course).as_bytes()

    class Told:
        """A future: says what it is asked to say, and its last word ever after."""

        def __init__(self, *words):
            self.words = list(words)

        def said(self):
            return self.words.pop(0) if len(self.words) > 1 else self.words[0]

        status = property(lambda self: "error" if isinstance(self.words[0], BaseException) else "finished")

        def result(self, timeout):
            said = self.said()
            if isinstance(said, type):
                raise said("key", "no longer there")
            return said

        def exception(self, timeout):
            return self.said()

    lost, died = dask_pool.FutureCancelledError, distributed.KilledWorker
    killed = died.__new__(died)
    futures = iter(
        [Told(OSError, answer), Told(lost), Told(killed), Told(answer), Told(answer), Told(answer)]
    )
    pool = object.__new__(dask_pool.DaskPool)
    client = type("Client", (), {"status": "running", "cancel": lambda *_, **__: None})()
    about = {"client": client, "running": {}, "suspects": dask_pool.deque(), "refusals": {}, "waits": False}
    about |= {"workers": {"here": 4}, "looked": 0.0, "killed": Counter(), "patience": 1.0}
    vars(pool).update(about)
    monkeypatch.setattr(pool, "_look", lambda: iter(()))
    monkeypatch.setattr(pool, "_submit", lambda *_, **__: next(futures))
    monkeypatch.setattr(dask_pool, "POLL_TASKS", 0.0)
    conditions = Conditions(ID, "v", course[1], 1, Limits())
    todo = dask_pool.deque(Commission(name, conditions, lambda: b"{}") for name in ("ada", "bob", "eve"))
    told = [one.student for one, _ in pool.rulings(todo, EventLog())]
    assert sorted(told) == ["ada", "bob", "eve"] and not pool.running and next(futures, None) is not None
