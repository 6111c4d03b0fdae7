"""Attacks on the boundary between student, executor and judge, each through three real
processes: the stated score and no more.

`corpus/boundary/<set>/<task>/<kind>_<name>.py`: the docstring begins with the points
that the submission must get.
"""

from dataclasses import replace

import crossing_examples  # noqa: F401 - registers the tasks example/...
import pytest
from corpus_files import attacks, launcher_here, stated

from autograder.judge.attempts import NotebookStep, run_all
from autograder.sandbox import Limits
from warplab.tasks import registry, scoring

LIMITS = Limits(step_seconds=15, total_seconds=60, memory_mib=3072)
BYSTANDER = """
def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
"""


NEEDS_WALLS = {"cheat_asks_the_reference"}


@pytest.fixture(scope="module")
def launcher():
    return launcher_here()


def submitted(path, launcher):
    """{task: Report} of one file as a notebook: its cell, its task, then another task's
    right answer and test.
    """
    points, source = stated(path)
    name = "/".join(path.parts[-3:-1])
    steps = [NotebookStep("attack", "cell", source=source), NotebookStep("attack-test", "task", task=name)]
    if name != "ps01/launch_plan":
        steps += [
            NotebookStep("honest", "cell", source=BYSTANDER),
            NotebookStep("honest-test", "task", task="ps01/launch_plan"),
        ]
    cases = {step.task: registry.get(step.task).cases(3) for step in steps if step.kind == "task"}
    limits = replace(LIMITS, step_seconds=4) if path.stem == "cheat_never_ends" else LIMITS  # it takes all
    run = run_all(steps, cases, launcher, limits)
    return (
        points,
        {task: scoring.judge(registry.get(task), cases[task], run.outcomes[task]) for task in cases},
        run,
    )


@pytest.mark.slow
@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", attacks("boundary"))
def test_an_attack_gets_the_points_of_the_honest_work_in_it(path, launcher):
    if path.stem in NEEDS_WALLS and launcher.isolation.startswith("unsafe"):
        pytest.skip(f"needs a sandbox, and this machine has none: {launcher.isolation}")
    if "triton" in path.stem:
        pytest.importorskip("triton")
    points, reports, _ = submitted(path, launcher)
    name = "/".join(path.parts[-3:-1])
    told = [(line.title, line.points, line.reason) for line in reports[name].lines]
    assert reports[name].score == pytest.approx(points, abs=0.05), told
    assert all(
        type(line.points) is float and 0 <= line.points <= line.max and line.reason
        for line in reports[name].lines
    )
    if name != "ps01/launch_plan":
        assert reports["ps01/launch_plan"].score == 15, "another task of the same notebook lost points"
