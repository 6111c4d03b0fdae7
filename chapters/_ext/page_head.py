"""Edits the head of each page: removes or defers scripts of the theme, and adds metadata for search engines.

Removed are the script of Font Awesome (530 KB compressed; course.css has the few icons that the book uses, as
a font of 3 KB), and the search index on every page but the search page. Scripts that can run after the page
is drawn are deferred. The light or dark theme is chosen before the page is drawn.

A page's description is its first paragraph. If `html: baseurl` of _config.yml has the book's address, pages
get a canonical link (by Sphinx) and Open Graph tags, and sitemap.xml lists them.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from xml.sax import saxutils

from docutils import nodes

NOT_HERE = re.compile(
    r'\s*<script[^>]*src="[^"]*(?:fontawesome|searchtools|language_data|searchindex)\.js[^"]*"[^>]*></script>'
)
AT_ONCE = re.compile(r'<script src="(?![^"]*documentation_options)')
STORED_THEME = 'localStorage.getItem("theme") || "auto"'
# The theme's own script asks the system for light or dark after the page is drawn, which draws it twice.
THEME_AT_ONCE = """({light: "light", dark: "dark"})[localStorage.getItem("mode")]
      ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")"""
OUTPUT_TABLE = re.compile(r'(<div class="output text_html")(>(?:(?!</div>).)*?<table)', re.DOTALL)
BOOTSTRAP = re.compile(r'<script defer src="([^"]*)scripts/bootstrap\.js([^"]*)"></script>')
BOOTSTRAP_PRELOAD = re.compile(
    r'<link rel="preload" as="script" href="[^"]*scripts/bootstrap\.js[^"]*" ?/>\s*'
)
WHEN_REACHED = r'<script defer src="\1menus.js" data-menus="\1scripts/bootstrap.js\2"></script>'
SECOND_VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
CARD = "_static/card.png"


def lean(page: str):
    """A function that removes what a page does not need from the markup of its head."""

    def less(markup: str) -> str:
        markup = str(markup).replace(SECOND_VIEWPORT, "").replace(STORED_THEME, THEME_AT_ONCE)
        markup = BOOTSTRAP.sub(WHEN_REACHED, BOOTSTRAP_PRELOAD.sub("", markup))
        if page == "search":
            return re.sub(r"\s*<script[^>]*fontawesome\.js[^>]*></script>", "", markup)
        return AT_ONCE.sub('<script defer src="', NOT_HERE.sub("", markup))

    return less


def description(doctree: nodes.document | None, limit: int = 160) -> str:
    """The page's first paragraph outside of boxes, cut after a word; "" for a page without one."""
    for section in doctree.findall(nodes.section) if doctree else ():
        for node in section.children:
            if isinstance(node, nodes.paragraph) and len(node.astext()) > 40:
                text = " ".join(node.astext().split())
                return text if len(text) <= limit else text[: limit - 2].rsplit(" ", 1)[0] + " …"
    return ""


def discovery(title: str, told: str, address: str, base: str) -> str:
    """The description and Open Graph tags. address: the page's URL, "" if unknown. base: the book's URL."""
    tags = [f'<meta name="description" content="{escape(told)}" />'] if told else []
    if address:
        card = {"title": title, "type": "article", "url": address, "image": urljoin(base, CARD)}
        card |= {"description": told} if told else {}
        tags += [f'<meta property="og:{name}" content="{escape(text)}" />' for name, text in card.items()]
        tags.append('<meta name="twitter:card" content="summary_large_image" />')
    return "\n".join(tags)


def add(app, pagename, templatename, context, doctree) -> None:
    base = app.config.html_baseurl
    title = re.sub(r"<[^>]*>", "", context.get("title", ""))
    address = urljoin(base, app.builder.get_target_uri(pagename)) if base and doctree else ""
    context["lean"] = lean(pagename)
    context["discovery"] = discovery(title, description(doctree), address, base)
    context["base"] = urlsplit(base).path if base else ""
    if pagename == "search":
        app.add_js_file("search_text.js", loading_method="defer")
    if "body" in context:
        context["body"] = accessible(context["body"])


def accessible(body: str) -> str:
    """Fixes accessibility problems in the markup of docutils, MyST-NB and output tables."""
    body = re.sub(r"<th[^>]*>(<p></p>)?</th>", "<td></td>", body)  # an empty header cell is not a header
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")  # its text is its name
    body = body.replace(
        'role="doc-biblioentry"', 'role="listitem"'
    )  # the other is deprecated, and not allowed on a div
    # every box that may scroll is focusable, until scrollers.js has measured whether it does
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace(
        '<div class="pst-scrollable-table-container"',
        '<div tabindex="0" class="pst-scrollable-table-container"',
    )
    body = OUTPUT_TABLE.sub(r'\1 tabindex="0"\2', body)
    return body.replace('<div class="math', '<div tabindex="0" role="group" aria-label="Formula" class="math')


def write_sitemap(app, error) -> None:
    base = app.config.html_baseurl
    if error or not base or app.builder.format != "html":
        return
    pages = (urljoin(base, app.builder.get_target_uri(name)) for name in sorted(app.env.found_docs))
    listed = "".join(f"  <url><loc>{saxutils.escape(page)}</loc></url>\n" for page in pages)
    (Path(app.outdir) / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}</urlset>\n',
        encoding="utf-8",
    )
    draw_card(app.config.html_title, Path(app.outdir) / CARD)


def draw_card(title: str, path: Path) -> None:
    """Draw the preview image for links to the book (Open Graph), 1200 by 630 pixels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#1c232b")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 12), ylim=(0, 6.3))
    axes.axis("off")
    desks = [(0.7 + 0.36 * column, 0.6 + 0.36 * row) for row in range(5) for column in range(30)]
    axes.scatter(
        *zip(*desks), s=60, marker="s", c=["#e69f00" if i % 32 == 7 else "#5c6b7a" for i in range(150)]
    )
    words, lines = title.split(), [""]
    for word in words:
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < 22 else [lines[-1], word]
    axes.text(0.6, 5.6, "\n".join(lines), color="white", fontsize=50, weight="bold", va="top")
    figure.savefig(path)


def setup(app) -> dict:
    app.connect("html-page-context", add, priority=900)
    app.connect("build-finished", write_sitemap)
    app.add_js_file("scrollers.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
