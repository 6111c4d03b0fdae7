"""What others published is complete, cited, possible, and drawn as points of its own."""

import datetime
import re

import pytest
import yaml
from conftest import ROOT

from warplab.evidence.catalogue import experiments, get
from warplab.evidence.measure import (
    HOW,
    OF_A_SOURCE,
    RESULTS,
    Evidence,
    Measurement,
    published,
    shown_without_running,
)
from warplab.evidence.record import Point, RecordError
from warplab.evidence.roofs import FACTS
from warplab.hardware import specs
from warplab.plots.measured import measured

FILE = yaml.safe_load((RESULTS / "published.yml").read_text(encoding="utf-8"))
WORK = {"bytes", "flops", "count", "roof"}


def a_source(**changes):
    """An invented entry for tests, never written outside a temporary folder."""
    whole = {
        "device": "NVIDIA H200",
        "author": "A. Person",
        "cite": "person2025",
        "year": 2025,
        "software": "CUDA",
        "where": "table 1",
        "differs": "Nothing is the same.",
        "points": [{"series": "copy", "x": 1, "bytes_per_second": 2.0e12, "roof": "memory"}],
    }
    return {key: value for key, value in (whole | changes).items() if value is not None}


def only(tmp_path, **changes):
    """The one Evidence that comes of an invented entry."""
    text = yaml.safe_dump({"copy_bandwidth": [a_source(**changes)]})
    (tmp_path / "published.yml").write_text(text, encoding="utf-8")
    (evidence,) = published("copy_bandwidth", tmp_path)
    return evidence


def a_point(tmp_path, **fields):
    return only(tmp_path, points=[{"series": "s", "x": 4, **fields}]).points[0]


def test_every_experiment_has_published_figures_and_most_more_than_one_source():
    assert set(FILE) == set(experiments())
    several = [name for name, entries in FILE.items() if len({e["cite"] for e in entries}) > 1]
    assert len(several) >= 20


@pytest.mark.slow
def test_every_experiment_stands_in_a_chapter_and_none_without_a_real_number():
    pages = [path.read_text("utf-8") for path in (ROOT / "chapters").glob("[01]*.md")]
    figures = "".join(path.read_text("utf-8") for path in (ROOT / "autograder/warplab/figures").glob("*.py"))
    for name in experiments():
        asked = re.compile(
            rf"^```\{{measured\}}[^\n]*\b{name}\b|(measure|taken)\(\"{name}\"|^for name in .*\"{name}\"",
            re.M,
        )
        drawn = f'published("{name}")' in figures and any(f"<{name}>`" in page for page in pages)
        assert drawn or any(asked.search(page) for page in pages), f"{name} is in no chapter"
        assert shown_without_running(name).kind in ("recorded", "contributed", "published"), name


def test_a_source_names_its_experiment_device_place_and_difference():
    keys = set(re.findall(r"^@\w+\{([^,]+),", (ROOT / "chapters/references.bib").read_text("utf-8"), re.M))
    for name, entries in FILE.items():
        get(name)
        for entry in entries:
            about = f"{name}, {entry.get('device')}"
            known = {*OF_A_SOURCE, "author", "opened", "points", "bounded_by", "left_out"}
            assert known - set(entry) <= {"bounded_by", "left_out"} and set(entry) <= known, about
            assert not re.search("slower|faster|contrary", entry.get("left_out", "")), about
            texts = ("device", "author", "cite", "software", "where", "differs")
            assert all(isinstance(entry[field], str) and entry[field].strip() for field in texts), about
            assert entry["cite"] in keys, f"{about}: references.bib has no {entry['cite']}"
            assert entry["differs"].endswith("."), f"{about}: one sentence says what differs"
            assert not entry.get("left_out", "").endswith("."), f"{about}: its place adds the full stop"
            assert isinstance(entry["opened"], datetime.date)
            assert 2000 < entry["year"] <= entry["opened"].year, about


@pytest.mark.parametrize("name", FILE)
def test_a_published_number_says_how_it_was_published_and_in_which_unit(name):
    for point in (point for entry in FILE[name] for point in entry["points"]):
        assert len([key for key in HOW if key in point]) == 1, point
        assert ("x" in point) != ("watts" in point), point
        assert set(point) <= {"series", "x", "watts", *HOW, *WORK}, point
        numbers = [value for key, value in point.items() if key not in ("series", "roof")]
        assert all(isinstance(value, int | float) and value > 0 for value in numbers), point
        assert point.get("roof", "memory") in FACTS, point


@pytest.mark.parametrize("name", FILE)
def test_a_published_number_is_below_what_the_registry_says_of_the_device(name):
    for entry, evidence in zip(FILE[name], published(name), strict=True):
        key = entry.get("bounded_by") or specs.reported(entry["device"])
        for point in evidence.points:
            if key and point.roof and FACTS[point.roof] in specs.get(key):
                limit = specs.get(key)[FACTS[point.roof]].si
                claimed = point.rate if point.unit == "s" else point.median
                said = f"{name}, {entry['device']}, {point.series} at {point.x:g}"
                assert claimed <= limit, f"{said}: {claimed:.4g} of {limit:.4g}"


def test_a_known_device_bounds_what_is_said_of_it():
    """A device of the registry is checked: by its driver's name, or by the entry that bounds it."""
    for name, entry in ((n, e) for n, entries in FILE.items() for e in entries):
        if bound := entry.get("bounded_by"):
            assert bound in specs.names(), f"{name}: the registry has no {bound}"
        if any("roof" in p for p in entry["points"]):
            assert bound or specs.reported(entry["device"]), f"{name}, {entry['device']}: nothing bounds it"


@pytest.mark.parametrize("name", FILE)
def test_what_is_drawn_together_has_one_unit(name):
    points = [p for e in published(name) for p in e.points]
    assert len({p.unit for p in points}) == 1
    if name != "energy":  # drawn as seconds over joules
        assert len({(bool(p.rate), bool(p.flops)) for p in points}) == 1


@pytest.mark.parametrize(
    ("fields", "seconds", "rate"),
    [
        ({"seconds": 2e-3}, 2e-3, 0),
        ({"seconds": 2e-3, "bytes": 10**6}, 2e-3, 5e8),
        ({"per_second": 50.0}, 0.02, 0),
        ({"per_second": 50.0, "count": 4}, 0.08, 0),
        ({"bytes_per_second": 2e12}, 0.0005, 2e12),
        ({"bytes_per_second": 2e12, "bytes": 4 * 10**12}, 2, 2e12),
        ({"flops_per_second": 1e15}, 0.001, 1e15),
    ],
)
def test_a_published_number_becomes_the_time_of_a_call(tmp_path, fields, seconds, rate):
    point = a_point(tmp_path, **fields)
    assert (point.median, point.unit, point.n) == (pytest.approx(seconds), "s", 1)
    assert point.rate == pytest.approx(rate) and point.x == 4


def test_bytes_held_stay_bytes(tmp_path):
    assert a_point(tmp_path, held=3 * 10**9).text() == "3 GB"


def test_watts_become_the_joules_of_a_call(tmp_path):
    """500 W for the half millisecond that a gigabyte takes at 2 TB/s are a quarter of a joule."""
    point = {"series": "copy", "watts": 500, "bytes_per_second": 2e12}
    assert only(tmp_path, points=[point]).points[0].x == pytest.approx(0.25)


@pytest.mark.parametrize("field", [*OF_A_SOURCE, "author", "points"])
def test_a_source_that_lacks_a_field_is_refused(tmp_path, field):
    with pytest.raises(RecordError, match=field):
        only(tmp_path, **{field: None})


@pytest.mark.parametrize("fields", [{}, {"seconds": 1.0, "per_second": 1.0}], ids=["none", "two"])
def test_a_point_with_no_number_or_two_is_refused(tmp_path, fields):
    with pytest.raises(RecordError, match="NVIDIA H200"):
        a_point(tmp_path, **fields)


def test_a_published_row_tells_device_and_year_and_shows_no_time_that_nobody_published(tmp_path, monkeypatch):
    evidence = only(tmp_path)
    m = Measurement("copy_bandwidth", "What?", "x", "published", (evidence,))
    assert m.rows() == [("copy, NVIDIA H200, 2025", "1", "-", "-", "2 TB/s")]
    assert m.banners == ["published by A. Person, on NVIDIA H200, 2025"]


def test_a_source_is_named_once_for_all_its_devices(tmp_path):
    """Never by its key in the bibliography, and ours and another author's keep a line of their own."""
    h200, b200 = only(tmp_path), only(tmp_path, device="NVIDIA B200")
    other = only(tmp_path, author="B. Person")
    ours = Evidence("recorded", "NVIDIA H200", "recorded on NVIDIA H200", ())
    m = Measurement("copy_bandwidth", "What?", "x", "recorded", (ours, h200, other, b200))
    assert m.banners == [
        "recorded on NVIDIA H200",
        "published by A. Person, on NVIDIA H200, 2025; NVIDIA B200, 2025",
        "published by B. Person, on NVIDIA H200, 2025",
    ]


def axes(measurement, monkeypatch):
    """The axes of the figure of `measurement`, as drawn for a column of the book."""
    from warplab.plots import measured as module

    show, kept = module.show, {}
    monkeypatch.setattr(
        module, "show", lambda figure, *rest: kept.update(figure=figure) or show(figure, *rest)
    )
    measured(measurement)
    return kept["figure"].axes[0]


def test_published_points_are_never_joined_to_a_line(tmp_path, monkeypatch):
    """Neither to each other nor to ours, though the series has the same name."""
    ours = Point("copy", 2, "cuda", 3, [1e-3], 1e-3, 0.0, bytes=10**9)
    evidence = (only(tmp_path), Evidence("recorded", "NVIDIA H200", "recorded", (ours,)))
    ax = axes(Measurement("copy_bandwidth", "What?", "x", "recorded", evidence), monkeypatch)
    drawn = {" ".join(line.get_label().split()): line for line in ax.get_lines()}
    theirs = drawn["copy, H200, 2025 (published)"]
    assert (theirs.get_linestyle(), list(theirs.get_xdata())) == ("None", [1])
    assert drawn["copy (recorded)"].get_linestyle() == "-"


@pytest.mark.parametrize("name", FILE)
def test_a_figure_of_published_points_names_every_device_and_year(name, monkeypatch):
    experiment = get(name)
    evidence = tuple(published(name))
    ax = axes(Measurement(name, experiment.question, experiment.x, "published", evidence), monkeypatch)
    named = [line.get_label() for line in ax.get_lines()] + [text.get_text() for text in ax.get_yticklabels()]
    labels = " ".join(" ".join(named).split())
    for source in evidence:
        assert f"{source.device.removeprefix('NVIDIA ')}, {source.year}" in labels


def test_single_points_have_a_row_each_under_their_device(monkeypatch):
    evidence = tuple(published("reduction"))
    ax = axes(Measurement("reduction", "What?", "numbers", "published", evidence), monkeypatch)
    drawn = [(line.get_xdata()[0], line.get_ydata()[0]) for line in ax.get_lines()]
    assert [x for x, _ in drawn] == [p.rate / 1e9 for e in evidence for p in e.points]
    names = dict(zip(ax.get_yticks(), (text.get_text() for text in ax.get_yticklabels()), strict=True))
    assert [names.pop(y).replace("\n", " ") for _, y in drawn][:3] == [
        f"{name}, 268 M" for name in ("library, CUB", "library, Thrust", "by shuffles")
    ]
    assert [*names.values()][:2] == ["H100 (DGX), 2024", "H200, 2025"] and len(names) == len(evidence)
