"""The directives {problem} and {predict}: a question, a field to commit to an answer, then the full solution.

    ```{problem} One frame of 8K
    :answer: 1.4
    :unit: % of the peak
    :within: 10 %

    The question.
    ```

    ```{solution-start}
    ```

    Paragraphs, formulas, and cells of code that print the answer.

    ```{solution-end}
    ```

Instead of `answer`, a number, there may be choices: the question then ends in a list of "[x] right" and
"[ ] wrong". With neither, the reader writes a line of text. {predict} is a problem without a title. The build
fails if no cell of the solution prints the number given as the answer.

Without scripts the solutions are folded. problems.js hides them until the reader has answered, and asks for a
line of text before each answer of the quiz.
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.errors import ExtensionError

NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
CHOICE = re.compile(r"\[([ x])\] ")
ASKED = re.compile(r'<div class="problem[^>]* id="(problem-[^"]+)"(?: data-answer="([^"]+)")?')
START, END = '<details class="solution">', "</details>"


def number_in(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def last_place(text: str) -> float:
    """The place value of a written number's last significant digit: 100 for "7,900", 0.1 for "1.4"."""
    digits, _, power = text.lower().replace(",", "").lstrip("+-−").partition("e")
    whole, _, after = digits.partition(".")
    places = -len(after) if after else len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    return 10.0 ** (places + int(power or 0))


def is_printed(answer: str, printed: str) -> bool:
    """Whether a number in `printed`, rounded like `answer`, equals `answer`."""
    wanted, allowed = number_in(answer), last_place(answer) / 2
    found = (number_in(text) for text in NUMBER.findall(printed))
    return any(abs(number - wanted) <= allowed * (1 + 1e-9) for number in found)


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


class Problem(Directive):
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = dict.fromkeys(("answer", "unit", "within"), directives.unchanged_required)
    has_content = True

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        title = " ".join(self.arguments)
        if bool(title) != (self.name == "problem"):
            raise self.error(f"{self.name}: a problem has a title, a prediction has none")
        if not self.content:
            raise self.error(f"{self.name} {title}: it has no question")
        count = env.temp_data[self.name] = env.temp_data.get(self.name, 0) + 1
        page = env.docname.rpartition("/")[2].partition("-")[0]
        number = f"{int(page)}.{count}" if page.isdigit() else f"{page[0].upper()}.{count}"
        told = f"Problem {number}" if title else "Predict"
        name = f"{self.name.replace('predict', 'problem-p')}-{number}".replace(".", "-").lower()
        heading = f"<b>{told}</b>{'. ' + escape(title) if title else ''}"
        parsed = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, parsed)
        group = f'<div class="problem" role="group" aria-labelledby="{name}-title"'
        opening = f'{group} id="{name}"{self.data(parsed)}>'
        title_line = f'<p class="problem-title" id="{name}-title">{heading}</p>'
        return [html(opening + title_line), *parsed.children, html("</div>")]

    def data(self, question: nodes.Element) -> str:
        """The data attributes for problems.js: the answer and its tolerance, or which choice is right."""
        given, last = self.options, question.children[-1]
        if isinstance(last, nodes.bullet_list) and CHOICE.match(last.astext()):
            marks = [CHOICE.match(item.astext()) for item in last.children]
            if not all(marks) or [mark[1] for mark in marks].count("x") != 1:
                raise self.error(f"{self.name}: of the choices one begins with '[x]', the others with '[ ]'")
            for item in last.children:
                text = item.next_node(nodes.Text)
                text.parent.replace(text, nodes.Text(text[4:]))
            last["classes"].append("choices")
            return f' data-right="{next(place for place, mark in enumerate(marks) if mark[1] == "x")}"'
        if "answer" not in given:
            return ""
        within = re.fullmatch(r"(\d+(?:\.\d+)?) ?%|exactly", given.get("within", ""))
        if not within or not NUMBER.fullmatch(given["answer"]):
            raise self.error(f"{self.name}: an answer is a number and has :within:, '10 %' or 'exactly'")
        share = float(within[1] or 0) / 100
        unit = escape(given.get("unit", ""))
        return f' data-answer="{given["answer"]}" data-within="{share:g}" data-unit="{unit}"'


class Solution(Directive):
    """The directives that begin and end a solution: two, as a directive cannot contain code cells."""

    def run(self) -> list[nodes.Node]:
        return [html(f"{START}<summary>Solution</summary>" if self.name == "solution-start" else END)]


def check(app, doctree) -> None:
    """Fail the build unless each problem is followed by its solution, whose cells print the answer."""
    for section in (doctree, *doctree.findall(nodes.section)):
        asked, inside, printed = None, False, ""
        for node in section.children:
            text = node.astext() if isinstance(node, nodes.raw) else ""
            if found := ASKED.match(text):
                expect(not asked, app, asked, "has no solution in its section")
                asked, inside, printed = found, False, ""
            elif text.startswith(START):
                expect(asked and not inside, app, asked, "a solution follows a problem, once")
                inside = True
            elif text == END and inside:
                right = not asked[2] or is_printed(asked[2], printed)
                expect(
                    right, app, asked, f"no cell of its solution prints its answer; printed: {printed!r:.300}"
                )
                asked, inside = None, False
            elif inside and isinstance(node, nodes.container):
                printed += output_of(node)
        expect(not asked, app, asked, "has no solution, or one that does not end in its section")


def expect(holds, app, asked: re.Match | None, otherwise: str) -> None:
    if not holds:
        what = f"{asked[1]} (answer {asked[2]})" if asked else "solution"
        raise ExtensionError(f"{app.env.docname}: {what}: {otherwise}")


def output_of(cell: nodes.container) -> str:
    """The text that a code cell printed."""
    made = (part for part in cell.findall(nodes.container) if part.get("nb_element") == "cell_code_output")
    return " ".join(part.astext() for part in made)


def script(app, pagename, templatename, context, doctree) -> None:
    if re.search(r'class="problem"|id="quiz"', context.get("body", "")):
        app.add_js_file("problems.js", loading_method="defer")


def setup(app) -> dict:
    app.add_directive("problem", Problem)
    app.add_directive("predict", Problem)
    app.add_directive("solution-start", Solution)
    app.add_directive("solution-end", Solution)
    app.connect("doctree-read", check)
    app.connect("html-page-context", script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
