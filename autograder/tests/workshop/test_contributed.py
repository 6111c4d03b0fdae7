"""A stranger's file of records: taken if it is whole, possible and like the same GPU's others, else refused
with the place.
"""

import json
from dataclasses import asdict, replace

import pytest
from invented_records import a_point, a_record

from warplab.evidence import __main__ as recorder
from warplab.evidence.__main__ import pack
from warplab.evidence.catalogue import get
from warplab.evidence.measure import records
from warplab.evidence.record import RecordError, read, write
from workshop.contributed import accept, main, notes, problems, records_of


@pytest.fixture
def record():
    return a_record(code=get("copy_bandwidth").code, commit="a" * 40, by="A. Reader")


def file_of(tmp_path, *records, **changes):
    path = tmp_path / "my-gpu.json"
    path.write_text(json.dumps({"schema": 1, "records": [asdict(r) for r in records]} | changes))
    return path


def test_a_packed_file_is_taken_once_and_left_alone_the_second_time(tmp_path, record, capsys):
    write(replace(record, by=""), tmp_path / "mine")
    assert pack(record.device, tmp_path / "mine", tmp_path / "my-gpu.json", "A. Reader") == 0
    theirs = ["--results", str(tmp_path / "book")]
    assert main([str(tmp_path / "my-gpu.json"), "--accept", *theirs]) == 0
    assert "1 records, nothing wrong" in capsys.readouterr().out
    kept = tmp_path / "book/copy_bandwidth/nvidia-h200.json"
    assert read(kept) == record, "theirs, with their name"
    assert main([str(tmp_path / "my-gpu.json"), "--accept", *theirs]) == 0
    said = capsys.readouterr().out
    assert "is there already and agrees" in said and "nothing new" in said


def test_without_a_record_there_is_nothing_to_pack(tmp_path, capsys):
    assert pack("NVIDIA H200", tmp_path, tmp_path / "x.json", "A. Reader") == 1
    assert "make record first" in capsys.readouterr().err and not (tmp_path / "x.json").exists()
    with pytest.raises(SystemExit):
        recorder.main(["--pack", str(tmp_path / "x.json")])
    assert "--pack needs --by" in capsys.readouterr().err


def test_a_contributed_record_stands_behind_the_book_s_own(tmp_path, record):
    for one in (replace(record, device="NVIDIA A1"), replace(record, by="")):
        write(one, tmp_path)
    assert [r.by for r in records("copy_bandwidth", tmp_path)] == ["", "A. Reader"]


@pytest.mark.parametrize(
    "place, value",
    [
        (("device",), "<script>" + "x" * 300),
        (("device",), "H200\u202e"),
        (("by",), "<b>" * 30),
        (("by",), "A.\nReader"),
        (("points", 0, "samples"), [1e-3] * 4),
        (("points", 0, "median"), "1e-3"),
        (("points", 0, "x"), -1),
        (("points", 0, "extra"), 1),
        (("points",), []),
        (("kind",), "cpu"),
        (("clocks",), {"sm": None}),
    ],
    ids=str,
)
def test_what_is_not_of_the_form_is_refused_with_its_place(tmp_path, record, place, value):
    raw = asdict(record)
    inner = raw
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "my-gpu.json"
    path.write_text(json.dumps({"schema": 1, "records": [raw]}))
    with pytest.raises(RecordError, match=r"\$\.records\[0\]"):
        records_of(path)


@pytest.mark.parametrize(
    "text", ["", "[", "[" * 100000, '{"schema": NaN, "records": []}', "\udcff"], ids=repr
)
def test_what_is_no_json_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RecordError, match="not JSON"):
        records_of(path)


def test_a_faster_than_possible_or_unlike_or_anonymous_record_is_refused(tmp_path, record):
    (point,) = record.points[:1]
    fast = a_point(series=point.series)
    fast = replace(
        fast, samples=[s / 100 for s in fast.samples], median=fast.median / 100, iqr=fast.iqr / 100
    )
    (said,) = problems([replace(record, points=[fast])], tmp_path)
    assert "above the memory peak" in said
    write(record, tmp_path)
    slow = replace(point, samples=[2 * s for s in point.samples], median=2 * point.median, iqr=2 * point.iqr)
    assert "2.00 times the record that is there" in problems([replace(record, points=[slow])], tmp_path)[0]
    assert problems([record], tmp_path) == []
    assert "commit is unknown" in problems([replace(record, commit="unknown")], tmp_path)[0]
    assert "nobody says who measured it" in problems([replace(record, by=" ")], tmp_path)[0]
    assert "no such experiment" in problems([replace(record, experiment="none")], tmp_path)[0]
    assert "twice" in problems([record, record], tmp_path)[0]
    assert "lies ahead" in problems([replace(record, date="2999-01-01T00:00:00+00:00")], tmp_path)[0]
    assert "median or IQR" in problems([replace(record, points=[replace(point, median=1.0)])], tmp_path)[0]


def test_an_unknown_gpu_and_an_older_version_are_told(tmp_path, record):
    other = replace(record, device="NVIDIA Nothing 1", code="0" * 16)
    first, second = notes([other], tmp_path)
    assert "another version" in first and "not in the hardware registry" in second
    assert problems([other], tmp_path) == [] and len(accept([other], tmp_path)) == 1


def test_a_refused_file_writes_nothing(tmp_path, record, capsys):
    path = file_of(tmp_path, replace(record, commit="unknown"))
    assert main([str(path), "--accept", "--results", str(tmp_path / "book")]) == 1
    assert "commit is unknown" in capsys.readouterr().err and not (tmp_path / "book").exists()
