"""Chapter 10: its derived numbers are recomputed, its cells run in real processes, and
its figures draw what they say.
"""

import ast
import copy
import json
import re
import time
from contextlib import closing
from functools import partial

import pytest
import torch
import torch.distributed as dist
from conftest import ROOT, TESTS
from jsonschema import Draft202012Validator
from page_code import cell_with, run_cells, text_of

from warplab.figures import many_gpus as figures
from warplab.hardware import specs
from warplab.models import vram
from warplab.models.networks import Transformer, worksheet
from warplab.models.rank_pool import RankError, Ranks

BOOK = ROOT / "chapters"
TEXT = text_of("10-many-gpus")
H100 = specs.get("h100-sxm")
SPEED = 0.4 * H100["peak_bf16"].si
NVLINK, PCIE, NETWORK = H100["nvlink_each_way"].si, H100["pcie_each_way"].si, 400e9 / 8


cell = partial(cell_with, "10-many-gpus")


def run(*texts, **names):
    """Names that are bound after the cells with these texts have run one after the other."""
    known = {"torch": torch, "dist": dist, "time": time, "Transformer": Transformer, "worksheet": worksheet}
    return run_cells("10-many-gpus", *texts, **known | names)


@pytest.fixture(scope="module")
def ranks():
    four = Ranks(4)
    yield four
    four.close()


def test_one_room_would_take_years_and_does_not_hold_the_state(capsys):
    run("seconds = 6 * 7e9")
    assert capsys.readouterr().out == "6.7 years\n"
    assert 16 * 7e9 == 112e9 > H100["memory_capacity"].si


def test_torchrun_starts_the_program_of_the_page_as_two_processes(printed_in_book):
    said = printed_in_book("10-many-gpus")
    found = re.findall(r"(?m)^rank (\d) of 2, process (\d+): (\S+) alone, (\S+) together$", said)
    assert [f[0] for f in found] == ["0", "1"] and found[0][1] != found[1][1]
    assert found[0][2] != found[1][2] and found[0][3] == found[1][3]


@pytest.mark.slow
def test_four_ranks_average_to_the_gradient_of_one_process(ranks):
    names = run("def shared_gradient")
    rows = worksheet(256)
    alone, together = names["gradient"](rows), ranks.run(names["shared_gradient"], rows)
    assert all(torch.equal(together[0], each) for each in together)
    torch.testing.assert_close(together[0], alone, rtol=1e-4, atol=1e-7)
    own = names["gradient"](rows[0::4])
    assert (own - alone).abs().max() > 1e-2  # a rank by itself has another one


@pytest.mark.slow
def test_everybody_waits_for_the_rank_that_oversleeps(ranks, capsys):
    waited = ranks.run(run("def late", ranks=ranks)["late"])
    assert min(waited[:2] + waited[3:]) > waited[2]


@pytest.mark.slow
def test_both_all_reduces_send_the_bytes_that_the_chapter_derives(ranks):
    caught = {}
    figure = type("Chart", (), {"traffic": caught.update})
    run("def through_one", "def ring(", "def trial", "counted = {}", ranks=ranks, figure=figure)
    assert list(caught) == [2, 3, 4]
    for n, (through_one, ring) in caught.items():
        assert through_one == n - 1 and ring == pytest.approx(2 * (n - 1) / n)


def test_the_buffers_that_the_page_states_are_those_of_the_ring():
    for n, said in ((4, "1.5 buffers with four ranks"), (8, "With 8 ranks that is 1.75 buffers")):
        steps = len(figures.ring_steps(n)) - 1  # each sends one part of n
        assert f"{steps / n:g} buffers" in said and said in TEXT


@pytest.mark.slow
def test_a_ring_that_forgets_to_add_is_noticed(ranks):
    names = run("def through_one", "def trial")
    wrong = {"torch": torch, "dist": dist}
    exec(compile(cell("def ring(").replace("take + inbox", "inbox"), "10-many-gpus.md", "exec"), wrong)
    with pytest.raises(RankError, match="AssertionError"), closing(Ranks(2)) as two:
        two.run(names["trial"], (wrong["ring"],), 2)


@pytest.mark.slow
def test_the_drawn_ring_ends_with_all_parts_complete_and_two_phases():
    for n in (2, 4, 5):
        states = figures.ring_steps(n)
        assert len(states) == 2 * (n - 1) + 1
        half, end = states[n - 1][0], states[-1][0]
        assert all(row.count(n) == 1 for row in half) and all(row == [n] * n for row in end)
    assert "after step 6 all have all" in figures.ring().alt


def test_the_wires(capsys):
    names = run("def ring_time", "links = {", h100=H100)
    times = {name: 1e3 * names["ring_time"](8, 14e9, bandwidth) for name, bandwidth in names["links"].items()}
    assert [round(t) for t in times.values()] == [55, 383, 490, 19600]
    step = 6 * 7e9 * 8192 / SPEED
    assert round(step, 2) == 0.87
    assert round(times["NVLink 4"] / step / 10) == 6 and round(times["400 Gbit/s network"] / step / 10) == 56


def test_ten_small_buffers_take_longer_than_one(capsys):
    run("def ring_time", "links = {", "for buffer in size", h100=H100)
    printed = capsys.readouterr().out
    assert " 3.6 MB: 0.15 ms, 91% of it latency\n 36.0 MB: 0.28 ms, 50%" in printed
    small, large = (14 * (10e-6 + size / 8 / NVLINK) for size in (3.6e6, 36e6))
    assert (round(1e4 * small, 2), round(1e3 * large, 2)) == (1.54, 0.28)
    assert "3.6 MB would take 1.54 ms, and one of 36 MB takes 0.28" in TEXT


def test_eight_gpus_of_a_machine_share_the_trip(capsys):
    names = run("def ring_time", "links = {", "def nodes_time", h100=H100)
    assert capsys.readouterr().out.endswith("64 GPUs in 8 nodes: 116 ms\n")
    inside, between = 14 * (10e-6 + 14e9 / 8 / NVLINK), 14 * (10e-6 + 14e9 / 64 / NETWORK)
    assert names["nodes_time"](64, 14e9) == pytest.approx(inside + between)
    assert names["nodes_time"](8, 14e9) == names["ring_time"](
        8, 14e9, NVLINK
    )  # one machine: nothing to send outside


@pytest.mark.slow
def test_ddp_sends_the_last_layers_first_in_four_buckets(ranks):
    names = run("from torch.distributed.algorithms", "def buckets")
    heard = ranks.run(names["buckets"], worksheet(16))[0]
    assert len(heard) == 4 and heard[0][0] == "head.weight" and heard[-1][-1] == "token.weight"
    assert sum(map(len, heard)) == len(list(Transformer().parameters()))


@pytest.mark.slow
def test_buckets_hide_all_but_the_last():
    step = 6 * 7e9 * 8192 / SPEED
    forward, backward, exchange = 1e3 * step / 3, 2e3 * step / 3, 1e3 * 2 * 7 / 8 * 14e9 / NETWORK
    assert round(exchange) == 490 and round(exchange / 8) == 61 and exchange < backward
    plan = figures.all_reduces
    ends = [plan(8, backward, exchange, beside)[1][-1][1] for beside in (False, True)]
    assert ends == pytest.approx([backward + exchange, backward + exchange / 8])
    assert plan(8, 8.0, 16.0, True)[1][-1][1] == 1 + 16  # too long to hide: it starts after the first bucket
    assert "931 ms instead of 1,359" in figures.overlap(forward, backward, exchange).caption


def test_the_stages_of_zero():
    p, n = 1000.0, 8
    sizes = [sum(vram.zero_bytes(p, n, stage).values()) for stage in range(4)]
    assert sizes == pytest.approx([16 * p, 4 * p + 12 * p / n, 2 * p + 14 * p / n, 16 * p / n])
    assert [round(16e3 / sum(vram.zero_bytes(p, 10**9, stage).values())) for stage in (1, 2)] == [4, 8]
    halves = {"gradients": 1, "FP32 weights": 2, "first moment": 2, "second moment": 2}
    assert vram.zero_bytes(1, 2, 2) == {"weights": 2} | halves
    with pytest.raises(ValueError, match="stages 0 to 3, not 4"):
        vram.zero_bytes(1, 2, 4)
    assert "full copies: 120.0 GB; stage 1: 31.4 GB; stage 2: 16.6 GB; stage 3: 1.9 GB" in figures.zero().alt


@pytest.mark.slow
def test_sharded_training_keeps_a_quarter_and_takes_the_same_step(ranks, capsys):
    names = run("def kept", "def stage_1", "def stage_3", "adam.step()\nprint(", rows=worksheet(256))
    weights = list(names["model"].parameters())
    count = sum(p.numel() for p in weights)
    assert "weights, gradients, moments:" in capsys.readouterr().out
    first, third = (ranks.run(names[stage], names["rows"]) for stage in ("stage_1", "stage_3"))
    for every in (first, third):
        assert max((a - b).abs().max() for a, b in zip(weights, every[0][1], strict=True)) < 1e-4
    steps = 4 * len(weights)  # Adam counts its steps in four bytes a tensor
    assert sum(rank[0][2] for rank in first) == 8 * count + steps
    assert {tuple(rank[0][:2]) for rank in first} == {(4 * count, 4 * count)}
    for part, each in enumerate((4, 4, 8)):
        assert sum(rank[0][part] for rank in third) == each * count + (4 * steps if part == 2 else 0)
        assert all(rank[0][part] == pytest.approx(each * count / 4, rel=0.02) for rank in third)
    assert third[0][2] == {"c10d._allgather_base_": 5, "c10d._reduce_scatter_base_": 3}


@pytest.mark.slow
def test_the_cut_mlp_is_the_whole_one(ranks, capsys):
    names = run("def quarter")
    run("x, up =", **names, ranks=ranks)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(
        line.startswith("(32, 64) ") and float(line.split()[2]) < 1e-5 for line in lines
    )


def test_tensor_parallelism_costs_what_the_chapter_says():
    array, each = 8192 * 4096 * 2, 32 * 4
    assert round(1e3 * 6 * 7e9 * 8192 / SPEED / 8) == 109
    ring = 2 * 7 / 8 * array * each
    assert [round(1e3 * ring / wire) for wire in (NVLINK, NETWORK)] == [33, 301]
    assert round(1e3 * array / NETWORK, 1) == 1.3


FUSED, SPLIT = {"F": 1, "B": 2}, {"F": 1, "B": 1, "W": 1}


def simulated():
    return run("def needs(", "def simulate(", "def one_f_one_b(")


def does_one_thing_at_a_time(plan):
    for rank in {row[0] for row in plan}:
        spans = sorted(row[4:] for row in plan if row[0] == rank)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize(("stages", "parts"), [(4, 2), (4, 4), (4, 16), (8, 32), (1, 3)])
@pytest.mark.parametrize("schedule", ["gpipe", "1F1B"])
def test_the_simulated_pipeline_idles_as_the_formula_says(schedule, stages, parts):
    names = simulated()
    order = figures.gpipe if schedule == "gpipe" else names["one_f_one_b"]
    plan = names["simulate"](order(stages, parts), FUSED)
    end, idle, held = figures.schedule_facts(plan)
    assert end == 3 * (parts + stages - 1)
    assert idle == pytest.approx((stages - 1) / (parts + stages - 1))
    assert held == (parts if schedule == "gpipe" else min(stages, parts))
    does_one_thing_at_a_time(plan)


@pytest.mark.parametrize(("stages", "parts", "chunks"), [(4, 8, 2), (4, 8, 4), (8, 32, 2), (16, 16, 8)])
def test_interleaving_divides_the_bubble(stages, parts, chunks):
    orders = figures.interleaved(stages, parts, chunks)
    assert {piece for order in orders for piece in order} == {
        (kind, stage, part) for kind in "FB" for stage in range(stages * chunks) for part in range(parts)
    }
    plan = simulated()["simulate"](orders, {kind: ticks / chunks for kind, ticks in FUSED.items()})
    assert figures.schedule_facts(plan)[0] == pytest.approx(3 * (parts + (stages - 1) / chunks))
    does_one_thing_at_a_time(plan)


@pytest.mark.parametrize(("stages", "parts"), [(4, 8), (8, 32), (16, 16)])
def test_a_split_backward_pass_leaves_a_third_of_the_bubble_at_the_same_memory(stages, parts):
    orders = figures.zero_bubble(stages, parts)
    assert all(len(order) == 3 * parts == len(set(order)) for order in orders)
    plan = simulated()["simulate"](orders, SPLIT)
    assert figures.schedule_facts(plan)[::2] == (3 * parts + (stages - 1), stages)
    does_one_thing_at_a_time(plan)


@pytest.mark.slow
def test_the_pipelines_that_are_drawn():
    names = simulated() | {"figure": figures}
    exec(cell("figure.schedules(").replace("figure.schedules(", "drawn = figure.schedules("), names)
    alt = names["drawn"].alt
    assert "GPipe: 27.3% idle, done at 33, up to 8" in alt and "1F1B: 27.3% idle, done at 33, up to 4" in alt
    assert "v = 2: 15.8% idle, done at 28.5" in alt and "ZB-H1: 11.1% idle, done at 27, up to 4" in alt


def limits(capsys):
    names = run("def ridges", "P_block = attention", h100=H100, specs=specs, figure=figures)
    capsys.readouterr()
    names = run("limits = {", "limits.items()", "def least_tokens", **names)
    return names, capsys.readouterr().out


def test_the_limits_follow_from_flops_and_bytes(capsys):
    names, printed = limits(capsys)
    rows = {line[:29].strip(): line[29:].split() for line in printed.splitlines()[1:]}
    nvlink, network = H100["peak_bf16"].si / 450e9, H100["peak_bf16"].si / 50e9
    assert rows["tokens a GPU, at least"] == ["2,198.7", "19,788.0", "2,500.0", "45,000.0"]
    block = 2 * 16384**2 + 2 * 16384 * 1024 + 3 * 16384 * 53248  # eight heads of keys and values of 128
    assert names["P_block"] == block
    assert rows["tensor ways, at most"][0] == f"{2 * block / (8 * 16384 * nvlink):.1f}" == "22.1"
    assert rows["width of an expert"][1] == f"{4 / 6 * network:,.1f}" == "13,192.0"
    assert rows["tokens a part, ring attention"][1] == f"{network / 16:,.1f}"
    least = names["least_tokens"]
    assert least(1, H100, 8) == pytest.approx(network / 8) and least(128, H100, 8) == network / 128
    b200 = specs.get("b200")
    assert least(1, b200, 72) == 2500 and least(72, b200, 72) == 45000 / 72 and least(4, b200, 72) == 625
    assert (names["most_ways"](H100, 8), round(names["most_ways"](b200, 72))) == (8, 19)
    assert rows["million parameters a stage"][1] == "324.2" and 9 < block / 324e6 < 10.5  # "ten times"
    assert rows["tensor ways, at most"] == ["22.1", "2.5", "19.5", "1.1"]
    assert "2,199 tokens a GPU over NVLink" in TEXT and "an eighth of that, 2,474" in TEXT
    assert "a part needs 1,237 tokens" in TEXT


def test_half_the_tokens_leave_200_of_490_milliseconds_to_see():
    backward, exchange = 1e3 * 4 * 7e9 * 4096 / SPEED, 1e3 * 2 * 7 / 8 * 14e9 / NETWORK
    assert (round(backward), round(exchange)) == (290, 490) and "at least 200 of them" in TEXT


@pytest.mark.slow
def test_llama_3_is_solved(capsys):
    names, _ = limits(capsys)
    exec(cell("gradients, of backward"), names)
    printed = dict(re.findall(r"(\S.*): +(\S+%)", capsys.readouterr().out))
    assert printed["gradients, of backward"] == f"{6 / 4 * H100['peak_bf16'].si / 50e9 / 131072:.0%}" == "23%"
    assert printed["bubble, v = 1"] == "48%" and printed["bubble, v = 8"] == f"{15 / 143:.0%}"
    assert printed["tensor, 8 ways, of a step"] == "24%"
    assert [printed[f"to the next stage, v = {v}"] for v in (1, 8)] == ["1%", "10%"]
    alone, shared = names["least_tokens"](1, H100, 8), names["least_tokens"](128, H100, 8)
    assert [round(tokens) for tokens in (alone, shared, 1.5 * shared)] == [2474, 155, 232]
    assert 16 * 8192 / 128 == 1024 and 25e9 < 8 * names["P_block"] < 26e9


def test_a_token_wants_few_steps_and_a_prompt_few_bytes(capsys):
    names = run("def ring_time", "links = {", "def one_step", h100=H100)
    assert capsys.readouterr().out.endswith(
        "weights 5.2 ms\nring_time: 22.4 ms for a token, 64 ms for a prompt of 4,096\n"
        "one_step: 1.6 ms for a token, 169 ms for a prompt of 4,096\n"
    )
    ring, one = (names[way] for way in ("ring_time", "one_step"))
    for rows, faster in ((679, one), (681, ring)):  # "from 11 MB on, 680 tokens, the ring is faster"
        assert min((ring, one), key=lambda way, n=rows: way(8, n * 16384, NVLINK)) is faster
    assert round(160e3 * ring(8, 16384, NVLINK, 2e-6), 1) == 4.5
    assert "13 L B / 5.25 = 11 MB on, 680 tokens" in TEXT and "the ring would still take 4.5 ms" in TEXT


@pytest.mark.slow
def test_the_cut_for_512_gpus_leaves_out_the_same_factor(capsys):
    names, _ = limits(capsys)
    exec(cell("state: {16 * 70e9"), names)
    ways = names["nvlink"] * 0.4 * 16 * 8192 / (6 * 856e6 / 8)
    assert f"tensor parallelism: +{ways:.0%}\n" in capsys.readouterr().out


def test_the_pages_worked_numbers(capsys):
    run("how, width in")
    printed = capsys.readouterr().out
    rate = 37e9 * 6 * 14.8e12 / (2.664e6 * 3600)
    assert f"{rate / 1e12:.0f} TFLOP/s" in printed
    assert f"{4 * 7168 * 3 / 50e9 / (2 * 37e9 / 61 / rate):.2f} of the arithmetic" in printed
    run("for v in 1, 2, 4, 8")
    assert "v = 1: 326" in (printed := capsys.readouterr().out) and "v = 8: 407" in printed


@pytest.mark.slow
def test_tokens_go_to_their_experts_and_back_and_the_popular_expert_gets_most(ranks):
    dispatch = run("def dispatch")["dispatch"]
    for popularity, share in (([1.0, 1, 1, 1], 1 / 4), ([3.0, 1, 1, 1], 1 / 2), ([0.0, 1, 1, 0], 0)):
        arrived = ranks.run(dispatch, popularity)
        assert sum(arrived) == 4 * 1024 * 256  # no token is lost
        assert arrived[0] / sum(arrived) == pytest.approx(share, abs=0.03)


@pytest.mark.slow
def test_a_quarter_of_the_queries_needs_the_other_quarters_of_the_cache(ranks):
    names, qkv = run("def merge", "def pass_on", "def ring_attention"), torch.randn(3, 1, 64, 8)
    parts, received = zip(*ranks.run(names["ring_attention"], *qkv), strict=True)
    whole = torch.nn.functional.scaled_dot_product_attention(*qkv)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    assert set(received) == {2 * 3 * 16 * 8 * 4}  # keys and values, three others, 16 tokens of 8 numbers


def documented(tool):
    schemas = json.loads((TESTS / "training_tools.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schemas[tool])


def fenced(language):
    """The one text of the page in this language that is not run."""
    page = (BOOK / "10-many-gpus.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    return found


def test_the_deepspeed_file_has_documented_settings_and_is_for_64_gpus():
    settings, check = json.loads(fenced("json")), documented("deepspeed")
    assert list(check.iter_errors(settings)) == []
    assert settings["train_batch_size"] == 64 * (
        settings["train_micro_batch_size_per_gpu"] * settings["gradient_accumulation_steps"]
    )
    for change in ({"micro_batch": 2}, {"train_batch_size": "256"}, {"zero_optimization": {"stage": 4}}):
        assert list(check.iter_errors(copy.deepcopy(settings) | change)) != []


def test_the_torchtitan_recipe_sets_documented_degrees_whose_product_is_the_ranks():
    recipe = ast.parse(fenced("python"))
    degrees = {
        node.targets[0].attr: ast.literal_eval(node.value)
        for node in ast.walk(recipe)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("config.parallelism.")
    }
    check = documented("torchtitan")
    assert len(degrees) == 5 and list(check.iter_errors(degrees)) == []
    assert list(check.iter_errors(degrees | {"tensor_parallel": 8})) != []
    tensor, stages, data = (
        degrees[f"{kind}_degree"] for kind in ("tensor_parallel", "pipeline_parallel", "data_parallel_shard")
    )
    assert tensor * stages * data == 16384
    bubble = (stages - 1) / (degrees["num_pp_microbatches"] + stages - 1)
    assert round(100 * bubble) == 48 and "15/47 = 32 %" in TEXT
    assert "num_tokens_per_microbatch_per_dp_rank = 8192" in fenced("python")
    # Llama 3's step of 16.8 million tokens
    assert degrees["num_pp_microbatches"] * 8192 * data == 2048 * 8192


@pytest.mark.slow
def test_the_scaling_cells_measure_and_predict(ranks, capsys):
    caught, names = {}, ("measured", "predicted", "cores")
    draw = lambda *values: caught.update(zip(names, values, strict=True))  # noqa: E731
    figure = type("Chart", (), {"scaling": draw})
    cells = "def ring_time", "def fastest", "def exchange", "small, large", "def steps", "predicted ="
    run(*cells, ranks=ranks, rows=worksheet(32), figure=figure)
    assert list(caught["measured"]) == [1, 2, 4] == list(caught["predicted"])
    assert all(value > 0 for value in caught["measured"].values())
    assert caught["predicted"][1] == caught["measured"][1]
    drawn = figures.scaling(**caught)
    assert f"on {caught['cores']} cores" in drawn.alt


def test_the_efficiencies(capsys):
    cells = "def ring_time", "links = {", "def nodes_time", "def efficiency", "after, beside"
    names = run(*cells, speed=SPEED, h100=H100)
    printed = re.findall(r"(\d+) GPUs: +(\d+)%, overlapped +(\d+)%", capsys.readouterr().out)
    assert "; ".join(map(" ".join, printed)) == "64 98 100; 512 87 100; 2048 62 100; 4096 43 61; 16384 14 15"
    assert names["efficiency"](2000)[1] > 0.999 > names["efficiency"](2304)[1]  # "up to some 2,000"


def test_the_quiz():
    grown = {stage: sum(vram.zero_bytes(13e9, 8, stage).values()) / 1e9 for stage in range(4)}
    assert grown == pytest.approx({0: 208, 1: 71.5, 2: 48.75, 3: 26})
    assert f"sends gradients four times and weights once, {4 * 2 + 2} P" in TEXT
    assert round(280e9 / NVLINK, 2) == 0.62 and 280e9 / NETWORK == 5.6
