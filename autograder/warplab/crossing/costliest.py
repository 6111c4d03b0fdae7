"""Which line of a kernel costs most of what a row of a rubric counts, with one warp's request: plain data.

Found in the executor, where the kernel ran; nothing but whole numbers comes back from there, and names that
the judge gave.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from warplab.crossing.explain import Refused
from warplab.crossing.findings import MAX_LINE, Checksum, LineNumber
from warplab.crossing.values import of_form
from warplab.simt.counters.watch import WarpRequest
from warplab.simt.profile import MEMORY

PARTS = (*MEMORY, "atomics")
COUNTED = ("requests", "sectors", "bytes", "wavefronts", "bank_conflicts", "lanes")
KIND_COUNTS_IN = {  # an atomic reads and writes, and counts as both in what was touched
    "read": ("load", "read", "memory"),
    "write": ("store", "write", "memory"),
    "atomic": ("atomic", "read", "write", "memory", "memory"),
}
MAX_WIDTH, MAX_NUMBER = 64, 1 << 48
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]


class AccessRecord(Struct, forbid_unknown_fields=True):
    """The record of the line that costs most, and of one warp's request there. file: its name's checksum.

    lines: how many lines together made so many requests, of one kind to one array.
    """

    line: LineNumber
    file: Checksum
    space: Literal["global", "shared"]
    kind: Literal["read", "write", "atomic"]
    array: str
    width: Annotated[int, Meta(ge=1, le=MAX_WIDTH)]
    lanes: Annotated[list[Annotated[int, Meta(ge=0, le=31)]], Meta(min_length=1, max_length=32)]
    offsets: list[Number]
    requests: Number
    counted: Number
    wasted: Number
    lines: Annotated[int, Meta(ge=1, le=MAX_NUMBER)] = 1


@dataclass(frozen=True)
class Spent:
    """What one load, store or atomic of a kernel adds to the counters of a row.

    wasted: how much of that other addresses would save.
    """

    place: tuple  # (kernel, file, line): what its line is known by
    counted: int
    wasted: int
    requests: int
    sample: object


def counts_memory(names):
    """Whether any of these counters is one of requests to memory, or of what they take."""
    return any(name.partition(".")[0] in PARTS for name in names)


def spent(kernel, program, counters, names):
    """[Spent] of one launch.

    counters: a Costliest; names: the counters that the row adds up, in its order.
    """
    found = []
    for part, _, what in (name.partition(".") for name in names):
        for key, traffic in counters.traffic.items() if what in COUNTED else ():
            instr, sample = program.sites[key[0]], counters.samples.get(key)
            times = _times(part, sample) if sample else 0
            # a bulk copy of one lane is no picture of a warp
            if times and sample.width <= MAX_WIDTH:
                place = kernel, program.file_of(instr.file).rpartition("/")[2], instr.line
                counted, wasted = (times * cost for cost in _cost(what, traffic, sample.fewest_sectors))
                found.append(Spent(place, counted, wasted, traffic.requests, sample))
    return found


def _cost(what, traffic, fewest):
    """What one memory instruction counted, and how much of it is beyond the fewest for so many requests."""
    sectors, over = traffic.sectors, max(0, traffic.sectors - traffic.requests * fewest)
    conflicts = traffic.wavefronts - traffic.ideal
    costs = (traffic.requests, 0), (sectors, over), (32 * sectors, 32 * over), (traffic.wavefronts, conflicts)
    return (*costs, (conflicts, conflicts), (traffic.lanes, 0))[COUNTED.index(what)]


def _times(part, sample):
    """How often a request like this sample counts in a part of the counters."""
    if part == "atomics":
        return int(sample.kind == "atomic")
    space, _, kind = part.partition("_")
    return KIND_COUNTS_IN[sample.kind].count(kind) if space == sample.space else 0


def costliest(found, arrays):
    """The record of the line that costs most; {} where nothing was counted.

    It is the line whose requests waste most, if all lines together waste a quarter of what was counted: other
    addresses would save it; then "wasted" is not 0. If not, the requests are as they should be and too many:
    it is the line that counts most, or the first of several that together count more on one array.
    found: [Spent] of all launches. arrays: label of a region of memory -> the judge's name for it.
    """
    lines, accesses = {}, {}
    for one in found:
        lines.setdefault(one.place, []).append(one)
        accesses.setdefault((one.sample.space, one.sample.kind, one.sample.label), []).append(one)
    if not _counted(found):
        return {}
    by_waste = max(lines.values(), key=_wasted)
    wasted = _wasted(by_waste) if 4 * _wasted(found) >= _counted(found) else 0
    mine = by_waste if wasted else max([*lines.values(), *accesses.values()], key=_counted)
    shown = max(mine, key=lambda one: one.wasted if wasted else one.counted)
    (_, file, line), sample = shown.place, shown.sample
    alike = [one for one in mine if _same(one.sample, sample)]  # the compiler may have unrolled a loop
    place = line if 0 < line <= MAX_LINE else 0, zlib.crc32(file.encode())
    what = sample.space, sample.kind, arrays.get(sample.label, ""), sample.width
    totals = sum(one.requests for one in alike), _counted(mine), wasted, len({one.place for one in mine})
    return asdict(AccessRecord(*place, *what, list(sample.lanes), list(sample.offsets), *totals))


def _same(one, other):
    return (one.space, one.kind, one.label) == (other.space, other.kind, other.label)


def _counted(found):
    return sum(one.counted for one in found)


def _wasted(found):
    return sum(one.wasted for one in found)


def checked_access(data, arrays):
    """`data` as it is, if it is a record as costliest() makes them, or {}. Raises Refused for anything else.

    arrays: the names that it may have. A record that passes is small and can be drawn, true or not.
    """
    if not data:
        return {}
    told = of_form(data, AccessRecord, "the record of an access")
    if told.array not in ("", *arrays):
        raise Refused("the record of an access has a name that is none")
    if len(told.lanes) != len(told.offsets) or told.lanes != sorted(set(told.lanes)):
        raise Refused("the record of an access has lanes that no warp has")
    return data


def request_of(access):
    """The WarpRequest that a record holds."""
    label = access["array"] or "memory of the kernel's own"
    label = "shared memory" if access["space"] == "shared" else label
    if label.startswith("#"):
        label = "an array from device.empty"
    lanes, offsets = tuple(access["lanes"]), tuple(access["offsets"])
    return WarpRequest(
        access["line"], access["space"], access["kind"], lanes, offsets, access["width"], label
    )


def quoted(report, sources):
    """The report with the text of each line that it blames; a line that no source has keeps its number alone.

    sources() -> {a cell's or file's name, without folder: its text}. Lines are counted, nothing is parsed:
    the text is a stranger's, and this is the judge's process.
    """
    if not any(line.access or line.drawings for line in report.lines):
        return report
    texts = {zlib.crc32(name.encode()): text for name, text in sources().items()}
    return replace(report, lines=tuple(_quoted(line, texts) for line in report.lines))


def _quoted(line, texts):
    drawings = tuple(
        drawing | {"acts": [_with_source(act, texts) for act in drawing["acts"]]}
        if "acts" in drawing
        else drawing
        for drawing in line.drawings
    )
    return replace(line, access=_with_source(line.access, texts), drawings=drawings)


def _with_source(record, texts):
    """A record of a line with its text, where that is known."""
    text = texts.get(record.get("file"), "").split("\n")
    number = record.get("line", 0)
    return record | {"source": text[number - 1].strip()[:200]} if 0 < number <= len(text) else record
