"""What the engine found while a kernel ran (an error that stopped it, warnings), as plain data.

The executor makes these records. A record is {"text": a warning, or "" for the error that stopped the kernel,
"acts": [what one or two threads did]}; an act is {"thread", "block": three numbers, "does", "what", "file",
"line"}. Where a row counts instructions, one more record has the lines that issue most: {"text": "", "acts":
[], "lanes": [[file, line, warp instructions, thread instructions], ...]}.
"""

import zlib
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import asdict

from warplab.crossing.values import validated

MOST = 4  # records of one case
MAX_TEXT, MAX_WHAT = 1200, 200
MAX_LINE, MAX_INDEX = 1_000_000, 1 << 31
MAX_LANES, MAX_COUNT = 6, 1 << 48  # lines in "lanes", instructions of one line
INSTRUCTIONS = ("warp_instructions", "busiest_warp_instructions", "thread_instructions", "divergent_branches")
Does = Literal["reads", "writes", "updates atomically", "waits"]
LineNumber = Annotated[int, Meta(ge=0, le=MAX_LINE)]
Checksum = Annotated[int, Meta(ge=0, lt=1 << 32)]
Index = Annotated[list[Annotated[int, Meta(ge=0, le=MAX_INDEX)]], Meta(min_length=3, max_length=3)]


class ActRecord(Struct, forbid_unknown_fields=True):
    """What one thread did on a line. file: the CRC-32 of the file's name."""

    thread: Index
    block: Index
    does: Does
    what: Annotated[str, Meta(max_length=MAX_WHAT)]
    file: Checksum
    line: LineNumber


class LineRecord(Struct, array_like=True, forbid_unknown_fields=True):
    """How many instructions a line issued, counted by warps and by threads."""

    file: Checksum
    line: Annotated[int, Meta(ge=1, le=MAX_LINE)]
    warps: Annotated[int, Meta(ge=1, le=MAX_COUNT)]
    threads: Annotated[int, Meta(ge=0)]

    def __post_init__(self):
        if self.threads > 32 * self.warps:
            raise ValueError("more than 32 thread instructions for each warp instruction")


class EngineRecord(Struct, forbid_unknown_fields=True):
    """One record, as described above."""

    text: Annotated[str, Meta(max_length=MAX_TEXT)]
    acts: Annotated[list[ActRecord], Meta(max_length=2)]
    lanes: Annotated[list[LineRecord], Meta(max_length=MAX_LANES)] = []


def of_error(error):
    """The record of a LaunchError."""
    return {"text": "", "acts": [_act(act) for act in error.acts]}


def of_machine(machine):
    """The records of the warnings of a launch that finished."""
    met = [{"text": str(c)[:MAX_TEXT], "acts": [_act(act) for act in c.acts]} for c in machine.conflicts]
    return met + [{"text": text[:MAX_TEXT], "acts": []} for text, _, _ in machine.sync_warnings.values()]


def of_lines(profiles):
    """[one record] of the lines that issue most instructions in all launches; [] if no line is known."""
    total = {}
    for line in (line for profile in profiles for line in profile.lines if 0 < line.line <= MAX_LINE):
        key = zlib.crc32(line.file.rpartition("/")[2].encode()), line.line
        before = total.get(key, (0, 0))
        total[key] = before[0] + line.warp_instructions, before[1] + line.thread_instructions
    most = sorted(total, key=lambda key: -total[key][0])[:MAX_LANES]
    rows = [[*key, *total[key]] for key in sorted(most) if 50 * total[key][0] > total[most[0]][0] > 0]
    return [{"text": "", "acts": [], "lanes": rows}] if rows else []


def _act(act):
    does = act.does if act.does.endswith("s") or "atomically" not in act.does else "updates atomically"
    does = does if does in get_args(Does) else "reads"
    place = zlib.crc32(act.file.encode()), act.line if 0 < act.line <= MAX_LINE else 0
    return asdict(ActRecord(list(act.thread), list(act.block), does, act.what[:MAX_WHAT], *place))


def checked_findings(data):
    """`data` as a tuple, if it is a list of valid records. Raises Refused for anything else."""
    validated(data, Annotated[list[EngineRecord], Meta(max_length=MOST)], "the findings from the executor")
    return tuple(data)
