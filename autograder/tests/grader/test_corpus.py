"""Attacks as students hand them in, graded by `autograder grade` in the real sandbox,
in one class with two honest bystanders and one who is a day late.

`corpus/cells/<name>.py` stands in the notebook's first answer, beside a right second one of 15 points;
`corpus/notebooks/<name>.py` damages a right notebook of 30 points, or what lies around it. Docstrings begin
with what the submission must get; corpus/README.md tells which attack is where. Attacks on kernels, devices
and ranks are in `corpus/boundary` (test_boundary.py), those of kernels on their clock in `corpus/timed`
(test_timing_attacks.py).
"""

import ast
import contextlib
import ctypes
import hashlib
import os
import re
import runpy
import socket
import subprocess
import sys
import time
from pathlib import Path

import forked_commands
import pytest
from corpus_files import CORPUS, attacks
from grading import TINY, answers, hand_in, make_course, notebook, rows_of
from nbgrader.api import Gradebook

import autograder
from autograder.gradebook import CourseGradebook
from autograder.sandbox.choose import NoSandbox, choose

CELLS = sorted((CORPUS / "cells").glob("*.py"))
NOTEBOOKS = sorted((CORPUS / "notebooks").glob("*.py"))
BOUNDARY = sorted((CORPUS / "boundary").glob("*/*/cheat_*.py"))
TIMED = sorted((CORPUS / "timed").glob("*/*/cheat_*.py"))
STATED = re.compile(
    r"(?:(?P<points>[\d.]+) points(?:, (?P<status>timeout|crashed))?|(?P<unread>malformed|missing)(?:, "
    r"(?P<code>[\w-]+))?): "
)
SEED = "2718281828459045235"
STEP = 10  # seconds of a cell, and a tenth of a submission's whole budget
PLANTED = ("solutions", "tests", "gradebook", "environment", "home")
BYSTANDERS, LATE = ("bystander", "zed"), "late"
PR_SET_CHILD_SUBREAPER = 36


def stated(path):
    """What the docstring of a corpus file says that it must get: points, status, and the code of a defect."""
    found = STATED.match(ast.get_docstring(ast.parse(readable(path))) or "")
    assert found, (
        f"{path}: the docstring must begin with '<n> points: ', 'malformed, <code>: ' or 'missing: '"
    )
    return (
        None if found["points"] is None else float(found["points"]),
        found["status"] or found["unread"] or "graded",
        found["code"] or "",
    )


def readable(path):
    """A file's text as Python; a cell may hold IPython's own lines."""
    return re.sub(r"(?m)^[%!].*$", "", path.read_text().replace("@PORT@", "0"))


def canary(kind):
    return f"CANARY-{kind}-7f3a"


def plant(root, home):
    """Secrets where a grader keeps them, behind names that the attacks know."""
    (root / "tests").mkdir()
    (root / "tests" / "hidden.py").write_text(f"EXPECTED = '{canary('tests')}'\n")
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text(canary("home"))
    (root / "grades").mkdir(exist_ok=True)
    (root / "grades" / ".seed").write_text(f"{SEED}\n")
    with CourseGradebook(root / "grades") as book:
        book.gradebook.add_student("zed", first_name=canary("gradebook"))
        book.gradebook.update_or_create_assignment("ps01", duedate="2026-03-01 12:00:00")
    (root / "times.csv").write_text(f"student,time\n{LATE},2026-03-02T12:00:00Z\nzed,2026-03-01T11:59:59Z\n")
    with open(root / "nbgrader_config.py", "a") as config:
        config.write('c.AssignLatePenalties.plugin_class = "autograder.gradebook.late_policy.PerDay"\n')


def fill(root, assignment, places, attackers):
    """Hand in the attacks and the bystanders' work."""
    good = {
        key: "\n".join(line for line in text.split("\n") if "CANARY" not in line)
        for key, text in answers(root).items()
    }
    honest = notebook(assignment, **good | {"explain": canary("neighbour")})
    for student in (*BYSTANDERS, LATE):
        hand_in(root / "submitted", student, honest)
    for path in (path for path in attackers if path in CELLS):
        source = path.read_text()
        for name, value in places.items():
            source = source.replace(f"@{name}@", str(value))
        hand_in(root / "submitted", path.stem, notebook(assignment, **good | {"launch_plan": source}))
    for path in (path for path in attackers if path in NOTEBOOKS):
        folder = root / "submitted" / path.stem
        folder.mkdir(parents=True)
        given = runpy.run_path(path)["submission"](notebook(assignment, **good), folder)
        if given is not None:
            hand_in(root / "submitted", path.stem, given)


def tree(*folders):
    """{path: hash of its content} of all regular files; links by where they lead."""
    found = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
            elif path.is_file() and "__pycache__" not in path.parts:
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextlib.contextmanager
def listening():
    """A TCP and a UDP socket on one port and an abstract Unix socket; yields (port,
    function that tells who called).
    """
    with (
        socket.socket() as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        unix.bind(f"\0canary-{port}")
        tcp.listen()
        unix.listen()

        def callers():
            found = []
            for line, ask in ((tcp, tcp.accept), (udp, lambda: udp.recv(100)), (unix, unix.accept)):
                line.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    found.append(ask())
            return found

        yield port, callers


@pytest.fixture(scope="module")
def graded(tmp_path_factory, request):
    """A class of those attacks that this run asks for, graded once by the command; what the tests look at."""
    asked = [getattr(item, "callspec", None) for item in request.session.items if item.path == Path(__file__)]
    attackers = [spec.params["path"] for spec in asked if spec and "path" in spec.params]
    try:
        choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))
    base = tmp_path_factory.mktemp("corpus")
    root, assignment = make_course(
        base / "course",
        TINY.replace("    secret_columns =", f"    # {canary('solutions')}\n    secret_columns =", 1),
    )
    home = base / "home"
    plant(root, home)
    package = Path(autograder.__file__).parent
    with listening() as (port, callers):
        places = {"ROOT": root, "PACKAGE": package.parent, "HOME": home, "PORT": port}
        fill(root, assignment, places, attackers)
        watched = [
            root / name
            for name in ("solutions", "exercises", "submitted", "_build", "tests", "nbgrader_config.py")
        ]
        before = tree(*watched)
        ctypes.CDLL(None).prctl(
            PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
        )  # orphans of the grader's come to this process
        # an open browser is among them, which goes on making processes
        mine = forked_commands.descendants(os.getpid())
        try:
            began = time.monotonic()
            words = ["--course", root, "--submissions", root / "submitted", "--out", root / "grades"]
            process = forked_commands.autograder(
                [
                    "grade",
                    "ps01",
                    *words,
                    f"--Grade.time_limit={STEP}",
                    "--Grade.jobs=2",
                    "--received",
                    root / "times.csv",
                ],
                env=os.environ | {"COURSE_TOKEN": canary("environment"), "HOME": str(home)},
                own_warm_parent=True,
                cwd=root,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            done = subprocess.CompletedProcess([], 0, *process.communicate())
            done.returncode = process.returncode
            seconds = time.monotonic() - began
            until = time.monotonic() + 30  # what was killed may take a moment to end
            while (left := forked_commands.descendants(os.getpid(), mine)) and time.monotonic() < until:
                time.sleep(0.1)
            left = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left}
        finally:
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        called = callers()
    rows = rows_of(root / "grades")
    isolation = {row["isolation"] for row in rows.values()} - {""}
    print(f"{len(rows)} submissions graded in {seconds:.0f} s as uid {os.geteuid()}, {isolation}")
    return {
        "root": root,
        "attackers": attackers,
        "done": done,
        "rows": rows,
        "left": left,
        "called": called,
        "seconds": seconds,
        "changed": (before, tree(*watched)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", attacks("cells", "notebooks"))
def test_an_attack_gets_the_points_of_the_honest_work_in_it(graded, path):
    points, status, code = stated(path)
    row = graded["rows"][path.stem]
    assert row["status"] == status, row
    assert code in row["reason"], row
    assert row["score"] == ("" if points is None else f"{points:g}"), row


@pytest.mark.slow
def test_no_attack_stops_the_run(graded):
    assert graded["done"].returncode == 0, graded["done"].stderr[-2000:]
    ends = 10 * STEP + 15  # seconds of a submission's whole budget, and for its last process to be gone
    assert graded["seconds"] < 60 + (len(graded["attackers"]) + 3) * ends / 2, "two at a time"
    assert set(graded["rows"]) == {path.stem for path in graded["attackers"]} | {*BYSTANDERS, LATE}


@pytest.mark.slow
def test_a_day_late_costs_its_tenth_in_the_same_class(graded):
    penalties = {student: row["late_penalty"] for student, row in graded["rows"].items()}
    assert (graded["rows"][LATE]["score"], penalties.pop(LATE)) == ("27", "3")
    assert set(penalties.values()) <= {"", "0"}


@pytest.mark.slow
@pytest.mark.parametrize("student", BYSTANDERS)
def test_no_attack_touches_a_bystander(graded, student):
    row = graded["rows"][student]
    assert (row["status"], row["score"], row["manual_points_pending"]) == ("graded", "30", "5")
    with Gradebook(f"sqlite:///{graded['root'] / 'grades' / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission("ps01", student).score == 30
        assert gradebook.find_student("zed").first_name == canary("gradebook")


@pytest.mark.slow
def test_no_attack_changes_a_file_of_the_course_or_of_the_grader(graded):
    before, after = graded["changed"]
    assert before == after
    searched = [
        Path(folder) for folder in (*sys.path, Path(autograder.__file__).parent) if Path(folder).is_dir()
    ]
    assert not {path.name for folder in searched for path in folder.iterdir()} & {
        "pwned.pth",
        "sitecustomize.py",
    }
    assert not (graded["root"] / "pwned").exists() and not Path("/tmp/pwned").exists()


@pytest.mark.slow
def test_nothing_survives_and_nobody_called(graded):
    assert graded["left"] == {}
    assert graded["called"] == []


@pytest.mark.slow
def test_no_canary_leaks_into_what_students_and_instructors_read(graded):
    root, leaks = graded["root"], []
    files = [
        path
        for folder in ("feedback", "autograded", "results")
        for path in (root / "grades" / folder).rglob("*")
        if path.is_file()
    ]
    for path in [*files, root / "grades" / "grades.csv"]:
        text = path.read_text()
        secrets = [canary(kind) for kind in PLANTED] + [SEED]
        if not any(f"/{student}" in str(path) for student in (*BYSTANDERS, LATE)):
            secrets.append(canary("neighbour"))
        if path.parts[-4] == "feedback" and graded["rows"][path.parts[-3]]["score"] in ("30", "27"):
            secrets.remove(
                canary("solutions")
            )  # beside all points, and the due date is past (test_worked.py)
        leaks += [(path.name, secret) for secret in secrets if secret in text]
    assert len(files) > len(graded["attackers"]) and leaks == []
    for kind in PLANTED:
        assert canary(kind) not in graded["done"].stdout + graded["done"].stderr


@pytest.mark.slow
def test_pages_run_no_script_and_fetch_nothing(graded):
    for page in (graded["root"] / "grades" / "feedback").rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"<script|<img|<iframe|<link|javascript:|\burl\(|@import", text, re.I), page
        assert not re.search(r'(?:src|href)="(?!#)', text), page
        assert len(text) < 2_000_000, page


def test_every_attack_is_in_the_table_and_every_row_has_a_file():
    named = set(re.findall(r"`([\w/]+\.py)`", (CORPUS / "README.md").read_text()))
    there = {str(path.relative_to(CORPUS)) for path in (*CELLS, *NOTEBOOKS, *BOUNDARY, *TIMED)}
    assert named - there == set(), "rows without a file"
    assert there - named == set(), "files without a row"
