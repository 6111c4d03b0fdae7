"""`autograder forget`: after it no byte of a student's name is left where the grader writes."""

import json
import shutil
from datetime import UTC, datetime

import pytest
from conftest import ROOT
from grading import answers, command, hand_in, judged_here, make_course, notebook
from grading import grading as made_grading
from nbgrader.api import Gradebook

from autograder.forget import forget, name_pattern, traces_of
from autograder.sandbox.choose import choose
from autograder.user_error import UserError

GONE, STAYS = "zebediah", "zebediah-two"  # the second name begins with the first: it must not be touched


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A class of two that was graded, with a log, a report, times of arrival and a comment by hand."""
    root, assignment = make_course(tmp_path_factory.mktemp("class") / "course")
    out, submissions = root / "grades", root / "submitted"
    for student in (GONE, STAYS):
        hand_in(submissions, student, notebook(assignment, **answers(root)), "ps01/ps01_tiny.ipynb")
    with judged_here():
        rows = list(made_grading(root, "ps01", submissions, out, sandbox=choose(unsafe=True)).rows())
    assert [row.status for row in rows] == ["graded", "graded"]
    with Gradebook(f"sqlite:///{out / 'gradebook.db'}") as book:
        book.update_or_create_student(GONE, first_name="Zebediah", last_name="Quux", email="zeb@example.org")
        found = book.find_submission("ps01", GONE)
        found.notebooks[0].comments[0].manual_comment = "well done, zebediah"
        found.timestamp = datetime.now(UTC).replace(tzinfo=None)
        book.db.commit()
    events = [{"student": GONE, "event": "judged"}, {"event": "fault", "text": f"in submitted/{GONE}/ps01"}]
    (out / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*events, {"student": STAYS}]))
    (out / "class_report.html").write_text(f"<td>{GONE}</td>")
    (out / "oral").mkdir()
    (out / "oral" / f"{GONE}.html").write_text(f"Student: {GONE}.")
    (submissions / "ps01.received.csv").write_text(
        f"student,time\n{GONE},2026-03-02T10:00:00Z\n{STAYS},2026-03-02T10:00:00Z\n"
    )
    return root


@pytest.fixture
def graded(graded_once, tmp_path):
    """A copy of that class: (course, grades, submissions)."""
    root = shutil.copytree(graded_once, tmp_path / "course")
    return root, root / "grades", root / "submitted"


def everything(*folders):
    """Paths and bytes of all files, without what belongs to the other student."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(str(path).encode() + b"\0" + path.read_bytes() for path in files)


@pytest.mark.slow
def test_no_byte_of_the_name_is_left_and_nobody_else_is_touched(graded):
    root, out, submissions = graded
    before = everything(out, submissions).replace(STAYS.encode(), b"")
    assert before.count(b"zebediah") > 10 and b"Quux" in before and b"zeb@example.org" in before
    others = {path: path.read_bytes() for path in out.rglob(f"{STAYS}*") if path.is_file()}
    assert forget(GONE, root, out, submissions) == []
    after = everything(out, submissions).replace(STAYS.encode(), b"")
    assert b"zebediah" not in after.lower() and b"Quux" not in after and b"zeb@example.org" not in after
    assert not list(out.rglob(GONE)) and not (submissions / GONE).exists()
    assert others and all(path.read_bytes() == text for path, text in others.items())
    assert (out / "grades.csv").read_text().count("\n") == 2  # the head and the one who stays
    assert (submissions / "ps01.received.csv").read_text().splitlines()[1:] == [
        f"{STAYS},2026-03-02T10:00:00Z"
    ]
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert log == [{"event": "fault", "text": "in submitted/(forgotten)/ps01"}, {"student": STAYS}]


def test_the_next_run_grades_nobody_again(graded):
    root, out, submissions = graded
    forget(GONE, root, out, submissions)
    with judged_here():
        (row,) = made_grading(root, "ps01", submissions, out, sandbox=choose(unsafe=True)).rows()
    assert (row.student, row.fresh) == (STAYS, False)


def test_it_asks_first_and_says_what_it_leaves(graded, monkeypatch):
    root, out, _ = graded
    (root / "roster.csv").write_text(f"id,email\n{GONE},zeb@example.org\n")
    (out / "notes.txt").write_text(f"ask {GONE} again")
    with open(out / "huge.bin", "wb") as file:
        file.truncate(2**40)

    monkeypatch.setattr("typer.confirm", lambda *_: False)
    status, out_, err = command(root, "forget", GONE)
    assert status == 1 and f"results/ps01/{GONE}.json" in out_ and (out / "feedback" / GONE).exists()
    for line in (
        "roster.csv: is left, and names",
        "notes.txt: is left, and names",
        "huge.bin: is left, too large",
    ):
        assert line in out_  # said before anything is removed
    status, out_, err = command(root, "forget", GONE, "--yes")
    assert status == 1 and "roster.csv still names zebediah" in err and "notes.txt" in err
    assert not (out / "feedback" / GONE).exists()
    status, out_, err = command(root, "forget", "nobody", "--yes")
    assert status == 2 and 'nothing here is of "nobody"' in err


def test_a_path_is_no_name(tmp_path):
    for name in ("../ada", "ada/ps01", "..", ""):
        with pytest.raises(UserError, match="is no student's name"):
            traces_of(name, tmp_path, tmp_path / "grades", tmp_path / "submitted")


@pytest.mark.parametrize(
    "name, text, found",
    [
        ("ada", b"ada,graded", True),
        ("ada", b"submitted/ada/ps01", True),
        ("ada", b"ada@example.org", True),
        ("ada", b"adaptive", False),
        ("ada", b"ada-lovelace", False),
        ("ada", b"armada", False),
        ("zo\u00eb", b'"zo\\u00eb"', True),
        ("zo\u00eb", "zo\u00eb,1".encode(), True),
        ("a.b", b"axb", False),
    ],
)
def test_a_name_is_found_as_a_word(name, text, found):
    assert bool(name_pattern(name).search(text)) is found


@pytest.mark.parametrize(
    "words",
    [["forget", "ada", "--out", "g"], ["report", "--grades", "g"], ["export", "--grades", "g"]],
    ids=lambda words: words[0],
)
def test_a_damaged_gradebook_is_one_line_that_names_it_and_stays_as_it_is(tmp_path, words):
    (tmp_path / "g").mkdir()
    (tmp_path / "g/gradebook.db").write_text("garbage, not a database")
    status, _, told = command(tmp_path, *words, "--course", ROOT)
    assert status == 2 and told.count("\n") == 1 and "gradebook.db is damaged or no gradebook" in told
    assert (tmp_path / "g/gradebook.db").read_text() == "garbage, not a database"


def test_a_link_in_a_students_place_is_removed_and_what_it_leads_to_stays(graded):
    root, out, submissions = graded
    shutil.rmtree(submissions / GONE)
    (submissions / GONE).symlink_to(submissions / STAYS)
    assert forget(GONE, root, out, submissions) == []
    assert not (submissions / GONE).is_symlink() and list((submissions / STAYS).rglob("*.ipynb"))
    assert not (out / "feedback" / GONE).exists()


def test_a_file_that_is_endless_and_holds_nothing_does_not_end_it(graded):
    root, out, submissions = graded
    with open(submissions / STAYS / "sparse.bin", "wb") as file:
        file.truncate(2**40)
    assert forget(GONE, root, out, submissions) == []
