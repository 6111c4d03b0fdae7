"""Estimates the heights of sections, so that browsers can lay them out lazily.

A chapter has some eight thousand elements, and laying all of them out takes a phone a second. So course.css
lets the browser lay out a section only near the window (`content-visibility: auto`), which anchors, search in
the page, screen readers and printing support. Until then a section has the height that is estimated here from
its text, code and figures, for a wide column (`--wide`) and a phone (`--narrow`), so that the scroll bar is
about right.
"""

from __future__ import annotations

import re

TAG = re.compile(r"<section\b[^>]*>|</section>")
DRAWING = re.compile(
    r'<svg(?: class="(wide|narrow)")?[^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>.*?</svg>', re.DOTALL
)
CODE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
UNSEEN = re.compile(r"<(script|style|math)\b.*?</\1>", re.DOTALL)
CLOSED, TABLE = (re.compile(rf"<{tag}\b.*?</{tag}>", re.DOTALL) for tag in ("details", "table"))
BLOCK = re.compile(r"<(?:p|h\d|figure)\b")
# {column: (width in CSS pixels, letters in a line of text, kind of drawing that it does not show)}
COLUMNS = {"wide": (740, 92, "narrow"), "narrow": (358, 43, "wide")}
LINE, CODE_LINE, GAP = 27, 21, 20
CLOSED_BOX, ROW = 64, 38


def estimate(html: str, column: str) -> int:
    """The estimated height of a section in CSS pixels. column: a key of COLUMNS."""
    width, letters, other = COLUMNS[column]
    html = UNSEEN.sub("", html)
    tall = len(CLOSED.findall(html)) * CLOSED_BOX
    html = CLOSED.sub("", html)
    tall += sum(table.count("<tr") * ROW for table in TABLE.findall(html))
    html = TABLE.sub("", html)
    tall += sum(
        float(height) * min(1.0, width / float(across))
        for kind, across, height in DRAWING.findall(html)
        if kind != other and float(across) > 50
    )
    html = DRAWING.sub("", html)
    tall += sum(code.count("\n") * CODE_LINE + 2 * GAP for code in CODE.findall(html))
    html = CODE.sub("", html)
    tall += len(BLOCK.findall(html)) * (GAP + LINE / 2)  # the last line of a paragraph is half full
    return round(tall + len(re.sub(r"<[^>]*>", "", html)) / letters * LINE)


def told(body: str) -> str:
    """The page's HTML with both estimates as a style of each section."""
    parts, depth, start, at = [], 0, 0, 0
    for tag in TAG.finditer(body):
        depth += -1 if tag[0] == "</section>" else 1
        if depth == 2 and tag[0] != "</section>":
            start = tag.start()
        elif depth == 1 and tag[0] == "</section>":
            section = body[start : tag.start()]
            sizes = "; ".join(f"--{column}: {estimate(section, column)}px" for column in COLUMNS)
            parts += [body[at:start], section.replace("<section", f'<section style="{sizes}"', 1)]
            at = tag.start()
    return "".join([*parts, body[at:]])


def add(app, pagename, templatename, context, doctree) -> None:
    if "body" in context and app.builder.format == "html":
        context["body"] = told(context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", add, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
