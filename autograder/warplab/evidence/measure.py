"""``measure(name)``: an experiment's results, live or recorded, then published ones, each with its origin.

    m = warplab.measure("matmul_by_size")
    m.kind           "live", "recorded", "contributed", "published" or "missing": the best evidence of a GPU
    m.evidence       one Evidence for each source, each with a banner; cases for the CPU are always run live

Missing results are never made up: an experiment without a record says "not recorded yet".
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path

from warplab.evidence.record import Point, Record, RecordError, read
from warplab.evidence.roofs import impossible
from warplab.rendering import render

RESULTS = Path(__file__).with_name("results")
LIVE_SECONDS = 0.15  # for one case of a live run in a page
# fields of an entry of published.yml
OF_A_SOURCE = ("author", "device", "cite", "year", "software", "where", "differs")
# fields of a published point, of which each has exactly one
HOW = ("seconds", "per_second", "bytes_per_second", "flops_per_second", "held")


@dataclass(frozen=True)
class Evidence:
    """Points of one origin (``kind``): "live", "recorded", "contributed" (a record that a reader sent) or
    "published". ``banner`` must be shown with them.
    """

    kind: str
    device: str
    banner: str
    points: tuple[Point, ...]
    stale: bool = False
    year: int = 0  # of the record, or of the source
    software: str = ""
    author: str = ""  # who published it; this and the three below only where published
    cite: str = ""  # key of references.bib
    where: str = ""  # the table, figure or file of the source that holds the numbers
    differs: str = ""  # from the course's own experiment
    left_out: str = ""  # rows of the source that are not among the points, and why

    def series(self) -> dict[str, list[Point]]:
        out: dict[str, list[Point]] = {}
        for p in self.points:
            out.setdefault(p.series, []).append(p)
        return out


@dataclass(frozen=True)
class Measurement:
    """The evidence on an experiment; ``kind``: that of its best GPU evidence, "missing" if there is none."""

    name: str
    question: str
    x: str
    kind: str
    evidence: tuple[Evidence, ...]

    @property
    def banners(self) -> list[str]:
        """A line for each origin; origins that differ only in the device share one."""
        lines: dict[tuple[str, str], list[Evidence]] = {}
        for e in self.evidence:
            lines.setdefault((e.kind, e.author or e.banner.replace(e.device, "", 1)), []).append(e)
        said = [_of_one_author(es) if es[0].author else _of_cards(es) for es in lines.values()]
        return said + ([] if self.kind != "missing" else ["on a GPU: not recorded yet"])

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """(series, x, median, IQR/median or "-", rate) as the table shows them."""
        return [(f"{p.series}{tag(e)}", place(p), *_shown(p)) for e in self.evidence for p in e.points]

    @property
    def own(self) -> Measurement:
        """The measurement without published evidence, if there is a GPU's own: what one plot can show."""
        kept = tuple(e for e in self.evidence if e.kind != "published")
        return self if self.kind == "published" else replace(self, evidence=kept)

    def __str__(self) -> str:
        body = "\n".join("  " + "  ".join(row) for row in self.rows())
        return f"{self.question}\n" + "\n".join(self.banners) + (f"\n{body}" if body else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render("warplab.evidence", "measure.html.j2", measurement=self)


def _of_cards(same: list[Evidence]) -> str:
    """A banner: recorded on NVIDIA H100 80GB HBM3 and NVIDIA H200, driver 580, 2026-11-26; ..."""
    return same[0].banner.replace(same[0].device, " and ".join(e.device for e in same), 1)


def _of_one_author(sources: list[Evidence]) -> str:
    """A banner: published by A. Person, on NVIDIA H200, 2024 and 2025; NVIDIA B200, 2025."""
    years: dict[str, list[str]] = {}
    for e in sources:
        years.setdefault(e.device, []).append(str(e.year))
    devices = [f"{device}, {' and '.join(dict.fromkeys(those))}" for device, those in years.items()]
    left_out = [f" (of {e.device} left out: {e.left_out})" for e in sources if e.left_out]
    return f"published by {sources[0].author}, on {'; '.join(devices)}" + "".join(left_out)


def tag(evidence: Evidence) -> str:
    """The suffix of a source's row: ", NVIDIA H200, 2025"; "" for a live one, which is this machine's."""
    return "" if evidence.kind == "live" else f", {evidence.device}, {evidence.year}"


def _shown(p: Point) -> tuple[str, str, str]:
    """(median, spread, rate) as text; for a published rate only the rate."""
    median = "-" if p.clock == "published" and p.rate else p.text()
    return median, f"{p.iqr / p.median:.1%}" if p.n > 1 else "-", _rate(p)


def place(p: Point) -> str:
    """x as text: "4,096", "0.25", "268,435,456"."""
    return f"{p.x:,.0f}" if p.x >= 1e5 else f"{p.x:,g}"


def value(p: Point) -> str:
    """The rate as text if there is one, else the time or the bytes."""
    return _rate(p) if p.rate else p.text()


def _rate(p: Point) -> str:
    if not p.rate:
        return "-"
    of_arithmetic = p.flops and p.roof not in ("memory", "pcie")
    unit = "B/s" if p.bytes and not of_arithmetic else "FLOP/s"
    size, prefix = (1e12, "T") if p.rate >= 1e12 else (1e9, "G")
    return f"{p.rate / size:,.4g} {prefix}{unit}"


def measure(name: str, results: Path = RESULTS) -> Measurement:
    """The evidence on one experiment: live on this machine's GPU, else all records; then published figures.

    The experiment's CPU cases, if it has any, are run now. Raises KeyError for an unknown name, RecordError
    for a record that is damaged or claims more than its device's peak.
    """
    from warplab.evidence.catalogue import get
    from warplab.hardware.device import device

    experiment = get(name)
    gpu = list(shown_without_running(name, results).evidence)
    if device().kind == "cuda":
        gpu = [_live(name, "cuda"), *(e for e in gpu if e.kind == "published")]
    cpu = [_live(name, "cpu")] if experiment.cpu else []
    kind = gpu[0].kind if gpu else "missing"
    return Measurement(name, experiment.question, experiment.x, kind, (*gpu, *cpu))


def shown_without_running(name: str, results: Path = RESULTS) -> Measurement:
    """The evidence in files: all records, then published figures."""
    from warplab.evidence.catalogue import get

    experiment = get(name)
    found = [recorded(record, experiment.code) for record in records(name, results)]
    found += published(name, results)
    kind = found[0].kind if found else "missing"
    return Measurement(name, experiment.question, experiment.x, kind, tuple(found))


@functools.cache
def _live(name: str, where: str) -> Evidence:
    """Run an experiment now; cached, because a page may show it twice."""
    from warplab.evidence.catalogue import get
    from warplab.evidence.take import device_name, run

    points = run(get(name), where, LIVE_SECONDS)
    device = device_name(where)
    return Evidence("live", device, f"live: measured on this machine, {device}, now", tuple(points))


def records(name: str, results: Path = RESULTS) -> list[Record]:
    """All records of an experiment, contributed ones last. Raises RecordError for one that is damaged or
    above its device's peak.
    """
    found = []
    for path in sorted((results / name).glob("*.json")):
        record = read(path)
        if record.experiment != name or record.key != path.stem:
            raise RecordError(
                f"{path} is a record of {record.experiment} on {record.device}; move it to its own place"
            )
        if wrong := impossible(record):
            raise RecordError(f"{path}: {wrong[0]}")
        found.append(record)
    return sorted(found, key=lambda record: bool(record.by))


def recorded(record: Record, code: str) -> Evidence:
    """A record as Evidence; its banner says so if the experiment's code is no longer ``code``."""
    stale = record.code != code
    banner = f"recorded on {record.device}, driver {record.driver}, {record.date[:10]}; not this machine"
    return Evidence(
        "contributed" if record.by else "recorded",
        record.device,
        (f"contributed by {record.by}, " if record.by else "")
        + banner
        + ("; with an earlier version of the experiment" if stale else "")
        + (f"; left out: {record.left_out}" if record.left_out else ""),
        tuple(record.points),
        stale,
        int(record.date[:4]),
        f"driver {record.driver}, CUDA {record.cuda}, torch {record.torch}",
    )


def published(name: str, results: Path = RESULTS) -> list[Evidence]:
    """Figures that others published, from ``published.yml``: single numbers, without samples.

    Raises RecordError for an entry that lacks something or says too much.
    """
    path = results / "published.yml"
    entries = _read_once(path, path.stat().st_mtime_ns).get(name, []) if path.exists() else []
    return [_of_others(entry, f"{path}, {name}") for entry in entries]


@functools.cache
def _read_once(path: Path, changed: int) -> dict[str, list[dict]]:
    """The file as it was at the time ``changed``: a page asks for each experiment of it."""
    import yaml

    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _of_others(entry: dict, where: str) -> Evidence:
    """The Evidence of an entry of ``published.yml``, whose header explains the fields."""
    try:
        about = {field: entry[field] for field in OF_A_SOURCE} | {"left_out": entry.get("left_out", "")}
        banner = f"published by {about['author']}, on {about['device']}, {about['year']}"
        points = tuple(_of_another(p) for p in entry["points"])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{where}: {entry.get('device', 'an entry')}: {error!r}") from None
    return Evidence("published", banner=banner, points=points, **about)


def _of_another(p: dict) -> Point:
    """A published number as a Point: the time of one call, and the work of the call.

    Exactly one field of HOW is the published number. For a rate without ``bytes`` or ``flops`` a call moves a
    gigabyte or does 10**12 operations; with ``per_second`` a call does ``count`` things. If ``watts`` are
    given instead of x, x is the joules of the call.
    """
    (how,) = [key for key in HOW if key in p]
    done = {"bytes": p.get("bytes", 0), "flops": p.get("flops", 0)}
    if how == "bytes_per_second":
        done["bytes"] = done["bytes"] or 10**9
        amount = done["bytes"] / p[how]
    elif how == "flops_per_second":
        done["flops"] = done["flops"] or 10**12
        amount = done["flops"] / p[how]
    else:
        amount = p.get("count", 1) / p[how] if how == "per_second" else p[how]
    x = p["watts"] * amount if "watts" in p else p["x"]
    unit = "B" if how == "held" else "s"
    return Point(
        p["series"], x, "published", 0, [amount], amount, 0.0, **done, roof=p.get("roof", ""), unit=unit
    )


def states(results: Path = RESULTS) -> dict[str, list[str]]:
    """{experiment: banners of recorded and published evidence}; [] for one that is not recorded yet."""
    from warplab.evidence.catalogue import experiments

    return {name: [e.banner for e in shown_without_running(name, results).evidence] for name in experiments()}
