"""All GPUs side by side: each number that is known stands there once, with its source, beside the others."""

import json
from types import SimpleNamespace

import pytest
from conftest import ROOT
from invented_records import a_record
from test_lab import a_result

from warplab.evidence.catalogue import experiments
from warplab.evidence.measure import published
from warplab.evidence.record import write
from warplab.evidence.side_by_side import all_evidence, model, sheets


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("NVIDIA A100 80 GB, limited to 330 W", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA B200 at 850 W", "B200"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA GeForce GTX 1070 Ti, and a Core i7-8700K", "GTX 1070 Ti"),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", "RTX 4070 Laptop GPU"),
        ("AMD Instinct MI300X 192 GB", "MI300X"),
        ("Intel Gaudi 3 (OAM)", "Gaudi 3"),
    ],
)
def test_the_many_names_of_a_gpu_are_one_model(device, name):
    assert model(device) == name


@pytest.mark.slow
def test_every_number_that_is_known_has_its_place():
    assert len(all_evidence()) >= sum(len(published(name)) for name in experiments())
    assert {e.name for e, _, _ in all_evidence()} == set(experiments())
    assert [spec.key for spec in sheets("H100")] == ["h100-sxm", "h100-pcie"]


@pytest.fixture
def directive(monkeypatch, tmp_path):
    """The directive as Sphinx runs it, on a folder with one record of ours and one that a reader sent."""
    pytest.importorskip("sphinx")
    from docutils.utils import new_document

    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    import devices_page
    from docutils import nodes

    write(a_record(), tmp_path)
    write(a_record(device="NVIDIA GeForce RTX 3070", by="A. Reader"), tmp_path)
    text = (ROOT / "autograder/warplab/evidence/results/published.yml").read_text(encoding="utf-8")
    (tmp_path / "published.yml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(devices_page, "RESULTS", tmp_path)
    document = new_document("devices")
    document.settings.env = SimpleNamespace(docname="devices", note_dependency=lambda path: None)
    parsed = SimpleNamespace(
        document=document, nested_parse=lambda lines, offset, node: node.append(nodes.paragraph("", "[1]"))
    )
    about = SimpleNamespace(reporter=document.reporter)
    return devices_page.Devices("devices", [], {}, None, 1, 0, "", parsed, about)


def rows_of(directive):
    return {row.astext(): [cell.astext() for cell in row] for row in directive.run()[1][0][-1]}


def test_ours_a_readers_and_others_numbers_stand_together_each_marked_as_what_it_is(directive):
    rows = list(rows_of(directive).values())
    (ours,) = [row for row in rows if "Recorded," in row[3]]
    (sent,) = [row for row in rows if "Contributed," in row[3]]
    assert "NVIDIA H200" in ours[1] and "1.074 TB/s copy kernel, at 1" in ours[2]
    assert "RTX 3070" in sent[1]
    assert "Contributed by A. Reader, recorded on NVIDIA GeForce RTX 3070" in sent[3]
    assert "driver 570.1" in sent[3] and "2026" in sent[3]
    others = [row for row in rows if row[3].startswith("Published,")]
    assert len(others) == sum(len(published(name)) for name in experiments())
    assert all("What differs: " in row[3] and "[1]" in row[3] for row in others)


def test_a_data_sheets_numbers_are_called_peaks_and_dense(directive):
    (row,) = [
        cells for said, cells in rows_of(directive).items() if "H100 PCIe 80 GB" in said and "sheet" in said
    ]
    assert "756 TFLOP/s BF16, dense" in row[2].replace("\xa0", " ") and "not measured" in row[3]


@pytest.fixture
def page(browser, book_address):
    """The page of the built book; opened(query) -> it, with what the address asks for."""
    context = browser.new_context(viewport={"width": 1000, "height": 900})

    def opened(query="", page=None):
        page = page or context.new_page()
        page.goto(f"{book_address}/chapters/devices.html{query}")
        page.wait_for_selector(".devices-table thead th")
        return page

    yield opened
    context.close()


def heads(page):
    return page.locator(".devices-table thead th").all_inner_texts()[1:]


@pytest.mark.browser
def test_a_reader_picks_gpus_by_keyboard_and_the_address_keeps_them(page):
    shown = page("?gpu=A100,h100,none,H100")
    assert heads(shown) == ["A100", "H100"]
    assert shown.locator(".devices-table tbody tr").count() == len(experiments()) + 1
    products = shown.locator(".devices-table tr", has_text="How far is each product from the peak?")
    assert "271.2 TFLOP/s torch BF16, best shape" in products.locator("td").first.inner_text()
    assert "NVIDIA A100 SXM" in products.locator("td").first.inner_text()
    assert "No number is known." in shown.locator(".devices-table").inner_text()
    assert "experiments" in shown.locator(".devices-said").inner_text()
    third = shown.get_by_label("Third GPU")
    third.focus()
    shown.keyboard.type("RTX 4090")
    assert heads(shown) == ["A100", "H100", "RTX 4090"]
    assert "gpu=A100%2CH100%2CRTX+4090" in shown.url
    ids = shown.locator(".devices-table [id]").evaluate_all("all => all.map(node => node.id)")
    assert len(set(ids)) == len(ids)


@pytest.mark.browser
def test_on_a_phone_the_columns_stand_one_under_the_other_and_name_their_gpu(page):
    shown = page("?gpu=V100,B200")
    shown.set_viewport_size({"width": 390, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    first, second = (shown.locator(".devices-table tbody tr").first.locator("td").nth(i) for i in (0, 1))
    assert first.bounding_box()["y"] < second.bounding_box()["y"]
    assert "B200" in second.evaluate("cell => getComputedStyle(cell, '::before').content")


@pytest.mark.browser
def test_what_the_readers_own_gpu_did_can_be_picked_and_a_software_adapter_cannot(page):
    shown = page()
    keep = "([k, v]) => localStorage.setItem(k, v)"
    shown.evaluate(keep, ["gpu-lab:transpose", json.dumps(a_result())])
    software = a_result(
        experiment="copy", measured="copy_bandwidth", adapter={"name": "SwiftShader", "software": True}
    )
    shown.evaluate(keep, ["gpu-lab:copy", json.dumps(software)])
    page("?gpu=Yours", shown)
    assert heads(shown) == ["Yours"]
    said = shown.locator(".devices-table").inner_text()
    assert "Test GPU" in said and "83.9 GB/s naive, at 1,024" in said and "SwiftShader" not in said
