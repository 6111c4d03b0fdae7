"""Every way of crossing, by example: an answer earns the same in a notebook and over the boundary."""

import linecache
from dataclasses import replace

import numpy as np
import pytest
from crossing_examples import ANSWERS, AXPY, GELU, OVERLAP, RING, TOTAL

import warplab
from autograder.judge.attempts import NotebookStep, run_all
from autograder.sandbox import Limits, Unsafe
from warplab import crossing
from warplab.hardware.device import engine_target
from warplab.tasks import registry, scoring


def here(name, source):
    """The report of `source` judged in this process, as in a notebook."""
    namespace, task = {"__name__": "submission"}, registry.get(name)
    lines = source.splitlines(keepends=True)
    linecache.cache["<submission>"] = len(source), None, lines, "<submission>"
    exec(compile(source, "<submission>", "exec"), namespace)
    cases = task.cases(3)
    entry, plan = namespace.get(task.entry), namespace.get(task.plan_entry)
    return scoring.judge(task, cases, [crossing.try_here(task, case, entry, plan) for case in cases])


def apart(name, *cells):
    """(report, Run) of notebook cells judged by three processes."""
    task = registry.get(name)
    cases = task.cases(3)
    steps = [NotebookStep(f"cell-{number}", "cell", source=source) for number, source in enumerate(cells)]
    run = run_all(
        (*steps, NotebookStep("test", "task", task=name)), {name: cases}, Unsafe(), Limits(step_seconds=20)
    )
    return scoring.judge(task, cases, run.outcomes[name]), run


def both(name, source):
    """The points of each row, the same in both places."""
    notebook, graded = here(name, source), apart(name, source)[0]
    assert [(line.points, line.reason) for line in notebook.lines] == [
        (line.points, line.reason) for line in graded.lines
    ]
    return [line.points for line in graded.lines], [line.reason for line in graded.lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_a_right_answer_earns_everything_in_a_notebook_and_over_the_boundary(name):
    points, reasons = both(name, ANSWERS[name])
    assert sum(points) == 10, reasons


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_earns_nothing(name):
    report, _ = apart(name, "pass")
    assert report.score == 0
    assert f"`{registry.get(name).entry}` does not exist: no cell defines it" in report.lines[0].reason


def test_a_ring_sends_what_a_hand_computation_says():
    """4 ranks of 40 float64: each sends 2 * 3 / 4 * 320 = 480 bytes, 1,920 in all, in 24 messages."""
    task = registry.get("example/ring")
    case = task.cases(3)[-1]
    namespace = {}
    exec(RING, namespace)
    counters = crossing.try_here(task, case, namespace["ring"]).counters
    assert counters == {
        "ranks.bytes": 1920.0,
        "ranks.bytes_of_one": 480.0,
        "ranks.messages": 24.0,
        "ranks.collectives": 0.0,
    }


def test_a_kernel_reads_nothing_of_the_judges_values():
    """The question of a kernel holds types, and of shapes what the plan is given."""
    from warplab.crossing import kernel

    task = registry.get("example/axpy")
    case = task.cases(3)[-1]
    assert kernel.question(task, case) == {
        "arguments": ["alpha", "x", "y", "out"],
        "types": [
            ["float64", 0, "number"],
            ["float32", 1, "array"],
            ["float32", 1, "array"],
            ["float32", 1, "array"],
        ],
        "plan": {"n": 1024},
        "arch": "sm_90",
    }


def test_what_the_arguments_do_not_name_stays_with_the_judge():
    from warplab.crossing import remote_device

    case = registry.get("ps01/time_it").cases(3)[0]
    assert set(case.inputs) == {"work", "repeats", "timing"}
    assert set(remote_device.question(registry.get("ps01/time_it"), case)["inputs"]) == {"work", "repeats"}


@pytest.mark.slow
def test_counters_of_several_launches_are_their_sums():
    """4,096 floats: the first pass reads 512 sectors, the second 16 sums, 2 sectors; 16 + 1 results."""
    task = registry.get("example/total")
    namespace = {}
    exec(compile(TOTAL, "<total>", "exec"), namespace)
    counters = crossing.try_here(task, task.cases(3)[-1], namespace["total"]).counters
    assert (counters["launches"], counters["allocated_bytes"]) == (2, 16 * 4)
    assert counters["global_load.sectors"] == 512 + 2
    assert counters["global_store.requests"] == 16 + 1
    x, partial, out = np.ones(4096, np.float32), np.ones(16, np.float32), np.ones(1, np.float32)
    passes = [
        warplab.profile(namespace["sums"][blocks, 256], *arrays)
        for blocks, arrays in ((16, (x, partial)), (1, (partial, out)))
    ]
    assert counters["busiest_warp_instructions"] == sum(
        p.busiest_warp_instructions for p in passes
    )  # one pass waits for the other


def test_what_the_device_copies_and_fills_was_read_and_written():
    """A copy of 4,096 floats reads 512 sectors and writes 512, filling 16 writes 2; no kernel counts them."""
    task = registry.get("example/total")
    namespace = {}
    exec(compile(TOTAL, "<total>", "exec"), namespace)

    def with_copies(device, x, out):
        device.copy(device.empty(x.shape, "float32"), x)
        device.zeros(16, "float32")
        namespace["total"](device, x, out)

    case = task.cases(3)[-1]
    plain, more = (crossing.try_here(task, case, f).counters for f in (namespace["total"], with_copies))
    names = [f"global_{part}.sectors" for part in ("load", "store", "read", "write", "memory")]
    assert [more[name] - plain[name] for name in names] == [0, 0, 512, 514, 1026]


def kept(change=""):
    """Counters of GELU as it stands, or with a line more in its forward."""
    task, namespace = registry.get("example/gelu"), {}
    exec(GELU.replace("save_for_backward(x)\n", f"save_for_backward(x)\n        {change}\n"), namespace)
    return crossing.try_here(task, task.cases(3)[-1], namespace["gelu"])


@pytest.mark.parametrize(
    ("change", "saved", "made"),
    [
        ("", 256, 0),
        ("ctx.a = x, x", 256 + 1, 1),  # the same numbers are kept once; the name counts, too
        ("ctx.a = [x * 2, (x * 3).numpy()]", 3 * 256 + 1, 2 * 256 + 1),
        ("ctx.told = x.tolist()", None, None),  # texts and numbers are no way round
        ("ctx.told = {str(n): 1.0 for n in x.tolist()}", None, None),
    ],
)
def test_all_that_forward_keeps_is_counted(change, saved, made):
    """64 numbers of 4 bytes; a number that is written out has more digits than bytes."""
    counters = kept(change).counters
    if saved is None:
        assert counters["saved_bytes"] > 2 * 256 and counters["made_bytes"] > 256
    else:
        assert counters == {"saved_bytes": saved, "made_bytes": made}


@pytest.mark.parametrize(
    "unseen",
    [
        'unsigned at = __cvta_generic_to_shared(&word); asm("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));',
        "if (malloc(16 * threadIdx.x) == 0) total[0] = 1;",
    ],
    ids=["mbarrier", "malloc"],
)
def test_memory_that_no_counter_sees_is_refused_where_a_row_counts(unseen):
    """The sizes that lanes ask for come back as their sums, and words of barriers as what they were."""
    task = registry.get("ps03/reduce_atomic")
    body = f"__shared__ unsigned long long word; if (threadIdx.x == 0) {{ word = 0; {unseen} }}"
    kernel = warplab.cuda_kernel(
        f'extern "C" __global__ void k(const float* x, long n, float* total, long m) {{ {body} }}', "k"
    )
    for case in task.cases(0):
        told = crossing.try_here(task, case, kernel).error or ""
        assert ("no counter sees" in told) == bool(task.counts_of(case)), told


def test_what_no_other_process_could_read_is_no_keeping():
    assert "`ctx.told` cannot be kept" in kept("ctx.told = lambda: x").error


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def total(device, x, out):\n    x[0]", "cannot be indexed"),
        ("import numpy as np\ndef total(device, x, out):\n    np.asarray(x)", "no values on the host"),
        ("def total(device, x, out):\n    device.copy(out, x)", "one shape and dtype"),
        ("def total(device, x, out):\n    device.launch(print, 1, 1, x)", "must be a kernel"),
        (
            "def total(device, x, out):\n    device.empty(10**10, 'float64')",
            "the limit is 256 arrays and 1024 MiB",
        ),
        ("def total(device, x, out):\n    device.empty(3, 'complex64')", "complex64 cannot be allocated"),
        ("def total(device, x, out):\n    device.fill(3, 0)", "a device array"),
        (
            "def total(device, x, out):\n    device.fill(device.empty(3, 'int32'), 10**12)",
            "out of bounds for int32",
        ),
    ],
)
def test_what_a_recording_cannot_hold_is_refused_with_a_reason(source, why):
    assert why in here("example/total", source).lines[0].reason


def test_a_kernel_with_another_number_of_arguments_is_told_the_right_ones():
    source = AXPY.replace("axpy(alpha, x, y, out)", "axpy(alpha, x, out)").replace("+ y[i]", "")
    assert (
        "`axpy` takes 3 arguments, and 4 are passed: alpha, x, y, out"
        in here("example/axpy", source).lines[0].reason
    )


def test_overlap_is_shorter_on_the_virtual_clock_and_not_waiting_reads_what_was_there():
    """8 pieces: the first takes 3 T / 8 in, through and out, 7 more leave T / 8 apart: 1.25 T."""
    task = registry.get("example/overlap")
    case = task.cases(3)[-1]
    whole = 8 * case.inputs["x"].size / 25e9
    namespace = {}
    exec(OVERLAP, namespace)
    outcome = crossing.try_here(task, case, namespace["overlap"])
    assert outcome.counters["device.seconds"] == pytest.approx(1.25 * whole, rel=0.01)
    exec(OVERLAP.replace("    device.synchronize()\n", ""), namespace)
    stale = crossing.try_here(task, case, namespace["overlap"]).outputs["y"]
    assert (stale == 0).all()


@pytest.mark.slow
def test_a_lost_executor_costs_its_own_task():
    """The first task's kernel never ends; the second's, in the same notebook, is judged in a new executor."""
    endless = AXPY.replace("    if i < x.size:\n        out[i]", "    while alpha > -1:\n        out[i % 1]")
    name, second = "example/axpy", "example/total"
    steps = (
        NotebookStep("a", "cell", source=endless),
        NotebookStep("a-test", "task", task=name),
        NotebookStep("b", "cell", source=TOTAL),
        NotebookStep("b-test", "task", task=second),
    )
    cases = {task: registry.get(task).cases(3) for task in (name, second)}
    run = run_all(steps, cases, Unsafe(), Limits(step_seconds=6))
    assert run.status == "timeout"
    assert scoring.judge(registry.get(name), cases[name], run.outcomes[name]).score == 0
    assert scoring.judge(registry.get(second), cases[second], run.outcomes[second]).score == 10


@pytest.mark.slow
def test_a_task_that_fails_itself_is_nobodys_grade(monkeypatch):
    from autograder.judge.faults import InternalError

    monkeypatch.setattr(type(registry.get("example/axpy")), "result", lambda self, inputs: 1 / 0)
    with pytest.raises(InternalError, match="example/axpy: ZeroDivisionError"):
        apart("example/axpy", AXPY)


def test_a_plan_is_held_to_the_limits_of_the_target():
    limits = engine_target().limits
    assert crossing.plan.checked_plan((1, 1024, 48 * 1024), "plan", limits) == ((1,), (1024,), 48 * 1024)
    small = replace(limits, max_threads_per_block=512, max_static_shared=16 * 1024)
    for value, limit in ((1, 1024), "512"), ((1, 512, 16 * 1024 + 1), "16,384"):
        with pytest.raises(crossing.Refused, match=f"the limit is {limit}"):
            crossing.plan.checked_plan(value, "plan", small)
