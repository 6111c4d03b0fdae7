"""How tall a section is guessed to be before it is laid out."""

import html
import importlib
import re
import sys
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from conftest import ROOT


@pytest.fixture
def sections(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    yield importlib.import_module("sections")
    sys.modules.pop("sections", None)


def test_the_sections_under_the_title_get_their_heights_and_no_other(sections):
    body = (
        '<section id="page"><p>x</p><section id="a"><section id="b"></section></section>'
        '<section id="c"></section></section>'
    )
    told = sections.told(body)
    assert told.count("--wide: ") == told.count("--narrow: ") == 2
    assert '<section style="--wide: 0px; --narrow: 0px" id="a"><section id="b">' in told
    assert 'px" id="c">' in told
    assert told.replace(' style="--wide: 0px; --narrow: 0px"', "") == body


def test_what_is_folded_away_and_what_is_never_seen_takes_no_lines(sections):
    much = "x" * 9000
    hidden = f"<script>{much}</script><details><summary>Answer</summary>{much}</details>"
    assert sections.estimate(hidden, "wide") == sections.CLOSED_BOX


@pytest.mark.parametrize(
    "repository", ["https://github.com/owner/course", "https://github.com/owner/course/"]
)
def test_a_heading_offers_the_issue_form_filled_with_its_section(monkeypatch, repository):
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    ask = importlib.import_module("ask")
    head = (
        '<h2><span class="n">5.1. </span>Bytes &amp; <em>beats</em><a class="headerlink" href="#b">#</a></h2>'
    )
    context = {"title": "5. Memory", "body": f"<h1>x</h1>{head}<h3>y</h3>"}
    config = SimpleNamespace(html_theme_options={"repository_url": repository})
    ask.add(SimpleNamespace(config=config), "p", "", context, None)
    (url,) = re.findall(r'<a class="ask" href="(.*?)">', context["body"])
    told = parse_qs(urlsplit(html.unescape(url)).query)
    assert url.startswith("https://github.com/owner/course/issues/new?")
    assert told["where"] == ['5. Memory, "5.1. Bytes & beats"']
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / told["template"][0]).read_text())
    assert "where" in [field.get("id") for field in form["body"]]


def test_a_book_without_a_repository_offers_no_form(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "chapters" / "_ext"))
    ask = importlib.import_module("ask")
    context = {"title": "x", "body": '<h2>a<a class="headerlink" href="#b">#</a></h2>'}
    before = dict(context)
    ask.add(SimpleNamespace(config=SimpleNamespace(html_theme_options={})), "p", "", context, None)
    assert context == before
