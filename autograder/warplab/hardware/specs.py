"""The hardware registry: facts about devices, with units, sources and the days on which they were checked.

    spec = specs.get("h100-sxm")
    spec["memory_bandwidth"].value, .unit     3.35, "TB/s"
    spec["memory_bandwidth"].si               3.35e12 (bytes per second)
    spec["peak_bf16"].long_text()             "989.4 TFLOP/s (peak, BF16, dense, SXM5)"
    spec["ridge_bf16"].text()                 "295 FLOP/B", computed here, stored nowhere
    specs.for_arch("sm_90")["max_threads_per_sm"].value
    specs.reported("Tesla T4")                "t4"

The facts are in YAML files (registry/: one file a device, arch/ for a compute capability, common/ for what
several files share). A fact without a source is left out, and asking for it raises SpecError.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

#: unit -> its size in base units: operations, bytes, bits, hertz, watts. GB is decimal, GiB binary.
UNITS = {
    "": 1, "TFLOP/s": 1e12, "TOP/s": 1e12, "FLOP/B": 1, "OP/B": 1,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "GB": 1e9,
    "GB/s": 1e9, "TB/s": 1e12, "bit": 1, "Gbit/s": 1e9, "MHz": 1e6, "GHz": 1e9, "W": 1,
}  # fmt: skip


class SpecError(KeyError):
    """The registry does not have a device, an architecture or a fact; the message is one line."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Source:
    """A document: `by` is "vendor" for the maker's own, "other" for somebody else's."""

    key: str
    title: str
    publisher: str
    url: str
    by: str


@dataclass(frozen=True)
class Fact:
    """One number (or name) about a device. A computed one has `formula` and `inputs`, no `source`."""

    name: str
    label: str
    kind: str  # peak, limit, measured, count, size, setting or ratio: see registry/common/facts.yml
    value: Any  # a number, or a word where the fact is a name
    unit: str = ""
    device: str = ""
    form_factor: str = ""
    precision: str = ""
    dense: bool | None = None
    source: Source | None = None
    at: str = ""
    checked_in: str = ""
    checked: datetime.date | None = None
    note: str = ""
    formula: str = ""
    inputs: tuple[Fact, ...] = ()
    digits: int | None = None  # significant digits of a computed value

    @property
    def si(self) -> float:
        """The value in base units (FLOP/s, B/s, B, Hz, W). Raises TypeError for a name such as "HBM3"."""
        if isinstance(self.value, str):
            raise TypeError(f"{self.device} {self.name} is a name ({self.value}), not a number")
        return self.value * UNITS[self.unit]

    @property
    def sources(self) -> tuple[Source, ...]:
        """Every document behind the fact, through its inputs if it is computed."""
        if self.source:
            return (self.source,)
        return tuple(dict.fromkeys(source for fact in self.inputs for source in fact.sources))

    def to(self, unit: str) -> Fact:
        """The fact in another unit of the same kind, to four digits: 85045477376 B -> 79.2 GiB.

        Raises SpecError for a unit of another kind.
        """
        if unit not in UNITS or unit.lstrip("KMGTi") != self.unit.lstrip("KMGTi"):
            raise SpecError(f"{self.device} {self.name} is in '{self.unit}' and cannot be shown in '{unit}'")
        return replace(self, value=self.si / UNITS[unit], unit=unit, digits=4)

    def text(self, decimals: int | None = None) -> str:
        """The value with its unit, "3.35 TB/s"; `decimals` rounds it further."""
        value = self.value
        if not isinstance(value, str):
            if decimals is not None:
                value = f"{value:,.{decimals}f}"
            else:
                value = _grouped(value, self.digits)
        return f"{value} {self.unit}".rstrip()

    def qualities(self) -> list[str]:
        """The qualifications of the number: peak or measured, format, dense or sparse, form factor."""
        sparsity = {True: "dense", False: "with 2:4 sparsity", None: ""}[self.dense]
        return [
            q
            for q in (
                self.kind if self.kind in ("peak", "measured") else "",
                self.precision,
                sparsity,
                self.form_factor,
            )
            if q
        ]

    def long_text(self) -> str:
        """The value with its qualifications: "989.4 TFLOP/s (peak, BF16, dense, SXM5)"."""
        return f"{self.text()} ({', '.join(self.qualities())})" if self.qualities() else self.text()

    def origin(self) -> str:
        """One line: the number's source or formula, and the day it was checked."""
        if self.source:
            where = f"{self.source.publisher}: {self.source.title}" + (f", {self.at}" if self.at else "")
        else:
            where = f"computed: {self.formula} [{'; '.join(f'{i.label} {i.text()}' for i in self.inputs)}]"
        return f"{where}; checked {self.checked}"


@dataclass(frozen=True, eq=False)
class Spec(Mapping):
    """A device or an architecture: a mapping from fact names to facts, stored ones and computed ones."""

    key: str
    name: str
    short: str
    vendor: str
    kind: str  # gpu (NVIDIA's, with an arch), cpu, accelerator (another maker's) or arch
    form_factor: str
    arch: str
    year: int | None
    reported_as: tuple[str, ...]  # its names in drivers
    facts: dict[str, Fact] = field(repr=False)
    omitted: dict[str, str] = field(repr=False)

    def __getitem__(self, name: str) -> Fact:
        if name in self.facts:
            return self.facts[name]
        if name in self.omitted:
            raise SpecError(f"{self.key} has no fact '{name}': {self.omitted[name]}")
        raise SpecError(f"{self.key} has no fact '{name}'; {_nearest(name, self.facts)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)


def root() -> Path:
    """The folder of the YAML files."""
    return Path(__file__).with_name("registry")


def names(kind: str | None = None) -> list[str]:
    """Every device, or those of one kind ("gpu", "cpu", "accelerator"), in alphabetical order."""
    every = sorted(path.stem for path in root().glob("*.yml"))
    return [name for name in every if kind is None or get(name).kind == kind]


def archs() -> list[str]:
    """Every architecture in the registry: sm_70, sm_75 ... by compute capability."""
    return sorted((path.stem for path in (root() / "arch").glob("*.yml")), key=lambda arch: int(arch[3:]))


@functools.cache
def get(name: str) -> Spec:
    """A device by its key ("h100-sxm"). Raises SpecError, with the nearest keys, if there is none."""
    path = root() / f"{name}.yml"
    if not path.is_file():
        raise SpecError(f"no device '{name}' in the hardware registry; {_nearest(name, names())}")
    return _read(path)


@functools.cache
def for_arch(arch: str) -> Spec:
    """The facts of a compute capability ("sm_90" or "sm_90a"). Raises SpecError, with the nearest names."""
    path = root() / "arch" / f"{arch.rstrip('af')}.yml"
    if not arch:
        raise SpecError("this needs a device that CUDA runs on, such as h100-sxm, rtx-4090 or t4")
    if not path.is_file():
        raise SpecError(
            f"no limits for the architecture '{arch}' in the hardware registry; {_nearest(arch, archs())}"
        )
    return _read(path)


@functools.cache
def reported(name: str) -> str | None:
    """The key of the device whose driver reports `name` ("NVIDIA H200"); None if the registry has none."""
    return next((key for key in names() if name in get(key).reported_as), None)


@functools.cache
def sources() -> dict[str, Source]:
    """All documents of the registry by key: the shared ones, then those of single files."""
    every = dict(shared_sources())
    for path in [*map(path_of, names()), *sorted((root() / "arch").glob("*.yml"))]:
        every |= {key: source(key, path) for key in load(path).get("sources", {})}
    return every


@functools.cache
def shared_sources() -> dict[str, Source]:
    """The documents that several files use: registry/common/sources.yml."""
    return {key: Source(key, **entry) for key, entry in load(root() / "common" / "sources.yml").items()}


def source(key: str, path: Path) -> Source:
    """The document `key` of the registry file at `path`, its own or a shared one. Raises SpecError."""
    own = load(path).get("sources", {})
    if key in own:
        return Source(key, **own[key])
    if key not in shared_sources():
        raise SpecError(
            f"no document '{key}' in {path.name} or common/sources.yml; {_nearest(key, sources())}"
        )
    return shared_sources()[key]


@functools.cache
def labels() -> dict[str, dict]:
    """Fact name -> {label, kind, precision, unit_on}: registry/common/facts.yml."""
    return load(root() / "common" / "facts.yml")


def path_of(name: str) -> Path:
    """The file of a device."""
    return root() / f"{name}.yml"


@functools.cache
def load(path: Path) -> dict:
    """The content of a registry file, cached."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _read(path: Path) -> Spec:
    """The Spec of a device's or an architecture's file; a device also has its architecture's facts."""
    raw = load(path)
    device = {"device": path.stem, "form_factor": raw.get("form_factor", "")}
    facts = {name: _fact(name, entry, path, device) for name, entry in raw["facts"].items()}
    if raw.get("arch"):
        facts = {**for_arch(raw["arch"]).facts, **facts}
    for rule in RULES:
        if rule.name not in facts and all(name in facts for name in rule.inputs):
            facts[rule.name] = rule.apply(facts, device)
    return Spec(
        key=path.stem,
        name=raw["name"],
        short=raw["short"],
        vendor=raw["vendor"],
        kind=raw["kind"],
        form_factor=device["form_factor"],
        arch=raw.get("arch", ""),
        year=raw.get("year"),
        reported_as=tuple(raw.get("reported_as", [])),
        facts=facts,
        omitted=raw.get("omitted", {}),
    )


def _fact(name: str, entry: dict, path: Path, device: dict) -> Fact:
    raw = load(path)
    # the file's defaults (such as a page) belong to its default source, so not to a fact with another source
    entry = {**({} if "source" in entry else raw.get("defaults", {})), "checked": raw["checked"], **entry}
    meaning = labels()[name]
    return Fact(
        name=name,
        label=meaning["label"],
        kind=meaning["kind"],
        precision=meaning.get("precision", ""),
        **{**entry, **device, "source": source(entry["source"], path)},
    )


def _nearest(name: str, known: Mapping | list[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
    close += [k for k in known if str(name) in k and k not in close][:3]
    return "nearest: " + ", ".join(close[:4]) if close else "known: " + ", ".join(sorted(known))


def _grouped(value: int | float, digits: int | None) -> str:
    # A stored value keeps the digits of its source (2.0 stays 2.0); a computed one is rounded.
    if isinstance(value, int) or digits is None:
        return f"{value:,}"
    return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):,.10g}"


@dataclass(frozen=True)
class Rule:
    """How a fact is computed from others. `compute` works in base units; its docstring is the formula that
    pages show.
    """

    name: str
    inputs: tuple[str, ...]
    unit: str
    digits: int
    compute: Callable[..., float]
    dense: bool | None = None

    def apply(self, facts: dict[str, Fact], device: dict) -> Fact:
        given = tuple(facts[name] for name in self.inputs)
        value = self.compute(*(fact.si for fact in given)) / UNITS[self.unit]
        meaning = labels()[self.name]
        return Fact(
            name=self.name,
            label=meaning["label"],
            kind=meaning["kind"],
            precision=meaning.get("precision", ""),
            value=int(value) if value == int(value) else value,
            unit=self.unit,
            digits=self.digits,
            dense=self.dense,
            formula=(self.compute.__doc__ or "").split(":")[0],
            inputs=given,
            checked=min(fact.checked for fact in given if fact.checked),
            note="; ".join(dict.fromkeys(fact.note for fact in given if fact.note)),
            **device,
        )


def _half(sparse: float) -> float:
    """half of the sparse peak: 2:4 sparsity doubles the rate that the maker states"""
    return sparse / 2


def _each_way(total: float) -> float:
    """half of the sum of both directions"""
    return total / 2


def _product(*numbers: float) -> float:
    """product of these"""
    return math.prod(numbers)


def _lanes_at_clock(lanes: float, clock: float) -> float:
    """lanes x 2 (a fused multiply-add is two operations) x clock"""
    return lanes * 2 * clock


def _fp64_of_ratio(fp32: float, ratio: float) -> float:
    """the FP32 peak over the architecture's ratio of FP32 to FP64 throughput"""
    return fp32 / ratio


def _cpu_fp32(cores: float, units: float, width: float, clock: float) -> float:
    """cores x FMA units x (SIMD bits / 32) x 2 x base clock"""
    return cores * units * (width / 32) * 2 * clock


def _channels(channels: float, width: float, rate: float) -> float:
    """channels x channel width / 8 x data rate"""
    return channels * width / 8 * rate


def _bus(width: float, rate: float) -> float:
    """bus width / 8 x data rate per pin"""
    return width / 8 * rate


def _l1(banks: float, sms: float, clock: float) -> float:
    """banks x 4 bytes a clock x SMs x boost clock; L1 and shared memory are one, and share the way out"""
    return banks * 4 * sms * clock


def _l2(per_clock: float, clock: float) -> float:
    """bytes a clock x boost clock"""
    return per_clock * clock


def _ridge(peak: float, bandwidth: float) -> float:
    """dense peak / memory bandwidth: a kernel with fewer operations per byte waits for memory"""
    return peak / bandwidth


def _per_link(total: float, links: float) -> float:
    """the sum of both directions / 2 / links"""
    return total / 2 / links


def _kept(per_sm: float, per_block: float) -> float:
    """shared memory per SM - the most that one block can have"""
    return per_sm - per_block


def _register_bytes(registers: float) -> float:
    """32-bit registers x 4 bytes"""
    return registers * 4


def _rate(precision: str) -> str:
    return "TOP/s" if precision == "int8" else "TFLOP/s"


def _per_byte(precision: str) -> str:
    return "OP/B" if precision == "int8" else "FLOP/B"


#: Applied in order: a rule may use results of earlier ones; a stored fact is never replaced.
RULES = [
    *(
        Rule(f"peak_{p}", (f"peak_{p}_sparse",), _rate(p), 4, _half, dense=True)
        for p in ("tf32", "bf16", "fp16", "fp8", "int8", "fp4")
    ),
    Rule(
        "peak_fp32",
        ("cores", "fma_units_per_core", "simd_width", "base_clock"),
        "TFLOP/s",
        3,
        _cpu_fp32,
        dense=True,
    ),
    Rule(
        "memory_bandwidth",
        ("memory_channels", "memory_channel_width", "memory_data_rate"),
        "GB/s",
        4,
        _channels,
    ),
    Rule("peak_fp64", ("peak_fp32", "fp32_to_fp64"), "TFLOP/s", 3, _fp64_of_ratio, dense=True),
    Rule("fp32_lanes", ("sms", "fp32_lanes_per_sm"), "", 9, _product),
    Rule("tensor_cores", ("sms", "tensor_cores_per_sm"), "", 9, _product),
    Rule("max_resident_threads", ("sms", "max_threads_per_sm"), "", 9, _product),
    Rule("fp32_at_boost_clock", ("fp32_lanes", "boost_clock"), "TFLOP/s", 3, _lanes_at_clock, dense=True),
    Rule("peak_special", ("special_functions_per_sm", "sms", "boost_clock"), "TFLOP/s", 3, _product, True),
    Rule("l1_bandwidth", ("shared_memory_banks", "sms", "boost_clock"), "TB/s", 3, _l1),
    Rule("l2_bandwidth", ("l2_per_clock", "boost_clock"), "TB/s", 3, _l2),
    Rule("bandwidth_of_bus", ("memory_bus_width", "memory_data_rate"), "GB/s", 4, _bus),
    Rule("nvlink_each_way", ("nvlink_total",), "GB/s", 4, _each_way),
    Rule("nvlink_per_link", ("nvlink_total", "nvlink_links"), "GB/s", 4, _per_link),
    Rule("pcie_each_way", ("pcie_total",), "GB/s", 4, _each_way),
    Rule(
        "reserved_shared_memory_per_block",
        ("shared_memory_per_sm", "max_shared_memory_per_block"),
        "KiB",
        4,
        _kept,
    ),
    Rule("register_file_per_sm", ("registers_per_sm",), "KiB", 4, _register_bytes),
    *(
        Rule(f"ridge_{p}", (f"peak_{p}", "memory_bandwidth"), _per_byte(p), 3, _ridge, dense=True)
        for p in ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
    ),
]
