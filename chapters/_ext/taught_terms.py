"""The glossary's terms as entries of the search: each leads to the section that speaks of it most.

Sphinx ranks entries of the index first, so "bank conflict" finds the section on bank conflicts before any
page that mentions them. A section counts how often the term stands in it, ten times as much for its title.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes

CHAPTER = re.compile(r"chapters/(\d\d-|what-a-network)")
LEAST = 3  # a term that no section says as often is in the glossary alone


def terms(env) -> dict[str, re.Pattern]:
    names = env.get_domain("std")._terms
    return {name: re.compile(rf"\b{re.escape(name)}(?:e?s)?\b", re.IGNORECASE) for name in names}


def own_text(section: nodes.section) -> str:
    """What stands in the section and in none below it."""
    parts = (child for child in section.children if not isinstance(child, nodes.section))
    return " ".join(node.astext() for node in parts if not isinstance(node, nodes.title))


def best_sections(env) -> dict[str, list[tuple[str, str]]]:
    """Of each chapter (term, id of its section)."""
    best: dict[str, tuple[int, str, str]] = {}
    patterns = terms(env)
    for docname in sorted(filter(CHAPTER.match, env.found_docs)):
        for section in env.get_doctree(docname).findall(nodes.section):
            title, text = section.next_node(nodes.title).astext(), own_text(section)
            for term, pattern in patterns.items():
                said = 10 * len(pattern.findall(title)) + len(pattern.findall(text))
                if said >= LEAST and said > best.get(term, (0,))[0]:
                    best[term] = (said, docname, section["ids"][0])
    found: dict[str, list[tuple[str, str]]] = {}
    for term, (_, docname, section_id) in best.items():
        found.setdefault(docname, []).append((term, section_id))
    return found


def add_entries(app, doctree, docname) -> None:
    """Sphinx reads the search's entries from what is written."""
    if app.builder.format != "html":
        return
    if not hasattr(app, "taught_terms"):
        app.taught_terms = best_sections(app.env)
    entries = [("single", term, section, "main", None) for term, section in app.taught_terms.get(docname, ())]
    if entries:
        doctree += addnodes.index(entries=entries)


def setup(app) -> dict:
    app.connect("doctree-resolved", add_entries)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
