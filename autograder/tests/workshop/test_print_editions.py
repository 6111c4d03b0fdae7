"""The book as one PDF: what stands in it, where its links lead, and that nothing is cut off.

A book of two pages is made for most tests; `make full` makes the PDF of the built book.
"""

import base64
import shutil

import pikepdf
import pytest
from conftest import ROOT

from autograder.user_error import UserError
from workshop import book
from workshop.editions import __main__ as editions
from workshop.editions import paper
from workshop.editions.articles import contents, read_book

DOT = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf"
    b"\xa4q\0\0\0\0IEND\xaeB`\x82"
).decode()
PAGE = """<!DOCTYPE html><html><head><link rel="stylesheet" href="../_static/print.css?v=1"></head><body>
<nav><button>Menu</button></nav><article class="bd-article">{}</article></body></html>"""
START = f"""
<section id="start"><h1>A book<a class="headerlink" href="#start">#</a></h1><ol></ol>
<!-- editions --><!-- /editions -->
<p>Read <a href="02-two.html#more" title="said beside it">the second</a>,
<a href="../notebooks/ps01.ipynb">a file</a>
and <a href="https://example.org/">a page elsewhere</a>.<br>
<span class="math"><math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi></math></span></p>
<section id="more"><h2>More<a class="headerlink" href="#more">#</a></h2>
<img alt="a dot" src="data:image/png;base64, {DOT}"></section></section>"""
SECOND = """
<section id="two"><h1>2. Two<a class="headerlink" href="#two">#</a></h1>
<section id="more"><h2>More<a class="headerlink" href="#more">#</a></h2>
<p><a href="#more">Here</a>, and <a href="01-start.html">the start</a>.</p>
<figure class="explorable" id="explorable-access"><p class="explorable-question">What if?</p>
<div class="explorable-still"><svg class="wide" viewBox="0 0 9 9"><defs><linearGradient id="ink"/></defs>
<rect fill="url(#ink)" width="9" height="9"/></svg><svg class="narrow" viewBox="0 0 3 3"></svg></div>
<script>document.body.append("run")</script><button>Step</button><figcaption>Figure 2.1</figcaption></figure>
<details><summary><p class="collapsed">Answer</p><p class="expanded">Hide</p></summary>
<p>Forty-two.</p></details>
</section></section>"""
# What stands out of the column of paper to the right, or is cut off by a box of its own.
CLIPPED = """() => {
  const edge = document.querySelector('article').getBoundingClientRect().right + 1;
  const told = node => `${node.localName}.${node.getAttribute('class')} in `
    + `${node.closest('.edition-page')?.id}: ` + node.textContent.trim().slice(0, 60);
  return [...document.querySelectorAll('article *:not(svg *, math *)')].filter(node => {
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!box.width || style.position === 'absolute') return false;
    const cut = style.overflowX !== 'visible' && node.scrollWidth > node.clientWidth + 1
      || style.overflowY !== 'visible' && node.scrollHeight > node.clientHeight + 1;
    return box.right > edge || cut && style.display !== 'inline' && node.localName !== 'svg';
  }).map(told);
}"""


pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A built book of two pages."""
    tmp_path = tmp_path_factory.mktemp("book")
    (tmp_path / "_toc.yml").write_text(
        "root: chapters/01-start\nparts: [{caption: A part, chapters: [{file: chapters/02-two}]}]\n"
    )
    (tmp_path / "_config.yml").write_text("title: A book\nauthor: Its author\n")
    html = tmp_path / "_build" / "html"
    (html / "chapters").mkdir(parents=True)
    (html / "index.html").write_text("")
    for name, body in (("01-start", START), ("02-two", SECOND)):
        (html / f"chapters/{name}.html").write_text(PAGE.format(body))
    shutil.copytree(ROOT / "chapters/_static/fonts", tmp_path / "chapters/_static/fonts")
    (html / "_static").mkdir()
    shutil.copy(ROOT / "chapters/_static/print.css", html / "_static")
    return tmp_path


@pytest.fixture(scope="module")
def made(browser, small):
    """The folder of its PDF; its start page as it was before and as it is."""
    start = small / "_build/html/chapters/01-start.html"
    before = start.read_text()
    editions.make(browser, small, say=print)
    return small / "_build/html/editions", before, start.read_text()


def test_every_page_of_the_contents_stands_in_one_part():
    assert [page for _, pages in contents(ROOT) for page in pages] == book.pages(ROOT)


def test_an_article_has_no_buttons_and_names_that_no_other_page_has(browser, small):
    start, second = read_book(browser, small).articles
    assert (start.title, second.title) == ("A book", "2. Two")
    assert second.sections == (("p-02-two.more", "More"),)
    assert 'href="#p-02-two.more">the second</a>,\na file\nand' in start.body
    assert 'href="https://example.org/"' in start.body and 'href="#p-01-start"' in second.body
    assert 'viewBox="0 0 9 9"' in second.body and 'fill="url(#p-02-two.ink)"' in second.body
    assert "open its page of the book in a browser" in second.body
    assert '<details open=""><summary>Answer</summary>' in second.body
    for left_out in ("headerlink", "script", "button", "Hide", "narrow", "said beside it", "<!--"):
        assert left_out not in start.body + second.body


def test_a_pdf_tells_the_pages_of_its_parts_and_its_links_end_in_it(made):
    with pikepdf.open(made[0] / "how-a-gpu-works.pdf") as pdf:
        assert len(pdf.pages) == 4  # the title, the contents, and a page for each
        places = paper.page_numbers(pdf)
        assert {place: places[place] for place in ("p-01-start", "p-02-two", "p-02-two.more")} == {
            "p-01-start": 3,
            "p-02-two": 4,
            "p-02-two.more": 4,
        }
        assert links(pdf) - set(places) == set()
        with pdf.open_outline() as outline:
            assert "2. Two" in str([entry.title for entry in outlined(outline.root)])
        assert pdf.Root.MarkInfo.Marked  # a screen reader finds headings and alternative texts
        assert str(pdf.docinfo["/Author"]) == "Its author"


def outlined(entries):
    for entry in entries:
        yield entry
        yield from outlined(entry.children)


def links(pdf):
    """The places inside the document that its links name."""
    notes = [note for page in pdf.pages for note in page.obj.get("/Annots", [])]
    named = [note.get("/Dest", note.get("/A", {}).get("/D")) for note in notes]
    return {str(name).lstrip("/") for name in named if name is not None}


def test_the_start_page_offers_what_was_made_and_nothing_before(browser, small, made):
    folder, before, offered = made
    start = small / "_build/html/chapters/01-start.html"
    assert "../editions" not in before
    assert offered.count('href="../editions/how-a-gpu-works.pdf"') == 1
    assert (start.parent / "../editions/how-a-gpu-works.pdf").is_file()
    assert "(4 pages, " in offered
    assert editions.offer(start, folder / "how-a-gpu-works.pdf", 5)
    assert start.read_text() == offered.replace("(4 pages", "(5 pages")
    assert "PDF" not in read_book(browser, small).articles[0].body
    assert "<!-- editions --><!-- /editions -->" in (ROOT / "chapters/intro.md").read_text()


def test_a_book_that_is_not_built_is_named_with_the_page_that_is_missing(browser, small, tmp_path):
    shutil.copy(small / "_toc.yml", tmp_path)
    with pytest.raises(UserError, match=r"index\.html is missing .* run make book"):
        read_book(browser, tmp_path)


@pytest.mark.full
def test_the_whole_book_is_in_the_pdf_and_nothing_of_it_is_cut_off(browser, tmp_path):
    if book.missing_pages(ROOT):
        pytest.skip("the book is not built: run make book")
    for name in ("_toc.yml", "_config.yml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "chapters/_static/fonts", tmp_path / "chapters/_static/fonts")
    shutil.copytree(ROOT / "_build/html", tmp_path / "_build/html")
    editions.make(browser, tmp_path, say=print)
    pdf = tmp_path / "_build/html/editions/how-a-gpu-works.pdf"
    with pikepdf.open(pdf) as opened:
        places = paper.page_numbers(opened)
        assert links(opened) - set(places) == set()
        assert {f"p-{page.rpartition('/')[2]}" for page in book.pages(ROOT)} <= set(places)
    sheets = paper.style_sheets([tmp_path / f"_build/html/{page}.html" for page in book.pages(ROOT)])
    (tmp_path / "book.xhtml").write_text(paper.document(read_book(browser, tmp_path), sheets, {}))
    tab = browser.new_page(viewport={"width": 658, "height": 900})  # A4 less its margins: 174 mm
    tab.emulate_media(media="print")
    tab.goto((tmp_path / "book.xhtml").as_uri(), timeout=120_000)
    assert tab.evaluate(CLIPPED) == []
