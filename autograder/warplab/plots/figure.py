"""Figures as inline SVG in the page's text colour, with alt text, and readable on a phone."""

import base64
import hashlib
import html
import io
import re
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from warplab.plots.responsive import on_phone
from warplab.plots.theme import INK, PAPER

SVG = "http://www.w3.org/2000/svg"
LETTER = 0.083  # inches: the mean width of a letter along an axis
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
PAGE_BACKGROUND = "var(--pst-color-background, var(--jp-layout-color0, Canvas))"  # book, JupyterLab, others
PAGE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
CODE_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
REFERENCE = re.compile(r"url\(#([^)]+)\)")
NARROW_ON_A_PHONE = (  # for notebooks; the book's style sheet has its own rule
    "<style>@media (max-width: 600px) { svg.wide:has(+ svg.narrow) { display: none !important } "
    "svg.wide + svg.narrow { display: block !important } }</style>"
)
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}

ElementTree.register_namespace("", SVG)


class Figure:
    """A finished figure, shown in a notebook as `<figure>` with inline SVG; `save` writes it to a file.

    narrow: the drawing for a phone (warplab.plots.responsive), hidden where the wide one fits. name: for
    references. evidence: where its numbers come from, keys of MARKERS or "theory".
    """

    def __init__(self, drawing, body, alt, caption):
        self.drawing, self.body, self.alt, self.caption = drawing, body, alt, caption
        self.data = {}  # {name: text} for scripts of the page, written as attributes data-name
        self.narrow: Figure | None = None
        self.name, self.evidence = "", ()

    def _repr_html_(self):
        caption = f"<figcaption>{_inline(self.caption)}</figcaption>" if self.caption else ""
        about = {"name": self.name, "evidence": " ".join(self.evidence)}
        data = _data({name: text for name, text in about.items() if text} | self.data)
        opened = f'<figure class="warplab-figure" style="margin: 1em 0"{data}>'
        return f"{opened}{self._drawings()}{caption}</figure>"

    def _drawings(self):
        if self.narrow is None:
            return self.body
        hidden = f'<svg class="narrow"{_data(self.narrow.data)}'
        narrow = self.narrow.body.replace("<svg", hidden, 1).replace("display: block", "display: none", 1)
        return self.body.replace("<svg", '<svg class="wide"', 1) + narrow + NARROW_ON_A_PHONE

    def __repr__(self):
        return f"Figure: {self.caption or self.alt}"

    def save(self, path):
        """Write the figure as .svg, which follows the viewer's theme, or .png for a light page.

        The suffix of `path` decides; only a figure drawn by matplotlib can become .png.
        """
        path = Path(path)
        kinds = [
            kind
            for kind, there in ((".svg", self.body.startswith("<svg")), (".png", self.drawing is not None))
            if there
        ]
        if path.suffix not in kinds:
            raise ValueError(
                f"cannot save {path.name}: "
                + (f"this figure saves as {' or '.join(kinds)}" if kinds else "a picture is not saved")
            )
        if path.suffix == ".png":
            self.drawing.savefig(path, dpi=144, facecolor="white")
        else:
            path.write_text(_standalone(self.body), encoding="utf-8")


def show(figure, alt, caption=None, evidence=()):
    """Return the matplotlib `figure` as a `Figure` that follows the page's light or dark theme.

    alt: the alt text; a blank one raises ValueError. caption: the finding, in one sentence. evidence: as in
    `Figure`.
    """
    _require_alt(alt)
    if on_phone():
        _fold(figure)
    shown = Figure(figure, to_svg(figure, alt), alt, caption)
    shown.evidence = tuple(evidence)
    return shown


def _fold(figure):
    """Wrap titles and axis labels that are longer than the axes of a phone's drawing."""
    figure.draw_without_rendering()  # computes the positions of the axes
    for ax in figure.axes:
        box = ax.get_position()
        width, height = figure.get_figwidth() * box.width, figure.get_figheight() * box.height
        words = (ax.xaxis.label, width), (ax.yaxis.label, height), (ax.title, width), (ax._left_title, width)
        for label, room in words:
            label.set_text(textwrap.fill(label.get_text(), max(12, int(room / LETTER) + 2)))


def axes_place(ax):
    """The position of a drawn figure's axes, as JSON for a page's script: data limits, and the box [left,
    bottom, width, height] as fractions of the figure.
    """
    box = [round(share, 5) for share in ax.get_position().bounds]
    return {"x": list(ax.get_xlim()), "y": list(ax.get_ylim()), "box": box}


def picture(image, alt, caption=None, zoom=1):
    """Return an (h, w, 3) or (h, w) uint8 image as a `Figure`, each pixel drawn `zoom` times as wide."""
    _require_alt(alt)
    image = np.ascontiguousarray(image)
    if image.dtype != np.uint8:
        raise ValueError(
            f"picture() shows uint8 pixels, got {image.dtype}: scale to 0..255 and use .astype(np.uint8)"
        )
    png = io.BytesIO()
    Image.fromarray(image).save(png, "PNG", optimize=True)
    data = base64.b64encode(png.getvalue()).decode()
    height, width = image.shape[0] * zoom, image.shape[1] * zoom
    style = "max-width: 100%; height: auto; padding: 0" + ("; image-rendering: pixelated" if zoom > 1 else "")
    source = f'src="data:image/png;base64,{data}" alt="{html.escape(alt)}"'
    body = f'<img {source} width="{width}" height="{height}" style="{style}">'
    return Figure(None, body, alt, caption)


def to_svg(figure, alt):
    """Return `figure` as SVG for a page: themed, labelled with `alt`, and deterministic."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "warplab"}):
        figure.savefig(file, format="svg", transparent=True, metadata=NO_METADATA)
    root = ElementTree.fromstring(file.getvalue())
    _drop(root, f"{{{SVG}}}metadata")
    _drop(root, f"{{{SVG}}}style")  # matplotlib's `* {...}` rule would style the whole page
    for element in root.iter():
        for name, value in element.attrib.items():
            element.set(name, _themed(value))
    _own_ids(root, alt)
    _frame(root, alt)
    return ElementTree.tostring(root, encoding="unicode")


def _themed(value):
    value = value.replace(INK, "currentColor").replace(PAPER, PAGE_BACKGROUND)
    return value.replace("'DejaVu Sans Mono'", CODE_FONT).replace("'DejaVu Sans'", PAGE_FONT)


def _own_ids(root, alt):
    """Remove unreferenced ids, and make the others unique to this figure, as a page has many figures."""
    drawn = alt + ElementTree.tostring(root, encoding="unicode")
    prefix = "w" + hashlib.sha256(drawn.encode()).hexdigest()[:10]
    used = {name for e in root.iter() for v in e.attrib.values() for name in REFERENCE.findall(v)}
    used |= {e.get(XLINK_HREF)[1:] for e in root.iter() if (e.get(XLINK_HREF) or "").startswith("#")}
    for element in root.iter():
        if element.get("id") in used:
            element.set("id", f"{prefix}-{element.get('id')}")
        else:
            element.attrib.pop("id", None)
        link = element.attrib.pop(XLINK_HREF, None)
        if link is not None:
            element.set("href", f"#{prefix}-{link[1:]}" if link.startswith("#") else link)
        for name, value in element.attrib.items():
            element.set(name, REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    root.set("id", prefix)


def _frame(root, alt):
    """Make the root element scale down on a phone, and give it `alt` as its accessible name."""
    prefix = root.get("id")
    width = float(root.get("width").removesuffix("pt")) * 4 / 3  # points to CSS pixels
    root.attrib.pop("height")
    root.set("width", f"{width:g}")
    root.set(
        "style", "max-width: 100%; height: auto; display: block; stroke-linejoin: round; stroke-linecap: butt"
    )
    root.set("role", "img")
    title, _, rest = alt.partition(". ")
    label = f"{prefix}-title" + (f" {prefix}-desc" if rest else "")
    root.set("aria-labelledby", label)
    for position, (tag, text) in enumerate((("title", title), ("desc", rest))):
        if text:
            element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{prefix}-{tag}"})
            element.text = text
            root.insert(position, element)


def _standalone(body):
    """The SVG as a stand-alone file, with text colours of its own for light and dark themes."""
    theme = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
    return '<?xml version="1.0" encoding="utf-8"?>\n' + body.replace(">", ">" + theme, 1)


def _drop(root, tag):
    for parent in list(root.iter()):
        for child in parent.findall(tag):
            parent.remove(child)


def _data(texts):
    return "".join(f' data-{name}="{html.escape(text)}"' for name, text in texts.items())


def _inline(text):
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _require_alt(alt):
    if not alt or not alt.strip():
        raise ValueError("a figure needs alt text: say what a reader who cannot see it should know")
