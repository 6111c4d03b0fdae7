"""Kernels that try to gain time, through student's process, executor and judge: what each gets for it.

`corpus/timed/<set>/<task>/<kind>_<name>.py`: the docstring begins with the points of the timed row on CUDA,
of an attack with the most that it gets.
Without a GPU the same files go the same way and the same samples are checked, but the clock is a fake: each
sample is one run on the engine and said to take a millisecond. So what is decided by answers is decided here
too, and what is decided by time alone waits for a GPU.
"""

import numpy as np
import pytest
from conftest import TESTS
from corpus_files import attacks, cells_for, launcher_here, stated, timed_tasks
from crossing_examples import Axpy

import warplab
from autograder.judge import attempts, judge
from autograder.judge.attempts import NotebookStep, run_all
from autograder.judge.budget import Budget, Lost
from autograder.judge.process import NotStarted, Process
from autograder.judge.timed_rows import gpu_problem, orders_of, time_case
from autograder.sandbox import Limits, Unsafe
from autograder.sandbox.messages import ROOM, Done, Prepare, RunOrder, Sample, Sampled
from warplab import crossing
from warplab.crossing import Order, Refused
from warplab.crossing.outcome import Outcome
from warplab.crossing.timed import measure
from warplab.tasks import registry, scoring
from warplab.tasks.declaration import COPY, task
from warplab.tasks.rubric import Bound, Case, Item

CORPUS = sorted((TESTS / "corpus" / "timed").glob("*/*/*.py"))
BY_TIME_ALONE = {"cheat_spins_to_heat"}
LIMITS = Limits(step_seconds=60, total_seconds=300)


@task("example/stream", points=10)
class Stream(Axpy):
    """out = alpha * x + y once more, with n handed over, and timed against a copy of as many bytes."""

    arguments = ("n", "alpha", "x", "y", "out")
    items = (Item("right", 6, title="any length"), Item("time", 4, "time", title="against a copy"))
    yardstick = COPY
    # 201 MB move, and eight sets of inputs fit into one message; no multiple of 128, so that there is mapped
    # memory behind each array
    timed_length = (1 << 24) - 71

    def case(self, rng, item, n):
        x, y = (rng.random(n, dtype=np.float32) for _ in range(2))
        return Case(f"{item}, {n}", {"n": n, "alpha": float(rng.random()), "x": x, "y": y}, item)

    def make_cases(self, rng):
        return [self.case(rng, "right", 1), self.case(rng, "right", int(rng.integers(100, 900)))]

    def make_timed(self, rng):
        return [self.case(rng, "time", self.timed_length)]

    def bounds(self, inputs):
        return {"time": Bound("time.ratio_low", 1.5, 4.0, "times a copy's time")}


@pytest.fixture(scope="module")
def launcher():
    return launcher_here()


def on_the_engine(task, case, order, launcher, limits):
    """In place of time_case: the judge's own `measure` over the executor's answers; a sample takes 1 ms."""
    sets = case.memo["sets"]
    orders = orders_of(sets, order)
    with Process(launcher, "executor", Budget(limits)) as executor:

        def sample(number):
            executor.begin_step(limits.step_seconds)
            done = executor.ask(RunOrder(orders[number].plain()), (Done,))
            if done.error:
                raise Refused(done.error)
            return 1e-3, 1980.0, done.outputs

        try:
            counters = measure(task, sets, sample, lambda number: (1e-3, 1980.0, {}), 4e12, lambda: 0.0)
            return Outcome(case.name, sample(sets.index(case))[2], counters)
        except Refused as refused:
            return Outcome(case.name, error=str(refused))


def timed_rows(name, sources, launcher, monkeypatch):
    """(the Lines of the rows that are timed, the Run) of a task whose answer is in these cells."""
    monkeypatch.setattr(crossing, "can_time", lambda: True)
    cases = judge.make_cases(type("Assignment", (), {"tasks": staticmethod(lambda: [name])}), 3)
    cells = [NotebookStep(f"cell-{i}", "cell", source=source) for i, source in enumerate(sources)]
    run = run_all([*cells, NotebookStep("cells-test", "task", task=name)], cases, launcher, LIMITS)
    return scoring.judge(registry.get(name), cases[name], run.outcomes[name]).part("time").lines, run


def timed_row(path, launcher, monkeypatch):
    """(points stated, the timed row's Line, the Run) of one file."""
    points, source = stated(path)
    (line,), run = timed_rows("/".join(path.parts[-3:-1]), [source], launcher, monkeypatch)
    return points, line, run


@pytest.mark.gpu
@pytest.mark.parametrize("walls", [False, True], ids=["with limits alone", "behind walls"])
def test_an_executor_times_something_on_this_gpu(walls, launcher):
    """If only the first can, a wall is in the way; if neither, CUDA was begun before the fork."""
    assert gpu_problem(launcher if walls else Unsafe()) == ""


@pytest.mark.slow
@pytest.mark.skipif(warplab.device().kind == "cuda", reason="here the yardstick runs")
def test_a_yardstick_that_does_not_run_is_the_machine_s_fault_and_says_what_was_raised(launcher):
    """There is no CUDA here, as there is none behind walls that keep it out."""
    task = Stream()
    (case,) = task.make_timed(np.random.default_rng(0))
    with pytest.raises(
        NotStarted, match=r"could not run \['torch\.\w+', .*\]: \w+Error: .*autograder doctor"
    ):
        time_case(task, case, Order("sm_90", (), {}, (), ()), launcher, LIMITS)
    assert "Error: " in gpu_problem(launcher)


@pytest.mark.slow
def test_an_executor_that_fails_says_with_what(launcher):
    with Process(launcher, "executor", Budget(LIMITS)) as executor:
        executor.begin_step(LIMITS.step_seconds)
        with pytest.raises(Lost, match="^AssertionError"):
            executor.ask(Sample(0), (Sampled,))


@pytest.mark.gpu
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_kernel_gets_the_stated_points_for_its_time(path, launcher, monkeypatch):
    points, line, _ = timed_row(path, launcher, monkeypatch)
    print(f"\n  {path.stem}: {line.points:g} of {line.max:g}, {line.reason}")
    if path.stem.startswith("correct"):
        assert line.points == pytest.approx(points, abs=0.05), line.reason
    else:  # an attack may be slow besides
        assert line.points <= points + 0.05, line.reason


@pytest.mark.gpu
@pytest.mark.parametrize("name", timed_tasks())
def test_a_solution_earns_its_time_behind_the_walls(name, launcher, monkeypatch):
    lines, _ = timed_rows(name, cells_for(name), launcher, monkeypatch)
    for line in lines:
        print(f"\n  {name}: {line.points:g} of {line.max:g}, {line.reason}")
    assert all(line.points == line.max for line in lines)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("path", [one for one in attacks("timed") if one.values[0].stem not in BY_TIME_ALONE])
def test_what_the_answers_decide_is_decided_without_a_gpu_too(path, launcher, monkeypatch):
    if warplab.device().kind == "cuda":
        pytest.skip("here the device's own clock decides")
    monkeypatch.setattr(attempts, "time_case", on_the_engine)
    monkeypatch.setattr(Stream, "timed_length", 3001)
    points, line, run = timed_row(path, launcher, monkeypatch)
    assert line.points == points, line.reason
    assert points == 4 or any(
        sign in line.reason
        for sign in ("while it was timed: `out`", "out-of-bounds", "the limit is 67,108,864", "right result")
    ), line.reason


def test_the_results_of_a_sample_and_all_inputs_can_cross():
    header = 128  # of .npy
    assert 4 * Stream.timed_length + header <= ROOM[Sampled].arrays
    assert judge.TIMED_SETS * 2 * (4 * Stream.timed_length + header) <= ROOM[Prepare].arrays
