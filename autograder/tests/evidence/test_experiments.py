"""What the experiments run is right, at sizes that the SIMT engine and a CPU can do;
where a GPU is needed only the sums are checked.
"""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT
from numba import njit
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import warplab
from warplab.evidence import roofs as limits
from warplab.evidence import take as machine
from warplab.evidence.catalogue import experiments, get
from warplab.evidence.clocks import Timer, Workload
from warplab.evidence.declare import source_of
from warplab.evidence.experiments import (
    bandwidth as memory,
)
from warplab.evidence.experiments import (
    hopper,
    inference,
    kernels,
    matmul,
    parts,
    precision,
    stack,
)

LIVE = [name for name, e in experiments().items() if e.cpu]


def f32(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


PRODUCTS = {  # kernel, rows, inner, columns, grid, block: sides that no tile fits, but for register tiles
    "naive": (kernels.matmul_naive, 37, 50, 33, (2, 2), (32, 32)),
    "tiled": (kernels.matmul_tiled, 37, 50, 33, (2, 2), (32, 32)),
    "register tiled": (kernels.matmul_register_tiled, 64, 80, 128, (2, 1), (16, 16)),
    "wmma": (None, 32, 32, 32, (2, 2), 32),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_that_is_timed_is_right(name):
    kernel, rows, inner, columns, grid, block = PRODUCTS[name]
    a, b, c = f32(rows, inner), f32(inner, columns), np.full((rows, columns), np.nan, np.float32)
    if name == "wmma":
        a, b = a.astype(np.float16), b.astype(np.float16)
        warplab.cuda_kernel(precision.WMMA, "matmul")[grid, block](a, b, c, inner)
    else:
        kernel[grid, block](a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["matmul_naive", "matmul_tiled", "matmul_register_tiled"])
def test_each_product_s_launch_covers_the_whole_matrix(name):
    a, b, c = f32(128, 128), f32(128, 128), np.full((128, 128), np.nan, np.float32)
    matmul.launchers(128)[name](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


IN_TEST = ("threads_copy", "a_cluster_shares")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in IN_TEST else pytest.mark.full) for n in hopper.RUNGS]
)
def test_a_kernel_of_the_climb_is_right_and_its_launch_covers_the_whole_matrix(name):
    """On the engine, with more stages than the ring has."""
    a, b = torch.from_numpy(f32(256, 320)).bfloat16(), torch.from_numpy(f32(256, 320)).flip(0).bfloat16()
    c = torch.full((256, 256), torch.nan, dtype=torch.bfloat16)
    blocks, threads, shared = hopper.configuration(name, 256, 256)
    given = [
        warplab.tensor_map(x, hopper.BOX[::-1], swizzle=128) if hopper.RUNGS[name][4] else x for x in (a, b)
    ]
    warplab.cuda_kernel(hopper.LADDER, name)[blocks, threads, 0, shared](*given, c, 256, 256, 320)
    torch.testing.assert_close(c, a @ b.T, rtol=0.016, atol=0.05)


@pytest.mark.parametrize("lines", [1, 2, 37])
def test_a_ring_visits_every_line_once_and_comes_back(lines):
    table, at, seen = memory.ring(lines), 0, []
    for _ in range(lines):
        seen.append(at)
        at = int(table[at])
    assert at == 0 and sorted(seen) == [k * memory.LINE for k in range(lines)]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["engine", "cpu"])
def test_the_chase_goes_on_from_where_it_stopped(where):
    table, at = memory.ring(37).numpy().view(np.uint64), np.zeros(1, np.uint64)
    follow = kernels.chase[1, 1] if where == "engine" else njit(kernels.follow)
    follow(table, at, 30)
    assert at[0] != 0
    follow(table, at, 7)
    assert at[0] == 0


@pytest.mark.parametrize(
    "kernel", [kernels.copy_one_by_one, kernels.copy_by_fours], ids=lambda k: k.py_func.__name__
)
@pytest.mark.parametrize("size", [1, 63, 64, 257, 1000])
def test_a_copy_by_a_grid_of_any_size_is_whole(kernel, size):
    x, out = f32(size), np.full(size, np.nan, np.float32)
    kernel[2, 32](x, out)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("length", [1, 16])
def test_a_chain_does_so_many_multiply_adds(length):
    x, out = f32(40), np.full(40, np.nan, np.float32)
    profile = warplab.profile(kernels.chain(length)[2, 32], x, out)
    expected = x.astype(np.float64)
    for _ in range(length):
        expected = expected * np.float32(0.999) + np.float32(0.001)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert profile.flops == 40 * 2 * length


def test_bias_and_gelu_agree_with_torch():
    x, b, out = f32(5, 300), f32(300), np.full((5, 300), np.nan, np.float32)
    stack.bias_gelu[(2, 3), 256](x, b, out)
    expected = torch.nn.functional.gelu(torch.tensor(x + b))
    torch.testing.assert_close(torch.tensor(out), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(stack._written_out(torch.tensor(x), torch.tensor(b)), expected)


def test_a_decoding_step_leaves_its_cache_as_it_was():
    model = inference.Transformer(width=32, heads=2, layers=2, context=16).eval()
    cache, token = [], torch.randint(10, (1, 1))
    with torch.no_grad():
        model(torch.randint(10, (1, 5)), cache)
        first = inference._step(model, token, cache)
        torch.testing.assert_close(inference._step(model, token, cache), first)
    assert cache[0][0].shape[2] == 5


class Allocator(TorchDispatchMode):
    """Bytes of all tensors that exist, now and at most, as CUDA's allocator would say them."""

    def __init__(self):
        super().__init__()
        self.known, self.most = {}, 0

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                storage = tensor.untyped_storage()
                self.known[StorageWeakRef(storage)] = storage.nbytes()
        self.most = max(self.most, self.now())
        return result

    def now(self):
        self.known = {reference: size for reference, size in self.known.items() if not reference.expired()}
        return sum(self.known.values())


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 4])
def test_the_parts_of_a_training_step_are_those_of_the_arithmetic(monkeypatch, batch):
    """2 layers of width 256: 1.9 million parameters, 7.5 MB of weights, as much of
    gradients, twice that of moments.
    """
    monkeypatch.setattr(
        parts, "SHAPE", {"vocabulary": 256, "width": 256, "heads": 4, "layers": 2, "context": 128}
    )
    with Allocator() as allocator:
        sizes = parts.held("cpu", batch, allocator.now, lambda: allocator.most, lambda: None)
    expected = parts.predicted(batch)
    assert sizes["workspace"] == 0 and sizes["peak"] > sizes["weights"] + sizes["activations"]
    for part, tolerance in {
        "weights": 0.01,
        "gradients": 0.01,
        "optimiser": 0.01,
        "activations": 0.15,
    }.items():
        assert sizes[part] == pytest.approx(expected[part], rel=tolerance), part


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", LIVE)
def test_a_live_experiment_gives_points_for_the_cpu_and_says_where_they_are_from(name, monkeypatch):
    monkeypatch.setitem(inference.SHAPE, "cpu", {"width": 32, "heads": 2, "layers": 1, "context": 512})
    points = machine.run(get(name), "cpu", seconds=0.01)
    assert len(points) >= 3 and all(p.series.startswith("cpu") and p.median > 0 and p.x > 0 for p in points)


def test_a_sample_is_the_time_of_one_of_the_things_that_a_call_does():
    import time

    point = Timer("cpu", seconds=0.05).time(Workload("ten naps", 1, lambda: time.sleep(0.02), per=10))
    assert 2e-3 <= point.median < 15e-3  # undivided it would be 20 ms at least


def test_what_comes_before_a_call_is_done_each_time_and_not_timed():
    import time

    done = []
    point = Timer("cpu", seconds=0.02).time(
        Workload("nothing", 1, lambda: None, before=lambda: (done.append(1), time.sleep(0.002)))
    )
    assert len(done) == point.n and point.median < 1e-3


def test_bytes_held_are_neither_times_nor_rates():
    point = Timer("cpu").time(Workload("weights", 1, lambda: 3.5e9, "none", unit="B", roof="capacity"))
    assert (point.median, point.iqr, point.rate, point.text()) == (3.5e9, 0, 0, "3.5 GB")


def test_every_experiment_names_its_axis_and_a_chapter_and_asks_one_question():
    for e in experiments().values():
        assert e.question.endswith("?") and e.x and re.fullmatch(r"\d\d-[a-z-]+", e.chapter), e.name


def test_an_experiment_s_code_is_all_that_it_reaches_in_the_course():
    source = "\n".join(source_of(get("copy_bandwidth").cases))
    assert "def copy_strided" in source and "BLOCK = 256" in source and "NUMBERS = " in source
    assert "class Workload" not in source and "def attention" not in "\n".join(
        source_of(get("softmax").cases)
    )
    assert "class Attention" in "\n".join(source_of(get("decode_batch").cases))
    assert "mma_sync" in "\n".join(source_of(get("matmul_in_eight_bits").cases))


def test_a_changed_constant_or_kernel_changes_the_code(monkeypatch):
    before = get("copy_bandwidth").code
    monkeypatch.setattr(memory, "NUMBERS", 1 << 20)
    assert get("copy_bandwidth").code != before
    monkeypatch.undo()
    monkeypatch.setattr(memory, "copy_strided", kernels.gather)
    assert get("copy_bandwidth").code != before
    monkeypatch.undo()
    assert get("copy_bandwidth").code == before


ABSENT = (
    "pydantic sphinx docutils myst_nb nbformat nbclient nbgrader jupyter_book jupytext IPython matplotlib "
    "PIL scipy typer rich markdown_it playwright hypothesis jsonschema ml_dtypes"
).split()
BLOCK = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}} (a bare CUDA machine has none)", name=name)
sys.meta_path.insert(0, Absent())
"""


def bare(code):
    """Run code in a Python that finds torch, numba-cuda, NumPy, PyYAML, msgspec and pytest, and
    nothing else of ours.
    """
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code], capture_output=True, text=True, cwd=ROOT / "autograder"
    )


@pytest.mark.slow
def test_the_recorder_runs_where_only_torch_and_numba_are(tmp_path):
    """A whole record, on the CPU, written and read again."""
    done = bare(f"""
from pathlib import Path
import warplab, warplab.evidence.measure
from warplab.evidence import __main__ as recorder
from warplab.evidence.catalogue import experiments, get
assert len(experiments()) > 15
assert recorder.main(["--list"]) == 0
recorder.record_one("transpose", "cpu", {str(tmp_path)!r}, 0.01)
""")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("transpose/*.json"))) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(experiments()))
def test_an_experiment_runs_on_a_gpu_and_stays_below_its_peaks(name):
    record = machine.take(get(name), "cuda", seconds=0.05)
    assert record.points and limits.impossible(record) == []


GPU_TESTS = sorted(
    p
    for p in (ROOT / "autograder" / "tests").rglob("test_*.py")
    if "mark.gpu" in p.read_text(encoding="utf-8")
)


@pytest.mark.slow
def test_the_gpu_tests_are_collected_where_only_torch_and_numba_are_and_skipped_aloud_without_a_gpu():
    if warplab.device().kind == "cuda":
        pytest.skip("they would run, and make gpu-test does that")
    options = ["-q", "-m", "gpu", "-rs", "-p", "no:cacheprovider", *map(str, GPU_TESTS)]
    done = bare(
        "import os, pytest; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; "
        f"sys.exit(pytest.main({options!r}))"
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "needs a CUDA device" in done.stdout and not re.search("passed|failed|error", done.stdout)
