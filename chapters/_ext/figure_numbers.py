"""Numbers figures, and gives them ids by which the book refers to them.

Every figure that a cell or a directive shows gets a number, "Figure 5.3", which links to itself, and an id
made from its page and the function that drew it: `fig-memory-halo`. Elsewhere {ref}`fig-memory-halo` is a
link that reads "Figure 5.3". On a page without a number the page's first letter is used: "Figure E.1".

After the number come the markers of the kinds of evidence that the figure shows.
"""

from __future__ import annotations

import re

from docutils import nodes

FIGURE = re.compile(r'(<figure class="warplab-figure[^>]*>)(.*?)</figure>', re.DOTALL)
EXPLORABLE = re.compile(r'<figure class="explorable"[^>]*>')
CAPTION = "<figcaption>"


class Page:
    """Numbers the figures of one page, in order."""

    def __init__(self, docname: str, domain):
        page = docname.rpartition("/")[2]
        number, _, slug = page.partition("-")
        self.chapter, self.slug = (str(int(number)), slug) if number.isdigit() else (page[0].upper(), page)
        self.docname, self.domain, self.count, self.taken = docname, domain, 0, set()

    def numbered(self, tag: str, caption: str = "") -> tuple[str, str]:
        """(a figure's opening tag with an id, the HTML to put before its caption) from its opening tag."""
        self.count += 1
        own = re.search(r'\bid="([^"]+)"', tag)
        name = own[1] if own else self.name(tag)
        self.taken.add(name)
        told = f"Figure {self.chapter}.{self.count}"
        label = name if name.startswith("fig-") else f"fig-{self.slug}-{name}"
        self.domain.labels[label] = (self.docname, name, told)
        self.domain.anonlabels[label] = (self.docname, name)
        kinds = re.search(r'data-evidence="([^"]+)"', tag)
        marks = marked(kinds[1].split(), caption) if kinds else ""
        link = f'<a class="figure-number" href="#{name}" title="Link to this figure">{told}</a> {marks}'
        return tag if own else tag.replace("<figure", f'<figure id="{name}"', 1), link

    def name(self, tag: str) -> str:
        """The figure's name, from the function that drew it, else from the figure's class."""
        drawn = re.search(r'data-name="([^"]+)"|class="warplab-figure ([\w-]+)"', tag)
        said = next(filter(None, drawn.groups())) if drawn else "picture"
        base = "fig-" + "-".join(filter(None, (self.slug, said.replace("_", "-"))))
        names = (base if n == 1 else f"{base}-{n}" for n in range(1, len(self.taken) + 2))
        return next(name for name in names if name not in self.taken)


def marked(kinds: list[str], caption: str) -> str:
    """HTML of the markers of kinds of evidence (live, recorded, published ...), each with its word unless the
    caption begins with it.
    """
    first = re.match(r"\w*", caption)[0].lower()
    found = sorted(dict.fromkeys(kinds), key=lambda kind: kind == first)
    spans = (
        f'<span class="evidence evidence-{kind}">{"" if kind == first else kind}</span>' for kind in found
    )
    return "".join(spans)


def number_figures(app, doctree) -> None:
    """Number the figures of a parsed page, in reading order."""
    page, waiting = Page(app.env.docname, app.env.get_domain("std")), ""

    def whole(found: re.Match) -> str:
        body = found[2] if CAPTION in found[2] else f"{found[2]}{CAPTION}</figcaption>"
        tag, link = page.numbered(found[1], body.partition(CAPTION)[2])
        return tag + body.replace(CAPTION, CAPTION + link, 1) + "</figure>"

    for node in doctree.findall(nodes.raw):
        text = node.astext()
        opening = EXPLORABLE.match(text)
        if opening:  # the caption is another node further on
            tag, waiting = page.numbered(opening[0])
            changed = tag + text[opening.end() :]
        elif waiting and text == CAPTION:
            changed, waiting = CAPTION + waiting, ""
        else:
            changed = FIGURE.sub(whole, text)
        if changed != text:
            node.children = [nodes.Text(changed)]


def setup(app) -> dict:
    app.connect("doctree-read", number_figures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
