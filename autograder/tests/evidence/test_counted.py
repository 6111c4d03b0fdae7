"""The engine against what Nsight Compute counted on GPUs: counted.yml, replayed without one.

A counter of the engine that drifts fails here; a difference that machine code does not explain too.
"""

import pytest
import yaml
from bench_engine import cases

from warplab.figures import counted
from warplab.figures.counted import AGREE, DIFFER, PASSES, STORED, TIME

ENGINE = yaml.safe_load(counted.FILE.read_text(encoding="utf-8"))["engine"]
BENCH = {kernel.py_func.__name__: (kernel[grid, block], args) for kernel, grid, block, args in cases()}
EVERY = counted.counted()
LONG = pytest.mark.full


@pytest.mark.slow
@pytest.mark.parametrize("name", [n if n in BENCH else pytest.param(n, marks=LONG) for n in ENGINE])
def test_the_engine_counts_what_the_file_says(name):
    found = counted.on_engine(name, *(BENCH[name] if name in BENCH else counted.launch_of(name)))
    assert found["counts"] == pytest.approx(ENGINE[name]["counts"], rel=1e-9)
    assert (found["estimated"], found["work"]) == (ENGINE[name]["estimated"], ENGINE[name]["work"])


@pytest.mark.parametrize("launch", EVERY, ids=lambda c: f"{c.name}-{c.card}")
def test_what_machine_code_does_not_change_is_equal(launch):
    assert counted.differences(launch.name, launch.here, launch.there) == []
    assert launch.card != "h100-sxm" or launch.here[STORED] == launch.there[STORED]


def test_a_count_that_drifts_is_told():
    launch = next(c for c in EVERY if c.name == "matmul_tiled")
    for metric in AGREE:
        drifted = launch.here | {metric: 1.01 * launch.here[metric] + 1}
        assert counted.differences(launch.name, drifted, launch.there) == [metric]


@pytest.mark.parametrize("launch", EVERY, ids=lambda c: f"{c.name}-{c.card}")
def test_what_differs_does_so_as_the_machine_code_has_it(launch):
    loads, *_, executed, _, uniform = DIFFER
    assert launch.there[loads] == launch.estimated.get("shared_load", 0)
    assert 0.3 <= launch.here[executed] / launch.there[executed] <= 1.1
    assert launch.there[uniform] == 0 or launch.there[uniform] >= launch.here[uniform] - 0.1


def test_the_passes_that_bound_l1_are_no_more_than_the_card_made():
    measured = [launch for launch in EVERY if PASSES in launch.there]
    assert [launch.card for launch in measured] == ["h200-sxm"] * 46  # as reports say, and the engine's page
    for launch in measured:  # a mean of the SMs, of two decimals
        assert launch.work.wavefronts <= (launch.there[PASSES] + 0.005) * launch.sms, launch.name


def test_where_global_memory_alone_passes_l1_its_banks_explain_the_passes():
    """Requests to 32 lines take 4 to 32 passes by the words that meet in a bank, as in shared memory."""
    measured = [c for c in EVERY if c.there.get(PASSES, 0) > 1000 and not c.here[DIFFER[1]]]
    shares = {c.name: c.work.wavefronts / (c.there[PASSES] * c.sms) for c in measured}
    assert len(shares) >= 12 and min(shares.values()) >= 0.95, shares


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCH)
def test_what_the_estimate_of_executed_instructions_is_worth(name):
    """Half as many again at most: mandelbrot's loop has paths that machine code leaves early."""
    there = next(c.there for c in EVERY if c.name == name)["smsp__inst_executed.sum"]
    profile = counted.warplab.profile(BENCH[name][0], *BENCH[name][1], arch="sm_90")
    assert 0.9 <= profile.assembled_instructions / there <= (1.45 if name == "mandelbrot" else 1.2)


def test_no_launch_was_faster_than_its_bound():
    timed = [launch for launch in EVERY if TIME in launch.there]
    assert len(timed) >= 30 and min(launch.ratio for launch in timed) >= 1


def test_the_table_of_nsight_compute_is_read_by_its_names():
    head = ["ID", "Name", *AGREE, *DIFFER, *counted.MEASURED]
    rows = [head, [""] * len(head), ["0", "k", "1,024", *["0.5"] * (len(head) - 3)]]
    text = "==PROF== said before\n" + "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    (row,) = counted.read_csv(text)
    assert row[AGREE[0]] == 1024 and row[TIME] == 0.5 and list(row) == head[2:]
