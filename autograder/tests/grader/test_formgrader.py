"""nbgrader's formgrader in a real browser: an instructor reads, scores, comments,
returns and edits, and a second `autograder grade` keeps it.
"""

import itertools
import re
from urllib.parse import quote

import forked_commands
import nbformat
import pytest
from grading import (
    TIMED,
    TINY,
    answers,
    command,
    hand_in,
    make_course,
    notebook,
    one_course_version,
    page_of,
    rows_of,
)
from grading import grading as made_grading
from jupyter_here import jupyter
from nbgrader.api import Gradebook

import warplab
from autograder.plugins import PageOfASubmission
from autograder.release.release import release
from autograder.sample_class.run import launcher_for_our_own

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        warplab.device().kind == "cuda",
        reason="here timed points are given, and these tests need some left open",
    ),
]
TOKEN = "formgrader"
# MathJax keeps a formula's source in a script that no browser runs
RISKY = "#notebook script:not([type^='math/']), #notebook img, #notebook a[href^='javascript']"
MARKED = TINY.replace("must wait.\n", "must wait.\n# **Marking.** 3 points: the host. 2 points: it waits.\n")
MARKUP = (
    "The host *waits*: `a < b`.\n\n<script>document.title = 'taken'</script><img src='x' "
    "onerror='document.title = \"taken\"'>\n\n[more](javascript:document.title='taken')\n\n"
    "```mermaid\n</pre><script>document.title = 'taken'</script>\n```\n\n"
    "![out](/logout) [out](/logout) ![pasted](attachment:screen.png)\n\n"
    "# time_it-test\n\n[paper](https://arxiv.org/abs/1804.06826) says $a < b$"
)


TAKER = "<img src=x onerror=\"document.title='taken'\">"  # a name; a folder's has no slash


def grade(root):
    """`autograder grade ps01`, in this process."""
    grading = made_grading(
        root, "ps01", root / "submitted", root / "grades", jobs=2, sandbox=launcher_for_our_own()
    )
    return {row.student: row for row in grading.rows()}


@pytest.fixture(scope="module", autouse=True)
def one_version():
    with one_course_version():
        yield


def row(root, student, *fields):
    """What one student's line of grades.csv says."""
    line = rows_of(root / "grades")[student]
    return [line[field] for field in fields]


def submission(root, assignment, **sources):
    """A right notebook, whose written answer carries markup and stands first, and whose last cell is raw."""
    document = notebook(assignment, **answers(root) | {"explain": MARKUP} | sources)
    document["cells"].sort(key=lambda cell: cell["metadata"].get("nbgrader", {}).get("grade_id") != "explain")
    script = "<script>document.title = 'taken'</script>"
    document["cells"].append({"cell_type": "raw", "id": "raw", "metadata": {}, "source": script})
    return document


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """(root, assignment): 40 points, of which 5 are timed and 5 written; three students, graded."""
    root, assignment = make_course(tmp_path_factory.mktemp("formgrader") / "course", MARKED + TIMED)
    hand_in(root / "submitted", "ada/ps01", submission(root, assignment))
    hand_in(root / "submitted", "bob/ps01", notebook(assignment))
    hand_in(root / "submitted", f"{TAKER}/ps01", notebook(assignment))
    grade(root)
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as book:
        book.update_or_create_student(TAKER, first_name=TAKER, last_name=f"O'Brien {TAKER}")
    return root, assignment


@pytest.fixture(scope="module")
def server(course):
    """Address of a Jupyter server in the course folder, with nbgrader's extension as it is installed."""
    unsafe = launcher_for_our_own().isolation.startswith("unsafe")
    words = ["--Judge.unsafe=True"] if unsafe else []
    with jupyter("server", course[0].parent / "server.log", *words, token=TOKEN, cwd=course[0]) as address:
        yield address


@pytest.fixture(scope="module")
def logged_in(browser, server):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.request.get(f"{server}/api/status?token={TOKEN}")
    yield context
    context.close()


@pytest.fixture
def page(logged_in):
    page = logged_in.new_page()
    yield page
    page.close()


def open_submission(page, server, student):
    """The page on which a submission is graded, by the links that an instructor follows."""
    page.goto(f"{server}/formgrader/manage_students/{student}/ps01")
    page.click("a[href*='/formgrader/submissions/']")
    page.wait_for_function(
        "() => window.formgrader && formgrader.grades && formgrader.grades.loaded && formgrader.comments && "
        "formgrader.comments.loaded && MathJax.loaded && !$(':animated').length"  # it scrolls at the end
    )


def enter(page, field, text):
    """Type into a field of the page as a person does; back when the server has it."""
    with page.expect_response(lambda reply: reply.request.method == "PUT") as reply:
        page.fill(f"[id='{field}']", text)
        page.press(f"[id='{field}']", "Tab")
        page.evaluate("document.activeElement.blur()")
    assert reply.value.ok


def press(page, server, student, button):
    """A button in the student's row of "Manage Submissions"; returns the text of the
    dialogue that ends the work.
    """
    page.goto(f"{server}/formgrader/manage_submissions/ps01")
    page.locator("tr", has=page.get_by_text(student, exact=True)).locator(f"td.{button} a").click()
    return page.locator(".modal-body").inner_text(timeout=120_000)


def test_an_instructor_grades_by_hand_and_a_regrade_keeps_it(course, server, page):
    root, assignment = course
    page.goto(f"{server}/formgrader/manage_submissions/ps01")
    ada = page.locator("tr", has=page.get_by_text("ada", exact=True))
    ada.get_by_text("30 / 40").wait_for()
    assert "needs manual grading" in ada.inner_text()
    assert "ada, (no name)" in ada.inner_text() and "None, None" not in page.content()

    open_submission(page, server, "ada")
    assert "ps04/matmul_register_tiled: 5 points left open" in page.inner_text("#notebook")
    assert (
        page.input_value("#explain") == ""
        and page.get_attribute("[id='launch_plan-test']", "placeholder") == "15"
    )
    enter(page, "explain", "4")
    enter(page, "explain-comment", "Say *when* it waits.")
    enter(page, "matmul_register_tiled-time", "3")
    enter(page, "matmul_register_tiled-comment", "Timed on the machine in room 7.")

    assert "Successfully generated" in press(page, server, "ada", "generate-feedback")
    told = page_of(root, "ada")
    for text in ("37 of 40 points", "graded by hand: 4 of 5", "*when* it waits", "gave 3 of 5", "room 7"):
        assert text in told
    assert forked_commands.nbgrader(root, ["export"])[1] == 0
    assert row(root, "ada", "score", "ungraded_points", "manual_points_pending") == ["37", "0", "0"]

    kept = page_of(root, "ada")
    again = grade(root)
    assert not any(row.fresh for row in again.values())
    assert (again["ada"].score, again["ada"].ungraded, again["ada"].manual) == (37, 0, 0)
    assert row(root, "ada", "score") == ["37"] and page_of(root, "ada") == kept

    hand_in(root / "submitted", "ada/ps01", submission(root, assignment, time_it="time_it = None"))
    assert grade(root)["ada"].fresh
    assert row(root, "ada", "score") == ["22"] and "22 of 40 points" in page_of(root, "ada")
    open_submission(page, server, "ada")
    fields = ("explain", "explain-comment", "matmul_register_tiled-time")
    entered = [page.input_value(f"[id='{field}']") for field in fields]
    assert entered == ["4", "Say *when* it waits.", "3"]
    assert page.get_attribute("[id='time_it-test']", "placeholder") == "0"


def test_an_answer_is_read_beside_the_sample_answer_and_a_click_gives_an_items_points(course, server, page):
    root, _ = course
    elsewhere = []
    page.on(
        "request",
        lambda one: None if one.url.startswith((server, "data:", "about:")) else elsewhere.append(one),
    )
    open_submission(page, server, "ada")
    beside = page.locator(".nbgrader_cell .beside-answer")
    assert "so it must wait." in beside.inner_text() and "Marking" not in beside.inner_text()
    if page.input_value("#explain"):  # of the test before, if it ran
        enter(page, "explain", "")
    enter(page, "explain-comment", "Say it shorter.")
    host, waits = (
        beside.locator("button", has_text=text) for text in ("[1] +3: the host.", "[2] +2: it waits.")
    )
    for button, points in ((host, "3"), (waits, "5"), (host, "2")):
        with page.expect_response(lambda reply: "/api/grade/" in reply.url and reply.request.method == "PUT"):
            button.click()
        assert page.input_value("#explain") == points
    assert page.input_value("#explain-comment") == "Say it shorter.\n[2] +2: it waits."
    assert [host.get_attribute("aria-pressed"), waits.get_attribute("aria-pressed")] == ["false", "true"]
    open_submission(page, server, "bob")
    page.get_by_role("button", name="Say it shorter.").click()
    assert page.input_value("#explain-comment") == "Say it shorter." and page.input_value("#explain") == ""
    page.wait_for_function("window.MathJax && MathJax.Hub && document.activeElement")
    assert elsewhere == []
    table = "<table><tr><td>32 x 8</td><td>16 x 16</td></tr></table>"
    page.evaluate(
        "table => document.querySelector('.rendered_html').insertAdjacentHTML('beforeend', table)", table
    )
    cell = page.locator(".rendered_html td", has_text="32 x 8")
    assert cell.evaluate("one => parseFloat(getComputedStyle(one).paddingRight)") >= 8
    with Gradebook(f"sqlite:///{root / 'grades/gradebook.db'}") as book:
        kept = book.find_grade("explain", "ps01_tiny", "ps01", "ada")
        assert kept.manual_score == 2.0
    enter(page, "explain-comment", "")


def test_names_are_withheld_where_the_course_says_so(course, monkeypatch):
    monkeypatch.chdir(course[0])
    told = {"assignment_id": "ps01", "student": "ada", "last_name": "Lovelace", "notebook_path": "x/ada/y"}
    notebook = nbformat.read(course[0] / "grades/autograded/ada/ps01/ps01_tiny.ipynb", 4)
    shown, resources = PageOfASubmission(anonymous=True).preprocess(notebook, told)
    assert "Names are withheld" in shown.cells[0].source
    assert (
        not re.search(r"\bada\b", " ".join(map(str, resources.values())))
        and "Lovelace" not in resources.values()
    )


@pytest.mark.full
def test_autograde_in_formgrader_does_what_the_command_does(course, server, page):
    root, assignment = course
    hand_in(root / "submitted", "cyd/ps01", submission(root, assignment))
    hand_in(root / "submitted", "dan/ps01", "{")
    assert "Successfully autograded" in press(page, server, "cyd", "autograde")
    assert "There was an error" in press(page, server, "dan", "autograde")
    by_formgrader = rows_of(root / "grades")
    assert row(root, "cyd", "score", "manual_points_pending") == ["30", "5"]
    assert row(root, "dan", "status") == ["malformed"]
    grade(root)
    assert rows_of(root / "grades") == by_formgrader


def test_markup_in_an_answer_is_text_in_formgrader_and_in_the_feedback(course, server, page):
    root, _ = course
    open_submission(page, server, "ada")
    page.wait_for_timeout(500)  # time enough for a broken image to call its handler
    assert page.title() == "ps01_tiny"
    answer = page.locator(".nbgrader_cell", has=page.locator("#explain"))
    assert (
        "<script>document.title = 'taken'</script>" in answer.inner_text() and "a < b" in answer.inner_text()
    )
    assert answer.locator("em").inner_text() == "waits"
    assert page.locator(RISKY).count() == 0
    shown = answer.inner_text()
    assert "[out: /logout] out (/logout) [pasted: attachment:screen.png]" in shown
    assert "</pre><script>document.title = 'taken'</script>" in shown
    assert "says $a < b$" in shown or answer.locator(".MathJax").count() == 1
    assert page.locator("[id='time_it-test']").count() == 1, "a heading is no field for points"
    assert page.locator("#notebook .rendered_html a").all_inner_texts() == ["paper"]
    assert not re.search(
        r"<script|<img|javascript:document", page_of(root, "ada").replace("[more](javascript", "")
    )


SCRIPTS = (
    quote("\";document.title='taken';\""),
    quote("</script><script>document.title='taken'</script>", safe=""),
)


def test_what_stands_in_an_address_or_a_name_is_text_in_formgrader(course, server, page):
    """A link to formgrader itself may stand in an answer or a mail, and names come from platforms."""
    places = ("manage_students/{}", "manage_students/{}/ps01", "gradebook/{}", "gradebook/ps01/{}")
    places += ("manage_submissions/{}",)
    # a place has one of the two, in turn: all go through the same escaping
    for address in map(str.format, places, itertools.cycle(SCRIPTS)):
        page.goto(f"{server}/formgrader/{address}", wait_until="load")
        assert page.title() != "taken", address
    with Gradebook(f"sqlite:///{course[0] / 'grades/gradebook.db'}") as book:
        one = book.find_submission_notebook("ps01_tiny", "ps01", TAKER).id
    places = ("manage_submissions/ps01", "manage_students", f"manage_students/{quote(TAKER)}/ps01")
    for address in (*places, f"submissions/{one}/"):
        page.goto(f"{server}/formgrader/{address}", wait_until="networkidle")
        assert page.title() != "taken" and page.locator("img[src=x]").count() == 0, address
    assert "O'Brien <img" in page.locator("body").text_content()


def test_the_tables_of_the_judge_are_readable_in_formgrader(course, server, page):
    """Dark text on the page's light ground, and no wider than the cell."""
    open_submission(page, server, "bob")
    table = page.locator("table.warplab-grade").first
    colours = table.evaluate(
        "t => [getComputedStyle(t).color, getComputedStyle(t.querySelector('td')).color]"
    )
    for colour in colours:
        assert sum(int(part) for part in re.findall(r"\d+", colour)[:3]) < 3 * 100, colour
    assert table.evaluate("t => t.getBoundingClientRect().right") <= page.locator("#notebook").first.evaluate(
        "n => n.getBoundingClientRect().right"
    )


def test_a_source_notebook_edited_in_formgraders_place_is_not_overwritten(course, server, page):
    root, _ = course
    page.goto(f"{server}/formgrader/manage_assignments")
    link = page.get_by_role("link", name="ps01", exact=True)
    folder = link.get_attribute("href").removeprefix("/tree/")
    assert (root / folder).resolve() == (root / "_build/source/ps01").resolve()
    told = page.evaluate(
        """async ([path, token]) => {
            const headers = {"Authorization": `token ${token}`, "Content-Type": "application/json"};
            const file = await (await fetch(path, {headers})).json();
            const cell = file.content.cells.find(cell => cell.id === "launch_plan");
            cell.source = cell.source.replace("The smallest grid", "The very smallest grid");
            return (await fetch(path, {method: "PUT", headers, body: JSON.stringify(file)})).status;
        }""",
        ["/api/contents/_build/source/ps01/ps01_tiny.ipynb", TOKEN],
    )
    assert told == 200
    status, _, told = command(root, "release")
    assert status == 2 and "make the same edit in ps01_tiny.py" in told
    source = root / "_build/source/ps01/ps01_tiny.ipynb"
    assert "very smallest" in source.read_text()
    source.unlink()
    assert [one.state for one in release(root)] == ["unchanged"]
