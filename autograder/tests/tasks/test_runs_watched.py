"""The runs of set 13 as a notebook shows them, in any language: its losses, and its kernels' bytes."""

import numpy as np
import pytest
from corpus_files import entry_of, solution_of

from warplab.figures import train_it_runs

MLP = "ps13/train_mlp"


@pytest.fixture(scope="module")
def train_mlp():
    return solution_of(MLP)[0]


@pytest.mark.slow
def test_a_watched_run_has_the_losses_of_float64_and_trained_weights(train_mlp):
    run = train_it_runs.watch(train_mlp, steps=3)
    np.testing.assert_allclose(run.losses, run.want, rtol=1e-4)
    assert {name: w.shape for name, w in run.weights.items()}["w1"] == (64, 32)
    assert "fresh pictures" in train_it_runs.mistakes(run, count=40).caption


@pytest.mark.slow
def test_launches_and_bytes_are_those_that_the_judge_counts(train_mlp):
    """Five launches. What lies between kernels is of the student's own making: no moment, no weight."""
    found = train_it_runs.counted(train_mlp)
    assert sum(launches for launches, _ in found.kernels.values()) == 5
    moved, name, writers, readers = found.between[0]
    assert (moved, name) == (8192, "float32[32, 32]")  # 32 x 32 numbers of 4 bytes, written and read
    assert (writers, readers) == (["first_layer"], ["there_and_back"])
    assert "5 launches" in train_it_runs.by_kernel(found).caption


@pytest.mark.slow
def test_kernels_of_triton_are_watched_and_counted_as_all_are():
    """Of a step five launches, and between two of them the same array as numba's kernels pass on."""
    pytest.importorskip("triton")
    train_mlp = entry_of("ps13/train_mlp/correct_triton").namespace()["train_mlp"]
    run = train_it_runs.watch(train_mlp, steps=2)
    np.testing.assert_allclose(run.losses, run.want, rtol=1e-4)
    found = train_it_runs.counted(train_mlp)
    assert {name: launches for name, (launches, _) in found.kernels.items()} == {
        "first_layer": 1,
        "picture": 1,
        "learn": 2,
        "mean": 1,
    }
    assert found.between[0] == (8192, "float32[32, 32]", ["first_layer"], ["picture"])


@pytest.mark.slow
def test_what_is_written_grows_from_the_first_word():
    run = train_it_runs.watch_text(solution_of("ps13/train_text")[0], steps=2)
    np.testing.assert_allclose(run.losses, run.want, rtol=1e-4)
    assert train_it_runs.sample(run.weights, 10).startswith("twinkle")
    assert [one["steps"] for one in run.written] == [0]


@pytest.mark.slow
def test_the_record_that_chapter_13_shows_has_the_losses_of_float64():
    """Of the first steps; `python -m workshop writing` makes all of it again."""
    record = train_it_runs.writing_record()
    case = train_it_runs.text_case(**record["run"] | {"steps": 11})
    losses = train_it_runs.TEXT.reference(case.inputs)["losses"]
    known = [(one["steps"], one["loss"]) for one in record["written"] if one["steps"] < len(losses)]
    assert known == [(n, pytest.approx(losses[n], rel=1e-3)) for n in (0, 10)]
    assert [one["steps"] for one in record["written"]] == [0, 10, 20, 30, 40, 50, 60]
