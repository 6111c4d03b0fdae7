"""What a reader with a keyboard, a screen reader, a slow line, a phone or a printer meets in the built book.

Each page is visited once for all of it (page_visits.py).
"""

import functools
import threading

import pytest
from conftest import ROOT
from page_visits import DESKTOP_DARK, DESKTOP_LIGHT, PHONE_DARK, SETTINGS, set_to, violations, visit
from page_visits import opened as opened_whole

from workshop import book, serve

HTML = ROOT / "_build" / "html"
PAGES = book.pages(ROOT)
MOST_BYTES = 650 * 1024

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


@pytest.fixture(scope="module")
def visited(browser, address):
    """visited(page) -> what one visit found; axe sees every other page on a phone, the others on a desk."""

    @functools.cache
    def once(name):
        first = (PHONE_DARK, DESKTOP_LIGHT)[PAGES.index(name) % 2]
        return visit(browser, f"{address}/{name}.html", first)

    return once


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_a_desk_and_is_readable_in_light_and_in_dark(visited, name):
    found = visited(name)
    for (width, scheme), seen in found["settings"].items():
        expected = {"theme": scheme, "overflow": [], "nameless": [], "faint": []}
        assert seen == expected, (width, scheme)
    assert len(found["settings"]) == 4 and found["troubles"] == []


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(visited, name):
    assert visited(name)["axe"] == []


@pytest.mark.full
@pytest.mark.parametrize("name", [*PAGES, "search", "404", "genindex"])
def test_axe_finds_nothing_in_any_setting(browser, address, name):
    page = opened_whole(browser, f"{address}/{name}.html", SETTINGS[0])
    found = {}
    for setting in SETTINGS:
        set_to(page, *setting)
        page.wait_for_timeout(400)  # the theme measures what scrolls 300 ms after a resize
        found[setting] = violations(page)
    page.close()
    assert found == dict.fromkeys(SETTINGS, [])


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_weighs_little_with_all_that_it_loads(visited, name):
    """Bytes over the wire, compressed, fonts and figures included."""
    loaded = visited(name)["loaded"]
    assert len(loaded) > 10
    assert sum(size for _, size in loaded) <= MOST_BYTES, sorted(loaded, key=lambda one: -one[1])[:4]
    assert not [path for path, _ in loaded if "fontawesome" in path or "searchindex" in path]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PAGES)
def test_every_figure_has_a_number_and_on_a_phone_a_median_label_of_eleven_pixels(visited, name):
    found = visited(name)
    assert [(figure, size) for figure, size in found["labels"] if size < 11] == []
    assert None not in found["numbers"]


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


def test_a_footnotes_number_tells_the_note_to_a_keyboard_and_leads_to_it(opened):
    page = opened("chapters/11-choosing.html")
    number = page.locator("a.footnote-reference").first
    note = page.locator(number.get_attribute("href"))
    number.focus()
    page.keyboard.press("Enter")
    told = page.locator("#preview [role=status]").inner_text()
    assert len(told) > 20 and told in note.text_content() and note.is_visible()


def test_light_or_dark_is_settled_before_the_themes_script_comes(browser, address):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.route("**/pydata-sphinx-theme.js*", lambda route: route.abort())
    page.goto(f"{address}/chapters/glossary.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


def test_a_menu_opens_at_the_first_touch_and_its_script_comes_only_then(opened):
    page = opened("chapters/glossary.html", *PHONE_DARK, has_touch=True, is_mobile=True)
    assert not page.evaluate("'bootstrap' in window")
    page.locator(".dropdown-download-buttons button").first.tap()
    page.wait_for_selector(".dropdown-menu.show")


def test_a_link_into_a_page_leads_to_its_place_and_what_is_far_waits(opened):
    page = opened("chapters/05-memory.html#in-short", *PHONE_DARK)
    place = "Math.round(document.getElementById('in-short').getBoundingClientRect().top)"
    page.wait_for_function(f"{place} >= 0 && {place} < 200")
    access = page.locator("#explorable-access")
    assert access.get_attribute("data-live") is None
    access.evaluate("figure => figure.scrollIntoView()")
    page.wait_for_selector("#explorable-access[data-live]")


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


TAUGHT = {
    "ZeRO": "10", "coalesced": "05", "quantization": "07", "roofline": "05", "occupancy": "02",
    "FlashAttention": "05", "Tensor Core": "07", "KV cache": "09", "all-reduce": "10", "loss scaling": "07",
    "AdamW": "13", "mixed precision": "06", "FP8": "07", "stream": "08", "Triton": "08", "tile": "04",
    "divergence": "01", "NVLink": "10", "softmax": "05", "prefix sum": "03", "checkpointing": "06",
    "FSDP": "10",
}  # fmt: skip


def test_the_search_finds_words_of_the_field_where_they_are_taught(opened):
    page = opened("search.html?q=warp")
    page.wait_for_selector("#search-results li p", timeout=20_000)
    best = "word => Search._performSearch(...Search._parseQuery(word)).at(-1)[0]"
    found = {word: page.evaluate(best, word).split("/")[-1][:2] for word in TAUGHT}
    assert found == TAUGHT


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
