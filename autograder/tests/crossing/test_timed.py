"""Timed rows without a GPU: what is checked between the samples, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from crossing_examples import ANSWERS, Axpy

from autograder.sandbox import Limits
from warplab import crossing
from warplab.crossing import Order, Refused
from warplab.crossing.outcome import Outcome
from warplab.crossing.timed import KernelSampler, _Kernel, link_arch, measure
from warplab.hardware.device import Device, engine_target
from warplab.hardware.target import Target
from warplab.tasks import registry, scoring
from warplab.tasks.rubric import Case
from warplab.timing.cuda_timer import cuda_timer

TASK = Axpy()
TIMED = [
    name
    for name in registry.names()
    if name.startswith("ps") and any(item.kind == "time" for item in registry.get(name).items)
]
N = 1 << 20
BANDWIDTH = 3.35e12


def sets(count=2):
    rng = np.random.default_rng(0)
    return [
        Case(
            f"set {k}",
            {"alpha": 2.0, "x": rng.random(N, dtype=np.float32), "y": rng.random(N, dtype=np.float32)},
        )
        for k in range(count)
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
    with pytest.raises(Refused, match="1.0 us is too short to read 8,388,608 bytes"):
        measured(cases, student(cases, seconds=1e-6)[0])


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TIMED)
def test_a_timed_case_is_large_and_yet_no_tolerance_lets_zeros_or_a_half_pass(name):
    """The rounding of millions of additions must not be allowed for so generously that any sum is right."""
    task = registry.get(name)
    for case in task.timed_cases():
        assert task.must_read(case.inputs) + task.must_write(case.inputs) >= 16 << 20
        outputs = task.expected(case)[0]
        crossing_bytes = sum(
            np.size(value) * np.dtype(task.kind_of(key, case.inputs)).itemsize
            for key, value in outputs.items()
        )
        assert crossing_bytes <= 64 << 20  # a sample's message has room for so much
        for share in 0, 0.5:
            wrong = {
                key: (share * np.asarray(value, np.float64)).astype(task.kind_of(key, case.inputs))
                for key, value in outputs.items()
            }
            assert task.wrong_result(case, Outcome(case.name, wrong)) is not None


@pytest.fixture
def an_a100(monkeypatch):
    """This machine has a GPU of another architecture than the engine's."""
    found = Device("NVIDIA A100", "cuda", Target.of("sm_80", "NVIDIA A100"))
    monkeypatch.setattr("warplab.crossing.kernel.device", lambda: found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TIMED)
def test_the_students_process_is_told_which_gpu_a_timed_row_is_compiled_for(name, an_a100):
    task = registry.get(name)
    module = crossing.CROSSINGS[task.crossing]
    assert module.question(task, task.timed_cases()[0])["arch"] == "sm_80"
    assert module.question(task, task.cases()[0])["arch"] == engine_target().arch


@pytest.mark.slow
@pytest.mark.parametrize("timed, arch", [(True, "sm_80"), (False, "sm_90")])
@pytest.mark.parametrize("name", ["example/axpy", "example/total"])
def test_a_timed_row_is_compiled_for_the_gpu_that_runs_it(name, timed, arch, an_a100, monkeypatch):
    monkeypatch.delenv("WARPLAB_ARCH", raising=False)
    task, namespace = registry.get(name), {"__name__": "submission"}
    case = task.cases(3)[0]
    monkeypatch.setattr(type(task), "is_timed", lambda self, case: timed)
    exec(compile(ANSWERS[name], "<submission>", "exec"), namespace)
    module, names = crossing.CROSSINGS[task.crossing], (task.entry, task.plan_entry)
    question = module.question(task, case)
    answer = module.answer(question, names, namespace[task.entry], namespace.get(task.plan_entry), None)
    order = module.finish(task, case, answer, None)
    assert (question["arch"], order.arch) == (arch, arch)
    assert all(f".target {arch}" in text for kernel in order.kernels for text in kernel.modules)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_what_numba_compiles_for_a_gpu_is_linked_for_it(arch, monkeypatch):
    """nvJitLink needs no GPU. From 9.0 on numba compiles for one capability alone, "sm_90a", which is not
    linked for plain sm_90; beside it may lie a module that nvcc made for the plain one, or for an older.
    """
    monkeypatch.setattr("warplab.crossing.kernel.device", lambda: Device("a GPU", "cuda", Target.of(arch)))
    monkeypatch.setattr(Axpy, "is_timed", lambda self, case: True)
    namespace, case, module = {"__name__": "submission"}, TASK.cases(3)[0], crossing.CROSSINGS["kernel"]
    exec(compile(ANSWERS["example/axpy"], "<submission>", "exec"), namespace)
    question = module.question(TASK, case)
    answer = module.answer(question, ("axpy", "plan"), namespace["axpy"], namespace["plan"], None)
    (kernel,) = module.finish(TASK, case, answer, None).kernels
    own = arch + "a" if int(arch[3:]) >= 90 else arch
    assert f".target {own}\n" in kernel.modules[0] and link_arch(arch, kernel.modules) == own
    for beside in arch, "sm_75":
        other = f".version 8.0\n.target {beside}\n.address_size 64\n.visible .func other() {{ ret; }}\n"
        other = other.replace("8.0", re.search(r"\.version (\S+)", kernel.modules[0])[1])
        assert _Kernel(replace(kernel, modules=(*kernel.modules, other)), arch).code
    assert link_arch(arch, [f".target {arch}"]) == link_arch(arch, [".target sm_75"]) == arch


@pytest.mark.gpu
def test_a_kernel_from_ptx_is_timed_on_the_device():
    namespace = {}
    exec(compile(ANSWERS["example/axpy"], "<axpy>", "exec"), namespace)
    case = sets(1)[0]
    answer = crossing.CROSSINGS["kernel"].answer(
        crossing.CROSSINGS["kernel"].question(TASK, case),
        ("axpy", "plan"),
        namespace["axpy"],
        namespace["plan"],
        None,
    )
    sampler = KernelSampler([crossing.finish(TASK, case, answer, None)], cuda_timer())
    sampler.warm_up()
    seconds, _, outputs = sampler.sample(0)
    assert seconds > TASK.must_read(case.inputs) / 10e12
    np.testing.assert_allclose(outputs["out"], TASK.reference(case.inputs)["out"], rtol=1e-6)


def test_a_device_whose_clock_does_not_hold_still_costs_nobody_points(monkeypatch):
    from types import SimpleNamespace

    import autograder.judge.timed_rows as timing
    from warplab.timing.samples import Unsteady

    class Executor:
        def __init__(self, *_):
            pass

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = begin_step = lambda *_, **__: None  # noqa: E731

        def ask(self, *_):
            return SimpleNamespace(bandwidth=BANDWIDTH)

    def never(*_):
        raise Unsteady("the clock moved")

    monkeypatch.setattr(timing, "Process", Executor)
    monkeypatch.setattr(timing, "measure", never)
    matmul = registry.get("ps04/matmul_register_tiled")
    small = matmul.product(np.random.default_rng(0), "time", 4, 4, 4)
    outcome = timing.time_case(matmul, small, Order("sm_90", (), {}, (), ()), None, Limits())
    (line,) = scoring.judge(matmul, [small], [outcome]).part("time").lines
    assert (line.state, line.max) == ("ungraded", 5.0)
