"""A Triton kernel that host code launches on handles: recorded as any launch, judged as any kernel."""

import math

import crossing_examples  # noqa: F401 - registers the tasks example/...
import numpy as np
import pytest
from test_crossings import both, here

from warplab import crossing
from warplab.crossing.orders import LaunchStep
from warplab.hardware.target import Target
from warplab.simt.frontends import triton_hook
from warplab.tasks import registry, scoring

triton = pytest.importorskip("triton", reason="Triton's wheels are for Linux")
import triton.language as tl  # noqa: E402

SUMS = """
import triton
import triton.language as tl

@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + i, mask=start + i < n, other=0.0)
    tl.store(out, tl.sum(total, 0))

def total(device, x, out):
    sums[(1,)](x, out, x.shape[0], BLOCK=512, num_warps=4)
"""


@triton.jit
def scaled(pair, factor, flag, columns, nothing, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(pair[0] + i, mask=i < columns, other=0.0)
    tl.store(pair[1] + i, value * factor + flag.to(tl.float32), mask=i < columns)


def recorded(launch, *shapes):
    """The recording of host code that gets the recorder and handles of these shapes, float32."""
    recorder = crossing.driver.Recorder(Target.of("sm_90"))
    handles = [recorder.empty(shape, "float32") for shape in shapes]
    with triton_hook.recorded(recorder.target, recorder.launch_of_triton):
        launch(recorder, *handles)
    return recorder


@pytest.mark.slow
def test_a_kernel_in_triton_earns_the_same_in_a_notebook_and_over_the_boundary():
    points, reasons = both("example/total", SUMS)
    assert sum(points) == 10, reasons
    assert "1 launch;" in reasons[1]


def test_a_launch_is_recorded_with_what_the_ptx_declares():
    """A constant and a number that is 1 are in the code; a tuple is its parts; None is address 0; and the two
    pointers to scratch memory that Triton adds are 0.
    """
    done = recorded(
        lambda device, a, b: scaled[(3, 2)]((a, b), 2.5, True, 16, None, BLOCK=16, num_warps=2), 16, 16
    )
    (kernel,), (step,) = done.kernels, done.steps
    assert (kernel["name"], kernel["entry"], kernel["abi"]) == ("scaled", "scaled", "triton")
    assert ".target sm_80" in kernel["modules"][0]
    assert step[:5] == ["launch", 0, (3, 2, 1), (64,), 0]
    assert step[5] == ["#0", "#1", ["float64", 2.5], ["bool", True], ["int64", 16], *2 * [["int64", 0]]]
    once = recorded(lambda device, a, b: scaled[(1,)]((a, b), 2.5, True, 1, None, BLOCK=16), 16, 16)
    assert len(once.steps[0][5]) == len(step[5]) - 1


def test_an_older_device_gets_code_that_it_can_run():
    recorder = crossing.driver.Recorder(Target.of("sm_75"))
    pair = recorder.empty(16, "float32"), recorder.empty(16, "float32")
    with triton_hook.recorded(recorder.target, recorder.launch_of_triton):
        scaled[(1,)](pair, 1.0, False, 16, None, BLOCK=16)
    assert ".target sm_75" in recorder.kernels[0]["modules"][0]


def test_the_same_kernel_runs_on_tensors_and_is_recorded_on_handles():
    torch = pytest.importorskip("torch")
    a, b = torch.arange(16.0), torch.zeros(16)

    def run():
        scaled[(1,)]((a, b), 2.0, False, 16, None, BLOCK=16)

    run()
    done = recorded(lambda device, *pair: scaled[(1,)](pair, 2.0, False, 16, None, BLOCK=16), 16, 16)
    b.zero_()
    run()
    assert torch.equal(b, 2 * a) and len(done.steps) == 1


def test_a_kernel_is_kept_once_for_all_its_launches():
    def twice(device, *pair):
        for factor in (2.0, 3.0):
            scaled[(1,)](pair, factor, False, 16, None, BLOCK=16)
        scaled[(1,)](pair, 2.0, False, 16, None, BLOCK=32)

    done = recorded(twice, 16, 16)
    assert [step[1] for step in done.steps] == [0, 0, 1] and len(done.kernels) == 2


def test_strides_are_those_of_a_tensor():
    handle = crossing.driver.Handle("x", (3, 5, 7), "float32")
    assert handle.stride() == (35, 7, 1) and handle.stride(1) == 7
    assert crossing.driver.Handle("x", (), "float32").stride() == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("out, x.shape[0], BLOCK=512", "out, np.ones(3), BLOCK=512"), "and this is a numpy.ndarray"),
        (("sums[(1,)](x,", "device.launch(sums, 1, 32, x,"), "got an unexpected keyword"),
        (
            ("sums[(1,)](x, out, x.shape[0], BLOCK=512, num_warps=4)", "device.launch(sums, 1, 32, x, out)"),
            "launch a Triton kernel as `kernel[grid](x, BLOCK=1024)`",
        ),
        (("num_warps=4", "num_warps=64"), "Required: 2048, Hardware limit: 1024"),
        (("tl.sum(total, 0)", "tl.sum(total, 1)"), "Triton refuses this line"),
        (("tl.sum(total, 0)", "tl.total(total)"), "does not compile"),
        ((", mask=start + i < n, other=0.0", ""), "out-of-bounds access in kernel sums"),
        (("i = tl.arange(0, BLOCK)", "i = tl.arange(0, x)"), "does not compile"),
        (("BLOCK=512", "BLOCK=500"), "a block has a power of two elements"),
        (("BLOCK=512, ", ""), "does not pass: 'BLOCK'"),
        (("sums[(1,)]", "sums[1]"), "the grid is to be a tuple"),
        (("sums[(1,)]", "sums"), "a launch needs its grid"),
        (("i = tl.arange(0, BLOCK)", "raise NotImplementedError()"), "not written yet: line 2 of the kernel"),
        (("tl.sum(total, 0))", "tl.sum(total, 0), mask=i < 1)"), "and this is one address"),
    ],
)
def test_what_is_wrong_with_a_launch_or_a_kernel_is_told(change, why):
    assert SUMS.count(change[0]) == 1
    reason = here("example/total", "import numpy as np\n" + SUMS.replace(*change)).lines[0].reason
    assert why in reason, reason


def test_threads_of_tritons_that_hold_one_element_together_do_not_race():
    """128 threads store one sum of which each holds a copy: the right points, and no warning."""
    assert not here("example/total", SUMS).lines[0].warnings


def test_without_triton_rows_that_need_it_are_ungraded(monkeypatch):
    task = registry.get("example/total")
    monkeypatch.setattr(type(task), "needs", "a_package_that_is_nowhere", raising=False)
    report = scoring.judge(task, task.cases(3), [])
    assert [line.state for line in report.lines] == ["ungraded", "ungraded"]
    assert (report.max, report.ungraded) == (0, 10) and "no points are lost" in report.lines[0].reason
    monkeypatch.setattr(type(task), "needs", "json")
    assert [line.state for line in scoring.judge(task, task.cases(3), []).lines] == ["lost", "lost"]


def test_the_recording_is_checked_where_it_is_judged():
    """What the Recorder would not note is refused by finish(), which believes nothing."""
    task = registry.get("example/total")
    case, kernel = task.cases(3)[0], {"name": "k", "entry": "k", "modules": ["."], "abi": "triton"}
    step = ["launch", 0, [1], [32], 0, ["x", "out"]]

    def finished(**change):
        told = {"kernels": [kernel], "buffers": {}, "steps": [step]} | change
        return crossing.finish(task, case, told, None)

    assert finished().steps == (LaunchStep(0, (1,), (32,), 0, ("x", "out")),)
    for change in (
        {"kernels": [kernel | {"abi": "python"}]},
        {"kernels": [kernel | {"modules": ["x" * (5 << 20)]}]},
        {"steps": [["launch", 0, [1], [32], 1 << 20, ["x", "out"]]]},
        {"steps": [["launch", 0, [1], [2048], 0, ["x", "out"]]]},
        {"steps": [["launch", 1, [1], [32], 0, ["x", "out"]]]},
        {"steps": [["launch", 0, [1], [32], 0, ["expected"]]]},
        {"steps": [["launch", 0, [1], [32], 0, [["float32", "x"]]]]},
        {"steps": [["launch", 0, [math.nan], [32], 0, []]]},
        {"buffers": {"x": {"shape": [1], "dtype": "float32"}}},
    ):
        with pytest.raises(crossing.Refused):
            finished(**change)
    assert np.isfinite(case.inputs["x"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:triton.autotune")
def test_an_autotuned_kernel_is_counted_on_zeros_and_recorded_once_with_what_was_chosen():
    tiles = [triton.Config({"BLOCK": size}) for size in (4096, 64)]
    tuned = triton.autotune(tiles, key=["columns"])(scaled)

    def launch(device, x, out):
        tuned[lambda chosen: (triton.cdiv(64, chosen["BLOCK"]),)]((x, out), 2.0, True, 64, None)

    (step,) = recorded(launch, (64,), (64,)).steps
    assert step[0] == "launch" and tuned.best_config.kwargs == {"BLOCK": 64}
