"""The threat model's table of settings, made of held.json. Run as a program it prints it."""

import json
from pathlib import Path

HELD = Path(__file__).with_name("held.json")
HEAD = """| setting | kernel | behind | of 15 attacks held off | memory of all held by | one busy processor |
|---|---|---|---|---|---|
"""


def rows(seen):
    """The table's lines for one setting, one a kind of sandbox."""
    shares = seen["processor seconds of one and of eight"]
    busy = "one process against eight: {} s and {} s".format(*shares) if shares else "not by cgroup"
    for kind, found in seen["sandboxes"].items():
        if isinstance(found, str):
            reason = found.split(", ")[0]
            yield seen["setting"], seen["kernel"], kind, f"does not start: {reason}", "", ""
            continue
        lost = [f"{name}: {detail}" for name, detail in found.items() if detail != "held"]
        held = f"{len(found) - len(lost)}" + ("" if not lost else f"; {'; '.join(lost)}")
        yield seen["setting"], seen["kernel"], kind, held, seen["walls"], busy


def table():
    """The Markdown table."""
    lines = [row for seen in json.loads(HELD.read_text()) for row in rows(seen)]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in lines)


if __name__ == "__main__":
    print(table(), end="")
