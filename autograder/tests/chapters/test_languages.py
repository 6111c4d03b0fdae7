"""The table of three languages: what it counts, against counts by hand, and what it refuses."""

import re

import pytest
from conftest import ROOT

from warplab.figures.languages import PROBLEMS, side_by_side
from warplab.tasks import registry

triton = pytest.importorskip("triton", reason="Triton's wheels are for Linux")
import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.slow


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_known_kernels_are_right(name):
    table = side_by_side(name)  # it refuses a wrong result
    assert list(table.profiles) == ["numba", "CUDA C++"] and "registers a thread" in str(table)


def test_each_task_of_set_12_stands_beside_the_two_other_languages():
    notebook = (ROOT / "exercises" / "ps12" / "ps12_languages.ipynb").read_text()
    shown = {
        entry
        for name, entry in re.findall(r'side_by_side\(\\"(\w+)\\", (\w+)\)', notebook)
        if name in PROBLEMS
    }
    assert shown == {task.entry for task in map(registry.get, registry.names("ps12"))}


def test_of_several_launches_counts_are_added_and_a_block_is_the_largest():
    rows = dict(side_by_side("layer_norm_backward").rows())
    assert rows["launches"] == [2, 2] and rows["blocks"] == [256 + 2] * 2
    # x and dy are 256 x 32 sectors each: twice by row, once by column, and gamma, mean and rstd on top
    arrays = 3 * 2 * 256 * 32
    assert all(arrays <= sectors <= 1.6 * arrays for sectors in rows["sectors read"])
    assert rows["threads a block"] == [128, 128] and rows["shared bytes a block"] == [512, 512]


def test_counts_by_hand_and_what_is_refused():
    table = side_by_side("vector_add", lambda x, y, out, n: add[(10,)](x, y, out, n, BLOCK=1024))
    rows = dict(table.rows())
    # 10,000 numbers are 312.5 warps with a number a lane, and 78.125 with four; half a warp is a request too
    assert rows["load requests"] == [626, 626, 158] and rows["sectors read"] == [2500] * 3
    assert rows["blocks"] == [79, 79, 10] and "shared bytes a block" not in rows
    html = table._repr_html_()
    assert "2,500" in html and html.count('<th scope="col">') == 3
    with pytest.raises(ValueError, match="Triton: `out` is not the result yet"):
        side_by_side("vector_add", lambda x, out, n: add[(10,)](x, x, out, n, BLOCK=1024))
    with pytest.raises(ValueError, match="no `z` here; the function may ask for x, y, out, n, device"):
        side_by_side("vector_add", lambda z: None)
    with pytest.raises(ValueError, match="and the function launched none"):
        side_by_side("vector_add", lambda x: None)
    with pytest.raises(ValueError, match="'sort' is not compared here"):
        side_by_side("sort")
