"""Chapter 8: what it says of operators, PTX, reports, queues and fusion is what its own
cells find, and its numbers follow.
"""

import re
from functools import cache, partial

import numpy as np
import pytest
import torch
from conftest import ROOT
from page_code import code_of, defined, text_of

import warplab
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.figures import stack as figures
from warplab.hardware import specs

BOOK = ROOT / "chapters"
H100 = specs.get("h100-sxm")
TEXT = text_of("08-stack")
# one small launch is enough to count, and a kernel taken from a page has no source file
pytestmark = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


chapter = cache(
    partial(
        defined,
        "08-stack",
        warplab=warplab,
        VirtualDevice=VirtualDevice,
        DeviceTiming=DeviceTiming,
        Work=Work,
    )
)


def run(start, **names):
    """Execute the cell that begins with `start` among the chapter's definitions."""
    source = next(source for source in code_of("08-stack") if source.startswith(start))
    space = {**chapter(), **names}
    exec(compile(source, "08-stack.md", "exec"), space)
    return space


def test_each_call_is_heard_under_the_name_that_the_chapter_gives(capsys):
    run("x, w, b = torch.randn(64, 256)")
    heard = dict(re.findall(r"^([\w @]+?) +\['aten\.(\w+)'\]$", capsys.readouterr().out, re.M))
    names = {"x @ w": "mm", "dense layer": "addmm", "convolution": "convolution", "GELU": "gelu"}
    assert {name: heard[name] for name in names} == names
    assert heard["attention"].endswith("_for_cpu")


def test_the_device_is_the_first_of_a_tensors_keys_and_autocast_the_last():
    keys = re.search(r"\((.*)\)", str(torch._C._dispatch_keys(torch.ones(1)))).group(1).split(", ")
    assert keys[0] == "CPU" and keys[-2:] == ["AutogradCPU", "AutocastCPU"]
    assert (
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::mm", "CUDA") == torch.backends.cuda.is_built()
    )


def test_a_fake_product_on_cuda_asks_for_the_same_operator_and_a_mixture_is_refused(capsys):
    run("from torch._subclasses import FakeTensorMode")
    assert capsys.readouterr().out.split() == ["aten.mm", "(64,", "128)", "cuda:0"]
    run("with FakeTensorMode():", FakeTensorMode=torch._subclasses.FakeTensorMode)
    assert "cpu and cuda:0" in capsys.readouterr().out


@cache
def product():
    x, w, y = torch.ones(64, 256), torch.ones(256, 128), torch.empty(64, 128)
    p = warplab.profile(chapter()["matmul"][(8, 4), (16, 16)], x, w, y)
    assert torch.equal(y, x @ w)
    return p


def test_the_lines_of_ptx_that_the_chapter_reads_are_there():
    ptx = re.sub(r"[ \t]+", " ", product().ptx)
    quoted = re.findall(r"`((?:ld\.global|fma|@%p)[^`]*)`", TEXT)
    assert len(quoted) == 3 and [line for line in quoted if line not in ptx] == []
    assert ptx.count("fma.rn.f32") == 5  # four in the unrolled loop, one behind it
    assert product().ptx_instructions > 30 * 5  # "addresses, nearly all"


@pytest.mark.slow
def test_the_levels_figure_shows_what_the_compiler_made(monkeypatch):
    source = next(source for source in code_of("08-stack") if "def matmul" in source)
    monkeypatch.setattr("inspect.getsource", lambda function: source)  # one executed from a page has none
    code = figures.machine_code(figures.assembled(product().ptx))
    # filled up, and 64-bit addresses
    assert len(code) % 128 == 0 and len(code) // 16 > product().ptx_instructions
    lines = figures.listing(figures.assembled(product().ptx))
    # where nvdisasm is installed: 16 bytes an instruction, as on Volta
    assert len(lines) in (0, len(code) // 16)
    alt = figures.levels(chapter()["matmul"], product()).alt
    size = f"{len(source):,} characters", f"{len(code):,} bytes, {len(code) // 16:,} instructions"
    assert [said for said in (*size, "acc += x[row, k] * w[k, col]", "fma.rn.f32") if said not in alt] == []


@pytest.mark.slow
def test_the_assembler_moves_eight_loads_ahead_of_the_fmas():
    alt = figures.order(product()).alt
    assert f"PTX: {'LLF' * 4}" in alt
    if not figures.listing(figures.assembled(product().ptx)):
        pytest.skip("nvdisasm is not installed, and the figure says so")
    assert f"SASS: {'L' * 8}{'F' * 4}." in alt


def test_without_nvdisasm_the_figures_say_so(monkeypatch):
    monkeypatch.setattr(figures, "listing", lambda cubin: [])
    drawn = figures.order(product())
    assert "SASS: not known here" in drawn.alt and "not installed here" in drawn.body


def instructions(source, kernel, capsys):
    """What the chapter's `arithmetic` prints of a kernel."""
    space = {**chapter()}
    exec(compile(source, "08-stack.md", "exec"), space)
    capsys.readouterr()
    space["arithmetic"](space["cuda"].jit(space[kernel].py_func))
    return capsys.readouterr().out.split(": ")[1].strip().split(", ")


@pytest.mark.slow
def test_a_bare_constant_costs_the_fma_and_an_exact_one_does_not(capsys):
    source = next(source for source in code_of("08-stack") if "def careless" in source)
    four = instructions(source, "careless", capsys)
    assert [op.split(".")[0] for op in four] == ["mul", "cvt", "add", "cvt"] and four[2] == "add.f64"
    assert instructions(source, "careful", capsys) == ["fma.rn.f32"]
    assert instructions(source.replace("0.1", "0.25"), "careless", capsys) == ["fma.rn.f32"]
    numbers, out = chapter()["numbers"], chapter()["out"]
    space = {**chapter()}
    exec(compile(source, "08-stack.md", "exec"), space)
    results = []
    for kernel in ("careless", "careful"):
        space[kernel][8, 128](numbers, out)
        results.append(out.copy())
    # "to the last digit or so"
    assert np.abs(results[0].view(np.int32) - results[1].view(np.int32)).max() <= 2


def test_fastmath_makes_four_operations_of_nine(capsys):
    run("import math\n\ndef sigmoid")
    exact, fast, difference = capsys.readouterr().out.strip().splitlines()
    assert [len(line.split(", ")) for line in (exact, fast)] == [9, 4]
    assert float(difference.split()[-1]) < 1e-6


@pytest.mark.slow
def test_sixteen_by_sixteen_sums_spill_and_twelve_by_twelve_do_not():
    ones = np.ones((2, 256), np.float32)
    spilled = {}
    for side, registers, occupancy in ((4, 56, "56%"), (12, 254, "12%"), (16, 255, "12%")):
        p = warplab.profile(chapter()["patch"](side)[1, 128], ones, ones, np.empty(128, np.float32))
        spilled[side] = p.spill_bytes
        assert (p.registers, f"{p.occupancy:.0%}") == (registers, occupancy)
    assert spilled[12] == 0 < spilled[16]


def test_a_kernel_is_compiled_once_for_each_type(capsys):
    space = run("from time import perf_counter")
    assert len(space["fresh"].overloads) == 2
    first, again, other = (float(line.split()[1]) for line in capsys.readouterr().out.splitlines()[:3])
    assert again < first / 10 and again < other / 10


@pytest.mark.parametrize(
    ("run_time", "graph", "returned", "done"), [(2, False, 40, 42), (10, False, 40, 85), (2, True, 5, 21)]
)
def test_the_queues_that_are_drawn_are_the_virtual_devices(run_time, graph, returned, done):
    host, spans = figures.queue(5, run_time, 8, graph)
    assert (host[-1][1], spans[-1][1]) == (returned, done)
    if not graph:
        costs = {"launch_overhead": 5e-6, "sync_overhead": 0, "clock_overhead": 0}
        device = VirtualDevice(DeviceTiming(duration=run_time * 1e-6, noise=0, **costs)).connect()
        for _ in range(8):
            device.launch("work")
        device.synchronize()
        assert 1e6 * device.clock() == pytest.approx(done)


def test_overlap_takes_the_longest_stage_and_the_ends():
    plan = figures.pipeline
    assert plan(4, (2, 3, 2), False)[-1][-1][1] == 28
    assert plan(4, (2, 3, 2), True)[-1][-1][1] == 2 + 4 * 3 + 2 == 16
    assert 128e6 / H100["pcie_each_way"].si == pytest.approx(2e-3)
    pieces = chapter()["square_pieces"]
    assert [pieces(apart) for apart in (False, True)] == [
        f"{ms} ms, 0 early, 4000 late" for ms in ("28.0", "16.0")
    ]
    one = [
        plan(100, (copy, 5), apart)[-1][-1][1] for copy, apart in ((4, False), (4, True), (7, True))
    ]  # question 5
    assert one == [900, 504, 705]


def test_a_graph_of_a_thousand_short_kernels_takes_their_work_and_one_launch(capsys):
    run("device = VirtualDevice(")
    assert capsys.readouterr().out == "2.0 ms\n"


def test_one_training_step_of_the_small_model_is_78_orders():
    space = run("from torch.utils.flop_counter")
    orders, seconds = len(space["ear"].heard), space["work"]
    assert orders == 78 and round(orders * 5e-3, 2) == 0.39
    assert 0.5e-6 < seconds < 1.5e-6  # "about a microsecond"
    assert round(H100["memory_bandwidth"].si * 2e-6 / 1e6, 1) == 6.7


@pytest.mark.slow
def test_bias_and_gelu_in_three_kernels_ask_for_eight_thirds_of_the_sectors():
    caught = {}
    space = run("x = np.random", figure=type("Chart", (), {"fusion": caught.update}))
    n = space["x"].nbytes // 32
    counts = {name: (p.global_load.sectors, p.global_store.sectors) for name, p in caught.items()}
    assert counts == {"add_bias": (2 * n, n), "gate": (n, n), "multiply": (2 * n, n), "bias_gelu": (2 * n, n)}
    assert n == 2048 and f"{8 * n:,}" == "16,384" and f"{3 * n:,}" == "6,144"
    exact = torch.nn.functional.gelu(torch.from_numpy(space["x"] + space["b"]))
    torch.testing.assert_close(torch.from_numpy(space["out"]), exact, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_a_softmax_is_one_kernel_and_a_product_sums_along_two_axes_and_a_break_make_more():
    pytest.importorskip("triton")
    from torch._inductor import config as inductor
    from torch._inductor.utils import run_and_get_code

    def pieces(x):
        y = x.exp()
        torch._dynamo.graph_break()
        return y.sin()

    calls = (
        lambda x: torch.softmax(2 * x, 1) + 1,
        lambda x: (x.sin() @ x.T).exp(),
        lambda x: (x.exp() / x.exp().sum(0), x.exp() / x.exp().sum(1, keepdim=True)),
        pieces,
    )
    made = []
    for call in calls:
        torch.compiler.reset()
        with inductor.patch(cpu_backend="triton", compile_threads=1):
            _, codes = run_and_get_code(torch.compile(call), torch.ones(64, 256))
        made.append([len(re.findall(r"def triton_", code)) for code in codes])
    assert made[0] == [1] and made[1] == [2] and len(made[2]) == 1 < made[2][0] and made[3] == [1, 1]


def test_the_formula_is_six_operators_in_one_graph_compiled_twice(capsys):
    import torch._dynamo

    torch._dynamo.reset()
    arrays = {"x": np.ones((64, 256), np.float32), "b": np.ones(256, np.float32)}
    space = run("def my_gelu", **arrays)
    assert len(space["ear"].heard) == 6
    capsys.readouterr()
    run("graphs = []", my_gelu=space["my_gelu"], tb=space["tb"])
    said = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert said == ["[6]", "[6]", "[6, 6]", "[6, 6]"]


def test_the_function_has_the_gradient_of_gelu(capsys):
    run("tx = torch.randn(8, 16")
    theirs, ours, difference = capsys.readouterr().out.strip().splitlines()
    assert "AddBackward0" in theirs and ours.count("AccumulateGrad") == 2
    assert float(difference.split()[-1]) < 1e-4


def test_the_numbers_of_the_prose_and_the_quiz():
    flop = 2 * 8192**3
    assert round(1e3 * flop / H100["peak_bf16"].si, 1) == 1.1
    rounds = 1000
    for kernels, work, graph, each in ((3, 2, False, 15), (1, 3, False, 5)):  # question 4: no graph
        assert figures.queue(5, work, kernels * rounds, graph)[1][-1][1] / rounds == pytest.approx(
            each, rel=0.01
        )
    assert figures.queue(5, 3, rounds, True)[1][-1][1] / rounds == pytest.approx(3, rel=0.01)


def test_the_memory_bound_specimen_writes_into_an_array_that_exists():
    """Otherwise it would time the allocation of 64 MB."""
    space = run("square, dot = torch.ones(768, 768)")
    assert space["jobs"]["long sum"][0]() is space["total"]


def test_recorded_launches_and_streams_take_what_the_section_s_arithmetic_says():
    """On an H200: 1,000 launches of 10.04 us; four pieces: 1.29 + 2.34 / 4 = 1.88 ms; of 16: 34 each."""
    from warplab.figures.taken import taken

    names = "launch_overhead", "graph_replay", "stream_overlap"
    queued, row, streams = (taken(name, "H200") for name in names)
    queued = queued["torch: queued", 1]
    assert row["launched one by one", 1000] == pytest.approx(1000 * queued, rel=0.1)
    assert streams["a stream a piece", 4] == pytest.approx(1.88e-3, rel=0.15)
    two, eight = (streams["a stream a piece", n] for n in (2, 8))
    assert round(two / 2.463e-3, 2) == 0.96 and round(eight / (8 * 34 * queued), 2) == 1.15
    assert streams["a stream a piece", 16] == pytest.approx(16 * 34 * queued, rel=0.15)
    assert all(streams["a stream a piece", 4] <= streams["a stream a piece", n] for n in (1, 2, 8, 16))


def test_the_published_report_closes_on_itself_and_its_waits_do_not(capsys):
    space = run("seconds, sms = 64.2e-3, 84")
    moved = [line.split()[-2] for line in capsys.readouterr().out.splitlines()]
    assert moved == ["549.8", "274.9", "34.6", "17.3", "18.6"]
    run("cycles = 4096**3 / 661.3", sms=space["sms"])
    cycles, wavefronts, replays = map(int, re.findall(r"(\d+) million", capsys.readouterr().out))
    assert wavefronts / cycles == pytest.approx(1 / 2, abs=0.01)
    assert (wavefronts + replays) / cycles == pytest.approx(3 / 4, abs=0.02)
    assert round(100 * 661.3 / (space["sms"] * 128)) == 6
