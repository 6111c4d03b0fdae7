"""Feedback pages on their way to students, regrade requests on their way back; no code is judged."""

import csv
import json
import re
import subprocess
import zipfile
from io import BytesIO

import pytest
from grading import judged_here, make_course, notebook, page_of
from test_amend import HELD, grade, say, scores, verdict
from typer.testing import CliRunner

from autograder.cli import app

FILE = "ps01_tiny.ipynb"
REQUEST = "### Task\n\nps01/launch_plan\n\n### Why\n\nMy grid is the *smallest*, see <b>line 3</b>\x1b[2J.\n"
ROSTER = (
    "id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,ada@x.org,12\nbob,Bob,Moss,bob@x.org,13\n"
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A released set; what a student's notebook holds is told by its first answer."""
    root, assignment = make_course(tmp_path_factory.mktemp("back") / "course")
    (root / "roster.csv").write_text(ROSTER)

    def judge(_, checked, *__):
        text = next(cell["source"] for cell in checked.notebook["cells"] if cell["id"] == "launch_plan")
        return verdict(HELD[text.splitlines()[0].removeprefix("# ")])

    with judged_here(judge):
        yield root, lambda student: json.dumps(notebook(assignment, launch_plan=f"# {student}"))


@pytest.fixture
def root(course):
    yield course[0]
    for list_ in course[0].glob("submitted/*.csv"):
        list_.unlink()


@pytest.fixture
def work(course):
    return course[1]


def collect(root, folder, files):
    with zipfile.ZipFile(folder / "class.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return say(root, "collect", "ps01", "--from", str(folder / "class.zip"))


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, check=True, text=True).stdout


def names_in(path):
    with zipfile.ZipFile(path) as archive:
        assert all("points so far" in archive.read(name).decode() for name in archive.namelist())
        return archive.namelist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "to, ada, bob, back",
    [
        (
            "canvas", f"lovelaceada_LATE_12_501_{FILE}", "mossbob_13_502_work.zip",
            ["lovelaceada_LATE_12_501_ps01_tiny.html", "mossbob_13_502_ps01_tiny.html"],
        ),
        (
            "moodle", f"Ada Lovelace_7_assignsubmission_file/{FILE}",
            f"Bob Moss_8_assignsubmission_file_{FILE}",
            [f"{name}_assignfeedback_file/ps01_tiny.html" for name in ("Ada Lovelace_7", "Bob Moss_8")],
        ),
    ],
)  # fmt: skip
def test_pages_go_back_by_the_names_with_which_the_work_came(root, work, tmp_path, to, ada, bob, back):
    inside = BytesIO()
    with zipfile.ZipFile(inside, "w") as archive:
        archive.writestr(FILE, work("bob"))
    theirs = inside.getvalue() if bob.endswith(".zip") else work("bob")
    collect(root, tmp_path, {ada: work("ada"), bob: theirs})
    grade(root)
    say(root, "give-back", "ps01", "--to", to)
    assert sorted(names_in(root / f"grades/ps01_feedback_{to}.zip")) == back
    other = {"canvas": "moodle", "moodle": "canvas"}[to]
    told = CliRunner().invoke(app, ["give-back", "ps01", "--to", other, "--course", str(root)])
    assert "nothing is written" in str(told.exception)


def test_a_page_goes_back_by_the_name_of_the_newest_file_from_there(root, work, tmp_path):
    collect(root, tmp_path, {f"bob/{FILE}": work("bob")})
    newest = f"lovelaceada_12_503_{FILE}"
    for number, name in enumerate((newest, f"lovelaceada_12_502_{FILE}", newest, f"ada/{FILE}")):
        text = work("ada").replace("# ada", f"# ada\\n# {number}")
        collect(root, tmp_path, {name: text})
    grade(root)
    say(root, "give-back", "ps01", "--to", "canvas", status=1)  # bob's came from elsewhere
    assert "lovelaceada_12_503_ps01_tiny.html" in names_in(root / "grades/ps01_feedback_canvas.zip")


def test_a_page_on_the_web_has_a_name_that_nobody_guesses_and_keeps_it(root, work, tmp_path):
    collect(root, tmp_path, {f"{who}/{FILE}": work(who) for who in HELD})
    grade(root)
    say(root, "give-back", "ps01", "--to", "web")
    with open(root / "grades/ps01.addresses.csv", newline="") as table:
        addresses = {row["student"]: row["address"] for row in csv.DictReader(table)}
    web = root / "grades/web"
    assert (
        "Student: ada" in (web / addresses["ada"]).read_text() and len(addresses["ada"].split("/")[0]) == 32
    )
    assert (web / "index.html").read_bytes() == b"" and not any(
        re.search(r"\bada\b", str(path)) for path in web.rglob("*")
    )
    say(root, "give-back", "ps01", "--to", "web")
    assert len(list(web.iterdir())) == 3


@pytest.mark.slow
def test_a_page_is_a_commit_on_a_branch_of_its_own_and_the_next_one_stands_on_it(root, work, tmp_path):
    collect(root, tmp_path, {f"{who}/{FILE}": work(who) for who in HELD})
    grade(root)
    theirs = tmp_path / "ada.git"
    subprocess.run(["git", "init", "--quiet", "--bare", theirs], check=True)
    listed = tmp_path / "list.csv"
    listed.write_text(f"student,repository\nada,file://{theirs}\n")
    words = ("give-back", "ps01", "--to", "repositories", "--list", str(listed), "--protocol", "file")
    for commits in (1, 1, 2):
        if commits == 2:
            say(root, "void", "ps01/time_it", "--yes")
        assert "not given back: bob: not in" in say(root, *words, status=1)
        assert len(git(theirs, "log", "--oneline", "feedback").splitlines()) == commits
    assert "Student: ada" in git(theirs, "show", "feedback:ps01/ps01_tiny.html")
    say(root, "undo", "--yes")
    head = "github_username,roster_identifier,student_repository_url,submission_timestamp"
    listed.write_text(f"{head}\nada-gh,a@x.org,file://{theirs},2026-03-01 23:59:59 UTC\n")
    assert "0 of" in say(root, *words, status=1), "nobody knows whose a@x.org is"
    (root / "submitted/ps01.places.csv").write_text(f"file,student\nfile://{theirs},ada\n")
    assert "1 of" in say(root, *words, status=1)


@pytest.mark.slow
def test_a_request_comes_beside_the_work_is_listed_with_its_row_and_answered_on_the_page(
    root, work, tmp_path
):
    files = {f"{who}/{FILE}": work(who) for who in HELD} | {"bob/regrade.md": REQUEST, "ada/notes.md": "x"}
    output = collect(root, tmp_path, files)
    assert "asking for a regrade: bob" in output and "4 files: 3 taken, 1 not" in output
    grade(root)
    output = say(root, "requests", "ps01")
    table = root / "grades/ps01.requests.csv"
    assert "right 0 of 15: seen" in table.read_text() and "1 request, 1 without an answer" in output
    assert "bob: ps01/launch_plan: 0 of 15\n    asks: My" in output and "~u00001b[2J" in output
    table.write_text(table.read_text().rstrip("\n").removesuffix(",") + ",It is; 15 points.\n")
    assert "0 without an answer" in say(root, "requests", "ps01"), "an answer stays"
    (root / "submitted/ada/ps01/regrade.md").write_text("### Task\nps01/lunch\n### Why\nI think so")
    assert "no task of this name; there are " in say(root, "requests", "ps01") + table.read_text()
    (root / "submitted/ada/ps01/regrade.md").unlink()
    say(root, "requests", "ps01")
    before = scores(root)
    grade(root)
    assert scores(root) == before
    shown = page_of(root, "bob")
    assert "You asked for a regrade of ps01/launch_plan" in shown and "Answer: It is; 15 points." in shown
    assert "<b>line 3" not in shown and "regrade" not in page_of(root, "ada")


def test_an_issue_form_is_a_request_too(root, work, tmp_path):
    issues = [
        {
            "author": {"login": who},
            "body": REQUEST.replace("3", number),
            "number": int(number),
            "url": f"https://x/{number}",
        }
        for who, number in (("ada", "4"), ("ada", "5"), ("zoe", "6"))
    ]
    (tmp_path / "issues.json").write_text(json.dumps(issues))
    output = say(root, "collect", "ps01", "--from", str(tmp_path / "issues.json"), status=1)
    assert "asking for a regrade: ada" in output and "3 files: 1 taken, 2 not" in output
    assert "line 5" in (root / "submitted/ada/ps01/regrade.md").read_text()
