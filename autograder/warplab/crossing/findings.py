"""What the engine found while a kernel ran: why it stopped, and what it warns of, as plain data.

Made in the executor, where the kernel ran; whole numbers, words of the engine's, and two texts that are shown
as text. A record is {"text": the warning, "" of the error that stopped the kernel, "acts": [what the one or
two threads did]}; an act is {"thread", "block": three numbers, "does", "what", "file", "line"}. Where a row
counts instructions, one more record is {"lanes": [[file, line, instructions of warps, and of threads], ...]},
of the lines with most.
"""

import zlib

from warplab.crossing.explain import Refused

MOST = 4  # records of one case
MAX_TEXT, MAX_WHAT = 1200, 200
MAX_LINE, MAX_INDEX = 1_000_000, 1 << 31
DOES = ("reads", "writes", "updates atomically", "waits")
MAX_LANES, MAX_COUNT = 6, 1 << 48  # lines, and instructions of one
INSTRUCTIONS = ("warp_instructions", "busiest_warp_instructions", "thread_instructions", "divergent_branches")
FIELDS = {"thread", "block", "does", "what", "file", "line"}


def of_error(error):
    """The record of a LaunchError."""
    return {"text": "", "acts": [_act(act) for act in error.acts]}


def of_machine(machine):
    """The records of what a launch that came to its end was warned of."""
    met = [{"text": str(c)[:MAX_TEXT], "acts": [_act(act) for act in c.acts]} for c in machine.conflicts]
    return met + [{"text": text[:MAX_TEXT], "acts": []} for text, _, _ in machine.doubts.values()]


def of_lines(profiles):
    """[record] of the lines of all launches that issue most instructions; [] where none has a line."""
    total = {}
    for line in (line for profile in profiles for line in profile.lines if 0 < line.line <= MAX_LINE):
        key = zlib.crc32(line.file.rpartition("/")[2].encode()), line.line
        before = total.get(key, (0, 0))
        total[key] = before[0] + line.warp_instructions, before[1] + line.thread_instructions
    most = sorted(total, key=lambda key: -total[key][0])[:MAX_LANES]
    rows = [[*key, *total[key]] for key in sorted(most) if 50 * total[key][0] > total[most[0]][0] > 0]
    return [{"lanes": rows}] if rows else []


def _act(act):
    does = act.does if act.does.endswith("s") or "atomically" not in act.does else "updates atomically"
    return {
        "thread": list(act.thread),
        "block": list(act.block),
        "does": does if does in DOES else "reads",
        "what": act.what[:MAX_WHAT],
        "file": zlib.crc32(act.file.encode()),
        "line": act.line if 0 < act.line <= MAX_LINE else 0,
    }


def checked_findings(data):
    """`data` as it is, if it is a list of such records. Raises Refused for anything else."""
    if type(data) is not list or len(data) > MOST:
        raise Refused("what the engine found is not a short list")
    for record in data:
        if type(record) is dict and set(record) == {"lanes"}:
            _check_lanes(record["lanes"])
            continue
        if type(record) is not dict or set(record) != {"text", "acts"}:
            raise Refused("a finding of the engine has a text and acts")
        if type(record["text"]) is not str or len(record["text"]) > MAX_TEXT:
            raise Refused("a finding of the engine has no text, or a long one")
        if type(record["acts"]) is not list or len(record["acts"]) > 2:
            raise Refused("a finding of the engine names at most two threads")
        for act in record["acts"]:
            _check_act(act)
    return tuple(data)


def _check_lanes(rows):
    if type(rows) is not list or len(rows) > MAX_LANES:
        raise Refused("the lanes of a finding are of a few lines")
    for row in rows:
        if type(row) is not list or len(row) != 4 or any(type(n) is not int for n in row):
            raise Refused("a line of a finding has four numbers")
        file, line, warps, threads = row
        counted = 0 < warps <= MAX_COUNT and 0 <= threads <= 32 * warps
        if not (0 <= file < 1 << 32 and 0 < line <= MAX_LINE and counted):
            raise Refused("a line of a finding has a number that cannot be")


def _check_act(act):
    if type(act) is not dict or set(act) != FIELDS or act["does"] not in DOES:
        raise Refused("a thread of a finding reads, writes, updates or waits")
    if type(act["what"]) is not str or len(act["what"]) > MAX_WHAT:
        raise Refused("a thread of a finding touches something that has a name")
    indices = [act["thread"], act["block"]]
    if any(type(index) is not list or len(index) != 3 for index in indices):
        raise Refused("a thread of a finding has three indices")
    numbers = [*act["thread"], *act["block"], act["file"], act["line"]]
    if any(type(n) is not int or not 0 <= n <= 2 * MAX_INDEX for n in numbers) or act["line"] > MAX_LINE:
        raise Refused("a thread of a finding has a number that cannot be")
