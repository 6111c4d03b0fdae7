"""The directive {lab}: experiments that run on the reader's GPU, in the page (chapters/_static/lab).

    ```{lab} copy
    What does a stride cost on your GPU?

    The caption: what to look for.
    ```

The first paragraph is the question, the rest the caption. The lab's own page loads its script at once. In a
chapter a lab is a button (with `:small:`, and below a figure of `{measured}` with the same question), which
loads the script when it is pressed. Pages whose figures can show the reader's results beside others load only
that part; other pages load nothing.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

LAB = Path(__file__).parent.parent / "_static/lab"
STILL = (
    "This experiment would run on your own GPU, here in the page. It needs JavaScript and a browser with "
    "WebGPU, and a page that comes from a web server."
)


class Lab(Directive):
    required_arguments = 1
    option_spec = {"small": directives.flag}
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
        return figure(name, question, caption, " data-small" if "small" in self.options else "")


def figure(name: str, question: nodes.Node, caption: list[nodes.Node], more: str) -> list[nodes.Node]:
    return [
        html(f'<figure class="lab" id="lab-{name}" data-experiment="{name}" data-state="idle"{more}>'),
        question,
        nodes.paragraph("", STILL, classes=["lab-still"]),
        *([html("<figcaption>"), *caption, html("</figcaption>")] if caption else []),
        html("</figure>"),
    ]


def asking(measured: str) -> str | None:
    """The lab's experiment with the same question as one of warplab.evidence; None if there is none."""
    for path in sorted((LAB / "experiments").glob("*.js")):
        if f'measured: "{measured}"' in path.read_text(encoding="utf-8"):
            return path.stem
    return None


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def scripts(app, pagename, templatename, context, doctree) -> None:
    """Add the parts of the lab's script that this page needs."""
    body = context.get("body", "")
    labs, small = body.count('<figure class="lab"'), body.count(' data-state="idle" data-small>')
    needed = {
        "lab.js": labs > small,
        "small.js": small > 0,
        "yours.js": labs == small and "data-measured=" in body,
    }
    for name in (name for name, wanted in needed.items() if wanted):
        app.add_js_file(f"lab/{name}", type="module")
    if any(needed.values()):
        app.add_css_file("lab/lab.css")


def setup(app) -> dict:
    app.add_directive("lab", Lab)
    app.connect("html-page-context", scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
