"""Templates: what they are given is text, what they name must be there, only who shows one loads them."""

import re
import sys

import jinja2
import pytest
from conftest import TESTS

from warplab.rendering import render

AUTOGRADER = TESTS.parent
ATTACK = "<script>alert('x')</script>\" onload=\"alert('y')"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A function that fills in a template of one line, in a package of its own."""
    package = tmp_path / f"templates_of_{tmp_path.name}"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def filled(template, **values):
        (package / "one.html.j2").write_text(template)
        return render(package.name, "one.html.j2", **values)

    yield filled
    sys.modules.pop(package.name, None)


def test_what_a_template_is_given_is_escaped(page):
    shown = page('<p title="{{ text }}">{{ text }}</p>', text=ATTACK)
    assert "<script" not in shown and '" onload' not in shown
    assert shown.count("&lt;script&gt;") == 2


def test_a_value_that_is_missing_is_an_error(page):
    with pytest.raises(jinja2.UndefinedError, match="colour"):
        page("{{ colour }}")


def test_only_our_own_drawings_and_tables_are_put_in_as_they_are():
    unescaped = [
        line.strip()
        for package in ("warplab", "autograder")  # the workshop's show the book, and nothing of a student's
        for template in (AUTOGRADER / package).rglob("*.j2")
        if not template.name.endswith(".md.j2")  # an instructor's own Markdown
        for line in template.read_text().splitlines()
        if re.search(r"\bsafe\b|autoescape|Markup", line) and "{" in line
    ]
    table_of_a_cell = '<div class="table" id="{{ block.id }}" tabindex="0">{{ block.table | safe }}</div>'
    pictures = ["{{ drawing.picture | safe }}", "{{ row.access.picture | safe }}"]
    pictures += [
        f'<div style="margin-top:.3em;">{{{{ {of}.picture | safe }}}}</div>' for of in ("reply", "card")
    ]
    of_the_class = [
        '{% if "scores" in figures %}{{ figures["scores"] | safe }}{% endif %}',
        '{{ figures["tasks " ~ one.name] | safe }}',
        '{{ figures["times " ~ one.name] | safe }}',
    ]
    beside_an_answer = '<div class="rendered_html">{{ text | safe }}</div>'  # Markdown, by plugins.OurHtml
    # Of the instructor's solutions/ and the corpus by worked.html, which shows tags as text (test_worked.py).
    worked = [f"{{{{ one.{of} | safe }}}}" for of in ("answer", "another[0]", "after")]
    ours = [table_of_a_cell, beside_an_answer, *pictures, *of_the_class, *worked]
    assert sorted(unescaped) == sorted(ours)
