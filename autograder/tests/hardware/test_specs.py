"""The hardware registry: every fact has a source, numbers agree with each other, role and page show them."""

import datetime
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from typing import Literal

import pytest
import yaml
from conftest import ROOT
from pydantic import BaseModel, ConfigDict, HttpUrl, model_validator

from warplab.hardware import prices, specs

SPECS = specs.root()
DEVICES = specs.names()
GPUS = specs.names("gpu")
WITH_SMS = [name for name in GPUS if "sms" in specs.get(name)]
HOLDERS = [*map(specs.get, DEVICES), *map(specs.for_arch, specs.archs())]
FILES = [*sorted(SPECS.glob("*.yml")), *sorted(SPECS.glob("arch/*.yml"))]
KINDS = ("gpu", "cpu", "accelerator")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SourceEntry(Strict):
    title: str
    publisher: str
    url: HttpUrl | Literal["measured.html#counters-held"]  # or where the course shows what it measured
    by: Literal["vendor", "other"]


class FactEntry(Strict):
    value: int | float | str
    unit: Literal[tuple(specs.UNITS)] = ""
    dense: bool | None = None
    source: str | None = None
    at: str | None = None
    checked_in: str | None = None
    checked: datetime.date | None = None
    note: str | None = None


class OfferEntry(Strict):
    provider: str
    card: str
    gpus: int
    hourly: float
    market: Literal["on demand", "spot"]
    source: str
    seen: datetime.date
    instance: str | None = None
    region: str | None = None
    checked_in: str | None = None
    note: str | None = None


class PurchaseEntry(Strict):
    dollars: float
    source: str
    seen: datetime.date
    note: str | None = None


class Architecture(Strict):
    name: str
    short: str
    vendor: str
    kind: Literal["arch"]
    checked: datetime.date
    defaults: dict[str, str] = {}
    facts: dict[str, FactEntry]
    omitted: dict[str, str] = {}
    sources: dict[str, SourceEntry] = {}

    @model_validator(mode="after")
    def names_are_in_the_vocabulary(self):
        unknown = (self.facts.keys() | self.omitted.keys()) - specs.labels().keys()
        assert not unknown, f"add to common/facts.yml: {sorted(unknown)}"
        assert not self.facts.keys() & self.omitted.keys()
        return self


class Machine(Architecture):
    kind: Literal["gpu", "cpu", "accelerator"]
    year: int
    form_factor: str | None = None
    arch: str | None = None
    reported_as: list[str] = []
    offers: dict[str, OfferEntry] = {}
    purchase: PurchaseEntry | None = None


class Label(Strict):
    label: str
    kind: Literal["peak", "limit", "measured", "count", "size", "setting", "ratio"]
    precision: str | None = None
    unit_on: Literal["CUDA cores", "Tensor Cores", "special-function units"] | None = None


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_has_the_schema(path):
    schema = Architecture if path.parent.name == "arch" else Machine
    schema(**yaml.safe_load(path.read_text()))


def test_what_files_share_has_the_schema():
    for entry in yaml.safe_load((SPECS / "common" / "sources.yml").read_text()).values():
        SourceEntry(**entry)
    for entry in specs.labels().values():
        Label(**entry)
    for entry in yaml.safe_load((SPECS / "common" / "prices.yml").read_text())["offers"].values():
        OfferEntry(**entry)


def test_every_file_is_a_device_of_one_kind_and_a_gpu_names_an_architecture_on_record():
    assert sorted(name for kind in KINDS for name in specs.names(kind)) == DEVICES
    assert all(specs.names(kind) for kind in KINDS) and not set(DEVICES) & {*KINDS, "arch"}
    for spec in map(specs.get, DEVICES):
        assert (spec.kind == "gpu") == (spec.arch in specs.archs()), spec.key


def test_a_name_that_a_driver_reports_belongs_to_one_device():
    names = [(name, key) for key in DEVICES for name in specs.get(key).reported_as]
    assert [specs.reported(name) for name, _ in names] == [key for _, key in names]
    assert specs.reported("NVIDIA H200") == "h200-sxm" and specs.reported("Tesla T4") == "t4"
    assert specs.reported("NVIDIA H900") is None


@pytest.mark.parametrize("spec", HOLDERS, ids=lambda spec: spec.key)
def test_every_fact_leads_to_a_document_and_a_day(spec):
    for fact in spec.values():
        assert fact.sources, fact.name
        # a document on the web, or what the course measured itself, on the page that shows it
        assert all(source.url.startswith(("http", "measured.html#")) for source in fact.sources)
        assert fact.checked >= datetime.date(2026, 11, 21)
        assert bool(fact.source) != bool(fact.formula), fact.name
        if fact.source and not fact.source.by == "vendor":
            assert fact.at, f"{spec.key} {fact.name}: say where in {fact.source.title}"


@pytest.mark.parametrize("spec", HOLDERS, ids=lambda spec: spec.key)
def test_every_peak_of_arithmetic_says_dense_or_sparse(spec):
    for fact in spec.values():
        if fact.name.startswith("peak_"):
            assert fact.dense is not fact.name.endswith("_sparse"), fact.name
            assert fact.dense is not None and fact.precision, fact.name


def named_in(path):
    """The documents that a file's facts and prices name."""
    raw = yaml.safe_load(path.read_text())
    default = raw.get("defaults", {}).get("source")
    priced = [*raw.get("offers", {}).values(), *([raw["purchase"]] if "purchase" in raw else [])]
    return {fact.get("source", default) for fact in raw.get("facts", {}).values()} | {
        price["source"] for price in priced
    }


def test_a_document_stands_where_it_is_needed_a_shared_one_in_common_and_none_is_unused():
    users = Counter(key for path in [*FILES, SPECS / "common" / "prices.yml"] for key in named_in(path))
    assert specs.sources().keys() == users.keys()
    assert {key for key in specs.shared_sources() if users[key] < 2} == set()
    own = [key for path in FILES for key in specs.load(path).get("sources", {})]
    assert [key for key in own if users[key] > 1] == [], "move it to common/sources.yml"
    assert Counter([*own, *specs.shared_sources()]) == Counter(specs.sources().keys())


def test_a_document_that_nobody_describes_is_an_error_that_names_the_file():
    with pytest.raises(specs.SpecError, match=r"no document 't5-datasheet' in t4\.yml .* t4-datasheet"):
        specs.source("t5-datasheet", specs.path_of("t4"))


@pytest.mark.parametrize("name", WITH_SMS)
def test_fp32_peak_is_lanes_times_two_times_boost_clock(name):
    spec = specs.get(name)
    assert spec["fp32_lanes"].value == spec["sms"].value * spec["fp32_lanes_per_sm"].value
    assert spec["fp32_at_boost_clock"].si == pytest.approx(spec["peak_fp32"].si, rel=0.01)


@pytest.mark.parametrize("name", [name for name in GPUS if "memory_bus_width" in specs.get(name)])
def test_bandwidth_is_bus_times_data_rate(name):
    spec = specs.get(name)  # makers round: the H100 PCIe's 2,039 GB/s is sold as 2.0 TB/s
    assert spec["bandwidth_of_bus"].si == pytest.approx(spec["memory_bandwidth"].si, rel=0.02)


@pytest.mark.parametrize("name", GPUS)
def test_sparse_is_twice_dense(name):
    spec = specs.get(name)
    for fact in spec.values():
        if fact.name.endswith("_sparse"):
            assert fact.si == pytest.approx(2 * spec[fact.name.removesuffix("_sparse")].si, rel=0.002)


@pytest.mark.parametrize("name", GPUS)
def test_architecture_limits_agree_with_each_other(name):
    spec = specs.get(name)
    assert spec["max_threads_per_sm"].value == spec["max_warps_per_sm"].value * spec["warp_size"].value
    assert spec["max_shared_memory_per_block"].value <= spec["shared_memory_per_sm"].value
    assert spec["shared_memory_per_sm"].value < spec["unified_cache_per_sm"].value
    assert spec.arch == "sm_" + spec["compute_capability"].value.replace(".", "")
    assert spec["reserved_shared_memory_per_block"].text() == (
        "0 KiB" if spec.arch in ("sm_70", "sm_75") else "1 KiB"
    )


@pytest.mark.parametrize("name", [name for name in WITH_SMS if "fp32_to_fp64" in specs.get(name)])
def test_fp64_peak_follows_the_architectures_ratio(name):
    spec = specs.get(name)
    assert spec["peak_fp64"].si == pytest.approx(spec["peak_fp32"].si / spec["fp32_to_fp64"].value, rel=0.02)


@pytest.mark.parametrize(
    ("device", "fact", "text"),
    [  # what popular accounts get wrong, and what is derived
        ("h100-sxm", "fp32_lanes", "16,896"),
        ("h100-sxm", "tensor_cores", "528"),
        ("h100-sxm", "peak_bf16", "989.4 TFLOP/s"),
        ("h100-sxm", "ridge_bf16", "295 FLOP/B"),
        ("h100-sxm", "nvlink_each_way", "450 GB/s"),
        ("h100-sxm", "nvlink_per_link", "25 GB/s"),
        ("h100-pcie", "fp32_lanes", "14,592"),
        ("h100-pcie", "peak_bf16", "756 TFLOP/s"),
        ("h100-pcie", "ridge_bf16", "378 FLOP/B"),
        ("v100-sxm2", "tensor_cores", "640"),
        ("rtx-4090", "fp32_lanes", "16,384"),
        ("epyc-9654", "peak_fp32", "7.37 TFLOP/s"),
        ("epyc-9654", "memory_bandwidth", "460.8 GB/s"),
        ("mi300x", "ridge_bf16", "247 FLOP/B"),
        ("tpu-v7x", "ridge_bf16", "313 FLOP/B"),
    ],
)
def test_the_registry_states(device, fact, text):
    assert specs.get(device)[fact].text() == text


def test_a_fact_says_all_that_must_be_said():
    fact = specs.get("h100-sxm")["peak_bf16"]
    assert fact.long_text() == "989.4 TFLOP/s (peak, BF16, dense, SXM5)"
    assert re.match(r"NVIDIA: NVIDIA H100 .*table 1 .*; checked 2026-11-21$", fact.origin())
    assert fact.si == 989.4e12
    ridge = specs.get("h100-sxm")["ridge_bf16"]
    assert "dense peak / memory bandwidth [BF16 989.4 TFLOP/s; memory bandwidth 3.35 TB/s]" in ridge.origin()


def test_a_fact_can_be_shown_in_another_unit_of_its_kind():
    fact = specs.get("h100-sxm")["memory_reported"]
    assert fact.to("GiB").text() == "79.2 GiB"
    with pytest.raises(specs.SpecError, match="cannot be shown in 'MHz'"):
        fact.to("MHz")


def test_limits_are_found_by_architecture():
    hopper = specs.for_arch("sm_90a")
    assert hopper["max_threads_per_sm"].value == 2048
    assert hopper["shared_memory_per_sm"].si == 228 * 1024
    assert hopper["register_file_per_sm"].text() == "256 KiB"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: specs.get("h100"), "no device 'h100' in the .*registry; nearest: h100-sxm, h100-pcie"),
        (lambda: specs.get("h100-sxm")["bandwidth"], "no fact 'bandwidth'; nearest: l1_bandwidth, memory_b"),
        (lambda: specs.get("b300")["l2_cache"], "b300 has no fact 'l2_cache': two public readings disagree"),
        (lambda: specs.for_arch("sm_87"), "no limits for the architecture 'sm_87' in .*; nearest: "),
    ],
)
def test_a_wrong_name_gets_one_line_with_the_nearest(ask, message):
    with pytest.raises(specs.SpecError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_the_loader_needs_nothing_but_pyyaml():
    heavy = {"numpy", "numba", "torch", "pydantic"}
    code = f"import sys, warplab.hardware.specs; print({heavy} & set(sys.modules))"
    blocked = "import sys, types; sys.modules['warplab'] = types.ModuleType('warplab'); "
    blocked += f"sys.modules['warplab'].__path__ = [{str(ROOT / 'autograder' / 'warplab')!r}]; "
    done = subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.fixture
def book(tmp_path):
    """A Sphinx book of one page: build(text) gives (exit status, what Sphinx said, the page)."""
    pytest.importorskip("myst_parser")
    (tmp_path / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'chapters' / '_ext')!r})\n"
        "extensions = ['myst_parser', 'spec_role']\nhtml_theme = 'basic'\n"
    )

    def build(text):
        (tmp_path / "index.md").write_text(text)
        command = [sys.executable, "-m", "sphinx", *"-E -W --keep-going -q -b html".split()]
        command += [tmp_path, tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        page = tmp_path / "out" / "index.html"
        return done.returncode, done.stderr, page.read_text() if page.exists() else ""

    return build


@pytest.mark.slow
def test_the_role_and_the_directives_render(book):
    status, said, page = book(
        "# Page\n\n{spec}`h100-sxm peak_bf16`, {spec}`h100-sxm peak_bf16 0`, "
        "{spec}`h100-sxm memory_reported:GiB`\n\n{price}`aws-p5`, {price}`aws-p5 gpu`\n\n"
        "```{spec-table}\n:devices: h100-sxm h200-sxm\n:facts: sms memory_bus_width\n```\n\n"
        "```{spec-table}\n:every: gpu cpu\n:facts: tdp\n```\n\n```{spec-sources}\n```\n"
    )
    assert status == 0, said
    numbers = re.findall(r'<a class="spec[^>]*href="specs.html#[^>]*title="([^"]*)">([^<]*)</a>', page)
    first = [text.replace("\u00a0", " ") for _, text in numbers[:3]]
    assert first == ["989.4 TFLOP/s", "989 TFLOP/s", "79.2 GiB"]
    assert numbers[0][0].startswith("peak, BF16, dense, SXM5; NVIDIA: NVIDIA H100")
    assert "checked 2026-11-21" in numbers[0][0]
    assert re.search(r"seen 2026-11-09[^>]*>\$55\.04<.*seen 2026-11-09[^>]*>\$6\.88<", page, re.S)
    assert ("no document that states bus and data rate together was read", "–") in numbers
    rows = [page.index(f'{specs.get(name).name}">') for name in ("v100-sxm2", "b200", "epyc-9654")]
    assert rows == sorted(rows)
    named = {source for spec in HOLDERS for fact in spec.values() for source in fact.sources}
    assert all(source.url.replace("&", "&amp;") in page for source in named)


@pytest.mark.slow
def test_an_unknown_name_fails_the_build_and_names_file_and_line(book):
    status, said, _ = book(
        "# Page {price}`aws-p6` {price}`aws-p5 each`\n\n"
        "{spec}`h100 sms`\n\n{spec}`h100-sxm smss`\n\n{spec}`h100-sxm`\n\n"
        "```{spec-table}\n:devices: h100-sxm\n:facts: smss\n```\n\n"
        "```{spec-table}\n:every: npu\n:facts: sms\n```\n"
    )
    assert status != 0
    for line, complaint in [
        (1, "no offer 'aws-p6'"),
        (1, "'offer gpu'"),
        (3, "no device 'h100' in the hardware registry; nearest: h100-sxm"),
        (5, "h100-sxm has no fact 'smss'; nearest: sms"),
        (7, "'h100-sxm' is not 'device fact'"),
        (9, "none of these devices has the fact 'smss'"),
        (14, "no 'npu' has one of the facts sms; kinds are gpu, cpu, accelerator, arch"),
    ]:
        assert re.search(rf"index\.md:{line}: .*{re.escape(complaint)}", said), said


@pytest.fixture
def spec_role(monkeypatch):
    """The book's extension, as Sphinx imports it."""
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    return importlib.import_module("spec_role")


def test_a_table_of_every_gpu_has_those_with_one_of_the_facts_the_oldest_first(spec_role):
    assert {spec.key for spec in spec_role.every("gpu", ["sms"])} == set(WITH_SMS)
    assert {spec.key for spec in spec_role.every("gpu", ["peak_fp8", "peak_int8:TOP/s"])} == {
        name for name in GPUS if {"peak_fp8", "peak_int8"} & set(specs.get(name))
    }
    years = [spec.year for spec in spec_role.every("accelerator", ["memory_capacity"])]
    assert years == sorted(years)
    assert [spec.key for spec in spec_role.every("arch", ["warp_size"])] == specs.archs()


NEW_MACHINE = """
name: Maker Card 1 8 GB
short: Card 1
vendor: Maker
kind: gpu
form_factor: PCIe
arch: sm_89
year: 2030
reported_as: [Maker Card 1]
checked: 2030-01-02
defaults: {source: card-datasheet, at: p. 1}
facts:
  sms: {value: 10}
  memory_capacity: {value: 8, unit: GB}
offers:
  cloud-card: {provider: Cloud, card: Card 1, gpus: 2, hourly: 3, market: on demand,
    source: card-prices, seen: 2030-01-02}
sources:
  card-datasheet: {title: Data sheet, publisher: Maker, url: "https://example.org/sheet", by: vendor}
  card-prices: {title: Prices, publisher: Cloud, url: "https://example.org/prices", by: vendor}
"""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A copy of the registry's folder, which `specs` and `prices` read instead."""
    cached = (specs.get, specs.for_arch, specs.reported, specs.sources, specs.shared_sources)
    shutil.copytree(SPECS, tmp_path / "registry")
    monkeypatch.setattr(specs, "root", lambda: tmp_path / "registry")
    for function in cached:
        function.cache_clear()
    yield tmp_path / "registry"
    for function in cached:
        function.cache_clear()


def test_a_new_machine_is_one_file(registry, spec_role):
    (registry / "card-1.yml").write_text(NEW_MACHINE)
    card = specs.get("card-1")
    assert "card-1" in specs.names("gpu") and specs.reported("Maker Card 1") == "card-1"
    assert card["sms"].origin() == "Maker: Data sheet, p. 1; checked 2030-01-02"
    assert card["max_threads_per_sm"].value == specs.for_arch("sm_89")["max_threads_per_sm"].value
    assert prices.cheapest("card-1").gpu_hour == 1.5 and prices.get("cloud-card").source.title == "Prices"
    assert {"card-datasheet", "card-prices"} < specs.sources().keys()
    assert spec_role.every("gpu", ["sms"])[-1] == card
