"""grade(): what a student sees; and what is beneath: plain values, honest comparison, points in [0, max]."""

import hashlib
import math
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

import warplab
from warplab import crossing
from warplab.crossing import ranks
from warplab.crossing.arrays import NotPlain, as_array
from warplab.crossing.endless import join_all, stopped_after
from warplab.crossing.outcome import Outcome
from warplab.tasks import registry, scoring
from warplab.tasks.compare import difference, gradient_check, sum_tolerance
from warplab.tasks.declaration import Task, task
from warplab.tasks.feedback import Table, grade, report_on
from warplab.tasks.rubric import Bound, Case, Item, Line, Report


def plan(width, height, block):
    x, y = -(-width // block[0]), -(-height // block[1])
    return (x, y), x * y * block[0] * block[1] - width * height


def swapped(width, height, block):
    grid, idle = plan(width, height, block)
    return grid[::-1], idle


class Agreeable:
    """Claims to be equal to anything, and to be any number."""

    def __eq__(self, other):
        return True

    def __float__(self):
        return 1.0

    def __index__(self):
        return 1

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the judge asked a student's object for its value")

    __array_interface__ = property(__array__)


# what grade() returns and shows


@pytest.mark.slow
def test_a_loop_without_end_is_stopped_and_named(monkeypatch):
    calls = []

    def restless(width, height, block):
        calls.append(width)
        while width:
            try:
                height += 1
            except ValueError:
                break

    monkeypatch.setattr(crossing, "stopped_after", lambda _: stopped_after(0.1))
    row = report_on("ps01/launch_plan", restless).lines[0]
    assert row.reason.partition("stopped after 0.1 s of computing: is there a loop")[1]
    assert re.search(r"\(line \d+: `", row.reason) and "Which loop has no end" in row.hints[0]
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert len(calls) == 1  # the other cases are not tried


@pytest.mark.slow
def test_the_points_of_other_cases_do_not_depend_on_how_long_a_mistake_took(monkeypatch):
    clock = [0.0]

    def fails_late(width, height, block):
        clock[0] += 3600.0
        raise ValueError(f"{width} columns")

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    report_on("ps01/launch_plan", fails_late)
    assert clock[0] == 3600.0 * len(registry.get("ps01/launch_plan").cases(0)) > 3600.0


def test_computing_that_ends_in_time_is_left_alone():
    with stopped_after(5):
        assert sum(range(1000)) == 499_500
    with ThreadPoolExecutor() as pool, stopped_after(0.01):  # elsewhere there is no such alarm
        assert pool.submit(lambda: stopped_after(1).__enter__()).result() is None


@pytest.mark.slow
def test_a_rank_without_end_is_stopped_and_named(monkeypatch):
    def ring(x):
        while dist.get_rank() == 1:
            x = x + 0
        dist.barrier()
        return x

    monkeypatch.setattr(ranks, "join_all", lambda threads: join_all(threads, 0.2))
    row = report_on("ps10/ring_all_reduce", ring).lines[0]
    assert "stopped after 10 s of computing" in row.reason and "Which loop has no end" in row.hints[0]


@pytest.mark.slow
def test_what_other_threads_compute_is_not_the_loops():
    """A library's threads on a machine of many cores use up seconds of processor time in a moment."""
    began = time.process_time()
    with ThreadPoolExecutor() as pool, stopped_after(0.1):
        pool.submit(lambda: [hashlib.sha256(bytes(1 << 24)) for _ in range(30)]).result()
    assert time.process_time() - began > 0.2


def test_grade_returns_a_built_in_float_and_prints_the_rubric(capsys):
    points = grade("ps01/launch_plan", swapped)
    assert (type(points), points) == (float, 5.0)
    shown = capsys.readouterr().out
    assert "5 of 15 points" in shown
    assert "Images that the blocks tile exactly" in shown
    assert "`grid` is [3, 4], expected [4, 3]" in shown
    assert "Hint: How many blocks does a row of one pixel need?" in shown
    assert grade("ps01/launch_plan", plan) == 15.0 and "Hint" not in capsys.readouterr().out


def test_a_timed_row_is_not_graded_without_cuda_and_loses_nothing():
    import warplab

    if warplab.device().kind == "cuda":
        pytest.skip("this machine has a CUDA device")
    report = report_on("ps04/matmul_register_tiled", None, None, rubric="time")
    assert (report.score, report.max, report.ungraded) == (0.0, 0.0, 5.0)
    assert "5 points left open" in repr(Table(report))


def test_the_table_escapes_a_text_that_says_it_is_markup_already():
    class Markup(str):
        def __html__(self):
            return self

    class Rude(Exception):
        def __str__(self):
            return Markup("<script>alert('x')</script>")

    def rude(width, height, block):
        raise Rude

    html = Table(report_on("ps01/launch_plan", rude))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_the_table_escapes_every_text_of_a_row():
    attack = "<script>alert('x')</script>\"onload=\"alert('y') `<b>`\n<i>"
    told = {"reason": attack, "hints": (attack,) * 3, "counters": {attack: {attack: 1.0}}}
    line = Line("k", "structure", attack, 1.0, 2.0, "partial", **told)
    html = Table(Report(attack, (line,)))._repr_html_()
    assert "&lt;script&gt;" in html and "<code>&lt;b&gt;</code><br>&lt;i&gt;" in html
    assert "<script" not in html and '"onload="' not in html


def test_the_table_lists_the_counters_of_each_case():
    counters = {"64 x 64": {"global_load.requests": 1024.0}}
    line = Line("k", "structure", "Loads", 2.0, 2.0, "full", "", "", counters)
    html = Table(Report("t", (line,)))._repr_html_()
    assert "<code>global_load.requests</code>" in html and "1,024" in html


def test_the_same_error_is_told_once():
    def broken(width, height, block):
        return undefined_name  # noqa: F821

    first, *others = report_on("ps01/launch_plan", broken).lines
    assert "NameError" in first.reason
    assert "return undefined_name" in first.reason
    assert all("same error" in line.reason and not line.hints for line in others)


def test_ctrl_c_is_not_swallowed():
    def interrupted(width, height, block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade("ps01/launch_plan", interrupted)


def test_an_exception_that_cannot_be_printed_is_still_a_lost_row():
    class Sly(BaseException):
        def __str__(self):
            raise SystemExit

    def sly(width, height, block):
        raise Sly

    assert report_on("ps01/launch_plan", sly).score == 0.0


# what may cross


@pytest.mark.parametrize(
    ("value", "kind", "want"),
    [
        (3, "integers", 3),
        ((1, 2), "integers", [1, 2]),
        (np.int32(7), "integers", 7),
        ([], "integers", []),
        (np.arange(3, dtype=np.uint8), "integers", [0, 1, 2]),
        (2, "numbers", 2.0),
        (np.float32(0.5), "numbers", 0.5),
        ([[1, 2.5], [3, 4]], "numbers", [[1, 2.5], [3, 4]]),
        (np.ones((2, 2), np.float32), "float32", [[1, 1], [1, 1]]),
    ],
)
def test_plain_values_cross(value, kind, want):
    array = as_array(value, kind)
    assert type(array) is np.ndarray
    assert array.dtype == {"integers": np.int64, "numbers": np.float64}.get(kind, kind)
    assert array.tolist() == want


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        (None, "integers", "return"),
        (True, "integers", "bool"),
        (1.0, "integers", "whole number"),
        ("3", "numbers", "str"),
        (2**70, "integers", "64 bits"),
        ([1, [2]], "integers", "different lengths"),
        ([[[[[1]]]]], "integers", "deep"),
        (Agreeable(), "numbers", "Agreeable"),
        ([Agreeable()], "integers", "Agreeable"),
        (Agreeable(), "float32", "Agreeable"),
        (np.array([lambda: 1], dtype=object), "float32", "object"),
        (np.ma.masked_array([1.0]), "numbers", "MaskedArray"),
        (np.ones(2), "float32", "float64"),
        (np.array([True]), "integers", "bool"),
        (1 + 2j, "numbers", "complex"),
        (True, "integers", r"got a bool \(True\), expected a whole number: int\(True\) is 1"),
        (np.nonzero(np.eye(2)), "integers", "several arrays in a list or a tuple, expected one"),
        (np.array([1j]), "complex128", "complex"),
    ],
)
def test_everything_else_is_refused_with_a_reason(value, kind, why):
    with pytest.raises(NotPlain, match=why):
        as_array(value, kind)


def test_a_list_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(NotPlain):
        as_array(endless, "integers")


def test_tensors_cross_as_arrays_of_their_dtype():
    torch = pytest.importorskip("torch")
    assert as_array(torch.ones(2, requires_grad=True), "float32").tolist() == [1, 1]
    with pytest.raises(NotPlain, match="float64"):
        as_array(torch.ones(2, dtype=torch.float64), "float32")


def test_what_crosses_is_a_copy():
    mine = np.zeros(3, np.float32)
    theirs = as_array(mine, "float32")
    mine[:] = 1
    assert theirs.tolist() == [0, 0, 0]


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_whole_numbers_cross_unchanged(numbers):
    assert as_array(numbers, "integers").tolist() == numbers


# comparison


def test_nan_matches_nan_only():
    nan, one = np.array([math.nan]), np.array([1.0])
    assert difference("x", nan, nan) is None
    assert difference("x", one, nan, 1e9)
    assert difference("x", nan, one, 1e9)


def test_a_wrong_number_and_the_right_one_never_read_the_same():
    for size in ((), 3, 9):
        told = difference("x", np.full(size, -0.547737 + 1e-8), np.full(size, -0.547737))
        assert "-0.54773699" in told and told.rstrip("]").endswith("-0.547737")


def test_what_a_kernel_left_alone_is_called_so():
    before = crossing.values.poisoned((3, 5), "int32")
    half = before.copy()
    half[0] = 7
    want = np.full((3, 5), 7, np.int32)
    assert difference("x", before, want, untouched=before) == "`x` was never written to"
    assert "first at [1, 0]: got nothing (never written), expected 7" in difference(
        "x", half, want, untouched=before
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_nan_that_a_kernel_computed_is_not_called_left_alone(dtype):
    before, want = crossing.values.poisoned((3,), dtype), np.zeros(3)
    told = (
        "`x` was never written to, only added to (it does not begin at 0), or computed from what was never "
        "written"
    )
    assert difference("x", before.copy(), want, untouched=before) == told
    assert difference("x", before + np.ones(3, dtype), want, untouched=before) == told, (
        "NaN + 1 keeps the bytes of that NaN"
    )
    with np.errstate(invalid="ignore"):
        computed = np.zeros(3, dtype) / np.zeros(3, dtype)
    for nan in (computed, -computed, np.full(3, np.nan, dtype)):
        assert difference("x", nan, want, untouched=before) == "`x` is [nan, nan, nan], expected [0, 0, 0]"


def test_infinities_match_only_themselves():
    inf = np.array([math.inf])
    assert difference("x", inf, inf, 1.0) is None
    assert difference("x", inf, -inf, 1e300)
    assert difference("x", np.array([1e300]), inf, 1e300)


def test_an_infinite_tolerance_leaves_a_place_out():
    assert difference("x", np.array([math.nan, 1.0]), np.array([5.0, 1.0]), np.array([math.inf, 0.0])) is None


def test_shapes_must_match_exactly():
    assert "(3, 1)" in difference("x", np.zeros((3, 1)), np.zeros(3))
    assert "single number" in difference("x", np.array(0.0), np.zeros(1))
    assert difference("x", np.zeros((3, 4)), np.zeros(4)) == "`x` has shape (3, 4), expected (4,)"
    assert difference("x", np.zeros(11), np.zeros(10)) == "`x` has 11 numbers, expected 10 numbers"
    assert (
        difference("x", np.array(0.0), np.zeros(10)) == "`x` has a single number, no row, expected 10 numbers"
    )


def test_the_result_of_a_rank_is_not_taken_for_an_element():
    told = difference("out[1]", np.zeros(5), np.ones(5))
    assert told.startswith("`out` of rank 1 is wrong at all 5 places") and "first at [0]" in told


@given(st.integers(1, 400), st.integers(0, 2**32))
def test_the_tolerance_admits_every_order_of_summation(terms, seed):
    rng = np.random.default_rng(seed)
    products = (2 * rng.random(terms) - 1).astype(np.float32) * (2 * rng.random(terms) - 1).astype(np.float32)
    exact = math.fsum(map(float, products))
    forward = np.add.accumulate(products, dtype=np.float32)[-1]
    pairwise = products.sum(dtype=np.float32)
    limit = sum_tolerance(terms, np.abs(products.astype(np.float64)).sum())
    assert abs(float(forward) - exact) <= limit
    assert abs(float(pairwise) - exact) <= limit


def test_the_tolerance_refuses_sums_in_half_precision():
    rng = np.random.default_rng(0)
    a, b = rng.random(64, dtype=np.float32), rng.random(64, dtype=np.float32)
    half = float(np.add.accumulate(a.astype(np.float16) * b.astype(np.float16), dtype=np.float16)[-1])
    exact = float(a.astype(np.float64) @ b.astype(np.float64))
    assert abs(half - exact) > sum_tolerance(64, exact)


# points


@given(st.floats(), st.floats(1, 1e9), st.floats(1.01, 100))
def test_a_bound_gives_a_finite_share_between_nothing_and_everything(total, full, factor):
    share = Bound("x", full, full * factor).fraction(total)
    assert type(share) is float
    assert 0.0 <= share <= 1.0


def test_a_bound_is_a_straight_line_between_its_ends():
    bound = Bound("a + b", 100, 300)
    assert [bound.fraction(total) for total in (0, 100, 150, 200, 300, 999)] == [1, 1, 0.75, 0.5, 0, 0]
    assert bound.total({"a": 1.0, "b": 2.0}) == 3.0
    assert math.isnan(bound.total({"a": 1.0}))


class Doubled(Task):
    name, points, entry, arguments, returns = "test/doubled", 10.0, "doubled", ("x",), {"y": "float32"}
    items = (Item("all", 6), Item("loads", 4, "structure"))

    def make_cases(self, rng):
        x = rng.random(5, dtype=np.float32)
        return [Case("one", {"x": x}, "all"), Case("two", {"x": x}, "loads")]

    def reference(self, inputs):
        return {"y": 2.0 * inputs["x"]}

    def bounds(self, inputs):
        return {"loads": Bound("loads", 10, 20, "loads")}


def judged(**changes):
    """Score of Doubled when both outcomes are right but for `changes`."""
    task = Doubled()
    cases = task.cases(0)
    outcomes = []
    for case in cases:
        right = {"outputs": {"y": (2 * case.inputs["x"])}, "counters": {"loads": 10.0}}
        outcomes.append(Outcome(case.name, **(right | changes)))
    return scoring.judge(task, cases, outcomes)


def test_a_row_that_only_counts_for_a_right_result_gives_no_hint_for_a_wrong_one(monkeypatch):
    monkeypatch.setattr(scoring, "hints_for", lambda name, row: (f"see to {row}",))
    assert [line.hints for line in judged(counters={"loads": 15.0}).lines] == [(), ("see to loads",)]
    assert [line.hints for line in judged(outputs={"y": np.zeros(5, np.float32)}).lines] == [
        ("see to all",),
        (),
    ]


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 10.0),
        ({"counters": {"loads": 15.0}}, 8.0),
        ({"counters": {"loads": math.nan}}, 6.0),
        ({"counters": {"loads": -math.inf}}, 6.0),
        ({"counters": {"loads": True}}, 6.0),
        ({"counters": {"loads": Agreeable()}}, 6.0),
        ({"counters": {}}, 6.0),
        ({"modified": ("x",)}, 0.0),
        ({"error": "boom"}, 0.0),
        ({"outputs": {}}, 0.0),
        ({"outputs": {"y": Agreeable()}}, 0.0),
        ({"outputs": {"y": np.zeros(5)}}, 0.0),
        ({"outputs": {"y": None}}, 0.0),
    ],
)
def test_a_tampered_outcome_never_earns_more_than_what_is_right_in_it(changes, score):
    report = judged(**changes)
    assert report.score == score
    assert all(type(line.points) is float and 0 <= line.points <= line.max for line in report.lines)


def test_a_missing_outcome_loses_its_row_only():
    task = Doubled()
    cases = task.cases(0)
    report = scoring.judge(task, cases, [crossing.try_here(task, cases[0], lambda x: 2 * x)])
    assert [line.points for line in report.lines] == [6.0, 0.0]
    assert "no result came back" in report.lines[1].reason


@pytest.mark.parametrize(
    ("kind", "points", "told"), [("structure", 11, "add up to 10"), ("time", 10, "yardstick")]
)
def test_rows_add_up_to_the_points_and_a_timed_one_needs_a_kernel_and_a_yardstick(kind, points, told):
    refused = type("Refused", (Doubled,), {"items": (Item("all", 6), Item("other", 4, kind))})
    with pytest.raises(ValueError, match=told):
        task("test/refused", points=points)(refused)


def test_an_input_that_was_changed_is_named():
    def doubled(x):
        x *= 2
        return x

    task = Doubled()
    outcome = crossing.try_here(task, task.cases(0)[0], doubled)
    assert outcome.modified == ("x",)


# launch plans


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ((2, 32), ((2,), (32,), 0)),
        (((2, 3), (16, 16)), ((2, 3), (16, 16), 0)),
        (([2, 3], [np.int64(8), 8, 2], 4096), ((2, 3), (8, 8, 2), 4096)),
    ],
)
def test_a_plan_in_any_honest_form_is_accepted(value, want):
    assert crossing.plan.checked_plan(value, "plan", warplab.device().limits) == want


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "must return"),
        ((1, 2, 3, 4), "must return"),
        ((2.0, 32), "whole number"),
        ((True, 32), "whole number"),
        ((0, 32), "between 1 and"),
        ((2, -1), "between 1 and"),
        (((1, 70_000), 32), "between 1 and 65,535"),
        ((1, (64, 64)), "4,096 threads"),
        ((1, (1, 1, 128)), "between 1 and 64"),
        (((1, 1, 1, 1), 32), "dimensions"),
        ((1, 32, 10**6), "shared memory"),
        ((1, 32, -1), "shared memory"),
        ((1, 32, [1]), "got a list"),
        ((Agreeable(), 32), "Agreeable"),
    ],
)
def test_an_impossible_plan_is_refused_with_the_limit(value, why):
    with pytest.raises(crossing.Refused, match=why):
        crossing.plan.checked_plan(value, "plan", warplab.device().limits)


def test_a_kernel_task_refuses_what_is_not_a_kernel():
    report = report_on("ps01/grayscale", lambda rgb, out: None)
    assert report.score == 0.0
    assert "@cuda.jit" in report.lines[0].reason


def test_outputs_are_poisoned():
    assert np.isnan(crossing.values.poisoned((3, 4), "float32")).all()
    assert len(np.unique(crossing.values.poisoned((8, 8), "int32"))) > 60


# gradients


def test_finite_differences_of_too_many_numbers_are_refused():
    with pytest.raises(ValueError, match="4,096"):
        gradient_check(np.exp, np.zeros(4097), np.zeros(4097))
