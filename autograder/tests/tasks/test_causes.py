"""What a case's `_cause` asks for is what the program that its notebook gives really does."""

import numpy as np
import pytest
from corpus_files import entry_of

import warplab
from warplab.tasks import registry


def given(task, entry="wrong_as_given"):
    return entry_of(f"{task}/{entry}").namespace()


def cause(task, **inputs):
    return {name: want.tolist() for name, want in registry.get(f"{task}_cause").reference(inputs).items()}


@pytest.mark.parametrize(("height", "width"), [(43, 70), (31, 100), (48, 32)])
def test_pixels_without_a_thread_and_bytes_that_wrap(height, width):
    program, out = given("ps01/brighten"), np.full((height, width), 1, np.uint8)
    program["brighten"][program["plan_brighten"](height, width)](np.full_like(out, 201), 9, out)
    told = cause("ps01/brighten", height=height, width=width, value=201, gain=9)
    assert told["missed"] == (out == 1).sum()
    assert set(out.flat) - {1} <= {told["written"]}


@pytest.mark.parametrize(("stars", "blocks"), [(300, 2), (1000, 5), (100, 3)])
def test_stars_that_are_done_again_and_again(stars, blocks):
    x = np.full(stars, 2, np.float32)
    profile = warplab.profile(given("ps02/dimming")["dimming"][blocks, 128], x, x, np.zeros_like(x))
    doubles = profile.unit_flops["fp64"]  # a product and a quotient for each number that is written
    assert cause("ps02/dimming", stars=stars, blocks=blocks) == {"writes": doubles / 2, "doubles": doubles}


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [1, 5, 60, 64])
def test_minutes_that_a_tree_forgets(minutes):
    sums = np.zeros(minutes, np.float32)
    given("ps03/hours")["hours"][minutes, minutes](np.eye(minutes, dtype=np.float32).ravel(), sums)
    told = cause("ps03/hours", minutes=minutes)
    assert list(told.values()) == [np.flatnonzero(sums == 0).tolist()]


@pytest.mark.parametrize(("outputs", "inputs"), [(5, 5), (10, 64)])
def test_a_layer_that_takes_the_other_axis(outputs, inputs):
    rng, y = np.random.default_rng(4), np.zeros(outputs, np.float32)
    w, x = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((outputs, inputs), inputs))
    given("ps04/layer")["layer"][1, 64](w, x, y)
    assert cause("ps04/layer", w=w, x=x)["y"] == y.tolist() != (w @ x).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("different", [1, 3, 20])
def test_a_bank_for_each_strength(different):
    def conflicts(x):
        launch = given("ps05/echoes", "wrong_as_repaired")["echoes"][1, 32]
        return warplab.profile(launch, x, np.zeros(32, np.int32)).shared_memory.bank_conflicts

    x = np.arange(32, dtype=np.int32)
    more = conflicts(x % different) - conflicts(x)
    assert cause("ps05/echoes", strengths=(x % different).tolist())["conflicts"] == more > 0
