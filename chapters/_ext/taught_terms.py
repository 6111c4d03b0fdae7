"""The glossary's terms as entries of the search: each leads to the section that speaks of it most.

Sphinx ranks entries of the index first, so "bank conflict" finds the section on bank conflicts before any
page that mentions them. What counts is how often the prose says the term, and ten times a title.
The book writes "quantisation"; who asks for "quantization" is led to the same section.
"""

from __future__ import annotations

import re
from collections import Counter

from docutils import nodes
from sphinx import addnodes

CHAPTER = re.compile(r"chapters/(\d\d-|what-a-network)")
TITLE = 10
LEAST = 3  # a term that no chapter says as often is in the glossary alone


def terms(env) -> dict[str, re.Pattern]:
    names = [name for kind, name in env.get_domain("std").objects if kind == "term"]
    # ZeRO, MoE and MIG are no other words in other letters; who quantises speaks of quantisation
    return {
        name: re.compile(
            rf"\b{re.sub('isation$', 'is(?:ation|e|ed|ing)', re.escape(name))}(?:e?s)?\b",
            0 if re.search(r".[A-Z]", name) else re.IGNORECASE,
        )
        for name in names
    }


def own_prose(section: nodes.section) -> str:
    """What is said in the section and in none below it; what cells print is no prose."""
    others = (nodes.section, nodes.container)
    parts = [child for child in section.children if not isinstance(child, others)]
    return " ".join(said.astext() for part in parts for said in part.findall(nodes.paragraph))


def best_sections(env) -> dict[str, list[tuple[str, str]]]:
    """Of each chapter (term, section's id): the chapter that says it most, there the section that does."""
    totals: dict[str, Counter] = {}
    best: dict[tuple[str, str], tuple[int, str]] = {}
    patterns = terms(env)
    for docname in sorted(filter(CHAPTER.match, env.found_docs)):
        for section in env.get_doctree(docname).findall(nodes.section):
            title, text = section.next_node(nodes.title).astext(), own_prose(section)
            for term, pattern in patterns.items():
                said = TITLE * len(pattern.findall(title)) + len(pattern.findall(text))
                totals.setdefault(term, Counter())[docname] += said
                whole = isinstance(
                    section.parent, nodes.document
                )  # its own text is the frame before the story
                if said and (0 if whole else said) >= best.get((docname, term), (0,))[0]:
                    best[docname, term] = (0 if whole else said, section["ids"][0])
    found: dict[str, list[tuple[str, str]]] = {}
    for term, counted in totals.items():
        docname, said = counted.most_common(1)[0]
        if said >= LEAST:
            found.setdefault(docname, []).append((term, best[docname, term][1]))
    return found


def add_entries(app, doctree, docname) -> None:
    """Sphinx reads the search's entries from what is written."""
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
