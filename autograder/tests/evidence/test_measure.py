"""Evidence is honest: a record is whole, possible and of today's code, or the reader is told so.

Nothing stands in for a missing one.
"""

import dataclasses
import datetime
import html
import json
import re
import sys
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from conftest import ROOT
from invented_records import H200, a_point, a_record

import warplab
from warplab.evidence import __main__ as recorder
from warplab.evidence import take as machine
from warplab.evidence.catalogue import experiments, get
from warplab.evidence.clocks import Workload
from warplab.evidence.declare import Experiment
from warplab.evidence.experiments import fusion, kernels
from warplab.evidence.measure import (
    RESULTS,
    Evidence,
    Measurement,
    measure,
    published,
    recorded,
    records,
    states,
)
from warplab.evidence.record import Point, Record, RecordError, read, slug, write
from warplab.figures.published import finding_of_others
from warplab.hardware import specs
from warplab.plots.measured import measured

NAMES = list(experiments())


def test_a_record_survives_writing_and_reading(tmp_path):
    assert read(write(a_record(), tmp_path)) == a_record()


def test_a_record_or_a_point_that_lacks_a_field_is_refused(tmp_path):
    path = write(a_record(), tmp_path)
    for kind in (Record, Point):
        for field in (f.name for f in dataclasses.fields(kind)):
            raw = dataclasses.asdict(a_record())
            del (raw if kind is Record else raw["points"][0])[field]
            path.write_text(json.dumps(raw))
            with pytest.raises(RecordError, match=field):
                read(path)


def test_a_median_that_is_not_that_of_its_samples_is_refused(tmp_path):
    path = write(a_record(points=[dataclasses.replace(a_point(), median=0.5e-3)]), tmp_path)
    with pytest.raises(RecordError, match="not that of its samples"):
        read(path)


def test_a_corrupted_file_is_refused(tmp_path):
    path = write(a_record(), tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(RecordError, match="not JSON"):
        measure("copy_bandwidth", tmp_path)


@pytest.mark.parametrize(
    "point",
    [
        a_point(bytes=5 << 30),  # 5.4 TB/s through a door of 4.8
        a_point(bytes=1 << 27, roof="pcie"),  # 134 GB/s through 64
        a_point(bytes=0, flops=10**12, roof="bf16"),  # 1,000 TFLOP/s where 989 is the dense peak
        a_point(bytes=0, flops=70 * 10**9, roof="fp32"),  # 70 TFLOP/s where 67 is
        a_point(
            bytes=5 << 30, flops=1 << 30, roof="fp32"
        ),  # 1 TFLOP/s is possible, the 5.4 TB/s that it reads are not
        Point.of(
            [142e9] * 6, 3, series="peak", x=1, clock="none", unit="B", roof="capacity"
        ),  # 142 GB on a desk of 141
    ],
    ids=["bandwidth", "pcie", "dense bf16", "fp32", "bytes of arithmetic", "capacity"],
)
def test_a_value_above_the_device_s_peak_is_refused(tmp_path, point):
    write(a_record(points=[point]), tmp_path)
    with pytest.raises(RecordError, match="above the"):
        measure("copy_bandwidth", tmp_path)


def test_a_record_says_that_it_is_not_this_machine(tmp_path, no_live):
    write(a_record(), tmp_path)
    m = measure("copy_bandwidth", tmp_path)
    assert m.kind == "recorded" and not m.evidence[0].stale
    assert m.banners[0] == "recorded on NVIDIA H200, driver 570.1, 2026-11-21; not this machine"


def test_a_stale_record_is_never_shown_as_fresh(tmp_path, no_live):
    write(a_record(code="0123456789abcdef"), tmp_path)
    m = measure("copy_bandwidth", tmp_path)
    assert m.evidence[0].stale
    for shown in (str(m), m._repr_html_(), measured(m)._repr_html_()):
        assert "with an earlier version of the experiment" in shown
    assert all("earlier version" in banner for banner in states(tmp_path)["copy_bandwidth"])


def test_no_record_is_said_and_not_filled_in(tmp_path, no_live):
    m = measure("launch_overhead", tmp_path)
    assert (m.kind, m.evidence, m.rows()) == ("missing", (), [])
    assert "not recorded yet" in str(m) and "not recorded yet" in m._repr_html_()
    assert "not recorded yet" in measured(m)._repr_html_()


def test_published_figures_stand_in_only_where_there_is_no_record(tmp_path, no_live):
    (tmp_path / "published.yml").write_text((RESULTS / "published.yml").read_text())
    m = measure("matmul_by_size", tmp_path)
    assert m.kind == "published" and "published by" in m.banners[0]
    assert {row[-1] for row in measure("launch_overhead", tmp_path).rows()} == {"-"}  # times, and no rate
    assert [round(p.rate / 1e9, 1) for p in m.evidence[0].points] == [1986.5, 2980.3, 15971.7, 23249.6]
    write(a_record(experiment="matmul_by_size"), tmp_path)
    assert measure("matmul_by_size", tmp_path).kind == "recorded"


@pytest.mark.parametrize("name", NAMES)
def test_the_records_of_the_book_are_whole_possible_and_of_known_devices(name):
    for record in records(name):
        assert specs.reported(record.device), (
            f"{record.device} has no entry in the registry, so its records cannot be checked"
        )
        assert typed(RESULTS / name / f"{record.key}.json") == record


def typed(path):
    """The record of a file, each field strictly of its type: what a GPU machine writes without msgspec."""
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    assert datetime.datetime.fromisoformat(record.date).utcoffset() == datetime.timedelta(0)
    assert re.fullmatch(r"3\.\d+\.\d+", record.python) and re.fullmatch("[0-9a-f]{16}", record.code)
    assert record.points and all(len(p.samples) >= 5 and p.warmups >= 1 and p.x > 0 for p in record.points)
    return record


def test_a_record_taken_here_fits_the_schema(tmp_path):
    record = machine.take(get("transpose"), "cpu", seconds=0.02)
    path = write(record, tmp_path)
    assert typed(path) == read(path) == record and record.kind == "cpu" and slug(record.device) == path.stem


def test_comments_do_not_change_an_experiment_but_its_code_does():
    def body(where):
        yield 1

    one = body

    def body(where):

        # why
        yield 1

    two = body

    def body(where):
        yield 2

    three = body

    codes = [Experiment("e", "", "", "", False, f).code for f in (one, two, three)]
    assert codes[0] == codes[1] != codes[2]


def failing(where):
    yield Workload("one", 1, lambda: None)
    raise ValueError("this experiment is broken")


def hanging(where):
    import time

    time.sleep(30)
    yield Workload("never", 1, lambda: None)


def working(where):
    yield Workload("one", 1, lambda: sum(range(100)))


@pytest.mark.slow
def test_one_failed_or_hanging_experiment_does_not_stop_the_rest(tmp_path, monkeypatch, capfd):
    broken = [Experiment(f.__name__, "?", "01", "x", True, f) for f in (failing, hanging, working)]
    monkeypatch.setattr(recorder, "get", lambda name: next(e for e in broken if e.name == name))
    assert recorder.record_all(broken, "cpu", tmp_path, seconds=0.01, limit=3) == ["failing", "hanging"]
    assert [p.parent.name for p in tmp_path.glob("*/*.json")] == ["working"]
    said = capfd.readouterr()
    assert "[3/3] working" in said.out and "stopped after" in said.out
    assert "this experiment is broken" in said.err


def test_an_impossible_measurement_is_not_written(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(machine, "take", lambda *_: a_record(points=[a_point(bytes=5 << 30)]))
    with pytest.raises(SystemExit):
        recorder.record_one("copy_bandwidth", "cuda", str(tmp_path), 0.01)
    assert "above the memory peak" in capfd.readouterr().err and not list(tmp_path.rglob("*.json"))


def test_a_spent_budget_says_how_to_go_on(tmp_path, capfd):
    assert recorder.record_all([get("transpose")], "cpu", tmp_path, budget=0) == ["transpose"]
    assert "run again" in capfd.readouterr().out


def test_missing_records_come_first_then_stale_ones_and_current_ones_are_left_alone(tmp_path):
    write(a_record(), tmp_path)  # current
    write(a_record(experiment="transpose", code="0" * 16), tmp_path)  # stale
    names = [e.name for e in recorder.plan([], H200, tmp_path, again=False)]
    assert names[-1] == "transpose" and "copy_bandwidth" not in names and len(names) == len(NAMES) - 1
    assert "copy_bandwidth" in [e.name for e in recorder.plan([], H200, tmp_path, again=True)]


def test_the_recorder_says_what_is_missing_and_refuses_without_a_gpu(tmp_path, capsys):
    assert recorder.main(["--list", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("missing") == len(NAMES)
    assert recorder.main(["nope"]) == 2
    if warplab.device().kind != "cuda":
        assert recorder.main(["--results", str(tmp_path)]) == 1
        assert "no CUDA GPU" in capsys.readouterr().err


@pytest.fixture
def page(monkeypatch):
    """The directive of the measured page, as Sphinx would run it."""
    pytest.importorskip("sphinx")
    from docutils import nodes
    from docutils.utils import new_document

    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    from measured_page import Measured

    document = new_document("measured")
    document.settings.env = SimpleNamespace(docname="measured", note_dependency=lambda path: None)
    parsed = SimpleNamespace(
        document=document, nested_parse=lambda lines, offset, node: node.append(nodes.paragraph("", "[1]"))
    )
    return Measured("measured", [], {}, None, 1, 0, "", parsed, SimpleNamespace(reporter=document.reporter))


@pytest.mark.slow
def test_the_built_page_shows_every_experiment_once_and_what_is_not_recorded_in_its_last_section():
    """Read from the book: to draw the whole page again takes half a minute."""
    built = ROOT / "_build/html/chapters/measured.html"
    if not built.exists():
        pytest.skip("the book is not built: run make book")
    (article,) = re.findall("<article.*</article>", built.read_text(encoding="utf-8"), re.S)
    text = re.sub("<[^>]+>", "", article)
    assert all(len(re.findall(rf"\b{name}, for chapter", text)) == 1 for name in NAMES)
    missing = [name for name, banners in states().items() if not banners]
    assert ("Not recorded yet" in text) == bool(missing)
    last = text.rpartition("Not recorded yet")[2]
    assert all(f"{name}, for chapter" in last for name in missing)


@pytest.mark.slow
def test_a_recorded_experiment_is_a_section_with_plot_provenance_table_and_download(
    page, tmp_path, monkeypatch
):
    import measured_page

    record = a_record()
    monkeypatch.setattr(measured_page, "records", lambda name: [record])
    monkeypatch.setattr(
        measured_page,
        "shown_without_running",
        lambda name: Measurement(name, "What?", "stride", "recorded", (recorded(record, record.code),)),
    )
    section = page.section(get("copy_bandwidth"))
    text = section.astext()
    told = "Recorded on NVIDIA H200; driver 570.1; CUDA 13.0; torch 2.11; commit unknown; sm 1,980 MHz"
    told = (*told.split("; "), "IQR/median", f"code {record.code}")
    assert [said for said in told if said not in text] == []
    assert "<svg" in section.astext() and "1.00 ms" in text
    (link,) = section.findall(lambda node: node.tagname == "download_reference")
    assert link["reftarget"] == "/autograder/warplab/evidence/results/copy_bandwidth/nvidia-h200.json"


def test_the_measured_page_tells_of_published_numbers_device_year_place_and_what_differs(page):
    sources = published("latency")
    text = "\n".join(node.astext() for node in page.of_others(sources))
    for source in sources:
        assert source.where in text and f"What differs: {source.differs} [1]" in text
        assert f"{source.device}\n\n{source.year}" in text
    assert "314.5 ns" in text or "314 ns" in text


@pytest.mark.slow
def test_a_chapter_can_show_some_experiments(page):
    page.arguments = ["transpose latency"]
    said = "\n".join(node.astext() for node in page.run())
    for name in ("transpose", "latency"):
        assert get(name).question in said and (records(name) or "Not recorded on a GPU by us yet:" in said)
    assert said.count("<svg") >= 2, "a chapter's figure shows at least one real time"
    assert 'id="lab-transpose" data-experiment="transpose" data-state="idle" data-small>' in said
    assert said.count('<figure class="lab"') == 1, "the lab does not ask for latencies"


@pytest.mark.slow
def test_a_figure_of_records_asks_what_they_answer_and_leaves_out_what_lies_on_another_line(page):
    page.arguments = ["crossover matmul_by_size"]
    title, figure, *_ = page.run()
    assert title.astext() == "How long does a call take on the GPU, by its size?" == get_title(figure)
    drawn = [node.astext() for node in page.run() if "<svg" in node.astext()]
    ours = next(text for text in drawn if 'data-name="matmul_by_size"' in text)
    assert "PyTorch BF16" in ours and "PyTorch FP16" not in ours
    assert "FP16 is not drawn: it is within" in ours
    assert any(finding_of_others("crossover") in html.unescape(text) for text in drawn)


def get_title(figure):
    """What is read aloud first."""
    return re.search(r"<title[^>]*>([^<]*)", figure.astext())[1].partition("?")[0] + "?"


@pytest.mark.slow
def test_the_index_of_the_measured_page_has_a_row_for_each_experiment(page):
    rows = page.index()[0][-1]
    assert len(rows) == len(NAMES)
    text = {row[0].astext(): row.astext() for row in rows}
    stride = text["What does a stride cost?"]
    assert f"{len(published('copy_bandwidth'))} published" in stride and "try it" in stride
    assert "try it" not in text[get("energy").question]


def test_the_measured_page_marks_a_stale_record(page):
    code = get("copy_bandwidth").code
    fresh, stale = (page.provenance(a_record(code=c), code)[0].astext() for c in (code, "0" * 16))
    assert "Recorded on NVIDIA H200" in fresh and "earlier version" not in fresh
    assert "with an earlier version of the experiment" in stale


@pytest.fixture
def no_live(monkeypatch):
    """No live runs: neither on this CPU nor on a GPU."""
    simt, modules = (
        dataclasses.replace(warplab.device(), kind="simt"),
        sys.modules,
    )  # warplab.evidence.measure names the function
    monkeypatch.setattr(modules["warplab.hardware.device"], "device", lambda: simt)
    monkeypatch.setattr(
        modules["warplab.evidence.catalogue"],
        "get",
        lambda name: dataclasses.replace(experiments()[name], cpu=False),
    )


def f32(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "kernel",
    [kernels.transpose_naive, kernels.transpose_tiled, kernels.transpose_padded],
    ids=lambda k: k.py_func.__name__,
)
@pytest.mark.parametrize("shape", [(64, 64), (33, 70)])
def test_the_transposes_that_are_timed_are_right(kernel, shape):
    x, out = f32(*shape), np.full(shape[::-1], np.nan, np.float32)
    kernel[(-(-shape[1] // 32), -(-shape[0] // 32)), (32, 8)](x, out)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize(
    "kernel",
    [kernels.reduce_atomic, kernels.reduce_tree, kernels.reduce_shuffle],
    ids=lambda k: k.py_func.__name__,
)
def test_the_reductions_that_are_timed_are_right(kernel):
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1, np.float32)
    kernel[4, 256](x, out)
    assert out[0] == 499_500


def test_the_strided_copy_and_the_gather_that_are_timed_are_right():
    x, out = f32(1000), np.zeros(1000, np.float32)
    kernels.copy_strided[1, 256](x, out, 4)
    np.testing.assert_array_equal(out[::4], x[::4])
    assert np.count_nonzero(out) == 250
    index = np.random.default_rng(1).permutation(1000).astype(np.int32)
    kernels.gather[4, 256](x, index, out)
    np.testing.assert_array_equal(out, x[index])


@pytest.mark.parametrize("paths", [1, 3, 32])
def test_the_divergent_kernel_does_the_same_arithmetic_on_every_path(paths):
    out = np.zeros(64, np.float32)
    kernels.divergent[2, 32](out, paths, 5)
    acc = (np.arange(64) % 7).astype(np.float32)
    for _ in range(5):
        acc = acc * np.float32(0.999) + np.float32(0.001)
    np.testing.assert_allclose(out, acc, rtol=1e-6)


@pytest.mark.slow
def test_fused_and_unfused_agree():
    x = torch.randn(8, 50)
    torch.testing.assert_close(fusion._softmax(x), torch.softmax(x, -1))
    q, k, v = torch.randn(3, 1, 2, 40, 16)
    torch.testing.assert_close(
        fusion._attention(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v)
    )


def test_the_table_of_a_measurement_escapes_every_text():
    attack = "<script>alert('x')</script>"
    evidence = Evidence("live", "d", attack, (a_point(series=attack),))
    page = Measurement("x", attack, attack, "live", (evidence,))._repr_html_()
    assert "<script" not in page and page.count("&lt;script&gt;") == 4
