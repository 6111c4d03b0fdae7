"""Mutants of the reference solutions lose points, and the tool that makes them makes what it says."""

import random

import pytest
import yaml
from conftest import ROOT
from typer.testing import CliRunner

from warplab.tasks import registry
from workshop.__main__ import app
from workshop.mutants import cpp_operators, operators
from workshop.mutants.mutant import Mutant, mutants_of
from workshop.mutants.sweep import EQUIVALENT, KILLED, SURVIVED, Fate, Sweep, equivalent, graded, tallied

ALL, EACH, SAMPLED = 0.98, 0.95, 0.95
"""The share of mutants that lose points, equivalent ones aside: of all, in each task, and of a sample."""
TASKS, EVERY = 3, 60
"""The sample: so many tasks, drawn with a fixed seed, and of each one mutant in so many."""

KERNEL = """@cuda.jit
def total(x, y):
    t = cuda.threadIdx.x
    table = cuda.shared.array(256, float32)
    other = cuda.shared.array(256, float32)
    if t < x.size:
        table[t] = x[t]
    cuda.syncthreads()
    row, col = cuda.grid(2)
    for i in range(1, 8):
        cuda.atomic.add(y, 0, table[i])
"""


@pytest.mark.parametrize(
    "operator, line",
    [
        ("dropped", "        table[t] = x[t]\n    pass\n"),
        ("moved", "        table[t] = x[t]\n        cuda.syncthreads()\n"),
        ("moved", "    row, col = cuda.grid(2)\n    cuda.syncthreads()\n"),
        ("swapped_axis", "t = cuda.threadIdx.y"),
        ("swapped_names", "col, row = cuda.grid(2)"),
        ("unguarded", "if True:"),
        ("short_of_the_last", "if t < (x.size) - 1:"),
        ("other_range", "for i in range(1, (8) - 1):"),
        ("other_range", "for i in range((1) + 1, 8):"),
        ("number", "cuda.shared.array(257, float32)"),
        ("lowered", "for i in range(0, 8):"),
        ("swap_op", "if t <= x.size:"),
        ("plain_store", "        y[0] += table[i]"),
        ("plain_addition", "        y[0]\n"),
        ("shared_buffer", "    other = table\n"),
        ("whole_numbers", "table = cuda.shared.array(256, int)"),
        ("stopped", "table[t] = x[t]\n    cuda.syncthreads()\n    return\n"),
        ("serialised", "_block_x * cuda.blockDim.x + cuda.threadIdx.x"),
    ],
)
def test_an_operator_makes_its_mutant(operator, line):
    made = [source for name, source in operators.mutated(KERNEL) if name == operator]
    assert any(line in source for source in made), made


def test_a_block_that_does_all_the_work_goes_through_all_blocks():
    made = [
        source
        for name, source in operators.mutated(KERNEL.replace("syncthreads", "ignored"))
        if name == "serialised"
    ]
    assert len(made) == 2
    assert "if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0:" in made[0]
    assert "for _block_x in range(cuda.gridDim.x):" in made[0]
    assert "t = _thread_x" in made[1]


def test_cuda_cpp_is_mutated_inside_its_kernel_only():
    head = "#define N 4\n__global__ void k(float* x, int n)\n{"
    source = (
        f"{head}\n    int i = threadIdx.x;\n    if (i < n)\n        x[i] = 2;\n    __syncthreads();\n}}\n"
    )
    made = [text for _, text in cpp_operators.mutated(source)]
    assert all(text.startswith(head) for text in made)
    for part in ("threadIdx.y", "i <= n", "if (true)", "x[i] = 3;", "x[i] = 1;", "(i < n)\n;\n", "2;\n;\n}"):
        assert sum(part in text for text in made) == 1, part


def test_no_mutant_is_the_reference_and_no_two_are_the_same():
    for name in ("ps03/reduce_tree", "ps07/wmma_matmul"):
        made = mutants_of(name, next((ROOT / "solutions").glob(f"{name[:4]}*.py")))
        assert (
            len({mutant.source for mutant in made})
            == len({mutant.identity for mutant in made})
            == len(made)
            > 50
        )


def mutant(source):
    return Mutant("ps01/launch_plan", "", "", source)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "source, state, how",
    [
        ("import os; os._exit(0)", KILLED, "its process ended"),
        ("def launch_plan(width, height, block):\n    while True: pass\n", KILLED, "took too long"),
        ("1 / 0", KILLED, "does not run: ZeroDivisionError"),
        ("def launch_plan(width, height, block):\n    return (1, 1), 0\n", KILLED, "wrong in divides"),
        (
            "def launch_plan(width, height, block):\n    x, y = block\n"
            "    grid = -(-width // x), -(-height // y)\n"
            "    return grid, grid[0] * grid[1] * x * y - width * height\n",
            SURVIVED,
            "full points",
        ),
    ],
)
def test_a_mutant_is_graded_in_a_process_of_its_own(source, state, how):
    found = graded(mutant(source), next((ROOT / "solutions").glob("ps01*.py")))
    assert found[0] == state and how in found[1]


@pytest.mark.slow
def test_what_is_known_is_not_graded_again(tmp_path):
    results = tmp_path / "results.jsonl"
    first = list(Sweep(ROOT, ["ps01/launch_plan"], 9, results).run())
    results.write_text(results.read_text().replace('"killed"', '"survived"') + '{"half a li')
    second = list(Sweep(ROOT, ["ps01/launch_plan"], 9, results).run())
    assert {fate.state for fate in first} == {KILLED} and {fate.state for fate in second} == {SURVIVED}


def test_the_sum_is_by_task_and_of_all():
    fates = [
        Fate(Mutant(task, "", "", ""), state)
        for task, state in (("a", KILLED), ("a", KILLED), ("a", SURVIVED), ("b", EQUIVALENT))
    ]
    assert tallied(fates) == [("a", 3, 0, 2, 1), ("b", 1, 1, 0, 0), ("all", 4, 1, 2, 1)]


def test_the_command_names_a_task_that_does_not_exist():
    done = CliRunner().invoke(app, ["mutants", "ps01/launch_plans", "--course", str(ROOT)])
    assert "ps01/launch_plan" in str(done.exception)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "path", sorted((ROOT / "autograder/tests/corpus").glob("ps*/*/equivalent.yml")), ids=str
)
def test_what_is_called_equivalent_is_a_mutant_with_a_reason(path):
    name = "/".join(path.parts[-3:-1])
    made = {one.identity for one in mutants_of(name, next((ROOT / "solutions").glob(f"{name[:4]}*.py")))}
    reasons = equivalent(ROOT, name)
    assert set(reasons) <= made, set(reasons) - made
    assert all(len(group["reason"].split()) > 3 for group in yaml.safe_load(path.read_text()))


def shares(fates):
    return {
        name: killed / (killed + survived)
        for name, _, _, killed, survived in tallied(fates)
        if killed + survived
    }


@pytest.mark.slow
def test_a_sample_of_mutants_loses_points():
    names = sorted(name for name in registry.names() if name.startswith("ps"))  # not the tests' own example
    tasks = random.Random(20_261_123).sample(names, TASKS)
    fates = list(Sweep(ROOT, tasks, EVERY).run())
    assert len(fates) >= TASKS
    survived = [(fate.mutant.task, fate.mutant.identity) for fate in fates if fate.state == SURVIVED]
    assert shares(fates)["all"] >= SAMPLED, survived


@pytest.mark.full
def test_every_tenth_mutant_of_every_task_loses_points():
    """All of them take hours, can be stopped and go on: python -m workshop mutants."""
    fates = list(Sweep(ROOT, every=10).run(jobs=2))
    survived = [(fate.mutant.task, fate.mutant.identity) for fate in fates if fate.state == SURVIVED]
    found = shares(fates)
    assert found["all"] >= ALL and min(found.values()) >= EACH, survived
