"""``%%cuda`` in a notebook, and in the process that runs a submission's cells."""

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import warplab
from autograder.reader.needed import cuda_cpp_in, names_of
from autograder.sandbox.messages import Cell
from autograder.sandbox.student import execute
from warplab.simt.frontends.cell_magic import parted

ADD = """%%cuda
#include <iostream>
__global__ void add(float* x, float by)
{
    x[threadIdx.x] += by;
}
int main() { add<<<1, 32>>>(nullptr, 1); std::cout << "done"; }
"""
TWICE = """%%cuda add=scale<Twice, 3> thrice=scale<Thrice, 4>
struct Twice { static constexpr int by = 2; };
struct Thrice { static constexpr int by = 3; };
template <class T, int more> __global__ void scale(int* x) { x[0] = x[0] * T::by + more; }
namespace tools { __global__ void clear(int* x) { x[0] = 0; } }
"""


@pytest.fixture
def shell():
    shell = InteractiveShell()
    warplab.load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()


def in_notebook(shell):
    def run(text):
        result = shell.run_cell(text)
        return None if result.success else str(result.error_in_exec or result.error_before_exec)

    return run, shell.user_ns


def in_submission(_):
    namespace = {}
    return lambda text: execute(Cell("cell1", text), namespace), namespace


@pytest.fixture(params=[in_notebook, in_submission])
def cells(request, shell):
    """(run a cell and give its error or None, the namespace) of a notebook and of a submission."""
    return request.param(shell)


def test_a_cell_binds_its_kernels_by_name(cells):
    run, names = cells
    assert run(ADD) is None
    x = np.zeros(32, np.float32)
    names["add"][1, 32](x, 2.5)
    assert (x == 2.5).all() and "main" not in names


def test_instances_of_templates_are_named_in_the_first_line(cells):
    run, names = cells
    assert run(TWICE) is None
    x = np.array([5], np.int32)
    names["add"][1, 1](x)
    names["thrice"][1, 1](x)
    assert x[0] == (5 * 2 + 3) * 3 + 4
    names["clear"][1, 1](x)
    assert x[0] == 0 and "scale" not in names


def test_a_mistake_has_the_cells_own_line(cells):
    run, _ = cells
    assert "add.cu(5): error" in run(ADD.replace("+= by", "+= to"))


def test_a_mistake_shows_none_of_our_code(shell, capsys):
    shell.run_cell(ADD.replace("+= by", "+= to"))
    shown = capsys.readouterr()
    assert 'identifier "to" is undefined' in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err and "cell_magic" not in shown.out + shown.err


@pytest.mark.slow
def test_importing_warplab_in_a_notebook_is_enough():
    import subprocess
    import sys

    code = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance();"
        "s.run_cell('import warplab'); assert 'cuda' in s.magics_manager.magics['cell']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_cells_are_none_of_its_business():
    assert parted("x = 1\n%%cuda\n") is None and parted("%%cudax\n") is None and parted("# %%cuda\n") is None
    assert parted("\n %%cuda a=b<1>\nint x;") == ("a=b<1>", "\n\nint x;")


def test_the_reader_takes_such_a_cell_for_cuda_cpp_that_always_runs():
    assert names_of(ADD) == (None, set()) and cuda_cpp_in(ADD) == [ADD]
