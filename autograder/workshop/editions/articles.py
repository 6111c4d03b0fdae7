"""The pages of the built book as articles for print: XHTML without interactive parts, ids unique in the book.

Chromium parses each page, without running its scripts, and article.js serialises it again.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from autograder.user_error import UserError
from warplab.figures import building
from warplab.rendering import render
from workshop import book
from workshop.browser import MISSING, find_browser

FILE = re.compile(r'src="http://book/([^"]*)"')  # a picture that the page loads from a file of the book
READ = (Path(__file__).parent / "article.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Article:
    """One page. name: "05-memory". body: XHTML. sections: [(id, title)]. styles: CSS of cells' outputs."""

    name: str
    title: str
    body: str
    sections: tuple[tuple[str, str], ...]
    styles: str

    @property
    def id(self) -> str:
        return f"p-{self.name}"


@dataclass(frozen=True)
class Volume:
    """The book. parts: [(caption, articles)]; the start page's caption is "". made: time of the build."""

    title: str
    author: str
    address: str
    made: datetime
    parts: tuple[tuple[str, tuple[Article, ...]], ...]

    @property
    def articles(self) -> list[Article]:
        return [article for _, articles in self.parts for article in articles]


@contextmanager
def started_browser():
    """A headless Chromium. Raises UserError where there is none."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if not path:
        raise UserError(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def contents(root: Path) -> list[tuple[str, list[str]]]:
    """[(caption, pages)] of the parts in _toc.yml; the start page comes first, with the caption ""."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [(part["caption"], [chapter["file"] for chapter in part["chapters"]]) for part in toc["parts"]]
    return [("", [toc["root"]]), *parts]


def read(tab, text: str, page: str, pages: list[str], address: str = "") -> Article:
    """The article of one built page. tab: an empty browser tab. text: the page's HTML. page: its name in
    _toc.yml; pages: the names of all pages. address: the book's URL, for links that leave the PDF.
    """
    found = tab.evaluate(READ, {"text": text, "page": page, "pages": pages, "address": address})
    sections = tuple((id, title) for id, title in found.pop("sections"))
    return Article(name=page.rpartition("/")[2], sections=sections, **found)


def read_book(browser, root: Path) -> Volume:
    """Read all pages of `_build/html`. Raises UserError where the book is not built."""
    missing = book.missing_pages(root)
    if missing:
        raise UserError(f"the book is not built ({missing[0]}.html is missing in _build/html); run make book")
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    address = config.get("html", {}).get("baseurl", "")
    html, pages, tab = root / "_build" / "html", book.pages(root), browser.new_page()

    def article(page: str) -> Article:
        found = read(tab, (html / f"{page}.html").read_text(encoding="utf-8"), page, pages, address)
        return replace(found, body=FILE.sub(lambda path: embedded(html / path[1]), found.body))

    return Volume(
        title=config["title"],
        author=config["author"],
        address=address,
        made=datetime.fromtimestamp(max((html / f"{page}.html").stat().st_mtime for page in pages), UTC),
        parts=tuple((caption, tuple(map(article, names))) for caption, names in contents(root)),
    )


def embedded(picture: Path) -> str:
    kind = mimetypes.guess_type(picture.name)[0]
    return f'src="data:{kind};base64,{base64.b64encode(picture.read_bytes()).decode()}"'


def title_page(volume: Volume) -> str:
    return render("workshop.editions", "title.xhtml.j2", volume=volume, picture=building.opener(12))
