"""The table of three languages: what it counts, against counts by hand, and what it refuses."""

import pytest

from warplab.figures.languages import PROBLEMS, side_by_side

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
    with pytest.raises(ValueError, match="one Triton kernel is compared, and the function launched 0"):
        side_by_side("vector_add", lambda x: None)
    with pytest.raises(ValueError, match="'sort' is not compared here"):
        side_by_side("sort")
