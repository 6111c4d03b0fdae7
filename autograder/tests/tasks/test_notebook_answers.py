"""What a notebook shows besides the table: no number again, one card of points, errors without our lines."""

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

CELLS = (
    "import warplab, numpy as np\nfrom numba import cuda\nfrom warplab.check import grade\n"
    "def launch_plan(width, height, block):\n    return (1, 1), 0",
    'grade("ps01/launch_plan", launch_plan)',
    'grade("ps01/launch_plan", launch_plan)',
    'grade("ps01/launch_plan", launch_plan) + 1',
    "@cuda.jit\ndef past(x):\n    x[cuda.grid(1)] = 1\n",
    "past[1, 32](np.zeros(4))",
    'ones = warplab.cuda_kernel("__global__ void ones(float *x) { x[threadIdx.x] = 1; }", "ones")',
    'ones = warplab.cuda_kernel("__global__ void ones(float *x) { x[threadIdx.x] = y; }", "ones")',
    '"ones" in globals()',
)


@pytest.fixture(scope="module")
def outputs():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, allow_errors=True, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def test_the_points_are_a_number_that_is_not_shown_again(outputs):
    assert [output.output_type for output in outputs[1]] == ["display_data"] * 2
    assert outputs[3][-1].data["text/plain"] == "1.0"


def test_only_the_latest_check_has_the_card_of_points(outputs):
    cards = [
        "warplab-progress" in output.data.get("text/html", "") for cell in outputs[1:4] for output in cell
    ]
    assert cards == [False, False, False, False, False, True, False]


def test_an_error_of_the_engine_shows_the_students_line_and_nothing_of_ours(outputs):
    shown = "\n".join(outputs[5][-1].traceback)
    assert "past[1, 32](np.zeros(4))" in shown and "writes element [4] of argument 'x'" in shown
    assert "site-packages" not in shown and len(shown.splitlines()) < 6


def test_a_kernel_that_no_longer_compiles_is_unbound(outputs):
    assert outputs[7][-1].ename == "CompileError" and len(outputs[7][-1].traceback) < 6
    assert outputs[8][0].data["text/plain"] == "False"
