"""Adds the glossary's terms to the search: each leads to the section that uses it most.

Sphinx ranks index entries first, so "bank conflict" finds the section on bank conflicts before any page that
mentions them. A section's rank is how often its prose has the term; in a title it counts ten times.
American spellings such as "quantization" lead to the same section as "quantisation".
"""

from __future__ import annotations

import re
from collections import Counter

from docutils import nodes
from sphinx import addnodes

CHAPTER = re.compile(r"chapters/(\d\d-|what-a-network)")
TITLE = 10
LEAST = 3  # a term that no chapter uses as often has only its glossary entry


def terms(env) -> dict[str, re.Pattern]:
    names = [name for kind, name in env.get_domain("std").objects if kind == "term"]
    # acronyms such as ZeRO match with their capitals only; "quantise" counts for "quantisation"
    return {
        name: re.compile(
            rf"\b{re.sub('isation$', 'is(?:ation|e|ed|ing)', re.escape(name))}(?:e?s)?\b",
            0 if re.search(r".[A-Z]", name) else re.IGNORECASE,
        )
        for name in names
    }


def own_prose(section: nodes.section) -> str:
    """The section's own prose, without subsections and without cells' outputs."""
    others = (nodes.section, nodes.container)
    parts = [child for child in section.children if not isinstance(child, others)]
    return " ".join(said.astext() for part in parts for said in part.findall(nodes.paragraph))


def best_sections(env) -> dict[str, list[tuple[str, str]]]:
    """{chapter: [(term, section's id)]}: for each term the chapter that uses it most, and where."""
    totals: dict[str, Counter] = {}
    best: dict[tuple[str, str], tuple[int, str]] = {}
    patterns = terms(env)
    for docname in sorted(filter(CHAPTER.match, env.found_docs)):
        for section in env.get_doctree(docname).findall(nodes.section):
            title, text = section.next_node(nodes.title).astext(), own_prose(section)
            for term, pattern in patterns.items():
                said = TITLE * len(pattern.findall(title)) + len(pattern.findall(text))
                totals.setdefault(term, Counter())[docname] += said
                whole = isinstance(section.parent, nodes.document)  # the chapter's own text is only its frame
                if said and (0 if whole else said) >= best.get((docname, term), (0,))[0]:
                    best[docname, term] = (0 if whole else said, section["ids"][0])
    found: dict[str, list[tuple[str, str]]] = {}
    for term, counted in totals.items():
        docname, said = counted.most_common(1)[0]
        if said >= LEAST:
            found.setdefault(docname, []).append((term, best[docname, term][1]))
    return found


def add_entries(app, doctree, docname) -> None:
    """Add the entries as index nodes of the sections, from which Sphinx makes the search index."""
    if app.builder.format != "html":
        return
    if not hasattr(app, "taught_terms"):
        app.taught_terms = best_sections(app.env)
    entries = [
        ("single", spelt, section, "main", None)
        for term, section in app.taught_terms.get(docname, ())
        for spelt in dict.fromkeys((term, term.replace("isation", "ization")))
    ]
    if entries:
        doctree += addnodes.index(entries=entries)


def setup(app) -> dict:
    app.connect("doctree-resolved", add_entries)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
