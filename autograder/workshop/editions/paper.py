"""Prints the book as a PDF: one document with all articles, which Chromium prints twice.

The first print gives the page numbers that the table of contents of the second one shows.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pikepdf

from autograder.user_error import UserError
from warplab.rendering import render
from workshop.editions.articles import Volume, title_page

SHEET = re.compile(r'<link[^>]*href="([^"?]*\.css)[^"]*"[^>]*>')
STYLE = (Path(__file__).parent / "paper.css").read_text(encoding="utf-8")


def style_sheets(pages: list[Path]) -> list[str]:
    """Addresses of all style sheets that the built pages load, each once; print.css comes last."""
    found = [
        (page.parent / path).resolve().as_uri()
        for page in pages
        for path in SHEET.findall(page.read_text(encoding="utf-8"))
    ]
    return sorted(dict.fromkeys(found), key=lambda sheet: sheet.endswith("/print.css"))


def page_numbers(pdf: pikepdf.Pdf) -> dict[str, int]:
    """{link target in the document: its page number}."""
    number = {page.obj.objgen: index + 1 for index, page in enumerate(pdf.pages)}
    return {str(name).lstrip("/"): number[place[0].objgen] for name, place in pdf.Root.Dests.items()}


def print_document(browser, text: str, out: Path) -> None:
    source = out.with_suffix(".xhtml")
    source.write_text(text, encoding="utf-8")
    tab = browser.new_page()
    tab.goto(source.as_uri(), wait_until="load", timeout=120_000)
    tab.pdf(path=out, prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
    tab.close()


def document(volume: Volume, sheets: list[str], numbers: dict[str, int]) -> str:
    """The whole book as XHTML. numbers: from page_numbers(); {} at the first print."""
    title = title_page(volume)
    return render(
        "workshop.editions",
        "paper.html.j2",
        volume=volume,
        sheets=sheets,
        style=STYLE,
        numbers=numbers,
        title=title,
    )


def print_volume(browser, volume: Volume, sheets: list[str], out: Path) -> int:
    """Write the PDF to `out`; returns how many pages it has. Raises UserError."""
    numbers: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for draft in (Path(folder) / "unnumbered.pdf", Path(folder) / "numbered.pdf"):
            print_document(browser, document(volume, sheets, numbers), draft)
            with pikepdf.open(draft) as pdf:
                before, numbers = numbers, page_numbers(pdf)
        if before != numbers:
            raise UserError("the page numbers in the contents moved its pages: give them room in paper.css")
        with pikepdf.open(draft) as pdf:
            pdf.docinfo["/Title"], pdf.docinfo["/Author"] = volume.title, volume.author
            out.parent.mkdir(parents=True, exist_ok=True)
            pdf.save(out, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True)
            return len(pdf.pages)
