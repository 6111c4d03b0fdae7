"""Chapter 6: its derived numbers are recomputed, its claims about PyTorch are tried,
and its calculator computes as warplab.models.vram does.
"""

from functools import partial

import pytest
import torch
from conftest import ROOT
from page_code import run_cells, text_of

from warplab.evidence.measure import records, shown_without_running
from warplab.figures import fit as figures
from warplab.hardware import specs
from warplab.models import vram
from warplab.models.networks import Block, Transformer, worksheet

BOOK = ROOT / "chapters"
TEXT = text_of("06-fit")
SEVEN, THIRTEEN = {"layers": 32, "width": 4096, "heads": 32}, {"layers": 40, "width": 5120, "heads": 40}
CARD = {name: specs.get(name)["memory_capacity"].si for name in ("rtx-4090", "h100-sxm", "h200-sxm")}


run = partial(run_cells, "06-fit")


def test_seven_billion_numbers():
    assert [7 * kind.itemsize for kind in (torch.float32, torch.float16, torch.int8)] == [28, 14, 7]
    assert 28e9 > CARD["rtx-4090"] and CARD["rtx-4090"] - 14e9 == 10e9
    assert specs.get("h100-sxm")["memory_reported"].si / 1e9 == pytest.approx(85, abs=0.1)
    assert "sixteen different numbers" in TEXT


@pytest.mark.slow
def test_the_tenants():
    assert CARD["h100-sxm"] < 112e9 < CARD["h200-sxm"]
    around_1 = torch.tensor([0x3F7F, 0x3F80, 0x3F81], dtype=torch.int16).view(torch.bfloat16)
    assert [round(gap, 3) for gap in around_1.float().diff().tolist()] == [0.004, 0.008]
    weight = torch.nn.Parameter(torch.ones(3))
    adam = torch.optim.Adam([weight])
    weight.grad = torch.tensor([1e-4, 1.0, 1e4])
    adam.step()
    assert weight.tolist() == pytest.approx(
        [0.999] * 3, rel=1e-6
    )  # Adam's first step is its learning rate, whatever the gradient
    assert torch.equal(weight.bfloat16(), torch.ones(3).bfloat16())  # and in 16 bits it rounds to nothing


def test_the_mixed_step_of_the_page_keeps_sixteen_bytes_and_moves_the_16_bit_weights():
    names = run("worksheet(64)", "def size(", "half.loss(rows)", torch=torch)
    after = list(names["half"].parameters())
    parts = after, [p.grad for p in after], names["wide"], names["state"](names["adam"])
    assert [round(names["size"](part) / names["count"]) for part in parts] == [2, 2, 4, 8]
    assert all(torch.equal(small, big.bfloat16()) for small, big in zip(after, names["wide"], strict=True))
    assert any(
        not torch.equal(small, old.bfloat16())
        for small, old in zip(after, names["model"].parameters(), strict=True)
    )


def test_autocast_keeps_16_bit_copies_of_the_weights_for_the_way_back():
    block, x = Block(256, 4), torch.randn(1, 32, 256, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16), vram.saving(block) as kept:
        block(x)
    small = [
        (shape, size) for shape, kind, size in kept.tensors if kind == torch.bfloat16 and len(shape) == 2
    ]
    assert sum(size for shape, size in small if min(shape) >= 256) == 2 * 12 * 256**2  # two bytes a weight


def test_a_block_keeps_sixteen_sheets():
    names = run("from warplab.models import Block", torch=torch, size=lambda ts: sum(t.nbytes for t in ts))
    assert names["kept"].bytes / names["array"] == pytest.approx(16.05, abs=0.005)
    drawn = figures.kept(names["kept"].tensors, names["array"])
    assert "16 arrays" in drawn.caption and "q, k, v 3" in drawn.alt
    with pytest.raises(ValueError, match="look at what PyTorch saves now"):
        figures.kept(names["kept"].tensors[:-1], names["array"])


def test_stored_attention_keeps_one_array_of_weights_more():
    names = run(
        "q @ k.mT", torch=torch, vram=vram, batch=4, tokens=128, width=256, heads=8, array=4 * 128 * 256 * 4
    )
    assert names["more"] == 8 * 128 / 256 == 4


def test_activations_against_weights():
    each = vram.activation_bytes(**SEVEN, tokens=1)
    assert each == pytest.approx(4.2e6, rel=0.01) and worksheet(1).dtype.itemsize == 8
    how = {}, {"fused": False}, {"fused": False, "dropout": True}
    sizes = [vram.activation_bytes(**SEVEN, tokens=2048, **h) / 1e9 for h in how]
    assert [round(size, 1) for size in sizes] == [8.6, 17.2, 30.6]
    assert sizes[0] < 14 < sizes[1]


@pytest.mark.slow
@pytest.mark.full
def test_pytorch_recomputes_a_third_less_of_each_segment_s_last_block():
    names = run("checkpoint(run", torch=torch, Block=Block)
    names |= run("FlopCounterMode(", **names, x=torch.randn(1, 8, 32, requires_grad=True))
    for segments, extra in names["more"].items():
        assert extra == pytest.approx((1 - segments / 64 / 3) / 3, abs=1e-6)
    assert {k: f"{v:.1%}" for k, v in names["more"].items()} == {1: "33.2%", 8: "31.9%", 64: "22.2%"}


def test_accumulated_gradients_are_those_of_the_large_batch():
    torch.manual_seed(0)
    names = run("def gradients(", torch=torch, vram=vram, rows=worksheet(64), model=Transformer())
    assert names["large"] / names["small"] == pytest.approx(4, rel=0.01)
    torch.testing.assert_close(names["once"], names["added"], rtol=1e-4, atol=1e-7)
    unequal = names["gradients"](names["rows"].split([48, 16]))[1]
    torch.testing.assert_close(names["once"], unequal, rtol=1e-4, atol=1e-7)


def test_pooling_by_the_maximum_keeps_indices_and_the_average_none():
    pooled = {}
    x = torch.rand(1, 4, 8, 8, requires_grad=True)
    for name, pool in (("max", torch.nn.MaxPool2d(2)), ("average", torch.nn.AvgPool2d(2))):
        with vram.saving() as kept:
            pool(x)
        pooled[name] = kept.bytes - x.nbytes
    assert pooled == {"max": 2 * x.numel(), "average": 0}  # two bytes for each number that went in


def test_memory_that_is_fragmented():
    names = run("class Memory", "moments = []")
    memory = names["memory"]
    assert sum(length for length, _ in memory.gaps()) == 18
    assert not memory.put(8) and memory.put(6)
    assert names["Memory"](4).put(4) and not names["Memory"](4).put(5)
    full = names["Memory"](3)
    assert full.put(3) and not full.put(1)


def test_the_rules_come_near_a_published_step_from_below():
    block = 512 * 1024 * (16 * 4 + 2) + 16 * 512**2 * (2 * 4 + 1)  # bytes: FP32, and masks of a byte
    rules = [4 * 1.350565888 + batch * 24 * block / 1e9 + 1.4 for batch in (1, 4)]
    shares = (f"{100 * rule / peak:.0f}" for rule, peak in zip(rules, (9.1027, 15.6752), strict=True))
    assert f"The rules come to {' and '.join(shares)} % of what" in TEXT
    assert "4: 13.7 GB by the rules, 15.7" in figures.parts(shown_without_running("memory_by_part")).alt


@pytest.mark.slow
def test_the_cache_of_a_chat():
    each = vram.kv_cache_bytes(32, 4096, 1)
    assert each == 524_288 == 2**19
    assert int(10e9 / each) == 19_073 and int(10e9 / each / 2048) == 9
    alt = figures.cache().alt
    assert "19,073 tokens" in alt and "152,587 tokens" in alt


def test_thirteen_billion_on_24_gb():
    names = run("shape of Llama 2 13B", "for bits in (16, 8, 4.13)", vram=vram)
    assert names["adapters"] == pytest.approx(52.4e6, rel=0.001)
    totals = [
        sum(vram.adapter_bytes(13e9, names["adapters"], bits / 8).values()) + names["kept"]
        for bits in (16, 8, 4.13)
    ]
    assert [total <= CARD["rtx-4090"] for total in totals] == [False, True, True]


def test_the_quiz():
    fp32, mixed = vram.RECIPES["FP32, Adam"], vram.RECIPES["mixed, Adam"]
    assert sum(fp32.values()) - fp32["weights"] == 12
    assert sum(mixed.values()) - mixed["weights"] - mixed["FP32 weights"] == 10
    block = {"layers": 1, "width": 64, "heads": 4}
    twice = [
        vram.activation_bytes(**block, tokens=s, batch=b, fused=False)
        - vram.activation_bytes(**block, tokens=s, batch=b)
        for s, b in ((32, 4), (64, 2))
    ]
    assert twice[1] == 2 * twice[0]
    each = vram.kv_cache_bytes(40, 5120, 1)
    assert each == 819_200 and each * 4096 == pytest.approx(3.36e9, rel=0.002)
    assert int(54e9 / (each * 4096)) == 16 and int(8 * 54e9 / (each * 4096)) == 128


def test_the_table_without_scripts_is_the_calculator_s_first_example():
    page = figures.calculator()._repr_html_()
    assert "120.6 GB" in page and "15.1 GB" in page and "<script src" not in page and "http" not in page
    assert page.count("<label") == 9 == page.count("<input") + page.count("<select")


@pytest.mark.browser
def test_the_calculator_computes_what_vram_does_and_can_be_used_from_the_keyboard(browser):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    try:
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_content(figures.calculator()._repr_html_())
        thirteen = {"parameters": 13, **THIRTEEN, "tokens": 1024, "batch": 3}
        gpt_2 = {"layers": 12, "width": 768, "heads": 12, "parameters": 0.124}
        for values, recipe, fused, checkpointed in (
            ({}, "mixed, Adam", True, False),
            (thirteen, "FP32, Adam", True, True),
            ({"tokens": 8192, "heads": 64}, "mixed, 8-bit Adam", False, False),
            (gpt_2, "BF16 throughout, Adam", False, True),
        ):
            shape = {"parameters": 7, **SEVEN, "tokens": 2048, "batch": 1} | values
            for name, value in shape.items():
                page.locator(f"input[name={name}]").fill(str(value))
            page.locator("select").select_option(recipe)
            page.locator("input[name=fused]").set_checked(fused)
            page.locator("input[name=checkpointed]").set_checked(checkpointed)
            count, size = shape.pop("parameters") * 1e9, 4 if recipe == "FP32, Adam" else 2
            derived = vram.training_bytes(count, recipe)
            segments = shape["layers"] if checkpointed else None
            derived["activations"] = vram.activation_bytes(
                **shape, number=size, fused=fused, segments=segments
            )
            derived["training, together"] = sum(derived.values())
            cache = vram.kv_cache_bytes(shape["layers"], shape["width"], shape["tokens"], shape["batch"])
            derived["inference: weights and KV cache"] = 2 * count + cache
            shown = dict(row.split("\t") for row in page.locator("tbody").inner_text().splitlines())
            assert shown == {name: f"{value / 1e9:,.1f} GB" for name, value in derived.items()}
        page.locator("input[name=parameters]").focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("700")
        assert "fits none of RTX 4090, H100, H200" in page.locator(".status").inner_text()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == "layers"
        page.keyboard.press("Control+A")
        page.keyboard.type("0")
        assert page.locator(".status").inner_text().startswith("Layers:")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and errors == []
    finally:
        page.close()


@pytest.mark.full
def test_the_experiments_step_as_they_say(monkeypatch):
    from warplab.evidence.experiments import checkpoints as fit

    monkeypatch.setattr(fit, "SHAPE", {"layers": 16, "width": 8, "heads": 2})
    monkeypatch.setattr(fit, "BATCH", 2)
    monkeypatch.setattr(fit, "TOKENS", 4)
    monkeypatch.setattr(
        fit, "_peak", lambda call, before: call() or 1.0
    )  # there is no allocator to ask on a CPU
    with torch.no_grad():  # as the recorder runs them
        names = [case.call() or case.series for case in fit.checkpointing("cpu")]
        assert names == ["no checkpoints", *(f"{k} segments" for k in (1, 2, 4, 8, 16))]
        names = [case.call() or case.series for case in fit.training_memory("cpu")]
        assert names == ["FP32, Adam", "autocast, Adam", "mixed, Adam", "BF16 throughout, Adam"]


@pytest.mark.full
def test_the_mixed_step_of_the_experiment_learns():
    from warplab.evidence.experiments import checkpoints as fit

    torch.manual_seed(0)
    model, rows = Transformer(), worksheet(64)
    before = model.loss(rows).item()
    with torch.no_grad():
        step = fit._mixed(model, rows)
        for _ in range(20):
            step()
        assert model.loss(rows).item() < 0.9 * before


def test_what_stays_with_the_host_and_what_crosses_the_street():
    names = run("worksheet(64)", "def size(", "half.loss(rows)", "stays = size", torch=torch)
    assert round(names["stays"] / names["count"]) == 12  # an FP32 copy and two moments
    assert [round(names[way] / names["count"]) for way in ("out", "back")] == [2, 2]


def test_the_tokens_that_hide_the_trip_do_not_depend_on_the_model():
    street = {"rtx-4090": specs.get("a100-sxm")["pcie_each_way"].si, "h100-sxm": 64e9}
    assert specs.get("rtx-4090")["pcie_generation"].value == specs.get("a100-sxm")["pcie_generation"].value
    for name, each_way in street.items():
        peak = specs.get(name)["peak_bf16"].si
        for crossing in (4, 6):  # bytes a parameter: gradient and weight; gradient and the weights twice
            tokens = crossing / 6 * peak / each_way
            for parameters in (1e9, 13e9):  # seconds of the trip, seconds of the arithmetic
                assert crossing * parameters / each_way == pytest.approx(6 * parameters * tokens / peak)
    own, peak = (specs.get("rtx-4090")[key].si for key in ("memory_bandwidth", "peak_bf16"))
    assert 2 * 7e9 < CARD["rtx-4090"] < 2 * 13e9 and f"{4 / 6 * peak / 32e9:,.0f} tokens, what" in TEXT
    assert round(26e9 / street["rtx-4090"], 1) == 0.8 and int(own / street["rtx-4090"]) == 31
    assert round(364e9 / specs.get("epyc-9654")["memory_bandwidth"].si, 1) == 0.8


def test_the_times_of_the_records_vary_as_the_page_says():
    rises, spreads = [], []
    for record in records("checkpointing"):
        plain, *others = record.points
        rises += [point.median / plain.median for point in others]
    for record in records("training_memory"):
        spreads += [100 * p.iqr / p.median for p in record.points if not p.series.startswith("FP32")]
    assert f"{min(rises):.1f}- to {max(rises):.1f}-fold" in TEXT
    assert f"{min(spreads):.1f} to {max(spreads):.0f} %" in TEXT
    held = {p.series: p.x for p in records("training_memory")[0].points}
    assert held["mixed, Adam"] / held["FP32, Adam"] == pytest.approx(0.75, abs=0.02)  # "saves a quarter"
