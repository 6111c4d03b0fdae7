"""What an author is told: warnings of a kind, errors of the compiler, the lines that messages should name."""

import inspect
import warnings

import pytest

import warplab


def warned(kind, launch) -> list[str]:
    """The warnings of a kind, and of no other, that ``launch()`` gives."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        launch()
    return [str(w.message) for w in seen if w.category is kind]


def line_of(kernel, text) -> int:
    """The line of a numba kernel's source that has this text."""
    lines, first = inspect.getsourcelines(kernel.py_func)
    return first + next(i for i, line in enumerate(lines) if text in line)


def compile_error(source, name="k") -> str:
    """What is said of a kernel in CUDA C++ that does not compile."""
    with pytest.raises(warplab.CompileError) as caught:
        warplab.cuda_kernel(source, name)
    return str(caught.value)
