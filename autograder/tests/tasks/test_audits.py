"""Problem set 14: its text shows the kernels that are judged, and its worst cases are the worst."""

import inspect

import numpy as np
import pytest
from corpus_files import SOLUTIONS
from test_tasks import NAMES

from warplab.simt.counters.footprint import SECTOR
from warplab.tasks import machine_made, registry

AUDITS = [registry.get(name) for name in NAMES if name.startswith("ps14/")]


def float32s(*shape, value=1.0):
    return np.full(shape, value, np.float32)


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.shown)
def test_the_kernel_that_is_judged_is_the_one_that_is_shown(audit):
    shown = inspect.getsource(getattr(machine_made, audit.shown).py_func)
    assert shown in SOLUTIONS["ps14"].read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.shown)
def test_a_witness_breaks_what_is_wrong_and_spares_what_is_right_at_both_ends(audit):
    for size in audit.sizes[::2]:
        inputs = {"threads": 64} | {audit.axis: size}
        witness = {name: np.float32(array) for name, array in audit.model(inputs).items()}
        assert audit.unfit(inputs, witness) is None
        assert [one.told for one in audit.wrong if not audit.broken(one, inputs, witness)] == []
        assert [one.told for one in audit.right if audit.broken(one, inputs, witness)] == []
        assert bool(audit.broken(audit.shown, inputs, witness)) == (audit.shown != "variance")


def test_two_columns_a_thread_are_the_most_that_row_sums_leaves_out():
    audit, lost = registry.get("ps14/row_sums"), {}
    for cols in (1, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 320, 321, 448, 449, 511, 512):
        run = audit.run("row_sums", {"threads": 64}, {"x": float32s(1, cols)})
        lost[cols] = cols - int(run.outputs["out"][0])
    assert lost[192] == lost[448] == max(lost.values()) == audit.worst_of({"threads": 64}) == 128
    assert [cols for cols, count in lost.items() if not count] == [1, 64, 256, 257, 320, 512]


def test_all_threads_but_one_read_past_the_end_in_brighten():
    audit = registry.get("ps14/brighten")
    told = {
        size: audit.broken("brighten", {"threads": 64}, {"x": float32s(size)})
        for size in (64, 65, 127, 192, 193, 255, 256, 257, 320)
    }
    assert [size for size, fault in told.items() if fault] == [65, 127, 193, 255]
    # 63 threads, from x[65] to x[127]
    assert "(and 62 more)" in told[65] and "reads element [65]" in told[65]
    assert audit.worst_of({"threads": 64}) == 63


def test_rows_race_from_the_second_row_of_a_block_on():
    audit = registry.get("ps14/centre")
    x = np.random.default_rng(0).normal(size=(9, 70)).astype(np.float32)
    told = {
        rows: audit.broken("centre", {"threads": 64, "blocks": 4}, {"x": x[:rows]}) for rows in (1, 4, 5, 9)
    }
    assert [rows for rows, fault in told.items() if fault] == [5, 9] and "shared-memory race" in told[5]
    assert audit.worst_of({"blocks": 4}) == sum(row + 4 < 100 for row in range(100))  # another row follows


def test_welford_keeps_what_one_pass_loses():
    """Numbers of 16 kinds within the limits: the shown kernel is right to a thousandth, of 2 % allowed."""
    audit, rng, off = registry.get("ps14/variance"), np.random.default_rng(14), []
    for cols in (2, 3, 65, 256):
        for shape in (np.ones, np.arange, rng.permutation, rng.random):
            pattern = np.asarray(shape(cols)) * (-1.0) ** np.arange(cols)
            x = (900 + 0.9 * pattern / pattern.std() * np.arange(1, 5)[:, None]).astype(np.float32)
            assert audit.unfit({"threads": 64}, {"x": x}) is None
            run = audit.run("variance", {"threads": 64}, {"x": x})
            off.append(np.abs(run.outputs["out"] / x.astype(np.float64).var(axis=1) - 1).max())
    assert max(off) < 1e-3


def test_a_warp_touches_32_sectors_from_a_chunk_of_eight_on():
    def sectors(size):
        chunk = -(-size // 256)  # 4 blocks of 64
        return len({lane * chunk * 4 // SECTOR for lane in range(32)})

    worst = registry.get("ps14/smooth").worst_of({"threads": 64})
    assert sectors(worst) == 32 and max(map(sectors, range(1, worst))) < 32


def test_every_result_of_a_tile_may_be_old():
    audit = registry.get("ps14/energy")
    first, second = float32s(256, value=20), float32s(256, value=21)
    second[31::64], second[63::64] = 22, 19  # 1 + 3 * 2 - 7 = 0
    run = audit.run("energy", {"threads": 64}, {"first": first, "second": second})
    assert (run.outputs["out"] == 400).all() and (second != first).all()
    assert audit.worst_of({"threads": 64}) == 256


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (float32s(3, 2, 2), "`x` has 3 axes, and the job's has 2"),
        (float32s(9, 5), "`x` has 9 rows; the job allows 1 to 8"),
        (float32s(0, 5), "`x` has 0 rows; the job allows 1 to 8"),
        (float32s(3, 385), "`x` has 385 columns; the job allows 1 to 384"),
        (float32s(3, 5, value=np.nan), "`x[0, 0]` is nan; the job allows -1,000 to 1,000"),
    ],
)
def test_a_witness_beyond_the_job_blames_nobody(x, told):
    assert registry.get("ps14/row_sums").unfit({"threads": 64}, {"x": x}) == f"your witness: {told}"
