"""Similar answers: copies in disguise are found, answers written apart are not; the threshold is measured."""

import ast
import builtins
import itertools
import math
import re
import statistics
import time
from functools import cache

import pytest
import yaml
from corpus_files import CORPUS, cells_for
from grading import answers, command, enter, make_course, notebook, own_cell

from autograder.layout import load_assignment
from autograder.similar import groups, similar_answers, threshold
from autograder.similar.compared import OWN_CELLS, given_in, write_page
from autograder.similar.pairs import LEAST, MEASURED, Pair, own_shingles, pairs, similarity
from autograder.similar.tokens import LENGTH, lines_of, shingles, tokens

TASKS = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.glob("ps*/*") if path.is_dir())


def words(source):
    return [token for token, _ in tokens(source)]


def test_names_numbers_comments_and_layout_do_not_count():
    first = "total = 0\nfor i in range(n):  # all of them\n    total += a.sum()\n"
    second = "s=7\n# none\nfor   k in range( count ):\n\n\ts += b.sum( )"
    assert words(first) == words(second)
    assert words(first)[-8:] == ["name", "+", "=", "name", ".", "sum", "(", ")"]


def test_what_a_name_is_asked_for_and_the_languages_own_words_count():
    assert words("cuda.grid(1)") == ["name", ".", "grid", "(", "number", ")"]
    assert words("cuda.grid(1)") != words("cuda.gridsize(1)") and words("while x:") != words("if x:")


def test_a_kernel_in_a_string_is_read_as_cuda_cpp_and_a_docstring_is_left_out():
    text = 'def f():\n    """Adds."""\nsource = r"""\n__global__ void f() { int i = 0; } // end\n"""'
    assert words(text) == ["def", "name", "(", ")", ":", "name", "=", *words_of_cpp()]


def words_of_cpp():
    return ["__global__", "void", "name", "(", ")", "{", "int", "name", "=", "number", ";", "}"]


def test_what_is_left_open_ends_with_the_text_and_takes_no_time():
    start = time.process_time()
    for text in (
        '\\"' * 100_000,
        "'a\\\"" * 50_000,
        '"""' + "'" * 3,
        "/*" * 100_000,
        '"' * 100_000,
        "'''" + "a " * 100_000,
        "__global__ '''/*" * 9_000,
    ):
        assert len(tokens(text)) <= 2 * len(text)
        assert time.process_time() - start < 20  # a search from each quote to the line's end takes minutes


def test_two_programs_share_what_both_have():
    # nine tokens: two runs of eight each, the first alike
    one, other = "a + b - c * d / e", "a + b - c * d / 7"
    assert shingles(one).total() == shingles(other).total() == 10 - LENGTH
    assert similarity(shingles(one), shingles(other)) == 0.5
    assert similarity(shingles(""), shingles("")) == 0.0


@cache
def measured_parts():
    """{task: (what was given, {answer: text})} of the corpus."""
    found = {}
    for task in TASKS:
        root = CORPUS.parents[2]
        assignment = load_assignment(root, task.split("/")[0])
        reference = cells_for(task)[-1].replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "")
        written = {path.stem: path.read_text() for path in (CORPUS / task).glob("correct_*.py")}
        cell = next(
            (
                name
                for name, spec in assignment.cells.items()
                if name == task.split("/")[1] and spec.kind == "solution"
            ),
            None,
        )
        found[task] = (given_in(assignment, cell) if cell else "", {"reference": reference} | written)
    return found


def measured_again():
    """measured.yml as this machine measures it, but for the threshold."""
    apart, copied, edited = [], [], []
    for task, (given, texts) in measured_parts().items():
        kept = {name: own_shingles(text, given) for name, text in texts.items()}
        kept = {name: found for name, found in kept.items() if found.total() >= LEAST}
        apart += [
            (round(similarity(kept[a], kept[b]), 2), f"{task}, {a} and {b}")
            for a, b in itertools.combinations(sorted(kept), 2)
        ]
        if "reference" in kept:
            reference = texts["reference"]
            copied.append(round(similarity(kept["reference"], own_shingles(disguised(reference), given)), 2))
            edited.append(
                round(similarity(kept["reference"], own_shingles(padded(disguised(reference)), given)), 2)
            )
    highest, of = max(apart)
    return {
        "independent": {
            "pairs": len(apart),
            "highest": highest,
            "of": of,
            "median": round(statistics.median(alike for alike, _ in apart), 2),
        },
        "copies": {"answers": len(copied), "lowest": min(copied)},
        "edited": {"lowest": min(edited), "found": sum(alike >= threshold() for alike in edited)},
    }


def disguised(source):
    """The same program with its own names changed, its comments moved and its layout redone."""
    tree = ast.parse(source)
    kept = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    bound = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound -= kept | set(dir(builtins))
    new = {name: f"z{number}" for number, name in enumerate(sorted(bound))}
    text = re.sub(r"(?<![.\w])[^\W\d]\w*(?!\w)", lambda match: new.get(match[0], match[0]), source)
    lines = [
        line.rstrip() + "   # changed" if line.strip() and odd_quotes(text) is False else line
        for line in text.split("\n")
    ]
    return "\n\n".join(lines) if not odd_quotes(text) else text.replace("    ", "  ")


def odd_quotes(text):
    return '"""' in text or "'''" in text or "\\\n" in text


def padded(source):
    """The same with a statement that does nothing after each eighth line of code, where one may stand."""
    found, since = [], 0
    for line in source.split("\n"):
        found.append(line)
        since += bool(line.strip()) and not line.strip().startswith("#")
        code = line.split("#")[0].rstrip()
        if since >= 7 and code.endswith(")") and code.count("(") == code.count(")"):
            found.append(f"{' ' * (len(line) - len(line.lstrip()))}unused = 0")
            since = 0
    return "\n".join(found)


@pytest.mark.slow
def test_the_threshold_lies_above_all_answers_written_apart_and_below_all_copies():
    recorded = yaml.safe_load(MEASURED.read_text())
    again = measured_again()
    assert {name: recorded[name] for name in again} == again, f"write this into measured.yml: {again}"
    assert recorded["threshold"] == math.ceil(round(20 * (again["independent"]["highest"] + 0.05), 6)) / 20
    assert again["independent"]["highest"] < recorded["threshold"] < again["copies"]["lowest"]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A graded class of ps04, as far as similarity needs it: five answers to matmul_tiled."""
    root = CORPUS.parents[2]
    assignment = load_assignment(root, "ps04")
    _, texts = measured_parts()["ps04/matmul_tiled"]
    handed = {
        "ada": texts["reference"],
        "bob": disguised(texts["reference"]),
        "cy": texts["correct_double_buffer"],
        "dan": texts["correct_wide_steps"],
        "<b>eve</b>": assignment.cells["matmul_tiled"].source,
    }
    grades = tmp_path_factory.mktemp("similar")
    for student, text in handed.items():
        enter(grades, student, assignment, notebook(assignment, matmul_tiled=text))
    return assignment, grades


def test_a_disguised_copy_is_found_and_nobody_else(course):
    found = similar_answers(*course)
    assert [(one.cell, one.first, one.second, one.similarity) for one in found] == [
        ("matmul_tiled", "ada", "bob", 1.0)
    ]


def test_a_copy_hides_neither_in_a_further_cell_nor_in_a_text_that_is_executed(tmp_path):
    assignment = load_assignment(CORPUS.parents[2], "ps04")
    _, texts = measured_parts()["ps04/matmul_tiled"]
    kernel = texts["reference"]
    for student, text in {
        "ada": kernel,
        "bob": disguised(kernel),
        "cy": f"source = '''\n{kernel}'''\nexec(source)",
        "dan": assignment.cells["matmul_tiled"].source,
        "eve": "",
    }.items():
        document = notebook(assignment, matmul_tiled="matmul_tiled = matmul")
        document["cells"].insert(3, own_cell(text, "s-1"))
        enter(tmp_path, student, assignment, document)
    found = similar_answers(assignment, tmp_path)
    assert {one.cell for one in found} == {OWN_CELLS}
    assert [(one.first, one.second) for one in found] == [("ada", "bob"), ("ada", "cy"), ("bob", "cy")]
    write_page(assignment, tmp_path, found, tmp_path / "p.html")
    assert 'class="both"' in (tmp_path / "p.html").read_text()


def test_copies_of_one_answer_are_one_group_also_over_a_third_student():
    linked = [
        ("f", "ada", "bob", 0.9),
        ("g", "dan", "eve", 1.0),
        ("f", "cyd", "dan", 0.86),
        ("g", "bob", "fay", 0.88),
    ]
    found = groups(Pair(*one, None) for one in [*linked, ("f", "fay", "ada", 0.95)])
    assert [one.students for one in found] == [("cyd", "dan", "eve"), ("ada", "bob", "fay")]
    assert found[1].cells == {"f": 2, "g": 1} and [one.most for one in found] == [1.0, 0.95]


def test_untouched_stubs_are_nobodys_work():
    stub = "def f(a, b):\n" + "    a[b + 1] = b * a[0] - 7\n" * 20
    assert not list(pairs("f", {"ada": stub, "bob": stub}, stub, 0.5))


def test_in_a_class_of_six_it_is_told_how_much_of_a_pair_everybody_has():
    usual = "\n".join(f"x = a.f{number}(b) + c" for number in range(20))
    own_way = "\n".join(f"y = a.g{number}(b) * c" for number in range(20))
    class_ = {f"s{number}": usual for number in range(6)} | {"t1": own_way, "t2": own_way}
    found = {(one.first, one.second): one.common for one in pairs("f", class_, "", 0.9)}
    assert found["s0", "s1"] == 1.0 and found["t1", "t2"] == 0.0
    (pair,) = pairs("f", {"ada": own_way, "bob": own_way}, "", 0.9)
    assert pair.common is None


def test_the_page_marks_what_both_have_and_escapes_what_they_wrote(course, tmp_path):
    assignment, grades = course
    write_page(assignment, grades, similar_answers(assignment, grades, 0.0), tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert 'class="both"' in page and "<script" not in page and "http" not in page.split("</head>")[1]
    assert "<b>eve" not in page


@pytest.mark.slow
def test_on_a_phone_no_table_of_the_page_is_cut(course, tmp_path, browser):
    assignment, grades = course
    write_page(assignment, grades, similar_answers(assignment, grades, 0.0), tmp_path / "p.html")
    shown = browser.new_page(viewport={"width": 390, "height": 844})
    shown.goto((tmp_path / "p.html").as_uri())
    cut = "[...document.querySelectorAll('.table')].filter(t => t.scrollWidth > t.clientWidth + 1).length"
    assert shown.locator(".table").count() == 2 and shown.evaluate(cut) == 0
    shown.close()


@pytest.mark.slow
def test_ten_friends_with_endless_answers_make_no_endless_page(tmp_path):
    assignment = load_assignment(CORPUS.parents[2], "ps04")
    shared = "\n".join(f"x = a.f{number}(b) + c" for number in range(20)) + "\n" * 190_000
    for number in range(4):
        enter(tmp_path, f"s{number}", assignment, notebook(assignment, matmul_tiled=shared))
    found = similar_answers(assignment, tmp_path)
    assert len(found) == 6
    write_page(assignment, tmp_path, found, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert len(page) < 1_000_000 and page.count("... and 188,020 more lines") == 12


def test_shared_lines_are_found_in_both_texts():
    shared = "x = a.one(b) + c.two(d)"
    text = f"first = 1\n{shared}\nlast = 2"
    assert lines_of(text, set(shingles(shared))) == {1}


def test_the_command_tells_the_pairs_and_ends_well_without_any(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    text = "def launch_plan(width, height, block):\n" + "    a[b] = width * height - block[0]\n" * 12
    for student in ("ada", "bob"):
        document = notebook(assignment, launch_plan=text, time_it=answers(root)["time_it"])
        enter(root / "grades", student, assignment, document)
    status, told, _ = command(root, "similar", "ps01")
    assert status == 0 and "100 %" in told and (root / "grades" / "similar" / "ps01.html").exists()
    status, _, told = command(root, "similar", "ps01", "--grades", "nowhere")
    assert status == 2 and "nothing is graded for ps01 in nowhere" in told
