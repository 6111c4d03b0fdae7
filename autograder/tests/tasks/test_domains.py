"""What a task may be asked for is declared once: its words stand in the text, its corners are drawn."""

import math
import re

import numpy as np
import pytest
from corpus_files import SOLUTIONS
from statements import statement, words
from test_tasks import NAMES, SETS

from warplab.crossing.outcome import Outcome
from warplab.tasks import registry
from warplab.tasks.declaration import DriverTask, KernelTask, Task
from warplab.tasks.domain import BEYOND, BLOCK, DRAWERS, Choice, Values, Whole, places
from warplab.tasks.ps13 import TrainingRun

BATCH = "ps13/cross_entropy", "batch"  # rows by another name
OPENING = (  # of each set
    "Unless a task says otherwise, sizes are whole numbers from 1 on.",
    "Inputs must stay as they are: a changed one costs the row.",
)


def missing(task):
    """Words of a task's domain that its statement has not."""
    text = words(statement(task.name))
    said = [phrase for axis in task.domain.values() for phrase in axis.words]
    return [phrase for phrase in said if not re.search(re.escape(phrase).replace(r"\(s\)", "s?"), text)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_task_declares_its_domain_in_the_words_of_its_statement_or_says_why_it_has_none(name):
    task = registry.get(name)
    assert bool(task.domain) != bool(task.no_domain), (
        "declare `domain`, or say in `no_domain` why it has none"
    )
    assert missing(task) == []


@pytest.mark.parametrize("problem_set", SETS)
def test_every_opening_says_what_holds_for_all_tasks(problem_set):
    opening = SOLUTIONS[problem_set].read_text(encoding="utf-8").partition("# ## ")[0]
    assert " ".join(OPENING) in words(opening)


@pytest.mark.parametrize("name", NAMES)
def test_the_corners_of_a_domain_belong_to_rows_and_their_references_can_be_computed(name):
    task = registry.get(name)
    cases = [case for seed in range(8) for case in task.corner_cases(np.random.default_rng(seed))]
    assert len(cases) >= 8 * task.corners * bool(task.domain) * 0.8
    for case in cases:
        comparing = task.item(case.item).kind == "correctness" or len(task.items) == 1
        assert comparing, "a corner is compared; it is counted only where the task has no other row"
        assert all(np.all(np.asarray(limit) >= 0) for limit in task.expected(case)[1].values())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_size_with_a_stated_limit_that_no_check_can_afford_reaches_it_in_a_fixed_case(name):
    task = registry.get(name)
    sizes = [axis for axis in task.domain.values() if isinstance(axis, Whole)]
    limits = {axis.most for axis in sizes if axis.most is not None and axis.upto < axis.most}
    inputs = (value for case in task.cases(1) for value in case.inputs.values())
    assert limits <= {length for array in inputs if isinstance(array, np.ndarray) for length in array.shape}


@pytest.mark.parametrize("name", NAMES)
def test_no_check_leaves_out_a_kind_of_contents_or_one_more_than_a_block_has_threads(name):
    task = registry.get(name)
    certain = {(key, value) for key, axis in task.domain.items() for value in axis.certain}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        corners = {(key, value) for key, axis in task.domain.items() for value in axis.corners(rng)}
        found = places(np.random.default_rng(seed), task.domain, task.corners, task.fits)
        assert certain & corners <= {corner for place in found for corner in place.items()}


def test_host_code_is_asked_for_one_number_more_than_a_block_has_threads():
    """Where its kernels are numba's or C++'s, and a size is no number of rows, which a grid goes along."""
    asked = set()
    for task in map(registry.get, NAMES):
        if isinstance(task, DriverTask) and not task.needs and not isinstance(task, TrainingRun):
            for key in task.domain.keys() - {"first", "rows", "sequences", "spare", "step"}:
                axis = task.domain[key]
                if isinstance(axis, Whole) and axis.most is None and (task.name, key) != BATCH:
                    assert BLOCK + 1 in axis.corners(np.random.default_rng(0)), (task.name, key)
                    asked.add(task.name)
    assert {"ps03/scan", "ps13/linear", "ps13/embedding"} <= asked


def fits_tiles(task, case, side, drawn):
    """Whether each side of its arrays that differs among the cases is a multiple of `side`."""
    return not any(length % side for key, length in sides(task, case).items() if len(drawn[key]) > 1)


def sides(task, case):
    """{(name of an array, axis): length} of all arrays that a case passes in or wants back."""
    arrays = {key: value if isinstance(value, list) else [value] for key, value in case.inputs.items()}
    shapes = {(key, i): np.shape(one) for key, several in arrays.items() for i, one in enumerate(several)}
    if isinstance(task, KernelTask):
        shapes |= {key: shape for key, (shape, _) in task.result(case.inputs).items()}
    return {(key, axis): n for key, shape in shapes.items() for axis, n in enumerate(shape)}


@pytest.mark.parametrize("name", NAMES)
def test_who_is_wrong_wherever_a_size_fits_no_tile_keeps_no_more_than_what_the_engine_found_leaves(name):
    """Rows that count must count at such sizes, too, where they are worth most of the task."""
    task = registry.get(name)
    cases, judged = task.cases(0), [item for item in task.items if item.kind != "time"]
    if not any(item.kind == "structure" for item in judged):
        return
    drawn = {}
    for case in cases:
        for key, length in sides(task, case).items():
            drawn.setdefault(key, set()).add(length)
    for side in 16, 32:
        lost = {case.item for case in cases if not fits_tiles(task, case, side, drawn)}
        kept = math.fsum(item.points for item in judged if item.key not in lost)
        assert not lost or kept <= Task.keeps["task"] * math.fsum(item.points for item in judged), (
            f"only {sorted(lost)} have sizes that are no multiple of {side}"
        )


@pytest.mark.sampled(36)
@pytest.mark.parametrize("name", NAMES)
def test_an_input_that_changes_costs_the_row_in_every_task(name):
    task = registry.get(name)
    for case in task.cases(0):
        right = {one: np.asarray(value) for one, value in task.expected(case)[0].items()}
        alone = task.wrong_result(case, Outcome(case.name, right))
        changed = task.wrong_result(case, Outcome(case.name, right, modified=(task.arguments[0],)))
        assert changed and (alone or f"`{task.arguments[0]}` was changed; it must stay as it was" in changed)


def test_whole_numbers_have_their_least_their_most_and_what_lies_beside_powers():
    drawn = {n for seed in range(200) for n in Whole(0, upto=70_000).corners(np.random.default_rng(seed))}
    assert {0, 1, 2, 3, 31, 32, 33, 257, 1025, 65_535, 65_536, 65_537} <= drawn
    assert set(BEYOND) <= set(Whole(upto=70_000).corners(np.random.default_rng(0)))
    assert {n % 4 for n in Whole(4, multiple=4).corners(np.random.default_rng(0))} == {0}
    few = {n for seed in range(50) for n in Whole(2, 8).corners(np.random.default_rng(seed))}
    assert {2, 8} <= few <= set(range(2, 9))


def test_every_corner_comes_up_and_pairs_are_crossed():
    domain = {"a": Choice(*range(4)), "b": Choice(*range(4)), "c": Choice("x", "y")}
    found = places(np.random.default_rng(0), domain, 16)
    assert {place["a"] for place in found[:4]} == {place["b"] for place in found[:4]} == set(range(4))
    assert len({(place["a"], place["b"]) for place in found}) > 12
    few = places(np.random.default_rng(0), domain, 9, lambda place: place["a"] != place["b"])
    assert few and all(place["a"] != place["b"] for place in few)


@pytest.mark.parametrize("kind", DRAWERS)
def test_what_stands_in_an_array_is_finite_and_of_its_kind(kind):
    drawn = Values("float32", kind).draw(np.random.default_rng(0), kind, (3, 40))
    assert drawn.dtype == np.float32 and drawn.shape == (3, 40) and np.isfinite(drawn).all()
    of_its_kind = {
        "below -1e9": drawn < -1e9,
        "subnormal": np.abs(drawn) < np.finfo(np.float32).tiny,
        "largest": np.abs(drawn) > 3e38,
        "equal": drawn == drawn[0, 0],
        "falling": np.diff(drawn, axis=1) <= 0,
    }
    assert np.all(of_its_kind.get(kind, True))
