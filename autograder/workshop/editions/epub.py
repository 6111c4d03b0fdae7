"""The book as an ePub 3: an article a file, formulas as MathML, figures as SVG, pixels as files.

Sphinx has a builder for ePub; it takes what cells show as it stands, which is HTML and no XHTML, and a file
that is not well-formed is one that readers refuse.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
import zipfile
from pathlib import Path

from pygments.formatters import HtmlFormatter

from warplab.rendering import render
from workshop.editions.articles import Article, Volume, title_page

HERE = Path(__file__).parent
EMBEDDED = re.compile(r'src="data:image/(\w+)(?:\+xml)?;base64,\s*([^"]*)"')
PLACE = re.compile(r'href="#(p-[^".]*)(\.[^"]*)?"')
CONTAINER = """\
<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
COVER = {"width": 1200, "height": 1800}


def bind(browser, volume: Volume, font: Path, out: Path) -> None:
    """Write the ePub to `out`, which is there whole or not at all. font: the face of the headings."""
    images: dict[str, bytes] = {}
    files = {f"{one.name}.xhtml": page(one.title, linked(kept(one.body, images))) for one in volume.articles}
    title = title_page(volume)
    files["title.xhtml"] = page(volume.title, title)
    files["nav.xhtml"] = page("Contents", filled("nav.xhtml.j2", volume=volume))
    files["book.css"] = style()
    files["package.opf"] = filled(
        "package.opf.j2",
        volume=volume,
        images=images,
        properties=properties,
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, volume.address or volume.title).urn,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        for name, content in {**files, **images}.items():
            book.writestr(f"book/{name}", content)
        book.writestr("book/cover.png", cover(browser, title, font))
        book.write(font, f"book/{font.name}")
    unfinished.replace(out)


def filled(template: str, **values) -> str:
    return render("workshop.editions", template, **values)


def page(title: str, body: str) -> str:
    return filled("page.xhtml.j2", title=title, body=body)


def kept(body: str, images: dict[str, bytes]) -> str:
    """The article with the pictures that it holds in its text put into `images`, each once."""

    def named(found: re.Match) -> str:
        content = base64.b64decode(found[2])
        name = f"picture-{hashlib.sha256(content).hexdigest()[:12]}.{found[1]}"
        images[name] = content
        return f'src="{name}"'

    return EMBEDDED.sub(named, body)


def linked(body: str) -> str:
    """Links to places of the book as links to its files."""

    def filed(found: re.Match) -> str:
        page, place = found.groups()
        return f'href="{page.removeprefix("p-")}.xhtml{f"#{page}{place}" if place else ""}"'

    return PLACE.sub(filed, body)


def properties(article: Article) -> str:
    """What a reader must be able to draw in this file, as its entry in the manifest says it."""
    return " ".join(name for name, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in article.body)


def style() -> str:
    code = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    return (HERE / "epub.css").read_text(encoding="utf-8") + code + "\n"


def cover(browser, title: str, font: Path) -> bytes:
    """The title page as a picture."""
    tab = browser.new_page(viewport=COVER)
    face = f"data:font/woff2;base64,{base64.b64encode(font.read_bytes()).decode()}"
    sheet = style().replace(font.name, face)
    tab.set_content(f'<style>{sheet}</style><body style="zoom: 2.2; padding: 0 7%">{title}</body>')
    tab.evaluate("document.fonts.ready")
    picture = tab.screenshot(type="png")
    tab.close()
    return picture
