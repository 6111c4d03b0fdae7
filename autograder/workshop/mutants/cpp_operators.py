"""Mutation operators for CUDA C++ kernels, by regular expressions on the text, which is not parsed."""

import re
from collections.abc import Iterator

TOKENS = (  # (operator, pattern, replacements)
    ("bound", r"(?<![<>])<(?![<>=])(?=[^>;]*;)", ("<=",)),
    ("bound", r"<=", ("<",)),
    ("bound", r"(?<![->])>(?![>=])(?=\s)", (">=",)),
    ("bound", r">=", (">",)),
    ("equality", r"==", ("!=",)),
    ("arithmetic", r"(?<=\s)\+(?=\s)", ("-",)),
    ("arithmetic", r"(?<=\s)-(?=\s)", ("+",)),
    ("arithmetic", r"(?<=\s)\*(?=\s)", ("+",)),
    ("arithmetic", r"(?<=\s)/(?=\s)", ("*",)),
    ("arithmetic", r"(?<=\s)%(?=\s)", ("/",)),
    ("shift", r"<<", (">>",)),
    ("shift", r">>", ("<<",)),
    ("assignment", r"\+=", ("=", "-=")),
    ("condition", r"&&", ("||",)),
    ("condition", r"\|\|", ("&&",)),
    ("axis", r"(?<=Idx)\.x\b", (".y",)),
    ("axis", r"(?<=Idx)\.y\b", (".x",)),
    ("minimum", r"\bmin\(", ("max(",)),
    ("minimum", r"\bmax\(", ("min(",)),
    ("atomic", r"\batomicAdd\(&?([^,]+),([^;]+)\);", (r"\1 += \2;",)),
    ("guard", r"\bif \([^;{]*\)(?=\s)", ("if (true)", "if (false)")),
)
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
STATEMENT = re.compile(r"^\s*[^\s#/{}][^{}]*;$")
DECLARATION = re.compile(
    r"^\s*(const\s+)?(unsigned|int|float|double|half|char|long|__\w+__|Tile\w|Sums)\s[^;]*;"
)


def mutated(source: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the operator, source) of every mutant of the first kernel's body."""
    start = source.index("{", source.index("__global__"))
    head, body = source[:start], source[start:]
    for name, pattern, others in TOKENS:
        for found in re.finditer(pattern, body):
            for other in others:
                yield name, head + body[: found.start()] + found.expand(other) + body[found.end() :]
    for found in NUMBER.finditer(body):
        for amount in (1, -1):
            yield "number", f"{head}{body[: found.start()]}{int(found[0]) + amount}{body[found.end() :]}"
    lines = body.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if STATEMENT.match(line) and not DECLARATION.match(line):
            yield "dropped", head + "".join([*lines[:place], ";\n", *lines[place + 1 :]])
