"""What may stand in a folder of submissions besides notebooks: names that cannot be shown, files that cannot
be read, times that are none. Each is one row with a reason, and no other row moves.

No process is started here: reading and judging are replaced, and everything around them is real.
"""

import contextlib
import csv
import ctypes
import io
import json
import os
import random
import re
import shutil
import socket
from pathlib import Path

import pytest
from grading import answers, judged_here, make_course, notebook
from grading import grading as made_grading
from hypothesis import example, given
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from rich.console import Console

from autograder import grade
from autograder.class_report.overview import _flags
from autograder.csv_tables import guard
from autograder.discover import MAX_ID, MAX_ID_BYTES, find_submissions, student_id, written_out
from autograder.grade import Row
from autograder.gradebook import CourseGradebook
from autograder.layout import load_assignment
from autograder.lookalikes import told_apart
from autograder.report import page
from autograder.results import Results
from autograder.sandbox import Unsafe
from autograder.show import grades_table
from autograder.validate import Malformed, read_bytes
from autograder.workers import machine_judge

HONEST = ("ada", "zed")
PIECES = [
    *"ada ben =cmd() +1 -x @y ' '' \" , ; ;=cmd() |\"@y <script> &amp; %s".split(),
    *("{{ x }}", "\t", "\r", "\n", "\x1b[2J", "\x1b]0;title\x07", "\x7f", "\x85", "\u202e", "\u2066"),
    *("\u200b", "\ufeff", *"~ ~~ ~x1b ~u00001b ~# \\ .. $(id) `id` * [ : |".split(), " ", "\u2028"),
    *("\U0001f98a", "\u00e9", "e\u0301", "\u0410da", "\uff1dcmd", "\U000e0041", "a" * 90, "\U0001f98a" * 30),
    *(b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf0\x9f"),
]
TIMES = [
    *("2001-01-01 12:00:00 ..", "12h20010101120000 x /etc/passwd", "2001-01-01 12:00:00 UTC", "", "\x00"),
    *("9" * 70, "2001-01-01 12:00:00 /dev/zero", "0001-01-01 00:00 +23:59", "9999-12-31 23:59 -2359"),
    *("2026-02-30 10:00", "\u0662026-01-01 10:00", "tomorrow", "2026-01-01T10:00:00Z\nx", b"\xff\xfe"),
    "1" * 10**6,
]
DOCUMENTS = [
    *({"worksheets": [], "nbformat": 4}, {"cells": {}, "nbformat": 4}, {"cells": [], "nbformat": 10**400}),
    *([], "", "{", "[" * 10**5, b"\xff\xfe\x00", "null"),
    '{"cells": [{}], "nbformat": 4, "nbformat_minor": 5}',
]
KINDS = (
    *("honest",) * 3,
    *("document", "nothing", "other names", "folder", "pipe", "socket", "loop", "zeros", "neighbours"),
    *("closed file", "closed folder", "closed inner folder", "file as folder", "folder that is up", "bytes"),
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    with judged_here():
        root, assignment = make_course(tmp_path_factory.mktemp("folders") / "course")
        CourseGradebook(root / "empty").__exit__()  # made once: it takes seconds
        yield root, json.dumps(notebook(assignment, **answers(root)))


@contextlib.contextmanager
def without_roots_eyes():
    """Root opens what its mode closes; here it gives that up (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, data) == 0
    kept = data[0]
    data[0] = kept & ~0b110
    assert libc.capset(header, data) == 0
    try:
        yield
    finally:
        data[0] = kept
        assert libc.capset(header, data) == 0


def name_of(chance):
    pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 4))]
    name = b"".join(piece if type(piece) is bytes else piece.encode() for piece in pieces)[
        : chance.choice((60, 255))
    ]
    return os.fsdecode(name)


def put(path, what):
    path.write_bytes(what if type(what) is bytes else what.encode())


def fill(home, kind, right, chance):
    """Something of a kind where a notebook should be, and something where a time should be."""
    inner = home / "ps01" if chance.random() < 0.5 else home
    inner.mkdir(parents=True, exist_ok=True)
    file = inner / "ps01_tiny.ipynb"
    stamp = inner / "timestamp.txt"
    what = chance.choice(("text", "text", "text", "none", "pipe", "folder", "link", "zeros"))
    if what == "text":
        put(stamp, chance.choice(TIMES))
    elif what == "pipe":
        os.mkfifo(stamp)
    elif what == "folder":
        stamp.mkdir()
    elif what != "none":
        stamp.symlink_to("/dev/zero" if what == "zeros" else "/etc/passwd")
    if kind in ("honest", "closed file", "closed folder", "closed inner folder"):
        put(file, right)
    elif kind == "document":
        document = chance.choice(DOCUMENTS)
        put(file, document if type(document) in (str, bytes) else json.dumps(document))
    elif kind == "bytes":
        put(file, chance.randbytes(200))
    elif kind == "other names":
        for _ in range(3):
            with contextlib.suppress(OSError):
                put(inner / f"{name_of(chance)[:40]}.ipynb", right)
    elif kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(inner)  # a socket's path has 107 bytes at most
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as door:
            door.bind(file.name)
        os.chdir(here)
    elif kind == "loop":
        file.symlink_to(file.name)
    elif kind == "zeros":
        file.symlink_to("/dev/zero")
    elif kind == "neighbours":
        file.symlink_to(Path("/", *home.parts[1:-1], "ada", "ps01_tiny.ipynb"))
    elif kind == "file as folder":
        put(home / "x", right)
    elif kind == "folder that is up" and inner != home:
        file.unlink(missing_ok=True)
        inner.rename(home / "was")
        inner.symlink_to("..")
    if kind == "closed file":
        file.chmod(0)
    elif kind == "closed inner folder":
        inner.chmod(0)
    elif kind == "closed folder":
        home.chmod(chance.choice((0, 0o444)))  # with 0o111 the notebook can be read


def make_class(submitted, right, chance, size):
    """Honest students and `size` others; returns {id: what was put there}."""
    for student in HONEST:
        (submitted / student).mkdir(parents=True)
        put(submitted / student / "ps01_tiny.ipynb", right)
    made = dict.fromkeys(HONEST, "honest")
    while len(made) < size + len(HONEST):
        home, kind = submitted / name_of(chance), chance.choice(KINDS)
        if home.name.startswith((".", "__")) or home.name in (".", ".."):
            continue
        try:
            home.mkdir()
        except FileExistsError:
            continue
        fill(home, kind, right, chance)
        assert student_id(home.name) not in made, "two folders, one id"
        made[student_id(home.name)] = kind
    return made


def run(course, submitted, out, **options):
    out.mkdir(exist_ok=True)
    if not (out / "gradebook.db").exists():
        shutil.copy(course[0] / "empty/gradebook.db", out)
    grading = made_grading(course[0], "ps01", submitted, out, seed=1, sandbox=Unsafe(), **options)
    with without_roots_eyes():
        return grading, list(grading.rows())


def open_all(folder):
    """So that pytest can remove it."""
    for where, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(where, name)
            if not path.is_symlink():
                path.chmod(0o755)


def begins_a_formula(text):
    """Whether one of the cells does that a spreadsheet may see in a text."""
    cells = (cell.strip(' "') for cell in re.split("[;|\t]", text))
    return any(cell.startswith(("=", "+", "-", "@", "\uff1d")) for cell in cells)


def plain(text):
    return all(one.isprintable() or one == "\n" for one in text)


def holds(course, tmp_path, seed, size):
    chance = random.Random(seed)
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    made = make_class(submitted, course[1], chance, size)
    try:
        grading, rows = run(course, submitted, out, exchange=bool(seed % 2))
        again = run(course, submitted, out, exchange=bool(seed % 2))[1] if seed % 8 < 2 else []
    finally:
        open_all(submitted)
    told = {row.student: row for row in rows}
    assert len(told) == len(rows) and told.keys() == made.keys()
    assert {row.status for row in rows} <= {"graded", "malformed", "missing"}, [
        row for row in rows if row.status == "not graded"
    ]
    for row in rows:
        if made[row.student] == "honest":
            assert (row.status, row.score) == ("graded", 30), row
        else:
            assert row.score is None and row.reason, row
    assert not again or not any(row.fresh for row in again) and {row.student for row in again} == made.keys()
    text = (out / "grades.csv").read_text()
    assert plain(text)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["student_id"] for line in lines] == [guard(student) for student in sorted(made)]
    assert not any(begins_a_formula(value) for line in lines for value in line.values())
    by_id = {line["student_id"]: line for line in lines}
    for student in HONEST:
        expected = {"status": "graded", "score": "30", "manual_points_pending": "5", "late_penalty": "0"}
        assert {key: by_id[student][key] for key in expected} == expected
    with Gradebook(f"sqlite:///{out / 'gradebook.db'}") as gradebook:
        entered = {student.id for student in gradebook.students}
    assert entered == {row.student for row in rows if row.status != "missing"}
    screen = io.StringIO()
    Console(file=screen, width=500, force_terminal=False).print(grades_table("ps01_tiny", 35.0, rows))
    assert plain(screen.getvalue())
    for student in entered:
        page = grading.pages.feedback(student).read_text()
        assert "<script" not in page and plain(page.split("<pre")[0])
    assert len(list((out / "results/ps01").iterdir())) == len(rows)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_class_of_hostile_folders(course, tmp_path, seed):
    holds(course, tmp_path, seed, 60)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 140))
def test_ten_thousand_hostile_folders(course, tmp_path, seed):
    holds(course, tmp_path, seed, 250)


NAMES = st.text(st.sampled_from([*"ab~x#u0'=;\" \u202e\udcff\udc1f\x1b\U0001f98a"]), min_size=1, max_size=130)


@given(NAMES, NAMES)
@example("~#" + "a", "~")
@example("a" * 101, written_out("a" * 20) + "~#" + "0" * 32)
@example("~" * 101, "~" * 102)
@example(" a", "~u000020a")
@example("a;=", "a;'=")
@example("a" * 101 + "\udc1f", "a" * 101 + "\udcff")
def test_two_names_have_two_ids_that_can_be_shown_and_stored(one, other):
    for name in (one, other):
        text = student_id(name)
        assert text.isprintable() and len(text) <= 2 * MAX_ID and len(text.encode()) <= MAX_ID_BYTES
        assert text == text.strip(" ")
    assert (student_id(one) == student_id(other)) == (one == other)
    assert (guard(student_id(one)) == guard(student_id(other))) == (one == other)


@pytest.mark.parametrize(
    "name", ["ada", "Lovelace, Ada", "a.b+c@example.org", "\u00c5sa", "DOMAIN\\ada", "x" * 100]
)
def test_an_honest_name_is_its_own_id(name):
    assert student_id(name) == guard(name) == name


def test_what_an_id_does_not_show_is_written_out():
    assert written_out("a\x1b[2J\u202e~ ") == "a~u00001b[2J~u00202e~~~u000020"
    assert written_out(os.fsdecode(b"ad\xe4")) == "ad~xe4"
    foxes = "\U0001f98a" * 63
    assert re.fullmatch("\U0001f98a{20}~#[0-9a-f]{32}", student_id(foxes))


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        (grade, "read_bytes"),
        (page, "feedback_page"),
        (machine_judge, "read_submission"),
        *((CourseGradebook, name) for name in ("save", "by_hand")),
        (Results, "read"),
    ],
    ids=lambda where: where[1],
)
def test_an_error_that_nobody_thought_of_is_one_row(course, tmp_path, monkeypatch, where):
    """Wherever it comes from: the others have their grades, and the next run tries this one again."""
    bens = course[1] + " "
    for student in ("ada", "ben", "zed"):
        (tmp_path / "in" / student).mkdir(parents=True)
        put(tmp_path / "in" / student / "ps01_tiny.ipynb", bens if student == "ben" else course[1])
    real = getattr(*where)

    def faulty(*given, **named):
        if "ben" in given or bens.encode() in given or any("/ben/" in str(one) for one in given):
            raise RecursionError("no\x1bbody thought of it")
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(*where, faulty)
        rows = {row.student: row for row in run(course, tmp_path / "in", tmp_path / "out")[1]}
    assert (rows["ben"].status, rows["ben"].reason) == (
        "not graded",
        "fault in the grader: RecursionError: no\ufffdbody thought of it",
    )
    assert (rows["ada"].score, rows["zed"].score) == (30, 30)
    text = (tmp_path / "out/grades.csv").read_text()
    assert "ps01,ben,not graded,," in text and "ps01,zed,graded,30" in text
    rows = {row.student: row for row in run(course, tmp_path / "in", tmp_path / "out")[1]}
    assert [(row.score, row.fresh) for _, row in sorted(rows.items())] == [
        (30, False),
        (30, True),
        (30, False),
    ]


def test_a_folder_that_is_closed_is_told_and_not_taken_for_an_empty_one(course, tmp_path):
    (tmp_path / "in/ada").mkdir(parents=True)
    put(tmp_path / "in/ada/ps01_tiny.ipynb", course[1])
    (tmp_path / "in/ada").chmod(0)
    with without_roots_eyes():
        (found,) = find_submissions(tmp_path / "in", load_assignment(course[0], "ps01"))
    (tmp_path / "in/ada").chmod(0o755)
    assert (found.status, found.reason) == ("malformed", "the folder cannot be read: Permission denied")


@pytest.mark.parametrize("become", ["link", "pipe"])
def test_a_file_that_is_replaced_between_look_and_read_is_refused(course, tmp_path, monkeypatch, become):
    """What was looked at is what is read; and nobody waits for a pipe that has no other end."""
    home, neighbour = tmp_path / "in/ben", tmp_path / "in/ada/ps01_tiny.ipynb"
    for folder in (home, neighbour.parent):
        folder.mkdir(parents=True)
        put(folder / neighbour.name, course[1])
    file, look = home / neighbour.name, Path.resolve

    def resolve(path, *rest):
        found = look(path, *rest)
        if path == file:
            file.unlink()
            file.symlink_to(neighbour) if become == "link" else os.mkfifo(file)
        return found

    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(Malformed, match="changed: ps01_tiny.ipynb was replaced while it was read"):
        read_bytes(file, inside=home)


@pytest.mark.parametrize(
    ("one", "other", "spelt"),
    [
        ("jos\u00e9", "jose\u0301", "jose\u0301 (jose U+0301)"),  # NFC and NFD
        ("ada", "\u0430da", "\u0430da (U+0430 da)"),  # Cyrillic
        ("Anna", "\u0391nna", "\u0391nna (U+0391 nna)"),  # Greek
        ("bob", "\uff42ob", "\uff42ob (U+FF42 ob)"),  # full width
        ("\u0421\u0430\u0448\u0430", "\u0421a\u0448a", "\u0421a\u0448a (U+0421 a U+0448 a)"),
    ],
)
def test_names_that_look_alike_are_told_apart_in_lists_and_stay_two(one, other, spelt):
    shown = told_apart([one, other, "\u0418\u0432\u0430\u043d", "zo\u00eb"])
    assert shown[other] == spelt and shown[one] != shown[other] and student_id(one) != student_id(other)
    assert shown["\u0418\u0432\u0430\u043d"] == "\u0418\u0432\u0430\u043d" and shown["zo\u00eb"] == "zo\u00eb"
    rows = [Row(name, "missing", None, None, None, "", True) for name in (one, other)]
    table = grades_table("x", 1.0, rows)
    assert spelt in [str(cell) for cell in table.columns[0].cells]
    records = {name: {"notes": [], "isolation": "", "verdict": None} for name in (one, other)}
    assert (other, f"another name looks like this one: {spelt}") in list(_flags(records))
