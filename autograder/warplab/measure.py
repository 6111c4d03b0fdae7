"""``measure(name)``: an experiment's results, live where they can be, else recorded, else published, and always saying which.

    m = warplab.measure("matmul_by_size")
    m.kind           "live", "recorded", "published" or "missing": the best there is of a GPU
    m.evidence       one Evidence for each source, each with a banner; the CPU's own run is live everywhere

Nothing is filled in: an experiment without a record says "not recorded yet".
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .experiments.limits import impossible
from .experiments.record import Point, Record, RecordError, read

RESULTS = Path(__file__).resolve().parents[2] / "chapters" / "results"
LIVE_SECONDS = 0.15  # for one case of a live run in a page


@dataclass(frozen=True)
class Evidence:
    """Points of one origin. ``kind``: "live", "recorded" or "published"; ``banner`` must be shown with them."""

    kind: str
    device: str
    banner: str
    points: tuple[Point, ...]
    stale: bool = False
    cite: str = ""  # key of references.bib, where published

    def series(self) -> dict[str, list[Point]]:
        out: dict[str, list[Point]] = {}
        for p in self.points:
            out.setdefault(p.series, []).append(p)
        return out


@dataclass(frozen=True)
class Measurement:
    """Everything known about one experiment. ``gpu`` is the kind of its best GPU evidence, "missing" if there is none."""

    name: str
    question: str
    x: str
    kind: str
    evidence: tuple[Evidence, ...]

    @property
    def banners(self) -> list[str]:
        return [e.banner for e in self.evidence] + ([] if self.kind != "missing" else ["on a GPU: not recorded yet"])

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """(series, x, median, IQR/median or "-", rate) as the table shows them."""
        return [(p.series, f"{p.x:,g}", *_shown(p)) for e in self.evidence for p in e.points]

    def __str__(self) -> str:
        body = "\n".join("  " + "  ".join(row) for row in self.rows())
        return f"{self.question}\n" + "\n".join(self.banners) + (f"\n{body}" if body else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in self.rows())
        banners = "<br>".join(map(html.escape, self.banners))
        head = "".join(f"<th>{h}</th>" for h in ("series", html.escape(self.x), "median", "IQR", "rate"))
        table = f"<table class='warplab-measurement'><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>" if cells else ""
        return f"<div class='warplab-measurement'><p><strong>{html.escape(self.question)}</strong><br>{banners}</p>{table}</div>"


def _shown(p: Point) -> tuple[str, str, str]:
    rate = f"{p.rate / 1e9:,.4g} {'GB/s' if p.bytes and not (p.flops and p.roof not in ('memory', 'pcie')) else 'GFLOP/s'}" if p.rate else "-"
    return p.text(), f"{p.iqr / p.median:.1%}" if p.n > 1 else "-", rate


def measure(name: str, results: Path = RESULTS) -> Measurement:
    """The evidence on one experiment: live on CUDA, else every record; published figures where there is neither.

    The experiment's CPU cases, if it has any, are run here and now. Raises KeyError for an unknown name, RecordError for a
    record that is damaged or claims more than its device's peak.
    """
    from .device import device
    from .experiments.registry import get

    experiment = get(name)
    gpu = [_live(name, "cuda")] if device().kind == "cuda" else []
    if not gpu:
        gpu = list(shown_without_running(name, results).evidence)
    cpu = [_live(name, "cpu")] if experiment.cpu else []
    return Measurement(name, experiment.question, experiment.x, gpu[0].kind if gpu else "missing", (*gpu, *cpu))


def shown_without_running(name: str, results: Path = RESULTS) -> Measurement:
    """The same from files alone: every record, or where there is none what others published."""
    from .experiments.registry import get

    experiment = get(name)
    found = [recorded(record, experiment.code) for record in records(name, results)] or published(name, results)
    return Measurement(name, experiment.question, experiment.x, found[0].kind if found else "missing", tuple(found))


@functools.cache
def _live(name: str, where: str) -> Evidence:
    """Once a process: a page may show the same experiment twice."""
    from .experiments.machine import device_name, run
    from .experiments.registry import get

    points = run(get(name), where, LIVE_SECONDS)
    device = device_name(where)
    return Evidence("live", device, f"live: measured on this machine, {device}, now", tuple(points))


def records(name: str, results: Path = RESULTS) -> list[Record]:
    """All records of an experiment, checked. Raises RecordError, also for one that no device could have reached."""
    found = []
    for path in sorted((results / name).glob("*.json")):
        record = read(path)
        if record.experiment != name or record.key != path.stem:
            raise RecordError(f"{path} is a record of {record.experiment} on {record.device}; move it to its own place")
        if wrong := impossible(record):
            raise RecordError(f"{path}: {wrong[0]}")
        found.append(record)
    return found


def recorded(record: Record, code: str) -> Evidence:
    """A record as Evidence; its banner says so if the experiment's code is no longer ``code``."""
    stale = record.code != code
    banner = f"recorded on {record.device}, driver {record.driver}, {record.date[:10]} - not this machine"
    return Evidence("recorded", record.device, banner + ("; with an earlier version of the experiment" if stale else ""), tuple(record.points), stale)


def published(name: str, results: Path = RESULTS) -> list[Evidence]:
    """Figures that others published, from ``published.yml``: single numbers, without samples."""
    import yaml

    path = results / "published.yml"
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [_of_others(entry) for entry in rows.get(name, [])]


def _of_others(entry: dict) -> Evidence:
    def points() -> Iterable[Point]:
        for p in entry["points"]:
            seconds = p["flops"] / p["flops_per_second"]
            yield Point(p["series"], p["x"], "published", 0, [seconds], seconds, 0.0, flops=p["flops"], roof="fp32")

    return Evidence("published", entry["device"], f"published by {entry['author']} [{entry['cite']}], on {entry['device']}", tuple(points()), cite=entry["cite"])


def states(results: Path = RESULTS) -> dict[str, list[str]]:
    """Experiment -> its banners of recorded and published evidence, without running anything; empty: not recorded yet."""
    from .experiments.registry import experiments

    return {name: [e.banner for e in shown_without_running(name, results).evidence] for name in experiments()}
