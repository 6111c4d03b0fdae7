"""The threat model's tables of settings, made of held.json.

Run as a program it prints them. With --record it first takes over what `make vm-test` saw, and writes the
page's tables anew.
"""

import json
import re
import sys
from pathlib import Path

HELD = Path(__file__).with_name("held.json")
ROOT = Path(__file__).resolve().parents[3]
SEEN = ROOT / "_build/vm/seen"
PAGE = ROOT / "chapters/threat-model.md"
ATTACKED = ["setting", "kernel, commit", "behind", "of 15 attacks held off", "memory and processors"]
REFUSED = ["setting where it does not start", "kernel, commit", "behind", "reason"]
GRADED = ["setting", "kernel, commit", "student", "status", "points", "most memory of a job"]


def where(seen):
    """Where something was seen, and of which commit."""
    return seen["setting"], f"{seen['kernel']}, {seen.get('commit', 'not noted')}"


def tried(seen):
    """The sandboxes that are meant for a setting's user, and what was seen behind each."""
    for kind, found in seen["sandboxes"].items():
        if not str(found).startswith("bubblewrap is for ordinary users"):
            yield kind, found


def attacked(seen):
    """The lines of the table of attacks for one setting, one a kind of sandbox that started."""
    shares = seen["processor seconds of one and of eight"]
    busy = "; {} : {} s".format(*shares) if shares else ""
    for kind, found in tried(seen):
        if isinstance(found, dict):
            lost = [f"{name}: {detail}" for name, detail in found.items() if detail != "held"]
            held = f"{len(found) - len(lost)}" + ("" if not lost else f"; {'; '.join(lost)}")
            yield *where(seen), kind, held, seen["walls"] + busy


def refused(seen):
    """The lines of the table of sandboxes that did not start in one setting."""
    for kind, found in tried(seen):
        if isinstance(found, str):
            yield *where(seen), kind, found.split(", ")[0]


def graded(seen):
    """The lines of the table of classes for one setting, one a student; none where no class was graded."""
    if not (found := seen.get("class")):
        return
    most, may = found["MiB of a job at most"], found["MiB that a job's cgroup allows"]
    memory = "not counted by a cgroup" if most is None else f"{most:,} of {may:,} MiB"
    for student, (status, points, reason) in found["rows"].items():
        how = f"{status}: {reason}" if reason else status
        told = "not graded" if points is None else f"{points:g} of 30"
        yield *where(seen), student.replace("_", " "), how, told, memory


def tables(settings):
    """The Markdown tables of what was seen in these settings: attacks, refusals, classes."""
    for head, lines_of in ((ATTACKED, attacked), (REFUSED, refused), (GRADED, graded)):
        if lines := [line for seen in settings for line in lines_of(seen)]:
            yield "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines))


def kept():
    """What held.json has."""
    return json.loads(HELD.read_text())


def seen_here():
    """What `make vm-test` has seen so far."""
    return [one for file in sorted(SEEN.glob("*.json")) for one in json.loads(file.read_text())]


def record():
    """Take what was seen over into held.json, for what it has of the same settings, and onto the page."""
    fresh = seen_here()
    again = {(one["setting"], one["machine"]) for one in fresh}
    older = [one for one in kept() if (one["setting"], one["machine"]) not in again]
    HELD.write_text(json.dumps(fresh + older, indent=1) + "\n")
    text = PAGE.read_text()
    for table in tables(kept()):
        head = re.escape(table.partition("\n")[0])
        text = re.sub(rf"{head}\n(\|.*\n)+", lambda _, table=table: table, text)
    PAGE.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    print("\n".join(tables(kept())), end="")
