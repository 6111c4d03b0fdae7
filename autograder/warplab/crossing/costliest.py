"""Which line of a kernel costs most of what a rubric row counts, and one warp's request there, as plain data.

The executor, where the kernel runs, finds it; its record holds only integers and names that the judge gave.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from warplab.crossing.explain import Refused
from warplab.crossing.findings import MAX_LINE, Checksum, LineNumber
from warplab.crossing.values import validated
from warplab.simt.counters.watch import WarpRequest
from warplab.simt.profile import MEMORY

PARTS = (*MEMORY, "atomics")
COUNTED = ("requests", "sectors", "bytes", "wavefronts", "bank_conflicts", "lanes")
KIND_COUNTS_IN = {  # {kind of access: parts of the counters it counts in}; an atomic reads and writes
    "read": ("load", "read", "memory"),
    "write": ("store", "write", "memory"),
    "atomic": ("atomic", "read", "write", "memory", "memory"),
}
MAX_WIDTH, MAX_NUMBER = 64, 1 << 48
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]


class AccessRecord(Struct, forbid_unknown_fields=True):
    """The line that costs most, and one warp's request there. file: the CRC-32 of the file's name.

    lanes, offsets: the request's active lanes and their byte offsets. width: bytes a lane. counted, wasted:
    of the row's counters. lines: how many lines were added up, if they access one array in the same way.
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
class AccessCost:
    """What one load, store or atomic instruction adds to the counters of a row.

    wasted: how much of that would be saved with better addresses. sample: one WarpRequest of it.
    """

    place: tuple  # (kernel, file, line)
    counted: int
    wasted: int
    requests: int
    sample: object


def counts_memory(names):
    """Whether any of these counters is about memory requests."""
    return any(name.partition(".")[0] in PARTS for name in names)


def access_costs(kernel, program, counters, names):
    """[AccessCost] of one launch. counters: a Costliest observer. names: counters that the row adds up."""
    found = []
    for part, _, what in (name.partition(".") for name in names):
        for key, traffic in counters.traffic.items() if what in COUNTED else ():
            instr, sample = program.sites[key[0]], counters.samples.get(key)
            times = _times(part, sample) if sample else 0
            # a bulk copy by one lane cannot be drawn as a warp's request
            if times and sample.width <= MAX_WIDTH:
                place = kernel, program.file_of(instr.file).rpartition("/")[2], instr.line
                counted, wasted = (times * cost for cost in _cost(what, traffic, sample.fewest_sectors))
                found.append(AccessCost(place, counted, wasted, traffic.requests, sample))
    return found


def _cost(what, traffic, fewest):
    """(count of `what`, the part above the minimum for as many requests) of one memory instruction.

    what: one of COUNTED. fewest: the fewest sectors that a request can touch.
    """
    sectors, over = traffic.sectors, max(0, traffic.sectors - traffic.requests * fewest)
    conflicts = traffic.wavefronts - traffic.ideal
    costs = (traffic.requests, 0), (sectors, over), (32 * sectors, 32 * over), (traffic.wavefronts, conflicts)
    return (*costs, (conflicts, conflicts), (traffic.lanes, 0))[COUNTED.index(what)]


def _times(part, sample):
    """How many times a request like this sample counts in `part` of the counters."""
    if part == "atomics":
        return int(sample.kind == "atomic")
    space, _, kind = part.partition("_")
    return KIND_COUNTS_IN[sample.kind].count(kind) if space == sample.space else 0


def costliest(found, arrays):
    """The AccessRecord, as a dict, of the line that costs most; {} where nothing was counted.

    If all lines together waste at least a quarter of what was counted, it is the line that wastes most, and
    "wasted" is not 0. Otherwise the requests are efficient but too many: it is the line that counts most, or
    the first of several lines that together count more on one array.
    found: [AccessCost] of all launches. arrays: {label of a memory region: the judge's name for it}.
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
    alike = [one for one in mine if _same(one.sample, sample)]  # a loop may have been unrolled
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
    """`data` unchanged if it is an AccessRecord as a dict, or {}. Raises Refused for anything else.

    arrays: the names that it may use. This ensures that it is small and can be drawn, not that it is true.
    """
    if not data:
        return {}
    told = validated(data, AccessRecord, "the record of an access from the executor")
    if told.array not in ("", *arrays):
        raise Refused(f"the record of an access names {told.array[:40]!r}, which is no array of this case")
    if len(told.lanes) != len(told.offsets) or told.lanes != sorted(set(told.lanes)):
        raise Refused("the record of an access must have its lanes in rising order, with one offset for each")
    return data


def request_of(access):
    """The WarpRequest in a record, to draw it."""
    label = access["array"] or "memory of the kernel's own"
    label = "shared memory" if access["space"] == "shared" else label
    if label.startswith("#"):
        label = "an array from device.empty"
    lanes, offsets = tuple(access["lanes"]), tuple(access["offsets"])
    return WarpRequest(
        access["line"], access["space"], access["kind"], lanes, offsets, access["width"], label
    )


def quoted(report, sources):
    """The report with the source text of each line that its records name, where that is known.

    sources() -> {name of a cell or file, without folder: its text}. The text is untrusted; it is only split
    into lines, not parsed.
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
    """A record with the text of its line under "source", where that is known."""
    text = texts.get(record.get("file"), "").split("\n")
    number = record.get("line", 0)
    return record | {"source": text[number - 1].strip()[:200]} if 0 < number <= len(text) else record
