"""What the engine found while a kernel ran: why it stopped, and what it warns of, as plain data.

Made in the executor, where the kernel ran; whole numbers, words of the engine's, and two texts that are shown
as text. A record is {"text": the warning, "" of the error that stopped the kernel, "acts": [what the one or
two threads did]}; an act is {"thread", "block": three numbers, "does", "what", "file", "line"}.
"""

import zlib

from warplab.crossing.explain import Refused

MOST = 4  # records of one case
MAX_TEXT, MAX_WHAT = 1200, 200
MAX_LINE, MAX_INDEX = 1_000_000, 1 << 31
DOES = ("reads", "writes", "updates atomically", "waits")
FIELDS = {"thread", "block", "does", "what", "file", "line"}


def of_error(error):
    """The record of a LaunchError."""
    return {"text": "", "acts": [_act(act) for act in error.acts]}


def of_machine(machine):
    """The records of what a launch that came to its end was warned of."""
    met = [{"text": str(c)[:MAX_TEXT], "acts": [_act(act) for act in c.acts]} for c in machine.conflicts]
    return met + [{"text": text[:MAX_TEXT], "acts": []} for text, _, _ in machine.doubts.values()]


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
        if type(record) is not dict or set(record) != {"text", "acts"}:
            raise Refused("a finding of the engine has a text and acts")
        if type(record["text"]) is not str or len(record["text"]) > MAX_TEXT:
            raise Refused("a finding of the engine has no text, or a long one")
        if type(record["acts"]) is not list or len(record["acts"]) > 2:
            raise Refused("a finding of the engine names at most two threads")
        for act in record["acts"]:
            _check_act(act)
    return tuple(data)


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
