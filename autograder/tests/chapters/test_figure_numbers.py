"""Every figure of the book has a number, an id of its own and the marks of its evidence."""

import importlib
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT
from docutils import nodes

from workshop import book


@pytest.fixture
def numbering(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    yield importlib.import_module("figure_numbers")
    sys.modules.pop("figure_numbers", None)


def numbered(numbering, docname, *html):
    """The page's HTML after numbering, and the labels that other pages can refer to."""
    document = nodes.section("", *(nodes.raw("", text, format="html") for text in html))
    domain = SimpleNamespace(labels={}, anonlabels={})
    env = SimpleNamespace(docname=docname, get_domain=lambda name: domain)
    numbering.number_figures(SimpleNamespace(env=env), document)
    return [node.astext() for node in document], domain.labels


def figure(name, caption="It rises.", evidence=""):
    told = f' data-evidence="{evidence}"' if evidence else ""
    inside = f"<svg></svg><figcaption>{caption}</figcaption>"
    return f'<figure class="warplab-figure" data-name="{name}"{told}>{inside}</figure>'


def test_figures_count_through_a_page_and_are_named_for_page_and_function(numbering):
    html, labels = numbered(numbering, "chapters/05-memory", figure("halo"), figure("floors"))
    assert '<figure id="fig-memory-halo" class=' in html[0]
    assert '<figcaption><a class="figure-number" href="#fig-memory-halo"' in html[0]
    assert ">Figure 5.1</a> It rises." in html[0] and ">Figure 5.2</a>" in html[1]
    assert labels["fig-memory-floors"] == ("chapters/05-memory", "fig-memory-floors", "Figure 5.2")


def test_a_second_figure_of_the_same_function_has_an_id_of_its_own(numbering):
    html, labels = numbered(numbering, "chapters/05-memory", figure("access"), figure("access"))
    assert 'id="fig-memory-access"' in html[0] and 'id="fig-memory-access-2"' in html[1]
    assert labels["fig-memory-access-2"][2] == "Figure 5.2"


def test_a_page_without_a_number_counts_under_its_letter(numbering):
    html, _ = numbered(numbering, "chapters/engine", figure("access"))
    assert "Figure E.1" in html[0]


def test_no_two_pages_with_figures_share_a_number_or_a_letter(numbering):
    chapters = {}
    for page in book.pages(ROOT):
        if "{code-cell}" in (ROOT / f"{page}.md").read_text(encoding="utf-8"):
            chapters.setdefault(numbering.Page(page, None).chapter, []).append(page)
    assert len(chapters) >= 14 and [pages for pages in chapters.values() if len(pages) > 1] == []


def test_an_explorable_keeps_its_id_and_counts_like_the_others(numbering):
    parts = (
        '<figure class="explorable" id="explorable-ring" data-explorable="ring">',
        "<figcaption>",
        "</figure>",
    )
    html, labels = numbered(numbering, "chapters/10-many-gpus", figure("ring"), *parts)
    assert html[1].count("id=") == 1 and 'href="#explorable-ring"' in html[2] and "Figure 10.2" in html[2]
    assert labels["fig-many-gpus-explorable-ring"][1] == "explorable-ring"


def test_marks_stand_between_number_and_caption_and_say_their_kind_once(numbering):
    html, _ = numbered(
        numbering,
        "chapters/05-memory",
        figure("a", "Slow.", "live theory"),
        figure("b", "Live, here.", "live"),
    )
    assert '<span class="evidence evidence-live">live</span>' in html[0]
    assert '<span class="evidence evidence-theory">theory</span>Slow.' in html[0]
    assert '<span class="evidence evidence-live"></span>Live, here.' in html[1]


def test_a_figure_without_a_caption_gets_one_for_its_number(numbering):
    html, _ = numbered(numbering, "chapters/05-memory", '<figure class="warplab-figure"><img></figure>')
    assert 'id="fig-memory-picture"' in html[0] and html[0].endswith("Figure 5.1</a> </figcaption></figure>")
