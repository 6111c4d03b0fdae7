"""Draws the plan of the building with a chapter's place lit: under the chapter's title, and on the cards that
link to the chapters on the start page ({chapter-cards}).
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive

from warplab.figures import building

CHAPTER = re.compile(r"(?:^|/)(\d\d)-[\w-]+$")


class Cards(nodes.General, nodes.Element):
    """A placeholder for the cards, which need the titles of all chapters."""


class ChapterCards(Directive):
    def run(self) -> list[nodes.Node]:
        return [Cards()]


def open_chapter(app, doctree) -> None:
    """Put the opener after the title of a numbered chapter."""
    found = CHAPTER.search(app.env.docname)
    if found or any(doctree.findall(Cards)):
        app.env.note_dependency(building.__file__)
    for title in list(doctree.findall(nodes.title))[:1] if found else ():
        picture = f'<div class="opener">{building.opener(int(found[1]))}</div>'
        title.parent.insert(title.parent.index(title) + 1, nodes.raw("", picture, format="html"))


def deal_cards(app, doctree, docname) -> None:
    """Replace the placeholder by a list of links, each with the chapter's opener and title."""
    for cards in list(doctree.findall(Cards)):
        rows = []
        for page in sorted(app.env.found_docs):
            found = CHAPTER.search(page)
            if found:
                link = app.builder.get_relative_uri(docname, page)
                told = escape(app.env.titles[page].astext())
                rows.append(
                    f'<li><a href="{link}">{building.opener(int(found[1]))}<span>{told}</span></a></li>'
                )
        cards.replace_self(nodes.raw("", f'<ol class="chapter-cards">{"".join(rows)}</ol>', format="html"))


def setup(app) -> dict:
    app.add_node(Cards)
    app.add_directive("chapter-cards", ChapterCards)
    app.connect("doctree-read", open_chapter)
    app.connect("doctree-resolved", deal_cards)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
