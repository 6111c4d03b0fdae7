"""Problems of a page: the reader answers first, and the cells of a solution print the declared answer."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

STATIC = ROOT / "chapters/_static"
PAGE = """
# A page

## Bytes

```{problem} A vector
:answer: 7,900
:unit: bytes
:within: 10 %

How many bytes?
```

```{solution-start}
```

Count them.

```{code-cell} ipython3
print(f"{1975 * 4 + 12:,} bytes of 1e4")
```

Few.

```{solution-end}
```

```{predict}
What binds?

- [x] *memory*
- [ ] arithmetic & more
```

```{solution-start}
```
Memory.

```{solution-end}
```

```{problem} In words
Why?
```

```{solution-start}
```
Because.

```{solution-end}
```

## Quiz

**1.** Where?

:::{dropdown} Answer
There.
:::
"""
CONF = """
import sys
sys.path.insert(0, {ext!r})
extensions = ["myst_nb", "sphinx_design", "problems"]
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "cache"  # pages with the same cells run them once
nb_execution_cache_path = {cache!r}
html_theme = "basic"
root_doc = "05-page"
"""
HEAD = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3}
---
"""


BUILD = """
import sys
from sphinx.cmd.build import build_main
for folder in sys.argv[1:]:
    with open(folder + "/said", "w") as sys.stderr:
        code = build_main(["-q", "-b", "html", folder, folder + "/made"])
        print("exit code", code, file=sys.stderr)
"""
NOT_WHOLE = [
    (("7,900", "7,800"), "no cell of its solution prints its answer"),
    (("1975", "1990"), "no cell of its solution prints its answer"),
    (
        ("```{solution-end}\n```\n\n```{predict}", "```{predict}"),
        "problem-5-1 .answer 7,900.: has no solution",
    ),
    (("```{solution-start}\n```\n\nCount", "Count"), "problem-5-1 .answer 7,900.: has no solution"),
    ((":within: 10 %", ""), "an answer is a number and has :within:"),
    (("[x]", "[ ]"), "of the choices one begins with"),
    (("[ ] arithmetic", "arithmetic"), "of the choices one begins with"),
    (("{predict}", "{predict} A title"), "a prediction has none"),
    (("How many bytes?", ""), "it has no question"),
]


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """Folders of books of one page, all built by one process: the whole page, then each that is not whole."""
    pages, folders = [PAGE] + [PAGE.replace(*change, 1) for change, _ in NOT_WHOLE], []
    for number, text in enumerate(pages):
        folder = tmp_path_factory.mktemp(f"book{number}")
        (folder / "05-page.md").write_text(HEAD + text, encoding="utf-8")
        conf = CONF.format(ext=str(ROOT / "chapters/_ext"), cache=str(folder.parent / "problems_cache"))
        (folder / "conf.py").write_text(conf)
        folders.append(folder)
    subprocess.run([sys.executable, "-c", BUILD, *map(str, folders)], check=True)
    return folders


@pytest.fixture(scope="module")
def html(books):
    said = (books[0] / "said").read_text()
    assert said == "exit code 0\n"
    return (books[0] / "made/05-page.html").read_text(encoding="utf-8")


@pytest.fixture
def loaded(browser, html):
    """The page in a browser, with the script and the styles of the book."""
    body = re.search(r'<div class="body" role="main">(.*)', html, re.DOTALL)[1].partition(
        '<div class="sphinxsidebar"'
    )[0]
    styles = "".join(f"<style>{(STATIC / name).read_text()}</style>" for name in ("course.css", "print.css"))
    scripts = "".join(
        f"<script>{(STATIC / name).read_text()}</script>" for name in ("problems.js", "printing.js")
    )
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>{styles}<body>'
        f'<article class="bd-article">{body}</article>{scripts}'
    )
    context = browser.new_context()
    page = context.new_page()
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.goto("http://book.test/page.html")
    yield page
    context.close()


@pytest.mark.slow
def test_problems_are_numbered_within_the_chapter_and_predictions_are_not(html):
    titles = re.findall(r'class="problem-title" id="([^"]+)"><b>([^<]*)</b>([^<]*)', html)
    assert titles == [
        ("problem-5-1-title", "Problem 5.1", ". A vector"),
        ("problem-p-5-1-title", "Predict", ""),
        ("problem-5-2-title", "Problem 5.2", ". In words"),
    ]
    assert "arithmetic &amp; more" in html and html.count("<summary>Solution</summary>") == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(NOT_WHOLE)), ids=[told for _, told in NOT_WHOLE])
def test_a_problem_that_is_not_whole_stops_the_build(books, number):
    change, told = NOT_WHOLE[number]
    assert change[0] in PAGE
    said = (books[1 + number] / "said").read_text()
    assert re.search(told, said), said
    assert "exit code 0" not in said or "ERROR" in said


@pytest.mark.parametrize(
    ("answer", "printed", "same"),
    [
        ("1.4", "1.44 %", True),
        ("1.4", "1.46 %", False),
        ("7,900", "7,912 bytes", True),
        ("7,900", "7,951 bytes", False),
        ("7,900", "7,900,000 bytes", False),
        ("3e6", "3,412,000", True),
        ("-2", "is −2", True),
        ("0", "0", True),
        ("0", "1", False),
        ("15", "no number", False),
    ],
)
def test_an_answer_stands_where_a_printed_number_rounds_to_it(answer, printed, same, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "chapters/_ext"))
    import problems

    assert problems.is_printed(answer, printed) == same


@pytest.mark.browser
def test_the_solution_opens_when_the_reader_has_answered(loaded):
    solution, problem = loaded.locator("details.solution").first, loaded.locator("#problem-5-1")
    assert not solution.is_visible()
    problem.get_by_role("textbox").fill("much")
    problem.get_by_role("button", name="Compare").press("Enter")
    assert not solution.is_visible()  # no number
    problem.get_by_role("textbox").fill("8,200")
    problem.get_by_role("textbox").press("Enter")
    said = "You said 8,200 bytes, the solution says 7,900: within 10 %."
    assert said in problem.inner_text() and loaded.get_by_text("Few.").is_visible()
    loaded.reload()
    assert said in problem.inner_text() and solution.is_visible()
    problem.get_by_role("button", name="Answer again").click()
    problem.get_by_role("textbox").fill("5")
    problem.get_by_role("button", name="Compare").click()
    assert "You said 5 bytes, the solution says 7,900: not within 10 %." in problem.inner_text()


@pytest.mark.browser
def test_numbers_are_read_as_people_write_them(loaded):
    problem = loaded.locator("#problem-5-1")
    for said, near in {"7 900": True, "7.9e3": True, "7900,0": True, "0,125": False, "−7,900": False}.items():
        problem.get_by_role("textbox").fill(said)
        problem.get_by_role("button", name="Compare").click()
        assert (": within 10 %." in problem.inner_text()) == near, said
        problem.get_by_role("button", name="Answer again").click()


@pytest.mark.browser
def test_an_answer_is_not_shown_beside_another_question(loaded):
    problem = loaded.locator("#problem-5-1")
    problem.get_by_role("textbox").fill("7,900")
    problem.get_by_role("button", name="Compare").click()
    html = loaded.content()
    assert loaded.evaluate("localStorage.length") == 1 and "How many bytes?" in html
    key = loaded.evaluate("localStorage.key(0)")
    loaded.evaluate(
        "key => { localStorage.setItem(key.replace('bytes', 'words'), '5'); localStorage.removeItem(key); }",
        key,
    )
    loaded.reload()
    assert "You said" not in problem.inner_text()


@pytest.mark.browser
def test_choices_words_and_quiz_ask_too_and_may_be_passed(loaded):
    choice = loaded.locator("#problem-p-5-1")
    choice.get_by_label("arithmetic & more").check()
    choice.get_by_role("button", name="Compare").click()
    assert "You chose “arithmetic & more”; right is “memory”." in choice.inner_text()
    words = loaded.locator("#problem-5-2")
    words.get_by_role("button", name="Show without answering").click()
    assert "Opened without an answer." in words.inner_text() and loaded.get_by_text("Because.").is_visible()
    assert not loaded.get_by_text("There.").is_visible()
    loaded.locator("#quiz").get_by_role("textbox").fill("<b>Here</b>")
    loaded.locator("#quiz").get_by_role("button", name="Compare").click()
    assert "You wrote: <b>Here</b>" in loaded.locator("#quiz").inner_text()
    assert loaded.get_by_text("There.").is_visible()


@pytest.mark.browser
def test_without_a_script_the_solutions_are_folded(browser, html):
    page = browser.new_page(java_script_enabled=False)
    page.set_content(html)
    assert page.get_by_text("Solution", exact=True).count() == 3 and not page.get_by_text("Few.").is_visible()
    page.get_by_text("Solution", exact=True).first.click()
    assert page.get_by_text("Few.").is_visible()
    page.close()


@pytest.mark.browser
def test_on_paper_the_solutions_stand_at_the_end_and_return_after_it(loaded):
    loaded.evaluate("dispatchEvent(new Event('beforeprint'))")
    loaded.emulate_media(media="print")
    end = loaded.locator("section.solutions")
    text = end.inner_text()
    assert text.index("Problem 5.1") < text.index("Few.") < text.index("Predict") < text.index("Memory.")
    assert loaded.get_by_text("There.").is_visible() and not loaded.get_by_role("textbox").first.is_visible()
    loaded.emulate_media(media="screen")
    loaded.evaluate("dispatchEvent(new Event('afterprint'))")
    assert end.count() == 0 and loaded.locator("#problem-5-1 + details.solution").count() == 1
    assert not loaded.get_by_text("Few.").is_visible()
