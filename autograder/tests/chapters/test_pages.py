"""What a reader with a keyboard, a screen reader, a slow line, a phone or a printer meets in the built book.

Each page is visited once for all of it (page_visits.py).
"""

import functools
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from conftest import ROOT
from page_visits import DESKTOP_DARK, DESKTOP_LIGHT, PHONE_DARK, SETTINGS, listen, set_to, violations, visit
from page_visits import opened as opened_whole

from warplab.figures import building
from workshop import book

HTML = ROOT / "_build" / "html"
PAGES = book.pages(ROOT)
MOST_BYTES = 650 * 1024

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser, book_address):
    """opened(path, width, scheme) -> a page in a fresh profile."""
    contexts = []

    def open_one(path, width=1440, scheme="light", **more):
        more = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, **more}
        contexts.append(browser.new_context(reduced_motion="reduce", **more))
        page = contexts[-1].new_page()
        page.goto(f"{book_address}/{path}", wait_until="load")
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_light_and_readable_on_phone_and_desk_in_light_and_dark(browser, book_address, name):
    """A page weighs what comes over the wire, compressed, fonts and figures included; on a phone the median
    label of a figure has eleven pixels.
    """
    first = (PHONE_DARK, DESKTOP_LIGHT)[PAGES.index(name) % 2]  # in which axe sees it
    found = visit(browser, f"{book_address}/{name}.html", first)
    for (width, scheme), seen in found["settings"].items():
        expected = {"theme": scheme, "overflow": [], "meeting": [], "nameless": [], "faint": []}
        assert seen == expected, (width, scheme)
    assert len(found["settings"]) == 4 and found["troubles"] == []
    assert found["axe"] == []
    loaded = found["loaded"]
    assert len(loaded) > 10
    assert sum(size for _, size in loaded) <= MOST_BYTES, sorted(loaded, key=lambda one: -one[1])[:4]
    assert not [path for path, _ in loaded if "fontawesome" in path or "searchindex" in path]
    assert [(figure, size) for figure, size in found["labels"] if size < 11] == []
    assert None not in found["numbers"]


@pytest.mark.full
@pytest.mark.parametrize("name", [*PAGES, "search", "404", "genindex"])
def test_axe_finds_nothing_in_any_setting(browser, book_address, name):
    page = opened_whole(browser, f"{book_address}/{name}.html", SETTINGS[0])
    found = {}
    for setting in SETTINGS:
        set_to(page, *setting)
        page.wait_for_timeout(400)  # the theme measures what scrolls 300 ms after a resize
        found[setting] = violations(page)
    page.close()
    assert found == dict.fromkeys(SETTINGS, [])


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


def test_light_or_dark_is_settled_before_the_themes_script_comes(browser, book_address):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.route("**/pydata-sphinx-theme.js*", lambda route: route.abort())
    page.goto(f"{book_address}/chapters/glossary.html")
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


def test_without_scripts_a_number_is_a_link_to_its_row(opened, book_address):
    page = opened("chapters/05-memory.html", java_script_enabled=False)
    target = page.locator("a.spec[href*=memory-bandwidth]").first.get_attribute("href")
    page.goto(f"{book_address}/chapters/{target}")
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
    "FSDP": "10", "bank conflict": "05",
}  # fmt: skip


def test_the_search_puts_the_chapter_that_teaches_a_word_first(browser, book_address):
    page = browser.new_page()
    troubles = listen(page, book_address)
    page.goto(f"{book_address}/search.html?q=warp")
    page.wait_for_selector("#search-results li p", timeout=20_000)
    best = "word => Search._performSearch(...Search._parseQuery(word)).at(-1)[0]"
    found = {word: page.evaluate(best, word).split("/")[-1][:2] for word in TAUGHT}
    page.close()
    assert found == TAUGHT and troubles == []


def test_front_door_leads_to_the_first_page(browser, book_address):
    context = browser.new_context()  # not opened(), which would wait in a document that is about to be left
    page = context.new_page()
    page.goto(f"{book_address}/index.html", wait_until="commit")
    page.wait_for_url(f"**/{PAGES[0]}.html")
    assert page.locator("h1").first.inner_text()
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
def links_of(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


@pytest.mark.parametrize("name", PAGES)
def test_a_page_describes_itself_and_its_links_inside_the_book_lead_somewhere(book_address, name):
    here, broken = HTML / f"{name}.html", []
    assert here.read_text(encoding="utf-8").count('<meta name="description"') == 1
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


MARKED = re.compile(
    r'<figure[^>]*data-evidence="([\w ]+)"(?:(?!</figure>).)*?figure-number(.*?)</figcaption>', re.S
)


def test_figures_count_through_their_page_have_ids_and_marks_and_no_two_pages_share_a_number(book_address):
    pages = {}
    for name in PAGES:
        text = (HTML / f"{name}.html").read_text(encoding="utf-8")
        told = re.findall(r'class="figure-number" href="#([\w-]+)"[^>]*>Figure (\w+)\.(\d+)<', text)
        places, chapters = {place for place, _, _ in told}, {chapter for _, chapter, _ in told}
        assert [int(number) for _, _, number in told] == list(range(1, len(told) + 1)), name
        assert len(places) == len(told) and places <= links_of(HTML / f"{name}.html").ids, name
        for kinds, caption in MARKED.findall(text):  # the marks of its evidence, each once
            assert sorted(re.findall(r"evidence evidence-(\w+)", caption)) == sorted(set(kinds.split()))
        pages |= {name: chapters} if told else {}
    assert len(pages) >= 14 and len(set.union(*pages.values())) == len(pages)


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
