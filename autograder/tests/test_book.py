"""The built book as a reader meets it: `make book` first, then these open every page in a real browser.

A page must load without an error, ask nobody but its own server, fit a phone and a desktop in light and
in dark, and name every picture for those who do not see it. Links inside the book must lead somewhere.
"""

import functools
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from conftest import ROOT

from workshop import book

HTML = ROOT / "_build" / "html"
PAGES = book.pages(ROOT)
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}

# Pictures of the article that say nothing to a screen reader. An SVG counts when it, or
# the figure around it, has a name.
NAMELESS = """() => [...document.querySelectorAll('article img, article svg, article canvas')].filter(picture => {
  if (picture.closest('[aria-hidden="true"], a.headerlink, button, .sd-summary-icon, .sd-octicon')) return false;
  if (picture.parentElement.closest('svg')) return false;
  const named = node => node && (node.getAttribute('alt') || node.getAttribute('aria-label') || node.getAttribute('aria-labelledby'));
  const title = picture.tagName === 'svg' && picture.querySelector('title');
  return !(named(picture) || (title && title.textContent.trim()) || named(picture.closest('[role=img], [role=figure], figure')));
}).map(picture => picture.outerHTML.slice(0, 120))"""

# Elements that stick out of the page to the right, the widest first, when the page itself scrolls sideways.
OVERFLOW = """() => {
  const page = document.documentElement, limit = page.clientWidth + 1;
  if (page.scrollWidth <= limit) return [];
  const out = [...document.querySelectorAll('main *')].filter(node => node.getBoundingClientRect().right > limit);
  return out.slice(0, 5).map(node => `${node.tagName}.${node.className} reaches ${Math.round(node.getBoundingClientRect().right)} px`)
    .concat([`the page is ${page.scrollWidth} px wide in a window of ${page.clientWidth}`]);
}"""


# Text below the 4.5 : 1 of WCAG 2 against what stands behind it: `ratio tag.class
# colour on background: text`, each kind once.
FAINT = """() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = colour => { const [r, g, b] = colour.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = node => { for (; node; node = node.parentElement) { const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.9) return colour; } return [255, 255, 255]; };
  const faint = new Map(), walk = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.getClientRects().length || node.closest('svg, script, style')) continue;
    const ink = getComputedStyle(node).color, paper = behind(node), [a, b] = [light(numbers(ink)), light(paper)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.set(`${node.tagName}.${node.className} ${ink} on ${paper}`, `${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return [...faint].map(([kind, example]) => `${kind}: ${example}`);
}"""


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


def open_page(browser, url, width="desktop", scheme="light"):
    """Load `url` in a fresh profile; returns (context, page, troubles): console errors,
    failed and foreign requests.
    """
    context = browser.new_context(
        viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True)), color_scheme=scheme
    )
    page, troubles = context.new_page(), []
    home = urlsplit(url).netloc
    page.on(
        "console", lambda message: message.type == "error" and troubles.append(f"console: {message.text}")
    )
    page.on("pageerror", lambda error: troubles.append(f"uncaught: {error}"))
    page.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}"))
    page.on("response", lambda reply: reply.status >= 400 and troubles.append(f"{reply.status}: {reply.url}"))
    page.on(
        "request",
        lambda request: (
            urlsplit(request.url).scheme in ("http", "https")
            and urlsplit(request.url).netloc != home
            and troubles.append(f"asks a third party: {request.url}")
        ),
    )
    page.goto(url, wait_until="load")
    return context, page, troubles


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_page_opens_cleanly(browser, address, name, width, scheme):
    context, page, troubles = open_page(browser, f"{address}/{name}.html", width, scheme)
    try:
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate(OVERFLOW) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(FAINT) == []
        assert troubles == []
    finally:
        context.close()


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
    context, page, troubles = open_page(browser, f"{address}/search.html?q=matrix")
    try:
        page.wait_for_selector("#search-results li a", timeout=20_000)
        assert troubles == []
    finally:
        context.close()


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
