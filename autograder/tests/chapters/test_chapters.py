"""The book's prose keeps its promises: form, length, terms, sources, spelling, and the
counts that it predicts.
"""

import ast
import re
import statistics
import subprocess
import sys
from functools import cache

import pytest
from conftest import ROOT

BOOK = ROOT / "chapters"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]-*.md"))
PAGES = [
    *CHAPTERS,
    *(BOOK / f"{name}.md" for name in ("intro", "what-a-network-computes", "glossary")),
    *sorted(BOOK.glob("instructor*.md")),
]
WITHOUT_PROBLEM_SET = {"12-beyond"}
FEWEST_WORDS, MOST_WORDS = 3000, 5900  # prose only, quiz included; problems and their solutions are not
PROBLEM = re.compile(r"^`{3}\{(?:problem|predict)\}.*?^`{3}\{solution-end\}", re.DOTALL | re.MULTILINE)
LONGEST_CELL, MEDIAN_CELL = 15, 7  # lines that are not blank
# Letters explained beside their one formula: C, A, i, j, k of a product; speeds S and P, buffers S; training
# tokens D; coordinates x, y, z of the moon; the interval T of chapter 11; R, f and w of chapter 10
SAID_BESIDE = set("CAijkSPDxyzTRfw")
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


@cache
def cells(path):
    import jupytext

    return jupytext.read(path, fmt="md:myst").cells


def code_cells(path):
    return [cell for cell in cells(path) if cell.cell_type == "code"]


def length(cell):
    return sum(1 for line in cell.source.splitlines() if line.strip())


def is_figure(cell):
    """A cell whose input the page does not show: its caption is the reading."""
    return bool({"remove-input", "hide-input", "remove-cell"} & set(cell.metadata.get("tags", [])))


@cache
def tokens(path):
    """All markdown tokens of a page, those inside admonitions and dropdowns included."""
    return [token for cell in cells(path) if cell.cell_type == "markdown" for token in _parse(cell.source)]


@cache
def _parser():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.colon_fence import colon_fence_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.myst_role import myst_role_plugin

    parser = MarkdownIt("commonmark").enable("table")
    return parser.use(colon_fence_plugin).use(dollarmath_plugin).use(myst_role_plugin)


def _parse(text):
    for token in _parser().parse(text):
        yield token
        if token.type == "colon_fence" or (token.type == "fence" and token.info.startswith("{")):
            yield from _parse(token.content)
        yield from token.children or ()


def directives(path, name):
    fences = [token for token in tokens(path) if token.type in ("colon_fence", "fence")]
    return [token for token in fences if token.info.startswith(f"{{{name}}}")]


def roles(path, *names):
    return [
        token.content for token in tokens(path) if token.type == "myst_role" and token.meta["name"] in names
    ]


def headings(path):
    found = tokens(path)
    return [
        after.content for token, after in zip(found, found[1:], strict=False) if token.type == "heading_open"
    ]


def prose(path):
    """The words a reader reads: text and roles, no code, no formulas."""
    return read(tokens(path))


def read(found):
    return " ".join(token.content for token in found if token.type in ("text", "myst_role"))


@cache
def glossary():
    """Terms of the glossary, in lower case and in their order on the page: its unindented lines."""
    lines = "\n".join(token.content for token in directives(BOOK / "glossary.md", "glossary")).splitlines()
    return [line.strip().lower() for line in lines if line.strip() and not line[0].isspace()]


@cache
def bibliography():
    from pybtex.database import parse_file

    return parse_file(str(BOOK / "references.bib")).entries


def words_of(text):
    return len(re.findall(r"[^\W\d_][\w'’-]*", text))


def words_outside_problems(chapter):
    solved = "\n".join(PROBLEM.findall(chapter.read_text(encoding="utf-8")))
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", solved, flags=re.DOTALL | re.MULTILINE)
    return words_of(prose(chapter)) - words_of(read(_parse(text)))


@each_chapter
def test_a_chapter_is_long_enough_to_explain_and_short_enough_to_read(chapter):
    words = words_outside_problems(chapter)
    assert FEWEST_WORDS <= words <= MOST_WORDS, f"{chapter.name} has {words} words"


@each_chapter
def test_a_chapter_has_the_form_of_the_house(chapter):
    """Frame, sections, a box on mistakes, five reasoned answers, three figures by code, short cells."""
    opening, found, code = cells(chapter)[0].source, headings(chapter), code_cells(chapter)
    labels = ["Questions", "You will be able to", "Minutes"]
    wanted = ["Measure it", "In short", "Quiz", "Where to read more"]
    wanted += ["Problem set"] if chapter.stem not in WITHOUT_PROBLEM_SET else []
    answers = [len(token.content.split()) for token in directives(chapter, "dropdown")]
    long = [cell.source.splitlines()[0] for cell in code if length(cell) > LONGEST_CELL]
    form = {
        f"a frame with {labels}": all(label in opening for label in labels),
        f"sections {wanted}; without a set it stands in WITHOUT_PROBLEM_SET": all(
            any(name in heading for heading in found) for name in wanted
        ),
        "a title with the number of the file": found[0].startswith(f"{int(chapter.stem[:2])}. "),
        "a box Careful": any("Careful" in token.info for token in directives(chapter, "admonition")),
        "five answers or more in dropdowns": len(answers) >= 5,
        "answers that say why, in 15 words or more": min(answers, default=0) >= 15,
        "three cells or more that draw": sum(is_figure(c) or "figure." in c.source for c in code) >= 3,
        f"at most {LONGEST_CELL} lines in a cell, unlike {long}": not long,
        f"{MEDIAN_CELL} lines or fewer in the usual cell": statistics.median(map(length, code))
        <= MEDIAN_CELL,
    }
    assert [what for what, holds in form.items() if not holds] == [], "this the chapter lacks"


def _assigned(tree):
    """Names that a cell gives a value outside its functions."""
    outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = [node for part in outside for node in ast.walk(part) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


@each_chapter
def test_a_name_that_a_function_reads_keeps_its_value_between_two_calls(chapter):
    """`weights`, 7 billion, was another model's size from the middle of chapter 9 on."""
    trees = [ast.parse(re.sub(r"^[%!].*$", "", cell.source, flags=re.M)) for cell in code_cells(chapter)]
    assigned = [_assigned(tree) for tree in trees]
    for at, tree in enumerate(trees):
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
            own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
            own |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
            calls = [n for n, later in enumerate(trees) if n >= at and function.name in ast.unparse(later)]
            for name in {each.id for each in names} - own:
                if any(name in before for before in assigned[: at + 1]):
                    changed = [n for n in range(at + 1, calls[-1]) if name in assigned[n]]
                    assert not changed, f"{function.name} reads {name}, which cell {changed} sets anew"


@each_chapter
def test_prose_stands_before_and_after_every_code_cell(chapter):
    page = cells(chapter)
    for before, after in zip(page, page[1:], strict=False):
        pair = [cell for cell in (before, after) if cell.cell_type == "code" and not is_figure(cell)]
        assert len(pair) < 2, (
            f"no sentence between two cells; the second begins {after.source.splitlines()[0]!r}"
        )
    assert page[0].cell_type == page[-1].cell_type == "markdown"


def minutes_of(chapter):
    """To read and run, and to solve its problems: a minute for 100 words, where every third is a number or a
    term, one to run a cell and read what it prints, half of one for a figure; four for a problem.
    """
    text = chapter.read_text(encoding="utf-8")
    asked = len(re.findall(r"^`{3}\{(?:problem|predict)\}", text, re.MULTILINE))
    shown = PROBLEM.sub("", text)
    figures = shown.count("[remove-input]")
    cells = shown.count("\n```{code-cell}") - shown.count("[remove-cell]") - figures
    return words_outside_problems(chapter) / 100 + cells + figures / 2, 4 * asked


@each_chapter
def test_the_minutes_are_those_that_words_cells_figures_and_problems_take(chapter):
    said = re.search(
        r"\*\*Minutes\.\*\* (\d+) to read and run, and about (\d+) more for the problems "
        r"between the paragraphs\.\n",  # and no hours of a set, which stand in its head
        chapter.read_text(encoding="utf-8"),
    )
    assert said, "a line as in the other chapters: **Minutes.** 55 to read and run, and about 20 more for ..."
    assert [int(minutes) for minutes in said.groups()] == pytest.approx(minutes_of(chapter), rel=0.1, abs=5)


def test_the_book_has_its_chapters_in_order_and_its_sets():
    import yaml

    toc = yaml.safe_load((BOOK.parent / "_toc.yml").read_text(encoding="utf-8"))
    files = [entry["file"].removeprefix("chapters/") for part in toc["parts"] for entry in part["chapters"]]
    assert [name for name in files if name[:2].isdigit()] == [path.stem for path in CHAPTERS]
    assert len(CHAPTERS) >= 14
    assert [int(path.stem[:2]) for path in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))
    assert [path.name for path in sorted((BOOK.parent / "exercises").glob("ps*"))] == [
        f"ps{number:02}" for number in range(16)
    ]


def test_the_minutes_of_the_instructors_page_are_the_chapters_own():
    found = [
        re.search(r"\*\*Minutes\.\*\* (\d+) .* about (\d+) more", cells(chapter)[0].source).groups()
        for chapter in CHAPTERS
    ]
    minutes, more = (sum(map(int, numbers)) for numbers in zip(*found, strict=True))
    text = (BOOK / "instructor-teach.md").read_text(encoding="utf-8")
    for said in (f"{minutes:,} for all chapters", f"of their problems, {more} more"):
        assert said in text, f"instructor-teach.md does not say {said!r}"


def test_the_opening_page_says_what_each_chapter_is_for():
    text = (BOOK / "intro.md").read_text(encoding="utf-8")
    named = re.findall(r"^- (?:In c|C)hapters? (\d+)(?: to (\d+))?", text, re.MULTILINE)
    told = {number for first, last in named for number in range(int(first), int(last or first) + 1)}
    assert told == {int(path.stem[:2]) for path in CHAPTERS}, "How the course is built, in intro.md"


def test_a_letter_of_the_table_of_letters_has_one_meaning():
    text = (BOOK / "what-a-network-computes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\$.+?\$) \| (.+) \|$", text, re.M)
    letters = [letter.strip() for cell, _ in rows for letter in cell.strip("$").split(",")]
    assert len(letters) >= 12 and len(set(letters)) == len(letters)
    used = set(re.findall(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])", " ".join(formulas())))
    assert used <= set(letters) | SAID_BESIDE, f"no row for {sorted(used - set(letters) - SAID_BESIDE)}"


def formulas():
    """All displayed formulas of the chapters, without their words."""
    found = (
        token.content for page in CHAPTERS for token in tokens(page) if token.type.startswith("math_block")
    )
    return [re.sub(r"\\text\{[^}]*\}|\\[a-z]+", " ", formula) for formula in found]


@each_page
def test_no_placeholder_reaches_a_reader(page):
    """Three words in capitals joined by hyphens, or something in double braces, wait to be filled in."""
    assert (
        re.findall(r"\b[A-Z]{2,}(?:-[A-Z]{2,}){2,}\b|\{\{.*?\}\}|\bTODO\b|\bTBD\b", page.read_text("utf-8"))
        == []
    )


@each_page
def test_a_list_ends_where_its_author_ended_it(page):
    """A paragraph right below an item would be read as part of it, and an answer "32." as item 32."""
    text = re.sub(r"(?ms)^`{3,}.*?^`{3,}$", "", page.read_text("utf-8"))
    item, other = r"(?:[-*]|\d+\.) ", r"(?!\s|:::|[-*] |\d+\. )"
    assert re.findall(rf"^{item}.*\n(?:  .*\n)*{other}(.+)", text, re.M) == []
    lists = [token for token in tokens(page) if token.type == "ordered_list_open"]
    assert [token.attrGet("start") for token in lists if token.attrGet("start")] == []


@pytest.mark.slow
def test_every_reference_can_be_followed():
    lost = [key for key, entry in bibliography().items() if not ({"url", "doi"} & set(entry.fields))]
    assert lost == []


def test_the_glossary_is_in_alphabetical_order_and_defines_each_term_once():
    assert glossary() == sorted(set(glossary()))


def test_the_book_is_spelt_correctly():
    pages = [str(path) for path in [*BOOK.glob("*.md"), BOOK / "references.bib"]]
    settings = BOOK.parent / "autograder" / "pyproject.toml"
    command = [sys.executable, "-m", "codespell_lib", "--toml", str(settings), *pages]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
