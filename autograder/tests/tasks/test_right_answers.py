"""The references and the right answers of the corpus earn everything."""

from itertools import zip_longest

import pytest
from corpus_files import Entry, cells_for, entries_of, solution_of
from test_tasks import NAMES, SETS

from warplab.tasks import registry, scoring
from warplab.tasks.feedback import report_on


def submissions():
    """Right answers as students hand them in, one to a task: of each set the references, then as many
    notebooks as it takes to try all right answers of the corpus. `make test` tries the first two.

    Ids have "::" behind the set, where xdist's loadscope cuts: each set may run in another process.
    """
    for problem_set in SETS:
        names = registry.names(problem_set)
        yield pytest.param([Entry(name, "reference") for name in names], id=f"{problem_set}::reference")
        right = [[one for one in entries_of(name) if one.kind == "correct"] for name in names]
        columns = [sorted(ones, key=lambda one: one.in_full_alone) for ones in right]
        for number, row in enumerate(zip_longest(*columns)):
            marks = pytest.mark.full if number else ()
            yield pytest.param([one for one in row if one], marks=marks, id=f"{problem_set}::right-{number}")


@pytest.mark.slow
@pytest.mark.parametrize("answers", list(submissions()))
def test_right_answers_earn_everything_behind_the_walls(answers):
    from autograder.judge.attempts import NotebookStep, run_all
    from autograder.sample_class.run import launcher_for_our_own
    from autograder.sandbox import Limits

    cases, steps = {one.task: registry.get(one.task).cases(0) for one in answers}, []
    for one in answers:
        cells = cells_for(one.task) if one.name == "reference" else one.cells()
        steps += [NotebookStep(f"{one.id}, cell {n}", "cell", text) for n, text in enumerate(cells)]
        steps.append(NotebookStep(one.id, "task", task=one.task))
    run = run_all(steps, cases, launcher_for_our_own(), Limits.of(200))
    assert not run.reason, run.reason
    for one in answers:
        task = registry.get(one.task)
        report = scoring.judge(task, cases[one.task], run.outcomes[one.task])
        points = task.points_for() if one.name == "reference" else one.points
        told = one.id, report.as_dict()["lines"], run.errors
        assert report.score == pytest.approx(points, abs=0.05), told


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_solution_earns_every_point_in_a_notebook(name):
    report = report_on(name, *solution_of(name), seed=20_261_121)
    assert report.score == registry.get(name).points_for(), report.as_dict()["lines"]
