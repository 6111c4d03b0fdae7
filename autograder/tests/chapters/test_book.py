"""The ways through the built book: `make book` first. Its front door, its search, and links that lead somewhere.

What a reader meets on each page is tested in test_pages.py.
"""

import functools
import pickle
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from conftest import ROOT
from page_visits import listen

from warplab.figures import building
from workshop import book

HTML = ROOT / "_build" / "html"
PAGES = book.pages(ROOT)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    """http://127.0.0.1:<free port> that serves the built book."""
    if book.missing_pages(ROOT):
        pytest.skip(f"the book is not built ({', '.join(book.missing_pages(ROOT))} missing): run make book")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(HTML)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.browser
def test_front_door_leads_to_the_first_page(browser, address):
    context = browser.new_context()  # not open_page, which would wait in a document that is about to be left
    try:
        page = context.new_page()
        page.goto(f"{address}/index.html", wait_until="commit")
        page.wait_for_url(f"**/{PAGES[0]}.html")
        assert page.locator("h1").first.inner_text()
    finally:
        context.close()


@pytest.mark.browser
def test_search_finds_a_chapter(browser, address):
    url = f"{address}/search.html?q=matrix"
    page = browser.new_page()
    try:
        troubles = listen(page, url)
        page.goto(url)
        page.wait_for_selector("#search-results li a", timeout=20_000)
        assert troubles == []
    finally:
        page.close()


class Links(HTMLParser):
    """Collects the targets of links and pictures, and the ids that links can aim at."""

    def __init__(self):
        super().__init__()
        self.targets, self.ids = [], set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.update(filter(None, (attrs.get("id"), attrs.get("name") if tag == "a" else None)))
        target = attrs.get("href") if tag in ("a", "link") else attrs.get("src")
        if target:
            self.targets.append(target)


@functools.cache
def links_of(path: Path) -> Links:
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_links_inside_the_book_lead_somewhere(address, name):
    here = HTML / f"{name}.html"
    broken = []
    for target in links_of(here).targets:
        if urlsplit(target).scheme or target.startswith("//"):
            continue
        path, fragment = urldefrag(target)
        there = here if not path else (here.parent / unquote(urlsplit(path).path)).resolve()
        if not there.is_file():
            broken.append(target)
        elif fragment and there.suffix == ".html" and unquote(fragment) not in links_of(there).ids:
            broken.append(target)
    assert broken == []


def test_every_file_that_a_page_depends_on_is_there():
    """Sphinx takes a missing dependency as changed, and reads the page again at every build."""
    pickled = ROOT / "_build/.doctrees/environment.pickle"
    if not pickled.exists():
        pytest.skip("the book is not built: run make book")
    environment = pickle.loads(pickled.read_bytes())
    needed = {Path(ROOT, name) for names in environment.dependencies.values() for name in names}
    assert needed and [path for path in needed if not path.exists()] == []


def test_a_chapter_without_a_drawing_of_its_own_opens_with_the_plan():
    after = len(building.LIT) + 1
    assert len({building.opener(chapter) for chapter in range(1, after + 1)}) == after
    assert building.opener(after) == building.opener(after + 25)
