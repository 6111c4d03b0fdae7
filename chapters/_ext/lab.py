"""Experiments on the reader's own GPU, in the page (chapters/_static/lab).

    ```{lab} copy
    What does a stride cost on your GPU?

    The caption: what to look for.
    ```

The first paragraph is the question, the rest the caption. Pages that hold one load its
script, pages whose figures can show the reader's results beside others' load only that
part; no other page loads anything.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

LAB = Path(__file__).parent.parent / "_static/lab"
STILL = (
    "This experiment would run on your own GPU, here in the page. It needs JavaScript and a browser with "
    "WebGPU, and a page that comes from a web server."
)


class Lab(Directive):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        known = sorted(path.stem for path in (LAB / "experiments").glob("*.js"))
        if name not in known:
            raise self.error(f"lab: no experiment '{name}'; there are {', '.join(known)}")
        parsed = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, parsed)
        if not parsed.children:
            raise self.error(f"lab: {name} has no question; write one as its first paragraph")
        question, *caption = parsed.children
        question["classes"].append("lab-question")
        still = nodes.paragraph("", STILL, classes=["lab-still"])
        return [
            html(f'<figure class="lab" id="lab-{name}" data-experiment="{name}" data-state="idle">'),
            question,
            still,
            *([html("<figcaption>"), *caption, html("</figcaption>")] if caption else []),
            html("</figure>"),
        ]


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def scripts(app, pagename, templatename, context, doctree) -> None:
    """Of the lab, what this page needs."""
    body = context.get("body", "")
    if '<figure class="lab"' in body:
        app.add_js_file("lab/lab.js", type="module")
        app.add_css_file("lab/lab.css")
    elif "data-measured=" in body:
        app.add_js_file("lab/yours.js", type="module")
        app.add_css_file("lab/lab.css")


def setup(app) -> dict:
    app.add_directive("lab", Lab)
    app.connect("html-page-context", scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
