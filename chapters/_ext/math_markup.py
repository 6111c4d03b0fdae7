"""Formulas as MathML, made while the book is built: browsers draw it, so that no page loads a script for it.

Sphinx asks for a renderer by name (`html_math_renderer: mathml`); latex2mathml does the work. A formula that
it does not know fails the build.
"""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert

# Sphinx's and MyST's own wrapping of several lines, which MathML needs less than LaTeX.
WRAPPED = re.compile(r"\\(begin|end)\{split\}")


def mathml(tex: str, display: str) -> str:
    """Markup of one formula; `display` is "inline" or "block"."""
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
