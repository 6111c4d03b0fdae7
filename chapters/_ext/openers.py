"""The picture under a chapter's title: the plan of the building, with the place lit that it is about."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docutils import nodes

CHAPTERS = Path(__file__).resolve().parent.parent
CHAPTER = re.compile(r"(?:^|/)(\d\d)-[\w-]+$")


def open_chapter(app, doctree) -> None:
    """Put the opener after the title of a numbered chapter."""
    found = CHAPTER.search(app.env.docname)
    if not found:
        return
    if str(CHAPTERS) not in sys.path:
        sys.path.insert(0, str(CHAPTERS))
    from figures import building

    app.env.note_dependency(building.__file__)
    for title in doctree.findall(nodes.title):
        picture = f'<div class="opener">{building.opener(int(found[1]))}</div>'
        section = title.parent
        section.insert(section.index(title) + 1, nodes.raw("", picture, format="html"))
        return


def setup(app) -> dict:
    app.connect("doctree-read", open_chapter)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
