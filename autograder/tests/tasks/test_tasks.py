"""Tasks and their corpus: a stub earns nothing, a wrong answer its stated score."""

import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import ROOT
from corpus_files import CORPUS, SOLUTIONS, all_entries, entries_of, required

from warplab.crossing import EXECUTED
from warplab.crossing.outcome import Outcome
from warplab.tasks import registry, scoring
from warplab.tasks.declaration import Task, VjpTask, task
from warplab.tasks.feedback import report_on
from warplab.tasks.hints import hints_for
from warplab.tasks.rubric import Case, Item

TASK_FILES = Path(registry.__file__).parent
ENTRIES = all_entries()
SETS = sorted(path.stem for path in TASK_FILES.glob("ps*.py"))
NAMES = [name for problem_set in SETS for name in registry.names(problem_set)]
MANUAL_POINTS = 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(one, marks=pytest.mark.full if one.in_full_alone else ())
        for one in ENTRIES
        if one.kind != "correct"
    ],
    ids=lambda entry: entry.id,
)
def test_a_submission_gets_its_stated_score(entry):
    task, namespace = registry.get(entry.task), entry.namespace()
    report = report_on(entry.task, namespace.get(task.entry), namespace.get(task.plan_entry))
    namespace.clear()  # numba-cuda keeps a kernel, and a kernel all that its file defines
    assert report.score == pytest.approx(entry.points, abs=0.05), [
        (line.title, line.points, line.reason) for line in report.lines
    ]
    lost = [line.key for line in report.lines if line.state in ("partial", "lost")]
    for asked in required(entry.task):
        assert asked.get("lost without it", {}).get(entry.name, lost) == lost, asked["says"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_stated_scores_fit_the_rows_that_are_lost_also_where_points_have_moved(name):
    """A row that counts may keep some of its points, and what the engine finds takes some of the task's."""
    task, wrong = registry.get(name), {}
    points = {item.key: item.points for item in task.items if item.kind != "time"}
    counted = {item.key for item in task.items if item.kind == "structure"}
    asked = [one.get("lost without it", {}) for one in required(name)]
    for entry in entries_of(name):
        lost = {row for answers in asked for row in answers.get(entry.name, [])}
        least = kept = sum(points[row] for row in points.keys() - lost)
        if lost:
            least = min(kept, task.keeps["task"] * task.points_for())
        most = kept + sum(points[row] for row in lost & counted)
        if (lost or entry.kind == "correct") and not least - 0.05 <= entry.points <= most + 0.05:
            wrong[entry.name] = f"{entry.points:g} stated, its rows give {least:g} to {most:g}"
    assert not wrong, f"{wrong}: `pytest autograder/tests/tasks -m '' -k {name}` says what each gets"


@pytest.mark.parametrize("name", NAMES)
def test_a_blank_stub_earns_nothing(name):
    from numba import cuda

    def stub(*_):
        pass

    task = registry.get(name)
    empty = eval(f"lambda {', '.join(f'_{n}' for n in range(len(task.arguments)))}: None")
    entry = cuda.jit(empty) if task.crossing == "kernel" else stub
    assert report_on(name, entry, stub).score == 0.0
    assert report_on(name, None, None).score == 0.0


@pytest.mark.parametrize("name", [name for name in NAMES if registry.get(name).crossing == "function"])
def test_no_row_is_earned_by_one_answer_for_all_cases(name):
    """Neither 0, 1 or -1, nor what is right in one case of the row."""
    task = registry.get(name)
    cases, others = task.cases(1), task.cases(2)
    types = {"integers": np.int64, "numbers": np.float64}
    for item in task.items:
        mine = [case for case in cases if case.item == item.key]
        answers = [task.reference(case.inputs) for case in others if case.item == item.key]
        answers += [{one: np.full_like(want, n) for one, want in answers[0].items()} for n in (0, 1, -1)]
        for answer in answers:
            typed = {
                one: np.asarray(a, types.get(task.kind_of(one, {}), task.kind_of(one, {})))
                for one, a in answer.items()
            }
            wrong = [task.wrong_result(case, Outcome(case.name, typed)) for case in mine]
            assert any(wrong), (item.title, answer)


@pytest.mark.parametrize("problem_set", SETS)
def test_a_set_is_worth_a_hundred_points(problem_set):
    points = {name: registry.get(name).points for name in registry.names(problem_set)}
    if problem_set == "ps00":  # warm-ups: a point each, and nothing by hand
        assert set(points.values()) == {1} and len(points) == 12
        assert "manual=" not in SOLUTIONS[problem_set].read_text()
        return
    due = 100 - MANUAL_POINTS
    assert sum(points.values()) == due, (
        f"a person decides which tasks give or take: {due} points in all, {points}"
    )
    manual = re.findall(r'manual="\w+" points=(\d+)', SOLUTIONS[problem_set].read_text())
    assert manual == [str(MANUAL_POINTS)], f"one question is graded by hand, with points={MANUAL_POINTS}"


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_enough_right_and_wrong_answers(name):
    kinds = [entry.kind for entry in entries_of(name)]
    kernel = registry.get(name).crossing == "kernel"
    needed = {"correct": 2 if kernel else 1, "wrong": 4 if kernel else 2, "cheat": 1 if kernel else 0}
    if name.startswith("ps00/"):  # of a line or two there is hardly a second way to be right
        needed = {"wrong": 2}
    missing = {kind: count - kinds.count(kind) for kind, count in needed.items() if kinds.count(kind) < count}
    assert not missing, f"write so many answers more (corpus/README.md) in tests/corpus/{name}: {missing}"


@pytest.mark.parametrize("problem_set", SETS)
def test_nothing_is_left_to_decide(problem_set):
    """`python -m workshop new-task` writes "DECIDE: ..." where a person must."""
    notebook = SOLUTIONS[problem_set]
    ours = [*TASK_FILES.glob(f"{problem_set}*"), notebook, notebook.with_name("after.yml")]
    answers = [path for path in (CORPUS / problem_set).rglob("*") if path.suffix in (".py", ".yml")]
    left = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ours + answers
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "DECIDE: " in line
    ]
    if left:
        pytest.fail(
            "\n".join(["decide what is asked here, and write it in its place:", *left]), pytrace=False
        )


@pytest.mark.parametrize("name", NAMES)
def test_cases_depend_on_the_seed_and_on_nothing_else(name):
    def fingerprint(seed):
        cases = registry.get(name).cases(seed)
        return [(case.name, [plain(value) for value in case.inputs.values()]) for case in cases]

    def plain(value):
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        return zlib.crc32(value) if isinstance(value, np.ndarray) else value

    assert fingerprint(3) == fingerprint(3)
    assert fingerprint(3) != fingerprint(4)
    assert fingerprint(2**127)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 2**64 + 5))]
)
@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_a_case_whose_reference_can_be_computed(name, seed):
    task = registry.get(name)
    cases, timed = task.cases(seed), task.timed_cases(seed)
    assert {case.item for case in cases} == {item.key for item in task.items if item.kind != "time"}
    assert {case.item for case in timed} == {item.key for item in task.items if item.kind == "time"}
    for case in cases + timed:
        if not task.is_timed(case):
            expected = task.reference(case.inputs)
            assert all(
                np.all(np.asarray(limit) >= 0) for limit in task.tolerance(case.inputs, expected).values()
            )
        if task.item(case.item).kind != "correctness":
            bound = task.bounds(case.inputs)[case.item]
            assert 0 < bound.full < bound.zero


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_a_title_and_three_hints(name):
    task = registry.get(name)
    assert all(item.title and item.points > 0 for item in task.items)
    assert {item.key: len(set(hints_for(name, item.key))) for item in task.items} == {
        item.key: 3 for item in task.items
    }


@pytest.mark.parametrize("problem_set", SETS)
def test_no_hint_stands_for_a_row_that_is_not_there(problem_set):
    written = yaml.safe_load((TASK_FILES / f"{problem_set}_hints.yml").read_text(encoding="utf-8"))
    rows = {
        name.split("/")[1]: {item.key for item in registry.get(name).items}
        for name in registry.names(problem_set)
    }
    assert {name: set(hints) for name, hints in written.items()} == rows


@pytest.mark.parametrize("problem_set", [name for name in SETS if name != "ps00"])
def test_solutions_after_yml_says_what_comes_next_of_each_task(problem_set):
    """Of a task that asks for the cause of a failure, and of the one that mends it, one does."""
    after = yaml.safe_load(SOLUTIONS[problem_set].with_name("after.yml").read_text(encoding="utf-8"))
    names = registry.names(problem_set)
    assert {one for one in after if one.startswith(f"{problem_set}/")} <= set(names)
    cases = {name.removesuffix("_cause") for name in names if name.endswith("_cause")}
    assert [name for name in names if name not in after and name.removesuffix("_cause") not in cases] == []


@pytest.mark.slow
def test_count_flops_agrees_with_pytorch():
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    task = registry.get("ps04/count_flops")
    for case in task.cases(0):
        batch = case.inputs["batch"]
        for layer, flops in zip(case.inputs["layers"], task.reference(case.inputs)["flops"], strict=True):
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                torch_layer(torch, layer, batch)
            assert counter.get_total_flops() == flops, layer


def torch_layer(torch, layer, batch):
    """Run one layer of a JSON model in PyTorch on zeros without memory behind them."""
    with torch.device("meta"):
        if layer["type"] == "linear":
            torch.nn.Linear(layer["in"], layer["out"])(torch.empty(batch, layer["tokens"], layer["in"]))
        elif layer["type"] == "conv2d":
            conv = torch.nn.Conv2d(
                layer["in"], layer["out"], layer["kernel"], layer["stride"], layer["padding"]
            )
            conv(torch.empty(batch, layer["in"], layer["height"], layer["width"]))
        elif layer["type"] == "attention":
            query = torch.empty(batch, layer["heads"], layer["tokens"], layer["width"] // layer["heads"])
            torch.nn.functional.scaled_dot_product_attention(query, query, query)


def test_conv_reference_agrees_with_pytorch():
    import torch

    task = registry.get("ps04/conv_as_matmul")
    for case in task.cases(0):
        image, weights = (torch.from_numpy(case.inputs[name]).double() for name in ("image", "weights"))
        want = torch.nn.functional.conv2d(image[None], weights, stride=case.inputs["stride"])[0].numpy()
        np.testing.assert_allclose(task.reference(case.inputs)["out"], want, atol=1e-12)


def test_box_blur_reference_agrees_with_a_loop():
    task = registry.get("ps01/box_blur")
    image = np.random.default_rng(0).random((5, 7), dtype=np.float32)
    got = task.reference({"image": image, "radius": 2})["out"]
    for row in range(5):
        for col in range(7):
            window = image[max(0, row - 2) : row + 3, max(0, col - 2) : col + 3].astype(np.float64)
            assert got[row, col] == pytest.approx(window.mean())


def test_mandelbrot_reference_knows_three_points():
    task = registry.get("ps01/mandelbrot")
    inputs = {"x_min": -1.0, "y_min": 0.0, "step": 1.0, "max_iterations": 9, "height": 1, "width": 4}
    assert task.reference(inputs)["out"].tolist() == [[9, 9, 3, 2]]  # c = -1 and 0 stay; 1: 0 1 2 5; 2: 0 2 6


def test_encode_float_reference_agrees_with_pytorch():
    import torch

    theirs = {
        "FP16": torch.float16,
        "BF16": torch.bfloat16,
        "E5M2": torch.float8_e5m2,
        "E4M3": torch.float8_e4m3fn,
    }
    task, rng = registry.get("ps07/encode_float"), np.random.default_rng(0)
    x = np.float32(
        [
            *(rng.normal(size=5000) * 2.0 ** rng.integers(-30, 20, 5000)),
            *range(0, 70_000, 7),
            0.0,
            -0.0,
            np.inf,
            -np.inf,
        ]
    )
    for name, bits in task.formats.items():
        whole = torch.int16 if theirs[name].itemsize == 2 else torch.uint8
        want = torch.from_numpy(x).to(theirs[name]).view(whole).numpy().astype(np.int64) % 2 ** (
            1 + bits[0] + bits[1]
        )
        inputs = dict(zip(("exponent_bits", "fraction_bits", "infinities"), bits, strict=True))
        np.testing.assert_array_equal(
            task.reference({"x": x.astype(np.float64), **inputs})["code"], want, err_msg=name
        )


def test_a_wrong_code_is_told_with_its_number():
    """2,049 lies half-way between FP16's 2,048 and 2,050; the even one is 2^11, exponent field 26."""
    task = registry.get("ps07/encode_float")
    inputs = {
        "x": np.array([1.0, 1, 1, 1, 2049]),
        "exponent_bits": 5,
        "fraction_bits": 10,
        "infinities": True,
    }
    wrong = task.wrong_result(
        Case("ties", inputs, "ties"), Outcome("ties", {"code": [15_360] * 4 + [26_625]})
    )
    assert (
        wrong == "`code` is wrong at 1 of 5 places; first at [4]: got 26,625, expected 26,624, for x = 2049.0"
    )


def test_a_task_with_other_shares_for_what_the_engine_finds_says_why():
    class Quiet(Task):
        items, keeps = (), Task.keeps | {"race": 1.0}

    with pytest.raises(ValueError, match="say in not_as_usual why"):
        task("ps99/quiet", 0)(Quiet)


@pytest.mark.parametrize("base", [VjpTask, Task])
def test_what_the_students_process_alone_can_see_weighs_a_fifth_of_a_task_at_most(base, monkeypatch):
    monkeypatch.setattr("warplab.tasks.declaration.DECLARED", {})

    class Keeps(base):
        items = (Item("right", 8), Item("saved", 2, "structure"))

    class KeepsMore(base):
        items = (Item("right", 7), Item("saved", 2, "structure"))

    task("ps99/keeps", 10)(Keeps)
    with pytest.raises(ValueError, match="weigh 2 of 9 points, and may weigh 20%"):
        task("ps99/keeps_more", 9)(KeepsMore)


RACE = {"text": "global-memory conflict in kernel k: ...", "acts": [{}, {}]}
FOUND = {
    "race in global memory": {"findings": (RACE,)},
    "barrier that threads left behind": {"findings": ({"text": "barrier in kernel k: ...", "acts": []},)},
    "lane that did not come": {"findings": ({"text": "shuffle in kernel k: ...", "acts": []},)},
    "race in shared memory": {"error": "shared-memory race in kernel k, cell:4: thread (1, 0, 0) ..."},
    "uninitialised value": {"error": "uninitialised read in kernel k, cell:4: thread (1, 0, 0) ..."},
    "early return beside a barrier": {
        "error": "barrier divergence in kernel k, cell:4: thread (1, 0, 0) ..."
    },
}


@pytest.mark.parametrize("found", FOUND)
@pytest.mark.parametrize("name", [name for name in NAMES if registry.get(name).crossing in EXECUTED])
def test_what_the_engine_finds_in_any_row_costs_its_share_of_the_task(name, found, monkeypatch):
    def right_but_for_errors(task, item, case, outcome):
        return scoring.CaseVerdict(case.name, 0.0 if outcome.error else 1.0, outcome.error or "")

    monkeypatch.setattr(scoring, "_points_of_case", right_but_for_errors)
    monkeypatch.setattr(scoring, "drawings", lambda *_: ())
    task = registry.get(name)
    cases = [replace(case, inputs={}) for case in task.cases(0)]
    outcomes = {case.item: Outcome(case.name, **FOUND[found]) for case in cases}
    for row in outcomes:
        met = [outcomes[row] if outcomes[row].case == case.name else Outcome(case.name) for case in cases]
        report = scoring.judge(task, cases, met)
        assert all(line.reason for line in report.lines if line.state == "partial")
        assert report.score <= task.keeps["task"] * task.points_for() + 0.02, (row, report.as_dict()["lines"])
    assert scoring.judge(task, cases, [Outcome(case.name) for case in cases]).score == task.points_for()


def test_an_unknown_task_is_named_with_those_that_exist():
    with pytest.raises(KeyError, match="ps04/matmul_tiled"):
        registry.get("ps04/matmul_tilde")
