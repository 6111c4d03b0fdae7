"""`make editions`: the whole book as one PDF, in _build/html/editions, and a link to it on its start page."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from autograder.layout import find_root
from autograder.user_error import UserError
from workshop import book
from workshop.editions import paper
from workshop.editions.articles import read_book, started_browser

FOLDER = "editions"
NAME = "how-a-gpu-works"
PLACE = re.compile(r"<!-- editions -->.*?<!-- /editions -->", re.DOTALL)


def make(browser, root: Path, say: Callable[[str], None]) -> None:
    """Write the PDF of the built book, and the link to it on the start page. Raises UserError."""
    html = root / "_build" / "html"
    pdf = html / FOLDER / f"{NAME}.pdf"
    styles = paper.style_sheets([html / f"{page}.html" for page in book.pages(root)])
    sheets = paper.print_volume(browser, read_book(browser, root), styles, pdf)
    say(f"{pdf.relative_to(root)}: {sheets} sheets, {size(pdf)}")
    if not offer(html / f"{book.pages(root)[0]}.html", pdf, sheets):
        say("the start page has no place for a link to it (<!-- editions --><!-- /editions -->)")


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


def offer(start: Path, pdf: Path, sheets: int) -> bool:
    """Put a link to the PDF between the marks on the built start page, replacing an older one.

    Returns whether the page has the marks. When Sphinx writes the page again the link is gone, so that no
    page links to an outdated PDF.
    """
    text = start.read_text(encoding="utf-8")
    link = f'<a href="{os.path.relpath(pdf, start.parent)}" download>'
    file = f"{link}PDF</a> ({sheets} pages, {size(pdf)})"
    told = f'<p class="editions">The whole book to take along: {file}.</p>'
    changed, places = PLACE.subn(f"<!-- editions -->{told}<!-- /editions -->", text)
    start.write_text(changed, encoding="utf-8")
    return bool(places)


def main() -> int:
    """Entry point: an error that the user can fix is one line on stderr, never a traceback."""
    try:
        with started_browser() as browser:
            make(browser, find_root(), say=functools.partial(print, flush=True))
    except UserError as error:
        print(f"make: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
