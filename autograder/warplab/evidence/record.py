"""Records of measurements: plain dataclasses and JSON, which need no packages beyond Python's own."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

SCHEMA = 1


class RecordError(ValueError):
    """A record lacks something or claims something impossible; the message has file, field and reason."""


@dataclass(frozen=True)
class Point:
    """One measured case: raw ``samples`` of one call, in seconds unless ``unit`` is "B" or "J", and the
    ``bytes`` and ``flops`` of one call.

    ``series`` and ``x`` place it in the plot. ``roof``: the limit that the rate must not exceed, which is
    "memory", "pcie", a number format ("fp32", "tf32", "bf16", "fp16", "fp8", "int8"), or for bytes held
    "capacity"; "" for none. ``clock``: how it was timed (clocks.py).
    """

    series: str
    x: float
    clock: str
    warmups: int
    samples: list[float]
    median: float
    iqr: float
    bytes: int = 0
    flops: int = 0
    roof: str = ""
    unit: str = "s"

    @property
    def n(self) -> int:
        return len(self.samples)

    @property
    def rate(self) -> float:
        """Bytes a second if the roof is a bandwidth, else FLOP a second; 0 if the samples are not times, or
        neither is counted.
        """
        if self.unit != "s":
            return 0.0
        work = self.bytes if self.roof in ("memory", "pcie") or not self.flops else self.flops
        return work / self.median

    def text(self) -> str:
        """The median as text: "1.23 ms", "4.56 GB", "0.789 J"."""
        from warplab.timing.bench import seconds

        return (
            seconds(self.median)
            if self.unit == "s"
            else f"{self.median / 1e9:.4g} GB"
            if self.unit == "B"
            else f"{self.median:.3g} J"
        )

    @classmethod
    def of(cls, samples: list[float], warmups: int, **what) -> Point:
        return cls(
            samples=samples, warmups=warmups, median=statistics.median(samples), iqr=iqr(samples), **what
        )


def iqr(samples: list[float]) -> float:
    """Interquartile range."""
    low, _, high = statistics.quantiles(samples, n=4)
    return high - low


@dataclass(frozen=True)
class Record:
    """One run of an experiment on a device, with the versions and clocks that are needed to judge it."""

    schema: int
    experiment: str
    device: str
    kind: str  # cuda or cpu
    driver: str
    cuda: str
    torch: str
    python: str
    clocks: dict[str, float]  # MHz before and after: sm, memory, sm_after, memory_after
    date: str  # UTC, ISO 8601
    commit: str
    code: str  # hash of the experiment's own code
    by: str = ""  # the reader who sent it; "" for the course's own
    left_out: str = ""  # which points were left out, and why
    points: list[Point] = field(default_factory=list)

    @property
    def key(self) -> str:
        return slug(self.device)

    def spread(self) -> float:
        """The largest IQR/median of its points."""
        return max(p.iqr / p.median for p in self.points)


def slug(name: str) -> str:
    """The name of a device in file names: "nvidia-h200" for "NVIDIA H200"."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def write(record: Record, folder: Path) -> Path:
    """Write ``folder/<experiment>/<device>.json``, atomically; returns its path."""
    path = folder / record.experiment / f"{record.key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def read(path: Path) -> Record:
    """Read and check a record. Raises RecordError for missing or unknown fields, and as ``check``."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise RecordError(f"{path}: not JSON ({error}); record it again") from None
    points = [_build(Point, p, f"{path}: point {i}") for i, p in enumerate(raw.get("points", []))]
    record = _build(Record, {**raw, "points": points}, str(path))
    check(record, str(path))
    return record


def _build(kind, raw: dict, where: str):
    names = set(kind.__dataclass_fields__)
    missing, unknown = names - set(raw), set(raw) - names
    if missing or unknown:
        what = (
            f"lacks {', '.join(sorted(missing))}"
            if missing
            else f"has the unknown field {', '.join(sorted(unknown))}"
        )
        raise RecordError(f"{where} {what}; record it again")
    return kind(**raw)


def check(record: Record, where: str) -> None:
    """Raise RecordError for another schema, empty fields, bad samples, or a wrong median or IQR."""
    if record.schema != SCHEMA:
        raise RecordError(f"{where} has schema {record.schema}, this code reads {SCHEMA}; record it again")
    empty = [
        name
        for name in (
            "experiment",
            "device",
            "driver",
            "cuda",
            "torch",
            "python",
            "date",
            "commit",
            "code",
            "points",
        )
        if not getattr(record, name)
    ]
    if empty:
        raise RecordError(f"{where} has an empty {', '.join(empty)}; record it again")
    for p in record.points:
        name = f"{where}, {p.series} at {p.x:g}"
        if p.n < 5 or min(p.samples) <= 0:
            raise RecordError(f"{name}: needs at least 5 samples, all above 0, and has {p.n}")
        if (
            abs(p.median - statistics.median(p.samples)) > 1e-9 * p.median
            or abs(p.iqr - iqr(p.samples)) > 1e-9 * p.median
        ):
            raise RecordError(f"{name}: median or IQR is not that of its samples")
