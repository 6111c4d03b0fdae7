"""The caption of a figure of published numbers is computed from them: other numbers, another sentence."""

from dataclasses import replace

import pytest

from warplab.evidence.catalogue import experiments
from warplab.evidence.measure import Evidence, published
from warplab.evidence.record import Point
from warplab.figures import published as captions
from warplab.figures.published import FINDINGS, finding_of_others

AT_X = {"training_memory", "energy"}  # their captions are of gigabytes and joules, which stand at x


def others(device, *points):
    """A source: points are (series, x, seconds)."""
    made = [Point(series, x, "published", 0, [s], s, 0.0, bytes=10**9) for series, x, s in points]
    return Evidence("published", device, "published by nobody", tuple(made))


@pytest.mark.parametrize("name", FINDINGS)
def test_every_caption_has_a_number_and_is_one_of_published_numbers(name):
    assert published(name), "nobody published on this question"
    said = finding_of_others(name)
    assert any(c.isdigit() for c in said) and said[0].isupper() and said.endswith(".")


@pytest.mark.parametrize("name", FINDINGS)
def test_every_caption_turns_with_the_numbers(name, monkeypatch):
    """Each time, or what was held or used, grows in its own way: no two of them keep their ratio."""
    change = larger if name in AT_X else slower
    sources = [replace(e, points=tuple(map(change, e.points))) for e in published(name)]
    before = finding_of_others(name)
    monkeypatch.setattr(captions, "published", lambda name: sources)
    assert finding_of_others(name) != before


def slower(p):
    factor = 2 + len(p.series) / 40 + p.x % 7 / 10
    return replace(p, samples=[factor * s for s in p.samples], median=factor * p.median)


def larger(p):
    return replace(p, x=p.x * (2 + len(p.series) / 40))


def test_a_share_of_the_rate_turns_with_the_numbers(monkeypatch):
    def of(half):
        rows = ("a load at a time", 32, half), ("a load at a time", 64, 1e-3)
        monkeypatch.setattr(captions, "published", lambda name: [others("NVIDIA A100 80 GB", *rows)])
        return finding_of_others("occupancy")

    assert "32 warps reach 50 % on the A100. The 64 warps reach 1 TB/s." in of(2e-3)
    assert "32 warps reach 80 % on the A100." in of(1.25e-3)


def test_the_size_from_which_the_gpu_wins_with_its_copies_is_that_of_the_numbers(monkeypatch):
    """Sides 64, 128 and 256 have 2 n³ operations; the CPU wins at 64, or at 64 and 128."""

    def of(cpu_at_128):
        cpu = [("six cores: product", 2 * n**3, s) for n, s in ((64, 1), (128, cpu_at_128), (256, 9))]
        gpu = [
            (f"GPU: product{copies}", 2 * n**3, 5)
            for n in (64, 128, 256)
            for copies in ("", ", with both copies")
        ]
        source = others("NVIDIA GeForce GTX 1070 Ti, and a CPU", *cpu, *gpu)
        monkeypatch.setattr(captions, "published", lambda name: [source])
        return finding_of_others("crossover")

    assert "a product of side 64 " in of(6) and "From side 128 on" in of(6)
    assert "a product of side 128 " in of(4) and "From side 256 on" in of(4)


def test_every_published_figure_of_the_book_has_a_sentence():
    """But the one that draws shares of peaks, whose caption its own function writes."""
    assert {name for name in experiments() if published(name)} - set(FINDINGS) == {"matmul_by_size"}


def test_an_experiment_without_a_sentence_has_the_question_for_a_caption():
    assert finding_of_others("nobody_knows_this") == ""
