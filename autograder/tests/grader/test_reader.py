"""Nothing that a student wrote is parsed in the judge's process: a reader with limits does it, and what a
reader says, true or not, changes one submission.

A thread of the judge that is not heard for long is a neighbour who loses time: parsers hold the interpreter's
lock. So the tests here let one tick while hostile notebooks are graded.
"""

import ast
import contextlib
import json
import mmap
import random
import subprocess
import symtable
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from conftest import TESTS
from grading import answers, hand_in, make_course, notebook, one_course_version, own_cell
from grading import grading as made_grading
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.judge import reading
from autograder.judge.budget import Lost, UsedUp
from autograder.judge.judge import steps_of
from autograder.judge.process import NotStarted, Process
from autograder.judge.reading import read_submission, reader
from autograder.plugins import highlight_code, markdown2html, renders_quickly
from autograder.reader import contents
from autograder.reader.contents import MAX_CELLS, MAX_SOURCE, MAX_TEXT, cells_of
from autograder.reader.needed import cuda_cpp_in, idle_cells
from autograder.report.page import read_autograded
from autograder.sandbox import Unsafe
from autograder.sandbox.choose import NoSandbox, choose
from autograder.sandbox.launcher import StartError
from autograder.sandbox.messages import BadMessage, Contents, Examined, Unreadable, typed
from autograder.validate import Malformed, check_file

CORPUS = TESTS / "corpus"
PATIENCE = 1.0  # seconds of processor time without a tick; the parsers took 5 and more at one go
ROOM_MIB = 400  # that the judge may grow by, ten times what it needs; the parsers took 1,700 and more


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("reader") / "course")


@pytest.fixture(scope="module", params=["walls", pytest.param("none", marks=pytest.mark.full)])
def launcher(request):
    if request.param == "none":
        return Unsafe()
    try:
        return choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))


def as_bytes(document):
    return json.dumps(document).encode()


def read(data, assignment, launcher):
    with reader(launcher) as process:
        return read_submission(data, assignment, process)


class Told:
    """In place of a reader's process: it answers what the test says. An exception is raised."""

    def __init__(self, *answers):
        self.answers, self.asked, self.gone = list(answers), [], False

    def begin_step(self, seconds):
        assert 0 < seconds <= reading.LIMITS.step_seconds

    def ask(self, message, allowed):
        self.asked.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, allowed)
        try:
            return typed({"type": type(answer).__name__} | msgspec.structs.asdict(answer), allowed)
        except BadMessage as problem:
            raise Process.not_an_answer(problem) from None

    def let_go(self):
        self.gone = True


# what the reader finds


def test_a_given_cell_runs_only_if_its_names_are_used():
    cells = [
        ("imports", "import numpy as np\nfrom m import grade", True),
        ("helper", "SIDE = 4\ndef f(n):\n    return n * SIDE", True),
        ("demo", "y, x = 1, 2\nprint(x)", True),
        ("answer", "def g(x):\n    return np.zeros(f(x))", False),
        ("own", "print('mine')", False),
        ("star", "from math import *", True),
        ("broken", "def (", True),
    ]
    assert idle_cells(cells) == ["demo"]
    assert idle_cells([cell for cell in cells if cell[0] != "answer"]) == ["demo", "helper", "imports"]


def test_cpp_inside_python_is_found_as_the_compiler_gets_it():
    cell = 'NAME = "k"\nSOURCE = """\n__global__ void k() { printf("\\\\n"); }\n"""\nother = "__host__"\n'
    assert cuda_cpp_in(cell) == ['\n__global__ void k() { printf("\\n"); }\n']
    assert cuda_cpp_in("x = '__global__") == cuda_cpp_in("x = 1") == []


@pytest.mark.slow
def test_the_reader_gives_what_the_file_holds_in_every_mode(course, tmp_path, launcher):
    root, assignment = course
    document = notebook(assignment, **answers(root))
    document["cells"].insert(2, own_cell("unused = '\U0001f600 \u2028'\nK = '__global__ void k() {}'"))
    del document["cells"][-1]
    with pytest.raises(Malformed, match="missing-cell"):
        read(as_bytes(document), assignment, launcher)
    document["cells"].append(notebook(assignment)["cells"][-1])
    found = read(as_bytes(document), assignment, launcher)
    here = check_file(hand_in(tmp_path, "ada", document), assignment)
    assert (found.notebook, found.notes) == (here.notebook, here.notes)
    assert found.cuda_cpp == ("__global__ void k() {}",)
    demonstration = next(cell for cell in found.notebook["cells"] if "a demonstration" in cell["source"])
    assert found.idle == {demonstration["id"]}
    left = {step.id for step in steps_of(assignment, here)} - {
        step.id for step in steps_of(assignment, found)
    }
    assert left == {demonstration["id"]}


def test_a_file_that_is_no_notebook_is_refused_with_the_same_words_in_every_mode(course, tmp_path, launcher):
    for data in (b"[" * 100_000, b'{"a": "\\ud800"}'):
        with pytest.raises(Malformed) as here:
            check_file(hand_in(tmp_path, "ada", data), course[1])
        with pytest.raises(Malformed) as there:
            read(data, course[1], launcher)
        assert there.value.defects == here.value.defects


def test_all_cells_together_have_a_limit(course):
    document = notebook(course[1])
    document["cells"] += [own_cell("#" * MAX_SOURCE, f"m{number}") for number in range(5)]
    with pytest.raises(contents.NoNotebook) as caught:
        cells_of(as_bytes(document))
    assert caught.value.code == "long-text" and f"the limit is {MAX_TEXT:,}" in str(caught.value)
    del document["cells"][-1]
    assert len(cells_of(as_bytes(document))) == len(document["cells"])


# what a broken reader can say


def handed_in(assignment, **changes):
    """What an honest reader says of the released notebook, with a cell's fields changed, by grade id."""
    cells = cells_of(assignment.path.read_bytes())
    for cell in cells:
        cell.update(changes.get(cell["grade_id"], {}))
    return [dict(cell) for cell in cells]


@pytest.mark.parametrize(
    "forged",
    [
        {"source": 7},
        {"source": "x" * (MAX_SOURCE + 1)},
        {"id": "a b"},
        {"id": ["time_it"]},
        {"grade_id": ["time_it"]},
        {"grade_id": "x" * 200},
        {"cell_type": "test"},
        {"cell_type": ["code"]},
        {"about": None},
        {"about": {"grade": True}},
        {"about": {"grade": [1], "solution": True, "locked": True, "points": 1}},
        {"about": {"grade": True, "solution": True, "locked": True, "more": 1}},
    ],
)
def test_what_is_not_of_the_readers_types_is_refused(course, forged):
    process = Told(Contents(handed_in(course[1], time_it=forged)))
    with pytest.raises(Malformed, match="has no valid cells"):
        read_submission(b"{}", course[1], process)
    assert process.gone


def test_a_field_that_no_cell_has_is_left_out(course):
    process = Told(Contents(handed_in(course[1], time_it={"points": 100})), Examined([], []))
    found = read_submission(b"{}", course[1], process)
    assert found == read_submission(b"{}", course[1], Told(Contents(handed_in(course[1])), Examined([], [])))


def test_more_cells_or_text_than_a_notebook_has_are_refused(course):
    cells = handed_in(course[1])
    markdown = next(cell for cell in cells if cell["cell_type"] == "markdown")
    for many in (
        [*cells, *[markdown] * MAX_CELLS],
        [*cells, *[markdown | {"source": "x" * MAX_SOURCE}] * (MAX_TEXT // MAX_SOURCE)],
    ):
        with pytest.raises(Malformed, match="has no valid cells"):
            read_submission(b"{}", course[1], Told(Contents(many)))


def test_a_reader_that_lies_about_points_tests_and_idle_cells_changes_nothing_but_the_students_text(course):
    assignment = course[1]
    full = {"grade": True, "solution": True, "locked": True, "points": 1000}
    forged = handed_in(
        assignment,
        **{"launch_plan-test": {"source": "100", "about": full, "cell_type": "markdown"}},
        time_it={"source": "time_it = 1", "about": full, "id": "launch_plan-test"},
    )
    lies = Examined([cell["id"] for cell in forged] + ["launch_plan", "time_it"], [])
    found = read_submission(b"{}", assignment, Told(Contents(forged), lies))
    by_id = {cell["id"]: cell for cell in found.notebook["cells"]}
    for grade_id, spec in assignment.cells.items():
        assert by_id[grade_id]["metadata"] == spec.metadata
        assert by_id[grade_id]["cell_type"] == spec.cell_type
        if spec.kind == "grade":
            assert by_id[grade_id]["source"] == spec.source
    assert by_id["time_it"]["source"] == "time_it = 1"
    ids = [step.id for step in steps_of(assignment, found)]
    assert {"launch_plan", "time_it", "launch_plan-test", "time_it-test"} <= set(ids)
    given_text = {by_id[one]["source"].strip() for one in found.idle}
    assert given_text and given_text <= assignment.given()


def test_words_of_a_reader_steer_no_terminal_and_are_short(course):
    told = Told(Unreadable("\x1b[2J" + "c" * 500, "\x1b]0;title\x07\n\u202e" + "x" * 5000))
    with pytest.raises(Malformed) as caught:
        read_submission(b"{}", course[1], told)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


@pytest.mark.parametrize("texts", [["x", 7], ["x" * (MAX_SOURCE + 1)], [["x"]], [None]])
@pytest.mark.parametrize("idle", [[], [7], [["launch_plan"]]])
def test_forged_texts_of_cpp_are_dropped(course, texts, idle):
    found = read_submission(b"{}", course[1], Told(Contents(handed_in(course[1])), Examined(idle, texts)))
    assert found.cuda_cpp == () and found.idle == frozenset()


def test_where_the_reader_is_lost_over_the_code_every_cell_runs(course):
    found = read_submission(b"{}", course[1], Told(Contents(handed_in(course[1])), UsedUp("timeout", "15 s")))
    assert found.idle == frozenset() and found.cuda_cpp == ()
    assert len(steps_of(course[1], found)) == 6  # four code cells and two tasks


def test_where_it_is_lost_over_the_file_the_student_is_told_what_to_do(course):
    for lost in (UsedUp("timeout", "15 s"), Lost("crashed", "the process was killed (memory)")):
        with pytest.raises(Malformed, match="too-costly: .* cannot be read: .*; clear all outputs"):
            read_submission(b"{}", course[1], Told(lost))


@pytest.mark.parametrize("before", ["over the file", "over the code"])
def test_a_reader_that_gets_no_processor_is_the_machines_fault(course, before):
    told = [Contents(handed_in(course[1]))] if before == "over the code" else []
    with pytest.raises(NotStarted, match="60 s by the clock and less than 15 s of the processor"):
        read_submission(b"{}", course[1], Told(*told, Lost("timeout", "ran longer than the limit of 60 s")))


@pytest.mark.slow
def test_processor_time_ends_a_reader_and_the_clock_does_not(course, launcher, monkeypatch):
    if not launcher.isolation.startswith("sandboxed"):
        pytest.skip(f"needs a sandbox: {launcher.isolation}")
    data = giant(b"[],")
    monkeypatch.setattr(reading, "LIMITS", reading.replace(reading.LIMITS, processor_seconds=0.3))
    with pytest.raises(Malformed, match="it takes more than 0.3 s of processor time"):
        read(data, course[1], launcher)
    monkeypatch.setattr(reading, "LIMITS", reading.replace(reading.LIMITS, step_seconds=0.1))
    with pytest.raises(NotStarted, match="the machine has too much else to do"):
        read(data, course[1], launcher)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@settings(
    max_examples=300, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(seed=st.integers(0, 10**6), junk=st.lists(JSON, min_size=1, max_size=4), examined=st.lists(JSON))
def test_whatever_a_reader_says_the_graded_cells_are_the_released_ones(course, seed, junk, examined):
    dice, assignment = random.Random(seed), course[1]
    cells = handed_in(assignment)
    for value in junk:
        cell = dice.choice(cells)
        cell[dice.choice(sorted(cell))] = value
        if dice.random() < 0.2:
            cells.append(dict(cell))
    try:
        found = read_submission(b"{}", assignment, Told(Contents(cells), Examined(examined, examined)))
    except Malformed as malformed:
        assert malformed.defects and len(str(malformed)) < 3000
        return
    by_id = {cell["id"]: cell for cell in found.notebook["cells"]}
    assert all(by_id[key]["metadata"] == spec.metadata for key, spec in assignment.cells.items())
    assert all(
        by_id[key]["source"] == spec.source for key, spec in assignment.cells.items() if spec.kind == "grade"
    )
    assert {by_id[one]["source"].strip() for one in found.idle} <= assignment.given()


@pytest.mark.slow
def test_a_machine_that_starts_no_process_leaves_the_row_ungraded_with_the_reason(course, tmp_path):
    class Broken(Unsafe):
        def launch(self, *_):
            raise StartError("no more processes")

    hand_in(tmp_path / "submitted", "ada", notebook(course[1]))
    (row,) = made_grading(
        course[0], "ps01", tmp_path / "submitted", tmp_path / "out", seed=3, sandbox=Broken()
    ).rows()
    assert (row.status, row.score) == ("not graded", None)
    assert "the reader's process did not come up: no more processes" in row.reason
    with pytest.raises(NotStarted), reader(Broken()):
        pass


# hostile text, and whoever is graded beside it


def chain(size):
    """Python's parser joins the first two names, the first three, ...: the costs grow with the square."""
    return "import " + ("a." * size)[:size] + "a"


def f_string(size):
    """Until Python 3.12 each field of an f-string is looked for from the beginning of the line."""
    return "x = f'" + "{a}" * (size // 3) + "'"


def deep(document):
    """As many lists in one another as the JSON parser takes, in each cell's metadata."""
    for cell in document["cells"]:
        cell["metadata"] = cell["metadata"] | {"deep": json.loads("[" * 300 + "]" * 300)}


HOSTILE = {
    "chains": lambda: [chain(80_000), "x = 1"],
    "f_strings": lambda: [f_string(190_000), "x = 1"],
    "brackets": lambda: ["(" * 190_000, "-" * 150_000 + "1", "x" + ".x" * 50_000],
    "long_lines": lambda: ["x = [" + "1," * 90_000 + "]", "'" * 190_000],
    "comprehensions": lambda: ["[0 " + "for i in i " * 15_000 + "]", "lambda: " * 90 + "0"],
    "backticks": lambda: ["raise ValueError('`' * 5000)", "raise ValueError('1a' * 5000)"],
}


@contextlib.contextmanager
def ticking():
    """Yields [the longest time in which this process computed and one of its threads did not get to run].

    Of wall-clock and processor time the less, so that neither waiting nor a busy machine counts.
    """
    longest, stop = [0.0], threading.Event()

    def tick():
        last = time.monotonic(), time.process_time()
        while not stop.is_set():
            time.sleep(0.01)
            now = time.monotonic(), time.process_time()
            longest[0] = max(longest[0], min(now[0] - last[0], now[1] - last[1]))
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield longest
    finally:
        stop.set()
        thread.join()


def peak_mib():
    """The most memory that this process has had since the last clear_peak()."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@contextlib.contextmanager
def little_of_this_process():
    """What runs in here keeps no thread of this process for PATIENCE, and takes less than ROOM_MIB."""
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mib()
    with ticking() as longest:
        yield
    print(f"longest pause {longest[0]:.2f} s, {peak_mib() - before:.0f} MiB more")
    assert longest[0] < PATIENCE, "a thread stood still"
    assert peak_mib() - before < ROOM_MIB, "the judge grew"


@pytest.mark.full
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="nobody has looked how its parser joins names")
def test_the_same_code_read_in_this_process_stops_it_and_fills_its_memory():
    """What the tests below would miss if their clock or their scales were broken."""
    with pytest.raises(AssertionError, match="a thread stood still"), little_of_this_process():
        idle_cells([("c", chain(90_000), False)])
    with pytest.raises(AssertionError, match="the judge grew"), little_of_this_process():
        room = mmap.mmap(-1, ROOM_MIB << 21)  # malloc may still have what the parser gave back
        for page in range(0, len(room), mmap.PAGESIZE):
            room[page] = 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",  # one takes long, one ends the parser; in `make full` all
    [pytest.param(one, marks=() if one in ("chains", "brackets") else pytest.mark.full) for one in HOSTILE],
)
def test_hostile_code_costs_its_reader_and_no_neighbour(course, launcher, name, monkeypatch):
    root, assignment = course
    monkeypatch.setattr(reading, "LIMITS", reading.replace(reading.LIMITS, processor_seconds=2))
    document = notebook(assignment, **answers(root))
    document["cells"][1:1] = [own_cell(source, f"h{n}") for n, source in enumerate(HOSTILE[name]())]
    began = time.monotonic()
    with little_of_this_process():
        found = read(as_bytes(document), assignment, launcher)
    assert time.monotonic() - began < 60
    ids = [step.id for step in steps_of(assignment, found)]
    assert {"h0", "h1", "launch_plan", "time_it"} <= set(ids)


def giant(inside, size=19 << 20):
    """Nineteen MiB of small things, each of which takes many times its room once it is read."""
    return (
        b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {"a": ['
        + inside * (size // len(inside))
        + b"0]}}"
    )


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("inside", [b"[],", b'{"":0},', b"[[]],", b'"",', b"1e9,"], ids=repr)
def test_giant_json_costs_its_reader_and_no_neighbour(course, launcher, inside, monkeypatch):
    less = reading.replace(reading.LIMITS, processor_seconds=3, memory_mib=900)
    monkeypatch.setattr(reading, "LIMITS", less)
    data = giant(inside)
    with little_of_this_process(), pytest.raises(Malformed) as caught:
        read(data, course[1], launcher)
    codes = {defect.code for defect in caught.value.defects}
    assert codes == {"too-costly"} or "missing-cell" in codes  # it was read, or it was not


@pytest.mark.slow
def test_deep_metadata_in_every_cell_is_read_or_refused(course, launcher):
    document = notebook(course[1], **answers(course[0]))
    deep(document)
    assert read(as_bytes(document), course[1], launcher).notes == ()


@pytest.mark.parametrize(
    "render, source",
    [
        (markdown2html, "# a" + " " * 190_000 + "b"),
        (markdown2html, ("# a" + " " * 1_990 + "b\n") * 90),
        (markdown2html, "\\begin{a}\n" * 20_000),
        (markdown2html, ("# a" + " " * 1_990 + "b\n") * 5),
        (markdown2html, "\\begin{a}\n" * 999),
        (highlight_code, "a." * 95_000),
        (highlight_code, ("a." * 999 + "\n") * 90),
        (highlight_code, ("a." * 999 + "\n") * 5),
    ],
)
def test_formgrader_renders_no_text_for_minutes(render, source):
    began = time.process_time()
    assert "<script" not in render(source + "<script>")
    assert time.process_time() - began < 5


def test_formgrader_renders_what_people_write(root):
    assert "<h1>a</h1>" in markdown2html("# a\n" + "A sentence of an answer. " * 40)
    assert '<span class="k">def</span>' in highlight_code("def f():\n    return 1\n")
    for path in (root / "exercises").glob("*/*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            assert renders_quickly("".join(cell["source"])), path


MARK = "a_word_of_the_students"
WATCHED = []


def listen(event, arguments):
    """An audit hook; Python keeps it for good, so that it does nothing where nobody watches."""
    if WATCHED and event == "compile" and arguments[0] is not None:
        WATCHED.append(arguments[0])


@contextlib.contextmanager
def watching():
    """Yields a function that tells which texts with MARK in them this process has compiled since."""
    sys.addaudithook(listen)
    WATCHED.append("begin")

    def seen():
        texts = (text.decode() if isinstance(text, bytes) else str(text) for text in list(WATCHED))
        return [text for text in texts if MARK in text]

    try:
        yield seen
    finally:
        WATCHED.clear()


@pytest.mark.slow
@one_course_version()
def test_no_text_of_a_students_is_compiled_in_the_judges_process(course, tmp_path, monkeypatch):
    for module, function in ((symtable, "symtable"), (contents, "parse"), (contents, "cells_of")):
        monkeypatch.setattr(module, function, lambda *_, **__: WATCHED.append(MARK))
    source = f'{MARK} = """__global__ void {MARK}() {{}}"""\n' + answers(course[0])["launch_plan"]
    hand_in(tmp_path / "submitted", "ada", notebook(course[1], launch_plan=source))
    with watching() as seen:
        ast.parse(f"{MARK} = 1")
        exec(f"{MARK} = 1", {})
        assert seen() == [f"{MARK} = 1"] * 2, "it hears what is compiled"
    with watching() as seen:
        for fresh in (True, False):
            grading = made_grading(
                course[0], "ps01", tmp_path / "submitted", tmp_path / "out", seed=3, sandbox=Unsafe()
            )
            (row,) = grading.rows()
            assert (row.score, row.fresh) == (15, fresh)
        assert seen() == []


@pytest.mark.slow
@one_course_version()
def test_an_unchanged_submission_is_not_read_again_and_its_page_stays_as_it_is(course, tmp_path):
    class Counted(Unsafe):
        roles = []

        def launch(self, role, *rest):
            self.roles.append(role)
            return super().launch(role, *rest)

    submitted, out = tmp_path / "submitted", tmp_path / "out"
    hand_in(submitted, "ada", notebook(course[1], **answers(course[0])))
    hand_in(submitted, "bob", b"{")

    def run():
        grading = made_grading(course[0], "ps01", submitted, out, seed=3, sandbox=Counted())
        return {row.student: row for row in grading.rows()}

    first = run()
    assert sorted(Counted.roles) == ["reader", "reader", "student"]
    page = out / "feedback/ada/ps01/ps01_tiny.html"
    told = page.read_text()
    assert "secret_columns" in told
    written = page.stat().st_mtime_ns
    again = run()
    assert page.read_text() == told and page.stat().st_mtime_ns == written and len(Counted.roles) == 3
    assert [row.fresh for row in again.values()] == [False, False]
    assert {key: row.score for key, row in again.items()} == {key: row.score for key, row in first.items()}
    (out / "autograded/ada/ps01/ps01_tiny.ipynb").write_text("{")
    assert run()["ada"].fresh


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "7", '{"cells": 7}', '{"cells": [{"source": 7}]}', '{"cells": [7]}']
)
def test_a_damaged_autograded_notebook_counts_as_none(tmp_path, damage):
    assert read_autograded(tmp_path / "none.ipynb") is None
    (tmp_path / "some.ipynb").write_text(damage)
    assert read_autograded(tmp_path / "some.ipynb") is None


def test_the_readers_limits_leave_room_for_an_honest_notebook_of_twenty_mebibytes(course, launcher):
    document = notebook(course[1], **answers(course[0]))
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 1_900_000}, "metadata": {}}
    document["cells"][1]["outputs"] = [picture] * 10
    data = as_bytes(document)
    assert len(data) > 19e6
    found = read(data, course[1], launcher)
    assert found.notes == () and asdict(reading.LIMITS)["memory_mib"] <= 2048


@pytest.mark.slow
def test_the_readers_warm_parent_has_imported_no_compiler_which_each_fork_would_copy():
    code = (
        "import sys; from autograder.sandbox.zygote import warm_up; "
        "print(warm_up(['reader']), {'numba', 'warplab', 'numpy.random'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "{} set()\n"
