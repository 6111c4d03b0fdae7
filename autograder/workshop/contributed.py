"""Checks a file of records that a reader sends, and adds them to the book's evidence.

    python -m warplab.evidence --pack my-gpu.json --by "NAME"   on the reader's machine, after `make record`
    python -m workshop.contributed my-gpu.json                  reports problems, or what it would add
    python -m workshop.contributed my-gpu.json --accept         writes the records

The book shows them as "contributed" by that name, with a different marker.

The file is untrusted: it is validated against ``SentFile`` before anything is computed with it.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warplab.evidence.catalogue import experiments
from warplab.evidence.measure import RESULTS
from warplab.evidence.record import Point, Record, RecordError, check, read, write
from warplab.evidence.roofs import impossible, roof

MOST_BYTES = 16 << 20
APART = 1.5
"""The largest ratio of medians between two records of one GPU model that clocks and cooling can explain."""

Text = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+\Z")]
Count = Annotated[int, Meta(ge=0, le=10**18)]
Positive = Annotated[float, Meta(gt=0, le=1e18)]
NotNegative = Annotated[float, Meta(ge=0, le=1e18)]


class SentPoint(Struct, forbid_unknown_fields=True):
    """The form of a ``Point``."""

    series: Text
    x: Positive
    clock: Literal["cuda", "host", "queue", "none"]
    warmups: Count
    samples: Annotated[list[Positive], Meta(min_length=5, max_length=1000)]
    median: Positive
    iqr: NotNegative
    bytes: Count
    flops: Count
    roof: Annotated[str, Meta(max_length=20, pattern=r"^[a-z0-9]*\Z")]
    unit: Literal["s", "B", "J"]


class SentRecord(Struct, forbid_unknown_fields=True):
    """The form of a ``Record``."""

    schema: Literal[1]
    experiment: Text
    device: Text
    kind: Literal["cuda"]
    driver: Text
    cuda: Text
    torch: Text
    python: Text
    clocks: Annotated[dict[str, NotNegative], Meta(max_length=8)]
    date: Text
    commit: Text
    code: Text
    by: Annotated[str, Meta(max_length=80, pattern=r"^[\x20-\x7e]*\Z")]
    left_out: Literal[""]
    points: Annotated[list[SentPoint], Meta(min_length=1, max_length=200)]


class SentFile(Struct, forbid_unknown_fields=True):
    """The form of a file."""

    schema: Literal[1]
    records: Annotated[list[SentRecord], Meta(min_length=1, max_length=100)]


def records_of(path: Path) -> list[Record]:
    """The records of a file. Raises RecordError, which names the place, for a file of another form."""
    if path.stat().st_size > MOST_BYTES:
        raise RecordError(f"{path}: more than {MOST_BYTES >> 20} MiB; a file of records has some hundred KiB")
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{path}: not JSON ({error})") from None
    try:
        msgspec.convert(raw, SentFile)
    except msgspec.ValidationError as error:
        raise RecordError(f"{path}: {str(error)[:300]}") from None
    return [Record(**{**r, "points": [Point(**p) for p in r["points"]]}) for r in raw["records"]]


def problems(records: list[Record], results: Path = RESULTS) -> list[str]:
    """One line for each reason to refuse the file: an invalid record, an impossible value, or values unlike
    those of other records of the same GPU model.
    """
    found, now, seen = [], datetime.datetime.now(datetime.UTC), set()
    for record in records:
        where = f"{record.experiment} on {record.device}"
        if record.experiment not in experiments():
            found.append(f"{where}: there is no such experiment")
            continue
        if (record.experiment, record.key) in seen:
            found.append(f"{where}: stands in the file twice")
        seen.add((record.experiment, record.key))
        try:
            check(record, where)
            taken = datetime.datetime.fromisoformat(record.date)
            if taken.tzinfo is None or taken > now + datetime.timedelta(days=1):
                found.append(f"{where}: the date {record.date} has no time zone or lies ahead")
        except ValueError as error:
            found.append(str(error))
        if not record.by.strip():
            found.append(f"{where}: nobody says who measured it; pack the file again with --by")
        if record.commit == "unknown":
            found.append(f"{where}: the course's commit is unknown; set WARPLAB_COMMIT and record it again")
        found += impossible(record)
        found += _unlike(record, results / record.experiment / f"{record.key}.json")
    return found


def _unlike(record: Record, ours: Path) -> list[str]:
    """One line for each median that differs by more than APART from our record of the same model and code."""
    if not ours.exists() or (kept := read(ours)).code != record.code:
        return []
    medians = {(p.series, p.x): p.median for p in kept.points}
    apart = []
    for p in record.points:
        ratio = p.median / medians.get((p.series, p.x), p.median)
        if not 1 / APART <= ratio <= APART:
            where = f"{record.experiment} on {record.device}, {p.series} at {p.x:g}"
            apart.append(
                f"{where}: {ratio:.2f} times the record that is there; was the GPU busy or throttled?"
            )
    return apart


def notes(records: list[Record], results: Path = RESULTS) -> list[str]:
    """What a maintainer should know about a file without problems."""
    said = []
    for record in records:
        where = f"{record.experiment} on {record.device}"
        if (results / record.experiment / f"{record.key}.json").exists():
            said.append(f"{where}: is there already and agrees; it is left as it is")
        elif record.code != experiments()[record.experiment].code:
            said.append(f"{where}: taken with another version of the experiment; it will be shown as such")
    for device in sorted({r.device for r in records if not roof(r.device, "memory")}):
        said.append(f"{device}: not in the hardware registry, so not held against its peaks; add it first")
    return said


def accept(records: list[Record], results: Path = RESULTS) -> list[Path]:
    """Write the records that do not exist yet; returns their paths."""
    new = [r for r in records if not (results / r.experiment / f"{r.key}.json").exists()]
    return [write(record, results) for record in new]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.contributed", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--accept", action="store_true", help="write the records that are new")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    try:
        records = records_of(options.file)
    except (OSError, RecordError) as error:
        print(f"contributed: {error}", file=sys.stderr)
        return 1
    if wrong := problems(records, options.results):
        print("\n".join(f"contributed: {line}" for line in wrong), file=sys.stderr)
        return 1
    print("\n".join([f"{len(records)} records, nothing wrong with them", *notes(records, options.results)]))
    if options.accept:
        print("\n".join(str(path) for path in accept(records, options.results)) or "nothing new")
    return 0


if __name__ == "__main__":
    sys.exit(main())
