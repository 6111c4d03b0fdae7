"""Kernels of ps05/find_the_limit: those of the notebook, with the same results, counted as profiles do."""

import numpy as np
import pytest
from corpus_files import SOLUTIONS

import warplab
from warplab.tasks import soundings
from warplab.tasks.ps05 import seconds_by_level
from warplab.tasks.soundings import FAULTS, HALF, PAD, SINGLE, TURN
from warplab.timing.bounds import LaunchWork
from workshop.mutants import notebook_cells

EACH = [(name, changes) for name, faults in FAULTS.items() for changes in ((), *((one,) for one in faults))]


def launched(name, changes, rows=64, cols=96):
    """(profile, out) on echo times that have exact values in float16."""
    echo = (np.arange(rows * cols, dtype=np.float32).reshape(rows, cols) % 64) / 64
    echo = echo.astype(np.float16 if HALF in changes else np.float32)
    out = np.zeros((cols, rows) if name == "plotted" else (rows, cols), echo.dtype)
    grid = (rows // 32, cols // 32) if name == "listed" and TURN not in changes else (cols // 32, rows // 32)
    p = warplab.profile(soundings.kernel_of(name, frozenset(changes))[grid, (32, 32)], echo, out)
    return p, out.astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), EACH)
def test_a_change_leaves_the_result_as_it_was(name, changes):
    limit = 2**-10 if HALF in changes else 1e-6
    np.testing.assert_allclose(launched(name, changes)[1], launched(name, ())[1], rtol=limit, atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), EACH)
def test_the_counts_are_those_of_the_profile(name, changes):
    p, _ = launched(name, changes)
    counts = soundings.counted(name, changes, 64, 96)
    assert counts == soundings.counts_of(p)
    work = LaunchWork.of(p)
    assert counts["wavefronts"] + counts["global_wavefronts"] == work.wavefronts
    assert (counts["fetched"], counts["written"], counts["blocks"]) == (work.fetched, work.written, 6)


@pytest.mark.slow
def test_what_each_change_does_by_hand():
    """64 x 96 float32 are 192 warps, 6 blocks and 24,576 bytes; a column in one bank takes 32 wavefronts."""
    assert soundings.counted("plotted", (), 64, 96) == {
        "blocks": 6,
        "fp32": 0,
        "fp64": 3 * 6144,
        "requests": 384,
        "global_wavefronts": 384,
        "wavefronts": 33 * 192,
        "conflicts": 31 * 192,
        "fetched": 24_576,
        "written": 24_576,
    }
    assert soundings.counted("plotted", (PAD,), 64, 96)["wavefronts"] == 2 * 192
    assert soundings.counted("plotted", (SINGLE,), 64, 96)["fp32"] == 3 * 6144
    assert soundings.counted("listed", (), 64, 96)["global_wavefronts"] == 32 * 384
    assert soundings.counted("listed", (TURN,), 64, 96)["global_wavefronts"] == 384
    assert soundings.counted("listed", (HALF,), 64, 128)["global_wavefronts"] == 32 * 512  # rows of 256 bytes
    assert soundings.counted("refined", (HALF,), 64, 96)["fetched"] == 12_288


@pytest.mark.parametrize("name", FAULTS)
def test_the_longest_time_is_that_of_the_bounds(name):
    """On a V100, which has a rate for each level; its L2 holds what these launches store."""
    p, _ = launched(name, ())
    gpu = warplab.specs.get("v100-sxm2")
    device = {"sms": gpu["sms"].value, "fp32": gpu["peak_fp32"].si, "fp64": gpu["peak_fp64"].si}
    facts = {"l1": "l1_bandwidth", "l2": "l2_bandwidth", "hbm": "memory_bandwidth"}
    device |= {level: gpu[fact].si for level, fact in facts.items()}
    times = seconds_by_level(soundings.counts_of(p), device)
    bounds = warplab.bounds(p, "v100-sxm2")
    assert sorted(bound.seconds for bound in bounds.bounds) == pytest.approx(sorted(filter(None, times)))


@pytest.mark.slow
def test_the_notebook_has_the_same_kernels():
    given = dict(notebook_cells.given_to(SOLUTIONS["ps05"], "find_the_limit"))
    cells = notebook_cells.code_cells(SOLUTIONS["ps05"])
    source = next(source for _, source in cells if "def plotted(" in source)
    exec(compile(source, str(SOLUTIONS["ps05"]), "exec"), given)
    for name in FAULTS:
        echo, out = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
        p = warplab.profile(given[name][(2, 2), (32, 32)], echo, out)
        assert given["counts_of"](p) == soundings.counted(name, (), 64, 64)
