"""What a reader with a keyboard, a screen reader, a slow line, a phone or a printer meets in the built book.

axe/axe.min.js is axe-core 4.14.1 (MPL-2.0, its licences beside it), as the npm package axe-core has it.
"""

import threading
from pathlib import Path

import pytest
from conftest import ROOT

from workshop import book, serve

HTML = ROOT / "_build" / "html"
PAGES = book.pages(ROOT)
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
# Violations of WCAG 2.2 at A and AA and of axe's best practice: `rule: the first element that breaks it`.
CHECK = """async () => (await axe.run(document, {
  resultTypes: ['violations'], selectors: false, preload: false,
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}))
  .violations.map(
    rule => `${rule.id} (${rule.nodes.length}): ${rule.nodes[0].html.slice(0, 160)}`)"""
MOST_BYTES = 650 * 1024
PHONE_DARK, DESKTOP_LIGHT = (390, "dark"), (1440, "light")
PHONE_LIGHT, DESKTOP_DARK = (390, "light"), (1440, "dark")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address():
    if book.missing_pages(ROOT):
        pytest.skip(f"the book is not built ({', '.join(book.missing_pages(ROOT))} missing): run make book")
    server = serve.server(0, HTML)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(browser, address):
    """opened(path, width, scheme) -> a page in a fresh profile."""
    contexts = []

    def open_one(path, width=1440, scheme="light", **more):
        more = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, **more}
        contexts.append(browser.new_context(reduced_motion="reduce", **more))
        page = contexts[-1].new_page()
        page.goto(f"{address}/{path}", wait_until="load")
        return page

    yield open_one
    for context in contexts:
        context.close()


def violations(page):
    page.evaluate(AXE)
    return page.evaluate(CHECK)


@pytest.mark.parametrize(("width", "scheme"), [PHONE_DARK, DESKTOP_LIGHT])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(opened, name, width, scheme):
    assert violations(opened(f"{name}.html", width, scheme)) == []


@pytest.mark.full
@pytest.mark.parametrize(("width", "scheme"), [PHONE_LIGHT, DESKTOP_DARK])
@pytest.mark.parametrize("name", [*PAGES, "search", "404", "genindex"])
def test_axe_finds_nothing_the_other_way_round(opened, name, width, scheme):
    assert violations(opened(f"{name}.html", width, scheme)) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_weighs_little_with_all_that_it_loads(opened, name):
    """Bytes over the wire, compressed, fonts and figures included."""
    loaded = opened(f"{name}.html").evaluate("""async () => { await document.fonts.ready;
      return ['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))
        .map(entry => [new URL(entry.name).pathname, entry.encodedBodySize]); }""")
    assert len(loaded) > 10
    assert sum(size for _, size in loaded) <= MOST_BYTES, sorted(loaded, key=lambda one: -one[1])[:4]
    assert not [path for path, _ in loaded if "fontawesome" in path or "searchindex" in path]


def test_a_number_tells_its_source_to_a_keyboard(opened):
    page = opened("chapters/05-memory.html")
    number = page.locator("a.spec[href*=memory-bandwidth]").first
    number.focus()
    page.keyboard.press("Enter")
    assert number.get_attribute("aria-expanded") == "true"
    assert "checked 20" in page.locator("#preview [role=status]").inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#preview') !== null")
    page.keyboard.press("Escape")
    assert number.evaluate("link => link === document.activeElement && link.ariaExpanded === 'false'")


def test_a_term_tells_its_meaning_to_a_finger(opened):
    page = opened("chapters/05-memory.html", *PHONE_DARK, has_touch=True, is_mobile=True)
    term = page.locator("a.term[href$=term-latency]").first
    term.tap()
    said = page.locator("#preview")
    assert said.inner_text().startswith("The time from asking to having")
    box = said.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert said.locator("a").get_attribute("href").endswith("glossary.html#term-latency")


def test_without_scripts_a_number_is_a_link_to_its_row(opened, address):
    page = opened("chapters/05-memory.html", java_script_enabled=False)
    target = page.locator("a.spec[href*=memory-bandwidth]").first.get_attribute("href")
    page.goto(f"{address}/chapters/{target}")
    assert "checked 20" in page.locator(f"#{target.partition('#')[2]}").text_content()


def test_paper_shows_a_dark_page_light_and_everything_open(opened):
    page = opened("chapters/05-memory.html", *DESKTOP_DARK)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = page.evaluate("""() => ({
      theme: document.documentElement.dataset.theme,
      closed: document.querySelectorAll('details:not([open])').length,
      hidden: ['.bd-sidebar-primary', '.bd-sidebar-secondary', '#jb-print-docs-body', '.bd-header-article']
        .filter(name => document.querySelector(name)?.getClientRects().length),
      title: document.querySelector('article h1').getClientRects().length,
      wrapped: getComputedStyle(document.querySelector('article pre')).whiteSpace})""")
    assert shown == {"theme": "light", "closed": 0, "hidden": [], "title": 1, "wrapped": "pre-wrap"}
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("details:not([open])").count() > 0


def test_the_search_puts_the_chapter_that_teaches_a_term_first(opened):
    page = opened("search.html?q=bank+conflict")
    page.wait_for_selector("#search-results li p", timeout=20_000)
    assert page.locator("#search-results li a").first.get_attribute("href").startswith("chapters/05-memory")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_describes_itself(name):
    text = (HTML / f"{name}.html").read_text(encoding="utf-8") if (HTML / f"{name}.html").is_file() else ""
    if not text:
        pytest.skip("the book is not built: run make book")
    assert text.count('<meta name="description"') == 1
