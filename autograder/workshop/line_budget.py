"""`python -m workshop.line_budget`: the lines of code of each room, against autograder/line_budget.toml.

A line of code is a line on which a Python token begins; blank lines, comments and docstrings do not count.
Tests count by all their lines. ``--table`` prints every room. The exit status is 1 where a limit is exceeded.
"""

from __future__ import annotations

import ast
import io
import math
import sys
import tokenize
import tomllib
from pathlib import Path

TABLE = Path(__file__).parents[1] / "line_budget.toml"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The lines on which a token of Python begins, other than a comment's or a docstring's."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return len({t.start[0] for t in tokens if t.type not in NO_CODE} - docstrings)


def room_of(path: str, rooms: dict[str, dict]) -> str | None:
    """The longest name in ``rooms`` that is this path or a folder above it."""
    over = [room for room in rooms if path == room or path.startswith(f"{room}/")]
    return max(over, key=len, default=None)


def measured(rooms: dict[str, dict], root: Path) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """({room: (lines of code, files)}, files below the table's top folders that belong to no room)."""
    counts: dict[str, tuple[int, int]] = dict.fromkeys(rooms, (0, 0))
    strangers: list[str] = []
    for top in dict.fromkeys(room.split("/")[0] for room in rooms):
        for path in sorted((root / top).rglob("*.py")):
            room = room_of(path.relative_to(root).as_posix(), rooms)
            if room is None:
                strangers.append(path.relative_to(root).as_posix())
                continue
            text = path.read_text(encoding="utf-8")
            lines, files = counts[room]
            more = len(text.splitlines()) if rooms[room].get("all-lines") else code_lines(text)
            counts[room] = lines + more, files + 1
    return counts, strangers


def excesses(table: dict, counts: dict[str, tuple[int, int]]) -> list[str]:
    """A sentence for each room and each sum that is over its limit."""
    found = [
        f"{room} has {counts[room][0]:,} lines of code and may have {entry['limit']:,}"
        for room, entry in table["rooms"].items()
        if counts[room][0] > entry.get("limit", math.inf)
    ]
    for name, entry in table["sums"].items():
        total = sum(
            lines for room, (lines, _) in counts.items() if room_of(room, dict.fromkeys(entry["of"], {}))
        )
        if total > entry["limit"]:
            found.append(f"{name} has {total:,} lines of code and may have {entry['limit']:,}")
    return found


def main(arguments: list[str]) -> int:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    counts, strangers = measured(table["rooms"], TABLE.parent)
    if "--table" in arguments:
        print("| room | lines | limit | files | what it is for |\n|---|---|---|---|---|")
        for room, (lines, files) in counts.items():
            entry = table["rooms"][room]
            limit = f"{entry['limit']:,}" if "limit" in entry else "content"
            print(f"| {room} | {lines:,} | {limit} | {files} | {entry['for']} |")
    problems = excesses(table, counts) + [
        f"{path} belongs to no room of line_budget.toml" for path in strangers
    ]
    for problem in problems:
        print(f"make: {problem}", file=sys.stderr)
    if problems:
        advice = "delete something, or raise the limit in line_budget.toml and say under `bought` what for"
        print(f"make: {advice}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
