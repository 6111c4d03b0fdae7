"""The small networks of the chapters: they learn, and a cache changes nothing but the work."""

import pytest
import torch
from torch.nn import functional

from warplab.models import networks as models


def test_a_worksheet_holds_right_sums_and_repeats_with_its_seed():
    rows = models.worksheet(200, seed=3)
    assert rows.shape == (200, 12) and torch.equal(rows, models.worksheet(200, seed=3))
    for row in rows:
        sum_, result = models.read(row).split("=")
        assert sum(map(int, sum_.split("+"))) == int(result)


def test_decoding_with_a_cache_gives_the_logits_of_the_whole_row():
    torch.manual_seed(0)
    model, rows = models.Transformer(), models.worksheet(3)
    whole, cache = model(rows), []
    parts = [model(rows[:, :5], cache), *(model(rows[:, i : i + 1], cache) for i in range(5, 12))]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-5)
    assert [key.shape for key, _ in cache] == [(3, 4, 12, 16)] * 2


def test_the_transformer_does_not_look_ahead():
    model, rows = models.Transformer(), models.worksheet(2)
    changed = rows.clone()
    changed[:, 8:] = 0
    torch.testing.assert_close(model(rows)[:, :8], model(changed)[:, :8])


def test_a_transformer_layer_has_twelve_times_its_width_squared_in_weights():
    small, large = (
        sum(p.numel() for p in models.Transformer(width=64, layers=n).blocks.parameters() if p.ndim == 2)
        for n in (2, 3)
    )
    assert large - small == 12 * 64**2


@pytest.mark.slow
def test_both_networks_learn_in_a_few_steps():
    torch.manual_seed(0)
    model, rows = models.Transformer(), models.worksheet(256)
    step = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(30):
        step.zero_grad()
        losses.append(model.loss(rows))
        losses[-1].backward()
        step.step()
    assert losses[-1] < 0.75 * losses[0]
    net, (images, labels) = models.ConvNet(), models.pictures(256)
    step = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(30):
        step.zero_grad()
        functional.cross_entropy(net(images), labels).backward()
        step.step()
    images, labels = models.pictures(256, seed=1)
    assert (net(images).argmax(1) == labels).float().mean() > 0.9
