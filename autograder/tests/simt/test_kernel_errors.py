"""What a student is told about a kernel that numba does not take."""

import contextlib
import linecache
import math

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab import crossing
from warplab.crossing.kernel import compiled
from warplab.hardware.device import engine_target

SLIPS = {
    "return x[0]": "a kernel returns nothing: write the result into one of its arrays (line 3: `return x[",
    "y[0] = x @ x": "a kernel has no `@` and no dot for arrays",
    "y[:] = x[:]": "a kernel cannot make a list, a text or a new array, and adding or copying slices "
    "makes one: use single numbers, in a loop",
    "y[0] = (x * x).sum()": "a kernel cannot make a list, a text or a new array",
    "y[0] = np.zeros(3)[0]": "a kernel cannot make a list, a text or a new array",
    "seen = [1, 2]; y[0] = seen[0]": "a kernel cannot make a list, a text or a new array",
    "t = cuda.shared.array(32); y[0] = t[0]": "a shared or local array needs a type as well as a shape",
    "t = cuda.shared.array(x.size, float32); y[0] = t[0]": "the shape of a shared or local array must be "
    "constants",
    "y[0] = X[0]": "`X` is not defined (line 3: `y[0] = X[0]`)",
    "y[0] = return_value": "`return_value` is not defined (line 3: `y[0] = return_value`)",
    "y[0] = x[0, 0]": "an array of 1 dimension is given 2 indices (line 3: `y[0] = x[0, 0]`)",
    "y[0, 0] = 1": "an array of 1 dimension is given 2 indices",
    "y[0] = x[0.5]": "an index must be a whole number, and this one is a float",
    "y[0] = x": "one element cannot hold an array of 1 dimension: an index is missing on the right of the =",
    "y[0] = np.sqrt(x[0])": "a kernel has no `np.sqrt`, and `math.sqrt` does it to one number (line 3: `y[0]",
    "y[0] = x.max()": "a kernel cannot call `max` with an array of 1 dimension: take its elements one by one",
    "y[0] = np.linalg.norm(x)": "a kernel has no `@` and no dot for arrays, and no `np.linalg`",
    "y[0] = x.height": "an array has no `.height` in a kernel; it has shape, size, ndim and dtype",
    "y[0] = cuda.blockIdx.x * cuda.blockDim": "`*` does not go between a whole number and a size in three "
    "directions: take `.x`, `.y` or `.z` of it",
    "y[0] = x[0] if x else 1": "a condition needs one value, and this is an array of 1 dimension",
    "y[0] = host(x)": "`host` is a function of the host; a kernel calls functions with "
    "@cuda.jit(device=True) above them",
    "q = 1; q = (1, x[0]); y[0] = q": "an element of the array cannot hold a tuple",
    "y[0] = late\n    late = 1": "`late` has no value yet on this line (line 3: `y[0] = late`)",
    "y[0] = cuda.threadidx.x": "there is no `cuda.threadidx`; did you mean `cuda.threadIdx`? (line 3",
    "cuda.syncthread()": "there is no `cuda.syncthread`; did you mean `cuda.syncthreads`? (line 3",
    "cuda.atomic.add(y, 1.0)": "an atomic takes three things: the array, the index in it, and the value",
    "y[0] = math(3)": "`math` is a module and no function",
    'print(f"x is {x[0]}")': "a kernel makes and formats no texts; its `print` takes the parts one by one",
    'print("x is %f" % x[0])': "a kernel makes and formats no texts; its `print` takes the parts one by one",
    'print("x is {}".format(x[0]))': "a kernel makes and formats no texts; its `print` takes the parts",
    "print(x)": "a kernel prints numbers, and this is an array (line 3: `print(x)`)",
    "seen = {}; seen[1] = 2": "a kernel has no dictionaries and no sets: use arrays (line 3",
    "try: y[0] = x[0]\n    except ValueError: y[0] = 0": "a kernel has no `try`: ask with an `if`",
    "y[0] = twice(x[0])": "a device function of numba-cuda cannot call itself: write a loop",
    "outside[0] = x[0]": "an array from outside the kernel can only be read",
    "cuda.synchronize()": "`cuda.synchronize` is for the host; in a kernel `cuda.syncthreads()` waits",
    "y[0] = np.random.rand()": "a kernel has no `numpy.random.rand`: numba.cuda.random has generators for",
    "y[0] = math.comb(3, 2)": "a kernel has no `math.comb` (line 3: `y[0] = math.comb(3, 2)`)",
    "y[cuda.threadIdx] = 1": "an index must be a whole number, and this one is a size in three directions",
    "from pdb import set_trace; set_trace()": "a kernel cannot import, and no debugger stops in it",
    "x += 1": "a kernel has no `np.add` and no arithmetic with whole arrays",
}


@cuda.jit(device=True)
def twice(n):
    return n if n < 1 else 2 + twice(n - 1)


@pytest.mark.parametrize("body", SLIPS)
def test_a_slip_in_a_kernel_is_told_in_words(body):
    source, name = f"@cuda.jit\ndef kernel(x, y):\n    {body}\n", "<a student's cell>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    namespace = {"cuda": cuda, "float32": float32, "np": np, "math": math, "host": lambda x: x.nothing}
    namespace |= {"outside": np.zeros(3, np.float32), "twice": twice}
    exec(compile(source, name, "exec"), namespace)
    passed = [["float32", 1, "array"]] * 2
    with pytest.raises(crossing.Refused) as raised:
        compiled(namespace["kernel"], "kernel", passed, engine_target())
    told = crossing.explain(raised.value)
    assert told.startswith("does not compile: ") and SLIPS[body] in told


def test_a_launch_beside_the_check_is_told_in_the_same_words():
    @cuda.jit
    def kernel(x):
        x[0] = not_there  # noqa: F821

    with pytest.raises(Exception) as raised:
        kernel[1, 1](np.zeros(1, np.float32))
    assert "does not compile: `not_there` is not defined (line " in crossing.explain(raised.value)
    led, told = raised.value._render_traceback_()  # what IPython shows, in the place of numba's own frames
    assert "kernel[1, 1](" in led and told.startswith(
        "TypingError: does not compile: `not_there` is not defined"
    )


def test_a_call_with_too_few_arguments_and_records_that_are_not_aligned_are_told_in_words():
    @cuda.jit
    def kernel(x, n):
        x[0].b = n

    told = {
        "the number of arguments is 2 where it is defined, and 1 where it is called": (np.zeros(1),),
        "make the dtype with align=True": (np.zeros(1, [("a", np.int8), ("b", np.float64)]), 1.0),
        "an argument is an array of Python objects: give it a type": (np.array([1, None]), 1.0),
    }
    for words, arguments in told.items():
        with pytest.raises(Exception) as raised:
            kernel[1, 1](*arguments)
        assert words in raised.value._render_traceback_()[-1]


def test_an_untouched_kernel_is_a_stub_and_not_a_kernel_that_writes_nothing():
    @cuda.jit
    def kernel(x):
        col, row = cuda.grid(2)
        raise NotImplementedError()

    with pytest.raises(crossing.Refused, match=r"not written yet: line \d+ is `raise NotImplementedError"):
        compiled(kernel, "kernel", [["float32", 1, "array"]], engine_target())


@pytest.mark.parametrize(("written", "stub"), [("", True), ("x[threadIdx.x] = 1.0f;", False)])
def test_an_untouched_kernel_of_cpp_is_a_stub_and_one_written_beside_its_comment_is_none(written, stub):
    comment = "/* Your code takes the place of this comment.\n    raise NotImplementedError()\n    */"
    kernel = warplab.cuda_kernel(f'extern "C" __global__ void k(float* x) {{ {comment} {written} }}', "k")
    refused = pytest.raises(crossing.Refused, match="not written yet: `kernel` stores nothing")
    with refused if stub else contextlib.nullcontext():
        compiled(kernel, "kernel", [["float32", 1, "array"]], engine_target())


def test_an_import_error_of_the_students_own_stays_what_it_is():
    assert crossing.explain(ImportError("No module named 'cupy'")) == "ImportError: No module named 'cupy'"
