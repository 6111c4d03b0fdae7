"""Converts formulas to MathML while the book is built, so that pages need no script to draw them.

Sphinx selects this renderer by name (`html_math_renderer: mathml`); latex2mathml does the work. A formula
that it cannot convert fails the build.
"""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert

# environments in which Sphinx and MyST wrap several lines, which are not needed in MathML
WRAPPED = re.compile(r"\\(begin|end)\{split\}")


def mathml(tex: str, display: str) -> str:
    """The MathML of one LaTeX formula. display: "inline" or "block"."""
    return convert(WRAPPED.sub("", tex).replace("{aligned}", "{align*}").strip(), display=display)


def inline(self, node: nodes.math) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(mathml(node.astext(), "inline") + "</span>")
    raise nodes.SkipNode


def block(self, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
