"""`python -m workshop.numerals [PAGE ...]`: lists numbers with hardware units written by hand in prose.

It is for a reviewer and gates nothing. Numbers with a source are left out: those of a {spec} role, in a code
cell, in code or in a formula, and those in a sentence with a citation. The rest is arithmetic that the page
shows, a round number on purpose, or a number that should be a role.
"""

import re
import sys
from pathlib import Path

from autograder.layout import find_root

UNITS = (
    r"[KMGT]i?B/s|[KMGT]i?B|[GT]bps|[GT]bit/s|[GTP]?FLOP/s|[GT]?OP/s|FLOP/B|FLOPS|[kM]?W|[GM]Hz|watts?|joules?"
    r"|(?:FP32 |CUDA |Tensor )?[Cc]ores?|SMs|lanes|schedulers|registers|NVLinks|dollars"
)
NUMERAL = re.compile(rf"(?<![\w.,#/-])(?!32 lanes)\d[\d,.]*(?:[  ]|-)?(?:{UNITS})(?![\w/])")
VOUCHED = re.compile(
    # front matter, cells, formulas, code, comments
    r"^---\n.*?\n---$|^```\{(?:code-cell|math|mermaid)\}.*?^```$|^```\w*\n.*?^```$|^%.*?$"
    r"|\$\$.*?\$\$|\$[^$\n]+\$|\{spec\}`[^`]*`|(?<![}`])`[^`\n]+`",
    re.M | re.S,
)
SENTENCE = re.compile(r"(?<=[.!?])[*\")]*\s+(?=[\"*(]*[A-Z`])|\n\s*\n|\n(?=[-*|:] ?|\d+\. )")
CITATION = re.compile(r"\{cite[:a-z]*\}`")


def bare(text):
    """[(line, number, its sentence)] of every number with a unit but without a source."""
    blank = VOUCHED.sub(lambda match: re.sub(r"[^\n]", "_", match[0]), text)
    found, start = [], 0
    for stop in [match.start() for match in SENTENCE.finditer(blank)] + [len(blank)]:
        sentence = blank[start:stop]
        if not CITATION.search(sentence):
            for match in NUMERAL.finditer(sentence):
                line = blank[: start + match.start()].count("\n") + 1
                found.append((line, match[0], " ".join(text[start:stop].split())))
        start = stop
    return found


def main(names):
    root = find_root(None)
    pages = [Path(name) for name in names] or sorted((root / "chapters").glob("[0-9]*.md"))
    count = 0
    for page in pages:
        for line, number, sentence in bare(page.read_text(encoding="utf-8")):
            at = max(0, sentence.find(number) - 50)
            print(
                f"{page.relative_to(root) if page.is_relative_to(root) else page}:{line}: {number}    "
                f"...{sentence[at : at + 130]}"
            )
            count += 1
    print(
        f"{count} numbers with units in {len(pages)} page{'s' * (len(pages) != 1)} have neither a role nor a "
        "citation in their sentence"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
