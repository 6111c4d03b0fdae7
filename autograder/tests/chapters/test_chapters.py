"""The book's prose keeps its promises: form, length, terms, sources, spelling, and the
counts that it predicts.
"""

import ast
import re
import statistics
import subprocess
import sys
from functools import cache

import numpy as np
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
FIELD = """1F1B; all-to-all; AWQ; block scaling; compute-bound; context parallelism; continuous batching;
cp.async; embedding; expert parallelism; GPTQ; grouped-query attention; KV cache; latency-bound; logits;
memory-bound; mixture of experts; MXFP8; NVFP4; offload; overhead-bound; paged attention; prefix cache; RDMA;
special-function unit; speculative decoding; straggler; Tensor Memory; thread-block cluster;
time to first token; TMA; warp-group MMA""".replace("\n", " ").split("; ")  # what readers look up
# Letters explained beside their one formula: C, A, i, j, k of a product; speeds S and P, buffers S; training
# tokens D; coordinates x, y, z of the moon; the interval T of chapter 11; R, f and w of chapter 10
SAID_BESIDE = set("CAijkSPDxyzTRfw")
PICTURES = ("short of door", "short of students", "corridor")  # pictures that once stood for a term
FILLER = (
    "in this chapter we",
    "in this section we",
    "we will explore",
    "important to note",
    "worth noting",
    "powerful",
    "seamless",
    "revolutioni",
    "delve",
    "cutting-edge",
    "game-chang",
    "unlock the",
    "harness the",
    "in today's",
    "needless to say",
    "simply put",
)

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
def test_no_code_cell_is_longer_than_a_screen(chapter):
    long = [cell.source.splitlines()[0] for cell in code_cells(chapter) if length(cell) > LONGEST_CELL]
    assert not long, f"cells of more than {LONGEST_CELL} lines begin with {long}"


@each_chapter
def test_the_usual_code_cell_is_short(chapter):
    lengths = [length(cell) for cell in code_cells(chapter)]
    assert statistics.median(lengths) <= MEDIAN_CELL, sorted(lengths)


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


@each_chapter
def test_a_chapter_opens_with_questions_aims_and_minutes(chapter):
    opening = cells(chapter)[0].source
    missing = [label for label in ("Questions", "You will be able to", "Minutes") if label not in opening]
    assert not missing


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
    assert [int(minutes) for minutes in said.groups()] == pytest.approx(minutes_of(chapter), rel=0.1, abs=5)


@each_chapter
def test_a_chapter_has_the_sections_of_the_house_form(chapter):
    wanted = ["Measure it", "In short", "Quiz", "Where to read more"]
    if chapter.stem not in WITHOUT_PROBLEM_SET:
        wanted.append("Problem set")
    found = headings(chapter)
    missing = [name for name in wanted if not any(name in heading for heading in found)]
    assert not missing, f"without a set a chapter stands in WITHOUT_PROBLEM_SET; no heading has {missing}"


@each_chapter
def test_popular_mistakes_are_answered_in_careful_boxes(chapter):
    boxes = [token for token in directives(chapter, "admonition") if "Careful" in token.info]
    assert boxes


@each_chapter
def test_the_quiz_has_five_questions_with_reasoned_hidden_answers(chapter):
    answers = [len(token.content.split()) for token in directives(chapter, "dropdown")]
    assert len(answers) >= 5
    assert min(answers) >= 15, "an answer says why, not only what"


@each_chapter
def test_a_chapter_has_three_figures_drawn_by_code(chapter):
    drawn = [cell for cell in code_cells(chapter) if is_figure(cell) or "figure." in cell.source]
    assert len(drawn) >= 3


@each_chapter
def test_the_title_has_the_number_of_the_file(chapter):
    assert headings(chapter)[0].startswith(f"{int(chapter.stem[:2])}. ")


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


def test_the_numbers_in_the_preface():
    from warplab.hardware import specs

    h100 = specs.get("h100-sxm")
    a_line_a_second = 1_000_000 * 366 * 86_400  # multiplications written down in a million years
    assert h100["peak_fp32"].si / 2 > a_line_a_second and h100["peak_bf16"].si / 2 > a_line_a_second
    assert 270 < h100["peak_bf16"].si / h100["memory_bandwidth"].si < 300  # "almost three hundred"
    assert round(h100["peak_fp32"].si / h100["memory_bandwidth"].si) == 20


@each_page
def test_every_term_is_in_the_glossary(page):
    named = {re.sub(r".*<(.+)>$", r"\1", role).strip().lower() for role in roles(page, "term")}
    assert named - set(glossary()) == set()


@pytest.mark.parametrize("word", FIELD)
def test_a_word_of_the_field_is_taught_in_a_chapter_and_stands_in_the_glossary(word):
    assert word.lower() in glossary()
    taught = [
        page.stem for page in CHAPTERS + [BOOK / "what-a-network-computes.md"] if word.lower() in linked(page)
    ]
    assert taught, f"no chapter links {word} to the glossary"


def linked(page):
    """The terms that a page links to the glossary."""
    return {re.sub(r".*<(.+)>$", r"\1", role, flags=re.S).strip().lower() for role in roles(page, "term")}


@each_page
def test_a_picture_does_not_stand_where_the_field_has_a_term(page):
    text = " ".join(page.read_text(encoding="utf-8").lower().split())
    assert [picture for picture in PICTURES if picture in text] == []


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
def test_every_citation_is_in_the_bibliography(page):
    cited = roles(page, "cite", "cite:t", "cite:p", "cite:ts", "cite:ps")
    keys = {key.strip() for role in cited for key in role.split(",")}
    assert keys - set(bibliography()) == set()


@each_page
def test_a_page_says_it_without_filler(page):
    text = prose(page).lower()
    assert [phrase for phrase in FILLER if phrase in text] == []


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


def test_the_share_of_the_peak_that_chapter_04_quotes_follows_from_the_speed_that_it_cites():
    from warplab.hardware import specs

    assert 797.8e12 / specs.get("h100-sxm")["peak_bf16"].si == pytest.approx(0.8, abs=0.01)  # fastcu2024


@pytest.mark.slow
def test_products_are_more_than_99_percent_of_both_models_and_90_at_ten_times_the_price():
    """The cells of "Three disguises", run with the chart's data caught in place of the chart."""
    caught, space = {}, {}
    silent = {name: lambda *_: None for name in ("im2col", "transformer_block")}
    space["disguises"] = space["network"] = type("Chart", (), silent | {"shares": caught.update})
    page = [cell.source for cell in code_cells(BOOK / "04-matmul.md")]
    first = next(i for i, source in enumerate(page) if source.startswith("import torch\n"))
    drawn = next(i for i, source in enumerate(page) if "disguises.shares(" in source)
    for source in page[first : drawn + 1]:
        exec(compile(source, "04-matmul.md", "exec"), space)
    assert list(caught) == ["transformer", "CNN"]
    for work in caught.values():
        rest = work["everything else"]
        products = sum(work.values()) - rest
        assert products / (products + rest) > 0.99
        assert products / (products + 10 * rest) > 0.90


@pytest.fixture(scope="module")
def matmul():
    """The kernels that chapter 04 shows, taken from its own cells."""
    import warplab
    from warplab.figures import kernels

    space = {"np": np, "warplab": warplab, "kernels": kernels, "matmul_tiled": kernels.tiled(16)}
    needed = ("from numba import cuda", "@cuda.jit\n", "@cuda.jit(device=True)")
    for cell in code_cells(BOOK / "04-matmul.md"):
        if cell.source.startswith(needed) or needed[0] in cell.source:
            exec(compile(cell.source, "04-matmul.md", "exec"), space)
    return space


@pytest.fixture(scope="module")
def square():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2)] + [
        np.zeros((64, 64), np.float32)
    ]


# one block is enough to count, and a kernel taken from a page has no source file
quiet = pytest.mark.filterwarnings("ignore:Grid size", "ignore:Could not find source")


@quiet
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "grid", "block", "requests", "sectors", "shared"),
    [  # 64 x 64 x 64: 128 warps of outputs, 64 steps
        ("matmul_naive", (4, 4), (16, 16), 128 * 64 * 2, 128 * 64 * (2 + 2), 0),
        ("matmul_naive", (2, 2), (32, 32), 128 * 64 * 2, 128 * 64 * (1 + 4), 0),
        ("matmul_tiled", (4, 4), (16, 16), 128 * 4 * 2, 128 * 4 * (4 + 4), 128 * 64 * 2),
        ("matmul_register_tiled", (1, 1), (16, 16), 8 * 4 * 8, 8 * 4 * 8 * 4, 8 * 64 * 8),
    ],
)
def test_the_counts_derived_in_chapter_04_are_the_engines(
    matmul, square, kernel, grid, block, requests, sectors, shared
):
    a, b, c = square
    p = matmul["warplab"].profile(matmul[kernel][grid, block], a, b, c)
    counted = (p.global_load.requests, p.global_load.sectors, p.shared_load.requests)
    assert counted == (requests, sectors, shared)
    assert p.flops == 2 * 64**3
    assert p.shared_load.bank_conflicts == 0 and p.spill_bytes == 0
    np.testing.assert_allclose(c, a @ b, rtol=0, atol=64 * 1e-6)


@quiet
@pytest.mark.slow
def test_a_bare_zero_makes_three_64_bit_instructions_of_one_fma_as_the_box_says(matmul):
    import numba

    lists = (numba.float32[:, ::1],) * 3
    bare = variant(matmul, "matmul_naive", "np.float32(0)", "0.0")
    good = matmul["matmul_naive"].py_func
    ptx = [matmul["cuda"].compile_ptx(kernel, lists, cc=(9, 0))[0] for kernel in (good, bare)]
    assert "fma.rn.f32" in ptx[0] and "f64" not in ptx[0]
    assert all(name in ptx[1] for name in ("mul.f32", "cvt.f64.f32", "add.f64")) and "fma" not in ptx[1]


@quiet
@pytest.mark.slow
def test_swapped_indices_touch_33_sectors_a_step_as_quiz_2_says(matmul, square):
    swapped = matmul["cuda"].jit(
        variant(matmul, "matmul_naive", "col, row = cuda.grid(2)", "row, col = cuda.grid(2)")
    )
    p = matmul["warplab"].profile(swapped[(2, 2), (32, 32)], *square)
    assert p.global_load.sectors == 128 * 64 * 33
    assert p.global_store.sectors == 128 * 32


@quiet
@pytest.mark.slow
def test_a_padded_tile_removes_the_conflicts_of_quiz_5(matmul, square):
    before = matmul["warplab"].profile(matmul["matmul_register_tiled"][(1, 1), (16, 16)], *square)
    padded = matmul["cuda"].jit(variant(matmul, "matmul_register_tiled", "(16, 64)", "(16, 80)"))
    after = matmul["warplab"].profile(padded[(1, 1), (16, 16)], *square)
    assert (before.shared_store.bank_conflicts, after.shared_store.bank_conflicts) == (8 * 4 * 4, 0)


def variant(space, name, old, new):
    """The Python function `name` of chapter 04 with `old` replaced by `new`."""
    source = next(cell.source for cell in code_cells(BOOK / "04-matmul.md") if f"def {name}(" in cell.source)
    assert old in source
    changed = dict(space)
    exec(compile(source.replace(old, new).replace("@cuda.jit\n", ""), "04-matmul.md", "exec"), changed)
    return changed[name]
