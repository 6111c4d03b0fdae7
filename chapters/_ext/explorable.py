"""The directive {explorable}: interactive pictures (chapters/_static/explorables).

    ```{explorable} access
    :still: memory.strides
    :data: memory.request_costs

    How many sectors does a warp ask for?

    The caption: what to try, and what to see.
    ```

The first paragraph is the question, the rest the caption. `still` names a function of
autograder/warplab/figures (module.function) that returns a figure of warplab.plots, shown in print and where
scripts do not run. `data` names a function that returns JSON-able data for the script. Only pages with an
explorable load its scripts.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

CHAPTERS = Path(__file__).resolve().parent.parent
SCRIPTS = CHAPTERS / "_static/explorables"
SHARED = "explorable"
FIGURE = re.compile(r'<figure class="explorable"[^>]* data-explorable="(\w+)"')


class Explorable(Directive):
    required_arguments = 1
    option_spec = {"still": directives.unchanged_required, "data": directives.unchanged_required}
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        known = sorted(path.stem for path in SCRIPTS.glob("*.js") if path.stem != SHARED)
        if name not in known:
            raise self.error(f"explorable: no script '{name}'; there are {', '.join(known)}")
        if "still" not in self.options:
            raise self.error(f"explorable: {name} has no :still:, the picture for paper")
        parsed = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, parsed)
        if not parsed.children:
            raise self.error(f"explorable: {name} has no question; write one as its first paragraph")
        question, *caption = parsed.children
        question["classes"].append("explorable-question")
        still = self.made("still")
        data = embedded(self.made("data")) if "data" in self.options else ""
        return [
            html(f'<figure class="explorable" id="explorable-{name}" data-explorable="{name}">'),
            question,
            html(f'<div class="explorable-still">{drawings(still)}</div>{data}'),
            *([html("<figcaption>"), *caption, html("</figcaption>")] if caption else []),
            html("</figure>"),
        ]

    def made(self, option: str):
        """Call the function that `option` names, and return its result."""
        module, _, function = self.options[option].rpartition(".")
        if str(CHAPTERS) not in sys.path:
            sys.path.insert(0, str(CHAPTERS))
        try:
            found = importlib.import_module(f"warplab.figures.{module}")
            make = getattr(found, function)
        except (ImportError, AttributeError) as problem:
            raise self.error(f"explorable: :{option}: {self.options[option]}: {problem}") from None
        self.state.document.settings.env.note_dependency(found.__file__)
        return make()


def drawings(still) -> str:
    """(HTML of the still figure, with its narrow form for a phone if it has one; its alt text)."""
    wide = still.body.replace("<svg", '<svg class="wide"', 1)
    narrow = still.narrow.body.replace("<svg", '<svg class="narrow"', 1) if still.narrow else ""
    return f"{wide}{narrow}<p>{escape(still.caption or '')}</p>"


def embedded(data) -> str:
    """Data as a script element of JSON, which the page's script parses."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" class="explorable-data">{text}</script>'


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def scripts(app, pagename, templatename, context, doctree) -> None:
    """Add the shared script, then that of each explorable on this page, in order.

    They are not modules, so that they also work in a page opened from a folder.
    """
    names = dict.fromkeys(FIGURE.findall(context.get("body", "")))
    if names:
        app.add_css_file("explorables/explorable.css")
    for name in [SHARED, *names] if names else []:
        app.add_js_file(f"explorables/{name}.js", loading_method="defer")


def setup(app) -> dict:
    app.add_directive("explorable", Explorable)
    app.connect("html-page-context", scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
