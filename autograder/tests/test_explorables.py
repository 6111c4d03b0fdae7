"""The book's explorables in a real browser: what their scripts compute is what the engine counts."""

import json

import pytest
from conftest import ROOT

SCRIPTS = ROOT / "chapters/_static/explorables"
MOST_BYTES = 40_000
ALL = sorted(path.stem for path in SCRIPTS.glob("*.js") if path.stem != "explorable")
FIGURE = """<figure class="explorable" id="explorable-{name}" data-explorable="{name}">
<p class="explorable-question">A question?</p><div class="explorable-still">On paper.</div>{data}
<figcaption><p>Look.</p></figcaption></figure>"""


def loaded(browser, *names, data=None, address="http://book.test/page.html", **context):
    """A page with the figures of these explorables and their scripts, as the book has them; `data`
    (name to what the directive embeds). What the page complains of fails the test that asks
    `page.problems`.
    """
    embedded = '<script type="application/json" class="explorable-data">{}</script>'
    figures = "".join(
        FIGURE.format(name=name, data=embedded.format(json.dumps(data[name])) if name in (data or {}) else "")
        for name in names
    )
    styles = "".join(
        f"<style>{(SCRIPTS.parent / sheet).read_text(encoding='utf-8')}</style>"
        for sheet in ("course.css", "explorables/explorable.css")
    )
    scripts = "".join(
        f"<script>{(SCRIPTS / name).with_suffix('.js').read_text(encoding='utf-8')}</script>"
        for name in ("explorable", *names)
    )
    text = (
        '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>t</title>'
        f'{styles}<body class="bd-article"><main><h1>A page</h1>{figures}</main>{scripts}'
    )
    page = browser.new_page(**context)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.goto(address)
    return page


def models(page, name, settings, data=None):
    """What the explorable's model says of each setting."""
    return page.evaluate(
        "([name, settings, data]) => settings.map((setting) => explorables[name].model(setting, data))",
        [name, settings, data],
    )


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.js")), ids=lambda path: path.name)
def test_a_script_is_at_most_40_kb(path):
    assert path.stat().st_size <= MOST_BYTES
