"""What is said of wrong values is exactly so: all wrong places and no others, or every value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplab.tasks.compare import difference
from warplab.tasks.wrong_places import places

GRID = ((3, 3, 1), (16, 16, 1))  # the smallest for 40 x 48
LINE = ((4, 1, 1), (256, 1, 1))  # for 1,000
IMAGE = np.random.default_rng(0).random((40, 48)).astype(np.float32) + 1
SQUARE, NUMBERS = IMAGE[:, :40].copy(), np.arange(1000, dtype=np.float32) ** 1.5 + 1


def told(got, expected, launch=None):
    return difference("out", np.ascontiguousarray(got), expected, 1e-6, None, launch)


SETS = {
    "all of column 0": (IMAGE, np.s_[:, 0]),
    "all of row 39, the last one": (IMAGE, np.s_[39]),
    "every 4th column, from 0 on": (IMAGE, np.s_[:, ::4]),
    "every row from 32 on": (IMAGE, np.s_[32:]),
    "every column up to 3": (IMAGE, np.s_[:, :4]),
    "the rows 3 to 5": (IMAGE, np.s_[3:6]),
    "the last block, from [32, 32] on": (IMAGE, np.s_[32:, 32:]),
    "the last block's 232 places, from [768] on": (NUMBERS, np.s_[768:]),
    "all blocks but the first": (NUMBERS, np.s_[256:]),
    "every 32nd place, from [31] on": (NUMBERS, np.s_[31::32]),
    "everything from [700] on": (NUMBERS, np.s_[700:]),
    "everything up to [9]": (NUMBERS, np.s_[:10]),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_wrong_places_has_its_name(name):
    expected, where = SETS[name]
    got = expected.copy()
    got[where] = -1
    assert f"places, {name}; first at [" in told(got, expected, GRID if expected.ndim == 2 else LINE)


def test_the_border_the_diagonal_and_the_triangles_have_names():
    border, diagonal = np.ones((40, 40), bool), np.eye(40, dtype=bool)
    border[1:-1, 1:-1] = False
    assert places(border) == "the border: the first and last rows and columns"
    assert places(diagonal) == "the diagonal" and places(~diagonal) == "all but the diagonal"
    assert places(np.triu(np.ones((40, 40), bool), 1)) == "everything above the diagonal"


@pytest.mark.parametrize(
    "name, got, expected",
    [
        ("it is the transpose of what is expected", SQUARE.T, SQUARE),
        ("its rows stand upside down", IMAGE[::-1], IMAGE),
        ("its rows run backwards", IMAGE[:, ::-1], IMAGE),
        ("it is the wrong way round", NUMBERS[::-1], NUMBERS),
        ("every value stands one too far on, along axis 1", np.roll(IMAGE, 1, 1), IMAGE),
        ("every value stands one too early", np.roll(NUMBERS, -1), NUMBERS),
        ("each wrong value is 1/9 times what is expected", IMAGE / 9, IMAGE),
        ("each wrong value is 255 times what is expected", IMAGE * 255, IMAGE),
        ("each wrong value is 2 too large", NUMBERS + 2, NUMBERS),
    ],
)
def test_what_the_values_are_has_a_name(name, got, expected):
    assert f", {name}; first at [" in told(got, expected)


def test_blocks_are_named_only_where_the_grid_is_the_smallest_that_covers():
    got = NUMBERS.copy()
    got[768:] = -1
    assert "everything from [768] on" in told(got, NUMBERS, ((8, 1, 1), (256, 1, 1)))


def test_nothing_is_said_where_one_place_more_or_less_is_wrong():
    for where in ([0, 1, 2, 4], [0, 2, 3, 7]):
        got = NUMBERS.copy()
        got[where] = -1
        assert "4 of 1,000 places; first at [0]" in told(got, NUMBERS, LINE)


@given(st.lists(st.booleans(), min_size=12, max_size=12).filter(lambda bits: any(bits) and not all(bits)))
def test_a_name_belongs_to_one_set_of_places(bits):
    """No two sets of 12 places share a name, so that the name can be believed."""
    for shape in ((12,), (3, 4)):
        wrong = np.reshape(bits, shape)
        name = places(wrong)
        if name:
            assert NAMED.setdefault((shape, name), bits) == bits


NAMED: dict = {}


@given(st.integers(2, 9), st.integers(0, 30), st.integers(40, 200))
def test_every_kth_place_is_found_whatever_k_is(step, first, size):
    wrong = np.zeros(size, bool)
    wrong[first::step] = True
    if np.count_nonzero(wrong) > 2:
        suffix = "th" if step > 3 else ("nd", "rd")[step - 2]
        assert places(wrong) == f"every {step}{suffix} place, from [{first}] on"
