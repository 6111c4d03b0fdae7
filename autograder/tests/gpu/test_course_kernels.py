"""Every kernel of the course on a real GPU and on the engine: the solutions' on the
tasks' own cases, the chapters' as the pages run them.

Both must give the same arrays, integers exactly and floats to rounding (fused
operations and the order of atomics differ).
"""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import warplab
from warplab import crossing
from warplab.crossing.outcome import Outcome
from warplab.tasks import registry

sys.path.insert(0, str(Path(__file__).parents[1]))
from corpus_files import SOLUTIONS, solution_of

CHAPTERS = sorted(
    p
    for p in (Path(__file__).parents[3] / "chapters").glob("[0-9][0-9]-*.md")
    if "warplab.profile(" in p.read_text(encoding="utf-8")
)
KERNEL_TASKS = [
    name
    for problem_set in sorted(SOLUTIONS)
    for name in registry.names(problem_set)
    if registry.get(name).crossing in crossing.EXECUTED and registry.get(name).needs != "triton"
]
OF_PROFILE = set(inspect.signature(warplab.profile).parameters)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)


class OnDevice:
    """The `device` of a driver task, on the machine's own device: what the Recorder
    writes down, done at once.
    """

    def __init__(self):
        self.held = []

    def empty(self, shape, dtype):
        return cuda.device_array(shape, dtype)

    def zeros(self, shape, dtype):
        return cuda.to_device(np.zeros(shape, dtype))

    def fill(self, array, value):
        array.copy_to_device(np.full(array.shape, value, array.dtype))

    def copy(self, target, source):
        target.copy_to_device(source)

    def launch(self, kernel, grid, block, *arguments, shared=0):
        kernel[grid, block, 0, shared](*arguments)


def launched(task, case, entry, plan):
    """{output: array} of a solution launched by numba itself, on whatever device this machine has."""
    outputs, inputs = crossing.kernel.judges_buffers(task, case)
    arrays = {name: crossing.values.filled(a) for name, a in (inputs | outputs).items()}
    given = {name: warplab.tensor_map(arrays[of], *how) for name, (of, *how) in task.maps.items()} | arrays
    arguments = [given.get(name, case.inputs.get(name)) for name in task.arguments]
    if task.crossing == "driver":
        on_device = {name: cuda.to_device(a) for name, a in arrays.items()}
        entry(
            *(
                OnDevice() if name == "device" else on_device.get(name, case.inputs.get(name))
                for name in task.arguments
            )
        )
        return {name: on_device[name].copy_to_host() for name in outputs}
    shape = plan(**task.plan_arguments(case.inputs)) if task.plan_entry else task.plan(case.inputs)
    grid, block, shared = crossing.plan.checked_plan(shape, task.entry, warplab.device().limits)
    entry[grid, block, 0, shared](*arguments)
    return {name: arrays[name] for name in outputs}


def agree(one, other, what, compared=True):
    """compared: which elements, where a task leaves some to rounding."""
    one, other = (np.where(compared, a, np.zeros_like(a)) for a in (one, other))
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=what)
    else:
        np.testing.assert_array_equal(one, other, err_msg=what)


def on_this_device(value):
    """A copy of an argument where this machine's kernels can reach it; what is no array stays."""
    if hasattr(value, "copy_to_host"):
        return cuda.to_device(value.copy_to_host())
    if hasattr(value, "untyped_storage"):
        return value.detach().clone().to(warplab.torch_device)
    return np.array(value, order="K") if isinstance(value, np.ndarray) else value


def on_host(value):
    """An argument's numbers; None of what is no array."""
    if hasattr(value, "untyped_storage"):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype.is_floating_point else value.numpy()
    value = value.copy_to_host() if hasattr(value, "copy_to_host") else value
    return value if isinstance(value, np.ndarray) else None


def compare(name):
    """Each case: the engine, through PTX and the executor, against a launch by numba;
    both against the reference.
    """
    if name.startswith("ps15/") and warplab.device().target.capability != (9, 0):
        pytest.skip("Hopper's instructions")
    task, (entry, plan) = registry.get(name), solution_of(name)
    compared = 0
    for case in task.cases():
        engine, here = crossing.run_here(task, case, entry, plan).outputs, launched(task, case, entry, plan)
        assert task.wrong_result(case, Outcome(case.name, here)) is None, f"{name}, {case.name}"
        assert task.wrong_result(case, Outcome(case.name, engine)) is None, f"{name}, {case.name}: the engine"
        tolerance = task.expected(case)[1]
        for output, array in here.items():
            sure = np.isfinite(tolerance.get(output, 0.0))
            agree(array, np.asarray(engine[output]), f"{name}, {case.name}: {output}", sure)
        compared += 1
    assert compared > 0


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNEL_TASKS)
def test_a_solution_computes_on_the_gpu_what_it_does_on_the_engine(name):
    compare(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNEL_TASKS[:: max(1, len(KERNEL_TASKS) // 4)])
def test_a_solution_that_numba_launches_agrees_with_the_executor_s_run(name):
    """The same comparison where there may be no GPU: PTX through the executor against numba's own launch."""
    compare(name)


def run_chapter(path, monkeypatch):
    """Run a chapter's cells; each kernel that it profiles (on the engine) is launched
    once more on this machine's device. Returns their names.
    """
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.chdir(path.parent)
    seen, profile = set(), warplab.profile

    def spy(launcher, *args, **options):
        before = [on_this_device(value) for value in args]
        counted = profile(launcher, *args, **options)
        if (
            not counted.warnings and counted.sampled is None
        ):  # a race has no one answer, and a sample leaves its arrays alone
            launcher(*before, **{name: value for name, value in options.items() if name not in OF_PROFILE})
            for mine, engines in zip(map(on_host, before), map(on_host, args), strict=True):
                if mine is not None:
                    agree(mine, engines, f"{path.stem}: {counted.kernel}")
            seen.add(counted.kernel)
        return counted

    monkeypatch.setattr(warplab, "profile", spy)
    monkeypatch.setattr(sys.modules["warplab.simt.profile"], "profile", spy)
    text, namespace = path.read_text(encoding="utf-8"), {"__name__": "chapter"}
    for cell in CELL.finditer(text):
        source = re.sub(r"^(:[a-z]+:.*\n)+|^%.*$", "", cell[1], flags=re.M)
        start = text[: cell.start()].count("\n") + 1
        exec(compile("\n" * start + source, str(path), "exec"), namespace)
    return seen


@pytest.mark.gpu
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_s_kernels_agree(path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the chapters draw")
    seen = run_chapter(path, monkeypatch)
    print(f"\n{path.stem}: {', '.join(sorted(seen))}")
    assert seen


def test_the_spy_of_the_chapters_notices_a_kernel_that_computes_something_else(tmp_path, monkeypatch):
    page = tmp_path / "99-made-up.md"
    cell = (
        "```{code-cell} ipython3\nimport numpy as np, warplab\nfrom numba import cuda\n@cuda.jit\ndef "
        "one(x):\n    x[cuda.grid(1)] = 1\nx = np.zeros(32)\nwarplab.profile(one[1, 32], x)\n```\n"
    )
    page.write_text(cell)
    assert run_chapter(page, monkeypatch) == {"one"}
    real = agree
    monkeypatch.setattr(
        sys.modules[__name__], "agree", lambda mine, engines, what: real(mine + 1, engines, what)
    )
    with pytest.raises(AssertionError, match="99-made-up: one"):
        run_chapter(page, monkeypatch)
