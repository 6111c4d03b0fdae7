"""Timed rows without a GPU: what is checked between the samples, and what is refused."""

import numpy as np
import pytest
from crossing_examples import Axpy

from warplab import task as tasks
from warplab.crossing import Order, Refused
from warplab.crossing.timed import measure
from warplab.task import Case, Outcome

TASK = Axpy()
TIMED = [name for name in tasks.names() if name.startswith("ps") and any(item.kind == "time" for item in tasks.get(name).items)]
N = 1 << 20
BANDWIDTH = 3.35e12


def sets(count=2):
    rng = np.random.default_rng(0)
    return [
        Case(f"set {k}", {"alpha": 2.0, "x": rng.random(N, dtype=np.float32), "y": rng.random(N, dtype=np.float32)}) for k in range(count)
    ]


def student(cases, seconds=1e-5, spoil=None):
    """A sampler of right answers; from call number `spoil` on, zeros."""
    calls = []

    def sample(number):
        calls.append(number)
        inputs = cases[number].inputs
        out = (np.float32(2) * inputs["x"] + inputs["y"]).astype(np.float32)
        return seconds, 1980.0, {"out": out if spoil is None or len(calls) < spoil else np.zeros_like(out)}

    return sample, calls


def measured(cases, of_student, yardstick=5e-6):
    return measure(TASK, cases, of_student, lambda number: (yardstick, 1980.0, {}), BANDWIDTH, lambda: 0.0)


def test_a_kernel_that_takes_twice_the_yardsticks_time_has_the_ratio_two():
    cases = sets()
    sample, calls = student(cases)
    counters = measured(cases, sample)
    assert counters["time.ratio"] == counters["time.ratio_low"] == pytest.approx(2)
    assert counters["time.seconds"] == 1e-5 and counters["time.samples"] == 20
    assert set(calls) == {0, 1}, "both sets of inputs were used"


def test_right_ten_times_and_then_garbage_is_found():
    cases = sets()
    with pytest.raises(Refused, match="while it was timed: `out` is wrong"):
        measured(cases, student(cases, spoil=11)[0])


def test_a_time_in_which_the_inputs_cannot_be_read_is_refused():
    """x and y are 8 MiB: at 3.35 TB/s 2.5 us."""
    cases = sets()
    assert TASK.must_read(cases[0].inputs) == 2 * 4 * N
    with pytest.raises(Refused, match="1.0 us are too few to read 8,388,608 bytes"):
        measured(cases, student(cases, seconds=1e-6)[0])


@pytest.mark.parametrize("name", TIMED)
def test_a_timed_case_is_large_and_yet_no_tolerance_lets_zeros_or_a_half_pass(name):
    """The rounding of millions of additions must not be allowed for so generously that any sum is right."""
    task = tasks.get(name)
    for case in task.timed_cases():
        assert task.must_read(case.inputs) + task.must_write(case.inputs) >= 16 << 20
        for share in 0, 0.5:
            outputs = {key: (share * np.asarray(value, np.float64)).astype(task.kind_of(key, case.inputs)) for key, value in task.expected(case)[0].items()}
            assert task.wrong_result(case, Outcome(case.name, outputs)) is not None


@pytest.mark.gpu
def test_a_kernel_from_ptx_is_timed_on_the_device():
    from crossing_examples import AXPY

    from warplab import crossing
    from warplab.crossing.timed import KernelSampler
    from warplab.cuda_timer import cuda_timer

    namespace = {}
    exec(compile(AXPY, "<axpy>", "exec"), namespace)
    case = sets(1)[0]
    answer = crossing.CROSSINGS["kernel"].answer(crossing.CROSSINGS["kernel"].question(TASK, case), ("axpy", "plan"), namespace["axpy"], namespace["plan"], None)
    sampler = KernelSampler([crossing.finish(TASK, case, answer, None)], cuda_timer())
    sampler.warm_up()
    seconds, _, outputs = sampler.sample(0)
    assert seconds > TASK.must_read(case.inputs) / 10e12
    np.testing.assert_allclose(outputs["out"], TASK.reference(case.inputs)["out"], rtol=1e-6)


def test_a_device_whose_clock_does_not_hold_still_costs_nobody_points(monkeypatch):
    from types import SimpleNamespace

    import autograder.judge.timing as timing
    from warplab.samples import Unsteady

    class Executor:
        def __init__(self, *_):
            pass

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = begin_step = lambda *_: None  # noqa: E731

        def ask(self, *_):
            return SimpleNamespace(bandwidth=BANDWIDTH)

    def never(*_):
        raise Unsteady("the clock moved")

    monkeypatch.setattr(timing, "Process", Executor)
    monkeypatch.setattr(timing, "measure", never)
    matmul = tasks.get("ps04/matmul_register_tiled")
    small = matmul.product(np.random.default_rng(0), "time", 4, 4, 4)
    outcome = timing.time_case(matmul, small, Order("sm_90", (), {}, (), ()), None, None)
    (line,) = matmul.judge([small], [outcome]).part("time").lines
    assert (line.state, line.max) == ("ungraded", 5.0)
