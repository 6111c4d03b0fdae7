"""The caption of a recorded figure is computed from its record: another record, another sentence."""

from dataclasses import replace

import pytest
from invented_records import H200, a_record

from warplab.evidence.catalogue import experiments
from warplab.evidence.measure import Measurement, recorded, shown_without_running
from warplab.evidence.record import Point
from warplab.evidence.side_by_side import model
from warplab.figures import taken as taken_module
from warplab.figures.recorded import ASKED, FINDINGS, compared, finding
from warplab.plots.measured import measured


def taken(name, *points, device=H200):
    """An experiment with one invented record: points are (series, x, seconds) and the fields of a Point."""
    made = [
        Point(series, x, "cuda", 3, [median] * 5, median, 0.0, **dict(*more))
        for series, x, median, *more in points
    ]
    record = a_record(experiment=name, points=made, device=device)
    return Measurement(name, "What?", "x", "recorded", (recorded(record, record.code),))


def test_a_finding_says_the_card_and_the_ratio_of_its_record_and_turns_with_the_outcome():
    def of(naive, tiled, padded):
        return finding(
            taken(
                "transpose",
                ("transpose_naive", 64, 9.0),
                ("transpose_naive", 128, naive),
                ("transpose_tiled", 128, tiled),
                ("transpose_padded", 128, padded),
            )
        )

    assert of(6e-3, 2e-3, 1.5e-3) == (
        "H200: at a side of 128 the tile is 3.0 times as fast as the naive kernel. The padded tile is 4.0 "
        "times as fast as the naive kernel."
    )
    assert of(2e-3, 6e-3, 2e-3) == (
        "H200: at a side of 128 the tile takes 3.0 times as long as the naive kernel. The padded tile is "
        "as fast, within 5 %, as the naive kernel."
    )


def test_a_range_of_ratios_is_said_and_one_that_crosses_one_is_not_called_faster():
    assert compared([1, 1], [3.6, 4.6]) == "is 3.6 to 4.6 times as fast as"
    assert compared([2, 4], [1, 1]) == "takes 2.0 to 4.0 times as long as"
    assert compared([1, 1], [0.5, 2]) == "takes 0.5 to 2.0 times as long as"


def test_a_share_is_that_of_the_peak_of_the_card_that_was_recorded():
    """A GB in a millisecond is 1 TB/s; 0.48 TB/s are a tenth of the H200's 4.8."""
    chain, tile = "multiply-adds in a chain", "matmul_register_tiled"
    low = {"bytes": 48 * 10**7, "flops": 10**6, "roof": "fp32"}
    high = {"bytes": 10**6, "flops": 335 * 10**8, "roof": "fp32"}  # 33.5 TFLOP/s of 67
    m = taken("rooflines", (chain, 0.25, 1e-3, low), (chain, 256, 1e-3, high), (tile, 9, 2e-3, high))
    assert finding(m) == (
        "H200: at 0.25 FLOP a byte the multiply-adds use 10 % of the peak bandwidth. At 256 FLOP a byte they "
        "reach 50 % of the FP32 peak, and the register-tiled product reaches 25 % of the FP32 peak."
    )


def test_more_loads_that_do_not_help_are_said_not_to():
    def of(four):
        loads = {"bytes": 10**9, "roof": "memory"}
        one = ("a load at a time", 64, 1e-3, loads)
        return finding(taken("occupancy", one, *(("four loads at a time", x, s, loads) for x, s in four)))

    assert of([(8, 2e-3), (32, 1e-3), (64, 9e-4)]).endswith("64 warps reach 1 TB/s, read and written. "
        "Four loads a thread reach as much from 32 warps on, and 1.11 TB/s at best.")  # fmt: skip
    assert of([(32, 2e-3), (64, 2e-3)]).endswith("Four loads a thread never reach as much.")


def test_a_flat_time_ends_where_the_record_says():
    """And where a CPU was recorded, nobody says that none was."""
    points = [("cuda: addition", 256, 1e-5), ("cuda: addition", 512, 1.05e-5), ("cuda: addition", 1024, 2e-5)]
    said = finding(taken("crossover", *points))
    assert "10 µs for 256 numbers, at most a tenth longer up to 512, and 20 µs for 1,024." in said
    assert "no CPU" in said and "no CPU" not in finding(
        taken("crossover", *points, ("cpu: addition", 256, 1))
    )


def test_no_record_and_one_that_lacks_a_series_say_nothing():
    assert finding(Measurement("transpose", "What?", "x", "missing", ())) == ""
    assert finding(taken("transpose", ("transpose_naive", 128, 1.0))) == ""
    assert finding(taken("nobody_knows_this", ("a", 1, 1.0))) == ""


@pytest.mark.parametrize("name", FINDINGS)
def test_a_record_that_lacks_points_has_a_finding_or_none_and_no_error(name):
    """As contributed ones may: without any one series, with one series alone, with one point of each."""
    (whole, *_) = (e for e in shown_without_running(name).evidence if e.kind == "recorded")
    some = [
        [p for p in whole.points if (p.series == series) == kept]
        for series in whole.series()
        for kept in (0, 1)
    ]
    some.append([row[0] for row in whole.series().values()])
    for points in some:
        shown = Measurement(name, "What?", "x", "recorded", (replace(whole, points=tuple(points)),))
        assert finding(shown) == "" or finding(shown)[6:].strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(experiments()))
def test_every_record_of_the_book_has_a_finding_with_a_number_under_its_card_s_name(name):
    shown = shown_without_running(name)
    kept = [e for e in shown.evidence if e.kind == "recorded"]
    if not kept:
        pytest.skip("not recorded yet")
    said = finding(shown)
    card, _, what = said.partition(": ")
    assert name in FINDINGS and card == model(kept[0].device) and any(c.isdigit() for c in what)
    figure = measured(shown.own, caption=said)
    assert figure.caption.startswith(said) and figure.caption.count("Recorded on") >= 1
    assert "580.159.04" not in figure.body, "where the numbers come from is said once, under the plot"


def test_a_figure_of_one_card_has_that_card_s_finding():
    shown = shown_without_running("training_by_format")
    assert finding(shown, "NVIDIA H200").startswith("H200: ") and finding(shown).startswith("H100: ")
    assert finding(shown, "NVIDIA H20") == ""


def test_only_known_experiments_have_findings_and_other_questions():
    assert set(FINDINGS) | set(ASKED) <= set(experiments())


def test_two_cards_of_one_day_are_named_in_one_line():
    first, second = (taken("latency", ("one thread", 1, 1.0), device=d) for d in ("NVIDIA A", H200))
    both = Measurement("latency", "What?", "x", "recorded", (*first.evidence, *second.evidence))
    assert both.banners == [
        "recorded on NVIDIA A and NVIDIA H200, driver 570.1, 2026-11-21; not this machine",
    ]


def test_where_no_record_follows_a_figure_says_not_recorded_yet(monkeypatch):
    assert taken_module.unmeasured("reduction") == "none on this machine, records follow"
    monkeypatch.setattr(taken_module, "records", lambda name: [])
    assert taken_module.unmeasured("reduction") == "not recorded yet"
