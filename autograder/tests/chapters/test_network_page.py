"""The page on what a network computes: its numbers by hand, its runs, and the block that chapters share."""

import re

import jupytext
import pytest
from conftest import ROOT

from warplab.figures import network as figures

pytestmark = pytest.mark.slow

BOOK = ROOT / "chapters"
PAGE = BOOK / "what-a-network-computes.md"


@pytest.fixture(scope="module")
def run():
    """What the page's cells leave behind, and the figures that they draw by name."""
    import torch

    drawn, threads = {}, torch.get_num_threads()

    class Keep:
        def __getattr__(self, name):
            def draw(*args):
                drawn[name] = getattr(figures, name)(*args)

            return draw

    space = {"figure": Keep()}
    for cell in jupytext.read(PAGE, fmt="md:myst").cells:
        if cell.cell_type == "code" and "import network" not in cell.source:
            exec(compile(cell.source, PAGE.name, "exec"), space)
    torch.set_num_threads(threads)
    return space, drawn


def test_the_small_network_is_followed_by_hand(run):
    space, _ = run
    assert space["sums"].tolist() == [1 * 1 + 2 * 0.5, 1 * -1 + 2 * -1, 1 * 0.5 + 2 * 0]
    assert space["hidden"].tolist() == [2, 0, 0.5]
    assert space["scores"].tolist() == [2 * 1 + 0 * 1 + 0.5 * -2, 2 * 0.5 + 0 * 1 + 0.5 * 2]
    assert space["slope"] == pytest.approx(2 * (1 / (1 + 2.718281828) - 1), abs=1e-4)


def test_the_numbers_of_the_takeaways_are_those_that_the_page_prints(run):
    space, _ = run
    text = PAGE.read_text(encoding="utf-8")
    assert f"{space['operations'] / 1e12:.1f} trillion operations, {space['at_peak'] * 1e3:.1f} ms" in text
    gb, seconds = space["read"] / 1e9, space["seconds"]
    assert f"For the {gb / 2:.2f} billion weights that are read here, of 2 bytes each" in text
    assert f"{gb:.1f} GB / 3.35 TB/s = {seconds * 1e3:.1f} ms, at most {1 / seconds:.0f} tokens" in text


def test_both_runs_learn(run):
    space, drawn = run
    assert "100% do." in drawn["field"].alt and space["loss"].item() < 0.01
    most = space["look"].shares.argmax(1).tolist()
    assert most == list(range(8)), "each question looks at the place that it asks for"


def test_each_mistake_starts_where_the_good_run_does_and_does_not_learn(run):
    space, drawn = run
    good, *mistakes = space["curves"].values()
    assert good[-1] < 0.01 and len(mistakes) == 3
    for losses in mistakes:
        assert losses[:1] == good[:1] and sum(losses[-100:]) / 100 > 0.4
    rates = dict(zip(("long", "short", "added"), mistakes, strict=True))
    assert rates["added"][1] == good[1]  # one slope is no sum yet, and none was left from the run before
    assert max(rates["long"]) > 100 and max(rates["long"][-100:]) < 0.6  # leaps up, settles
    assert rates["short"] == sorted(rates["short"], reverse=True)  # "falls steadily ... from 0.70 to 0.60"
    assert [f"{rates['short'][k]:.2f}" for k in (0, -1)] == ["0.70", "0.60"]
    late = rates["added"][-300:]
    assert max(late) > 10 * min(late)  # "swings up and down and settles nowhere"
    assert "One of the four" in drawn["loss_curves"].caption


def test_a_block_of_width_h_has_12_h_squared_weights(run):
    rows = {"h": 1, "3h": 3, "4h": 4}
    shapes = [shape.split(" × ") for *_, shape in figures.STEPS if shape]
    assert sum(rows[a] * rows[b] for a, b in shapes) == 12
    assert run[0]["in_blocks"] == 32 * 12 * 4096**2


def test_the_marks_of_the_block_are_the_chapters_numbers():
    marks = {name: notes for name, (notes, _) in figures.MARKS.items()}
    steps = {name for name, *_ in figures.STEPS}
    assert all(set(notes) <= steps for notes in marks.values())
    assert sum(int(note.removeprefix("keeps ")) for note in marks["kept"].values()) == 16  # chapter 6
    # chapter 4
    assert sum(int((re.match(r"\d+", note) or [1])[0]) for note in marks["products"].values()) == 6
    assert list(marks["cut"].values()).count("all-reduce") == 2  # chapter 10: two in each direction
