"""A notebook whose code ends its own process: each end costs one step, what was earned
stays, and every case has an outcome.
"""

import pytest
from grading import run_notebook

from autograder.judge.attempts import MAX_ATTEMPTS, NotebookStep, run_all
from autograder.sandbox import Limits, Unsafe
from warplab.tasks import registry

NAME, OTHER = "ps01/launch_plan", "ps01/time_it"
RIGHT = """
def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
"""
LEAVES = "import os\nos._exit(0)"
LIMITS = Limits(step_seconds=10)


def run(*steps):
    return run_notebook(steps, Unsafe(), LIMITS)


@pytest.mark.slow
def test_what_was_earned_before_the_process_ended_stays_earned():
    done, scores = run(RIGHT, NAME, LEAVES, "time_it = None", OTHER)
    assert scores == {NAME: 15, OTHER: 0}
    assert (done.status, done.reason) == ("crashed", "2: the code ended its own process (exit status 0)")
    assert done.errors == {"2": "the code ended its own process (exit status 0)"}


@pytest.mark.slow
def test_a_cell_that_ends_the_process_is_left_out_of_the_next_attempt():
    done, scores = run(LEAVES, RIGHT, NAME)
    assert scores == {NAME: 15}


@pytest.mark.slow
def test_a_name_that_no_cell_defined_is_told_with_the_error_of_the_cell_that_should_have():
    done, _ = run("launch_plan = 1 / 0", NAME)
    assert done.outcomes[NAME][0].error.startswith(
        "`launch_plan` does not exist: its cell stopped with ZeroDivisionError"
    )
    assert run("pass", NAME)[0].outcomes[NAME][0].error == "`launch_plan` does not exist: no cell defines it"


@pytest.mark.slow
def test_a_notebook_that_only_ends_is_given_up():
    done, scores = run(*[LEAVES] * (MAX_ATTEMPTS + 1), RIGHT, NAME)
    assert scores == {NAME: 0}
    assert f"gave up after {MAX_ATTEMPTS} crashes or timeouts" in done.reason
    assert "not reached" in done.outcomes[NAME][0].error


@pytest.mark.parametrize("task, roles", [(NAME, ["student"]), ("ps01/grayscale", ["student", "executor"])])
def test_an_executor_comes_up_beside_the_student_where_a_task_may_need_one_and_all_are_closed(task, roles):
    started = []

    class Listed(Unsafe):
        def launch(self, role, *rest):
            started.append((role, super().launch(role, *rest)))
            return started[-1][1]

    run_all((NotebookStep("t", "task", task=task),), {task: registry.get(task).cases(3)}, Listed(), LIMITS)
    assert [role for role, _ in started] == roles
    assert all(running.lifeline.fileno() == -1 and running.channel.fileno() == -1 for _, running in started)


@pytest.mark.slow
def test_nothing_is_left_of_the_folders_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("open('left', 'w').write('x' * 1000)\n" + RIGHT, NAME)
    assert list(tmp_path.iterdir()) == []
