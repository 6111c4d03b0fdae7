"""No published measurement is faster than our bound of the same work on the same device."""

import pytest

from warplab.figures import held
from warplab.figures.held import HELD, NOT_HELD, grown, judged


@pytest.fixture(scope="module")
def every():
    return judged()


@pytest.mark.slow
def test_no_published_measurement_is_faster_than_the_bound(every):
    assert [(j, j.ratio) for j in every if j.found and j.ratio < 1] == []


@pytest.mark.slow
def test_every_published_number_has_a_bound_or_a_reason(every):
    assert all(bool(j.found) != bool(j.why) for j in every)
    assert sum(bool(j.found) for j in every) >= 110


@pytest.mark.slow
def test_no_series_is_judged_that_nobody_published(every):
    series = {(j.experiment, j.point.series) for j in every}
    reasons = {key if isinstance(key, tuple) else (key, "") for key in NOT_HELD}
    assert set(HELD) <= series
    assert {key for key in reasons if key[1]} <= series
    assert {key[0] for key in reasons} <= {name for name, _ in series}
    assert not set(HELD) & reasons


@pytest.mark.slow
def test_a_series_that_is_neither_fails(monkeypatch):
    monkeypatch.delitem(held.HELD, ("softmax", "one kernel"))
    with pytest.raises(KeyError, match="softmax: 'one kernel' is neither in HELD nor in NOT_HELD"):
        tuple(held._judged())


@pytest.mark.slow
def test_bounds_are_near_what_is_known_to_be_near_a_roof(every):
    ratios = {(j.experiment, j.point.series, j.evidence.device, j.point.x): j.ratio for j in every if j.found}
    assert ratios["copy_bandwidth", "copy of doubles", "NVIDIA V100", 1] == pytest.approx(1.114, abs=1e-3)
    assert ratios["rooflines", "multiply-adds in a chain", "NVIDIA A100 40 GB", 128.25] < 1.03


def test_work_that_does_not_grow_as_said_is_refused():
    with pytest.raises(ValueError, match="not of the powers"):
        grown(held.square(held.kernels.matmul_naive), (64, 96, 128), (2, 0), 4096)
