"""What a student is told about a kernel that numba does not take."""

import linecache

import numpy as np
import pytest
from numba import cuda, float32

from warplab import crossing

SLIPS = {
    "return x[0]": "a kernel returns nothing: write the result into one of its arrays (line 3 of the cell)",
    "y[0] = x @ x": "a kernel has no `@` and no dot for arrays",
    "y[:] = x[:]": "a kernel cannot make a list or a new array, and adding or copying slices makes one: use "
    "single numbers, in a loop (line 3 of the cell)",
    "y[0] = (x * x).sum()": "a kernel cannot make a list or a new array",
    "seen = [1, 2]; y[0] = seen[0]": "a kernel cannot make a list or a new array",
    "t = cuda.shared.array(32); y[0] = t[0]": "a shared or local array needs a type as well as a shape",
    "t = cuda.shared.array(x.size, float32); y[0] = t[0]": "the shape of a shared or local array must be "
    "constants",
    "y[0] = X[0]": "NameError: name 'X' is not defined",
    "y[0] = return_value": "NameError: name 'return_value' is not defined",
    "y[0] = x[0, 0]": "a kernel cannot do `getitem(array(float32, 1d, C), UniTuple(Literal[int](0) x 2))`",
}


@pytest.mark.parametrize("body", SLIPS)
def test_a_slip_in_a_kernel_is_told_in_words(body):
    source, name = f"@cuda.jit\ndef kernel(x, y):\n    {body}\n", "<a student's cell>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    namespace = {"cuda": cuda, "float32": float32}
    exec(compile(source, name, "exec"), namespace)
    with pytest.raises(Exception) as raised:
        namespace["kernel"][1, 32](np.zeros(32, np.float32), np.zeros(32, np.float32))
    assert SLIPS[body] in crossing.explain(raised.value)


def test_an_import_error_of_the_students_own_stays_what_it_is():
    assert crossing.explain(ImportError("No module named 'cupy'")) == "ImportError: No module named 'cupy'"
