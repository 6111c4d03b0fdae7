"""Chapter 13: its kernels compute a training step, move the bytes that the text derives, and learn."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import ROOT
from numba import cuda
from page_code import run_cells

import warplab
from warplab.figures import train_it
from warplab.hardware import specs
from warplab.models.drawn_digits import drawn_digits

PAGE = ROOT / "chapters/13-train-it.md"
TEXT = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
H100 = specs.get("h100-sxm")


def page(beginning, **known):
    """The names after running the one cell that contains ``beginning``."""
    names = {"np": np, "torch": torch, "F": F, "h100": H100, "warplab": warplab, **known}
    return run_cells(PAGE.stem, beginning, **names)


@pytest.fixture(scope="module")
def batch():
    pictures, labels = drawn_digits(np.random.default_rng(3), 64)
    return pictures, labels, cuda.to_device(pictures), cuda.to_device(labels)


def fresh():
    return train_it.Net(64, 128, 10, seed=3)


def counted(launches):
    return [warplab.profile(launch.run, *launch.args) for launch in launches]


@pytest.mark.slow
def test_a_step_fused_and_a_step_apart_agree_with_pytorch_in_float64(batch):
    pictures, labels, x, wanted = batch
    fused, apart = fresh(), fresh()
    model = page("def in_float64")["in_float64"](fused)
    adam = torch.optim.AdamW(model.parameters(), lr=fused.rate, weight_decay=fused.decay)
    for _ in range(3):
        loss = F.cross_entropy(model(torch.from_numpy(pictures).double()), torch.from_numpy(labels).long())
        adam.zero_grad()
        loss.backward()
        adam.step()
        for net, launches in ((fused, fused.fused(x, wanted)), (apart, apart.apart(x, wanted))):
            net.run(launches)
            assert net.losses.copy_to_host().mean() == pytest.approx(loss.item(), abs=1e-5)
    want = [p.detach().numpy().T for p in model.parameters()]
    for net in (fused, apart):
        for mine, other in zip(net.parts(net.w.copy_to_host()), want, strict=True):
            assert mine == pytest.approx(other, abs=2e-4)


@pytest.mark.slow
def test_the_launches_and_the_bytes_of_both_steps(batch):
    _, _, x, wanted = batch
    net = fresh()
    apart, fused = (counted(way(x, wanted)) for way in (net.apart, net.fused))
    assert (len(apart), len(fused)) == (34, 7) and "34 launches for our network, fused seven" in TEXT
    # x, W1 and b1 are read, z and h written, 4 bytes a number
    assert train_it.moved(fused[0]) == 4 * (64 * 64 + 64 * 128 + 128 + 2 * 64 * 128) == 115_200
    update = [sum(map(train_it.moved, part)) / net.size for part in (fused[-1:], apart[14:])]
    assert update == pytest.approx([28, 56], abs=0.05)  # 16 read and 12 written; 8 + 12 + 12 + 8 + 16
    saved = [sum(map(train_it.moved, part)) for part in (apart, fused)]
    assert saved[1] / saved[0] == pytest.approx(0.57, abs=0.01) and "Less than three fifths" in TEXT


@pytest.mark.slow
def test_the_network_learns_to_read_and_to_write(batch):
    _, _, x, wanted = batch
    losses = fresh().learn(x, wanted, 12)
    assert losses[0] == pytest.approx(np.log(10), abs=0.15) and losses[-1] < 0.8 * losses[0]
    context, following = train_it.lessons(seed=1, count=64)
    assert context.sum(1).tolist() == [4] * 64  # one of 28 for each of four letters
    assert set(train_it.POEM) <= set(train_it.LETTERS) and len(train_it.POEM) == 762
    assert following.max() < 28 == len(train_it.LETTERS)


def test_the_block_is_counted_as_the_text_says():
    block = page("def block_step")["block_step"]
    large, small = block(8192), block(1024, text=256)
    hbm, array, matrix = H100["memory_bandwidth"].si, 2 * 8192 * 4096, 2 * 32 * 8192 * 2048
    assert large["attention"][0] == pytest.approx((11 * matrix + 12 * array) / hbm)
    assert large["AdamW"][1] == pytest.approx(28 * 12 * 4096**2 / hbm)
    saves = {kind: before - after for kind, (before, after) in large.items()}
    order = ["attention", "AdamW", "bias and GELU", "norms and additions", "products"]
    assert sorted(saves, key=saves.get, reverse=True) == order
    assert max(small, key=lambda kind: small[kind][0]) == "AdamW"


def test_three_sizes_have_three_limits():
    names = page("def step_takes", net=fresh())
    limits = [max(takes, key=takes.get) for takes in names["rows"].values()]
    assert limits == ["launches", "products", "products"]
    own = next(iter(names["rows"].values()))
    assert [f"{1e6 * own[what]:.3g}" for what in ("launches", "AdamW")] == ["17.5", "0.0803"]
    assert own["AdamW"] > own["products"]
    assert "17.5 µs of launches; its next largest item, AdamW, is 0.08 µs" in TEXT
    assert names["rows"]["10.1 billion"]["launches"] < 0.01 * names["rows"]["10.1 billion"]["products"]


def test_the_bill_follows_from_the_step():
    names = run_cells(PAGE.stem, "def step_takes", "from warplab import prices", h100=H100, net=fresh())
    each, took = names["each"], names["steps"] * names["each"]
    dollars = 8 * took * names["a_second"]
    assert (round(each, 2), round(took / 86400), round(dollars, -3)) == (1.26, 45, 23_000)
    assert "45 days and costs some 23,000 dollars" in TEXT and "Of the 1.26 s of a step" in TEXT
    assert names["own"] * names["a_second"] == pytest.approx(2e-6, rel=0.1)
    products, update = (names["rows"]["10.1 billion"][part] for part in ("products", "AdamW"))
    saved = 1 - (products / 0.6 + update / 8) / each
    assert update / 8 < 0.01 * each and saved == pytest.approx(1 / 3, abs=0.01)


def test_the_timed_run_is_a_row_of_the_task_and_far_from_its_arithmetic():
    """6 FLOP for 256 x 128 + 128 x 10 weights and 128 pictures: 26.1 M, 0.39 us of 51 at 67 TFLOP/s."""
    from warplab.figures.train_it_runs import timed_record
    from warplab.tasks import registry

    record = timed_record()
    assert set(record["rows"]) == set(registry.get(record["task"]).yardstick)
    for row in record["rows"].values():
        low, high = row["interval"]
        assert low <= row["ratio"] <= high
        assert row["ratio"] == pytest.approx(row["seconds"] / row["yardstick_seconds"], rel=0.02)
    each = record["rows"]["time"]["seconds"] / 128
    assert 6 * (256 * 128 + 128 * 10) * 128 / specs.get(record["card"])["peak_fp32"].si < 0.01 * each
