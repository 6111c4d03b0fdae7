"""Gives links a preview as their title: a glossary term's definition, or a footnote's text.

chapters/_static/preview.js shows it beside the link for mouse, touch and keyboard; without JavaScript it is a
plain title. Titles of the registry's numbers come from spec_role.py.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes

LIMIT = 320


def definitions(env) -> dict[str, str]:
    """{term's id: the first sentences of its definition}."""
    found = {}
    for name in {docname for docname, _ in env.get_domain("std")._terms.values()}:
        for item in env.get_doctree(name).findall(nodes.definition_list_item):
            words = shortened(plain(item[-1]))
            found |= {node_id: words for term in item.findall(nodes.term) for node_id in term["ids"]}
    return found


def plain(definition: nodes.Element) -> str:
    """The text of a definition's first paragraph, without citations."""
    paragraph = next(iter(definition.findall(nodes.paragraph)), nodes.paragraph()).deepcopy()
    for cited in list(paragraph.findall(addnodes.pending_xref)):
        if cited.get("refdomain") == "cite":
            cited.parent.remove(cited)
    return re.sub(r"\s+([.,;:])", r"\1", " ".join(paragraph.astext().split()))


def shortened(text: str) -> str:
    """As many whole sentences of `text` as fit into LIMIT; a longer first sentence is cut after a word."""
    if len(text) <= LIMIT:
        return text
    ends = [end.end() for end in re.finditer(r"[.!?](?= [A-Z])", text) if end.end() <= LIMIT]
    return text[: ends[-1]] if ends else text[:LIMIT].rsplit(" ", 1)[0] + " …"


def add_titles(app, doctree, docname) -> None:
    if app.builder.format != "html":
        return
    notes = {note["ids"][0]: shortened(plain(note)) for note in doctree.findall(nodes.footnote)}
    for number in list(doctree.findall(nodes.footnote_reference)):  # Sphinx writes these without a title
        link = nodes.reference(refid=number["refid"], internal=True, reftitle=notes[number["refid"]])
        link += nodes.superscript("", number.astext())
        link["classes"].append("footnote-reference")
        number.replace_self(link)
    told = None
    for link in doctree.findall(nodes.reference):
        if not any("std-term" in node.get("classes", ()) for node in link.findall(nodes.inline)):
            continue
        told = definitions(app.env) if told is None else told
        target = link.get("refid") or link.get("refuri", "").rpartition("#")[2]
        if told.get(target):
            link["reftitle"] = told[target]
            link["classes"].append("term")


def setup(app) -> dict:
    app.connect("doctree-resolved", add_titles)
    app.add_js_file("preview.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
