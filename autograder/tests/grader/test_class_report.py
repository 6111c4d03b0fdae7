"""The class report: what it counts and what it leaves uncounted, and that a student's text stays text."""

import re
from html.parser import HTMLParser

import pytest
from grading import command, hand_in, make_course, record, stored_verdict

from autograder.class_report.class_page import write_report
from autograder.class_report.overview import overview, pattern_of
from autograder.gradebook import CourseGradebook
from autograder.gradebook.passing_on import read_standings
from autograder.results import Results
from autograder.similar.pairs import Pair

EVIL = "<script>alert(1)</script>"
TIMES = {"time.ratio_low": 1.9, "time.ratio": 2.0, "time.ratio_high": 2.1, "time.seconds": 0.001}


def line(points, reason="right in both cases", title="Ragged", kind="correctness", state=None, **counters):
    state = state or ("full" if points == 15 else "lost" if points == 0 else "partial")
    about = {"key": title, "kind": kind, "title": title, "counters": counters}
    return about | {"points": points, "max": 15.0, "state": state, "reason": reason}


CLASS = {  # student: (points of the three cells, rows of the first task)
    "ada": ((15.0, 15.0, 4.0), [line(15.0)]),
    "bob": ((5.0, 15.0, None), [line(5.0, "M=3 N=5 (and 1 more): off by 7 at [2, 3]", **{"M=3 N=5": {}})]),
    "cy": ((0.0, None, None), [line(0.0, "M=4 N=8: off by 1 at [0, 1]", **{"M=4 N=8": {}})]),
    "dan": ((0.0, 0.0, 0.0), [line(0.0, "M=4 N=8: not written yet: still the stub", **{"M=4 N=8": {}})]),
    EVIL: (
        (0.0, 0.0, 0.0),
        [line(0.0, f"M=4 N=8: {EVIL}"), line(0.0, "stopped by the same error as 'Ragged'", "Edges")],
    ),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(course folder, Assignment, grades) of CLASS and of eve, whose file was malformed."""
    root, assignment = make_course(tmp_path_factory.mktemp("report") / "course")
    out, cells = root / "grades", assignment.graded()
    with CourseGradebook(out) as book:
        book.add_assignment(assignment)
        for number, (student, (points, lines)) in enumerate(CLASS.items()):
            given = {cell.grade_id: got for cell, got in zip(cells, points, strict=True)}
            book.save(assignment, student, given)
            verdict = stored_verdict(
                assignment, points, lambda cell, _, lines=lines: lines if cell is cells[0] else []
            )
            if student == "ada":
                timed = line(15.0, kind="time", title="Time", big=TIMES)
                verdict["cells"][cells[1].grade_id]["lines"] = [timed]
            more = {"notes": [f"put right: {EVIL}"]} if student == EVIL else {}
            more |= {"isolation": "unsafe (no sandbox)"} if student == "cy" else {}
            Results(out, "ps01").write(f"s{number}", record(student, "ps01", verdict=verdict, **more))
        Results(out, "ps01").write("eve", record("eve", "ps01", status="malformed", reason="no JSON"))
    hand_in(out / "feedback", "ada", "<html>", "ps01/ps01_tiny.html")
    return root, assignment, out


@pytest.fixture(scope="module")
def seen(graded):
    _, assignment, out = graded
    return overview(assignment, read_standings(out), Results(out, "ps01").all())


def test_shares_are_of_what_is_judged_and_who_has_no_score_is_in_none(seen):
    assert seen.shares == {"ada": 34 / 35, "bob": 20 / 30, "cy": 0.0, "dan": 0.0, EVIL: 0.0}
    assert seen.median == 0.0 and seen.statuses == {"graded": 5, "malformed": 1}


def test_tasks_stand_hardest_first_and_an_answer_by_hand_waits_until_all_are_read(seen):
    assert [(one.task, one.full, one.partial, one.none) for one in seen.tasks] == [
        ("ps01/launch_plan", 1, 1, 3),
        ("ps01/time_it", 2, 0, 2),
    ]
    assert seen.tasks[0].mean == pytest.approx(20 / 15 / 5)


def test_a_failing_row_has_its_commonest_pattern_whatever_numbers_were_drawn(seen):
    ragged = next(row for row in seen.rows if row.title == "Ragged")
    assert (ragged.failed, ragged.of, ragged.pattern, ragged.alike) == (3, 4, "off by N at [N, N]", 2)


def test_a_row_that_refers_to_another_has_that_ones_pattern(seen):
    assert next(row for row in seen.rows if row.title == "Edges").pattern == EVIL.replace("1", "N")


def test_the_longest_case_that_fits_is_cut_off_a_reason():
    one = line(
        0.0, "batch of 1: 30 tokens: `flops` is 230,400", **{"batch of 1": {}, "batch of 1: 30 tokens": {}}
    )
    assert pattern_of(one) == "`flops` is N"


def test_work_left_names_each_cell_that_waits(seen):
    assert [(one.cell, one.kind, one.points, one.students) for one in seen.work] == [
        ("explain", "manual", 5.0, 2),
        ("time_it-test", "ungraded", 15.0, 1),
    ]


def test_what_was_put_right_and_graded_without_a_sandbox_is_flagged(seen):
    assert dict(seen.flags) == {EVIL: f"put right: {EVIL}", "cy": "graded unsafe (no sandbox)"}


def test_a_timed_row_is_told_with_its_interval(seen):
    (one,) = seen.timings
    assert (one.student, one.low, one.ratio, one.high) == ("ada", 1.9, 2.0, 2.1)


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.titles = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        self.titles += tag == "title"


@pytest.fixture(scope="module")
def page(graded, tmp_path_factory):
    root, _, out = graded
    path = out / "class_report.html"
    write_report(root, ["ps01"], out, path)
    return path.read_text()


@pytest.mark.slow
def test_the_page_is_one_file_and_no_text_of_a_students_is_markup(page):
    parsed = _Page(page)
    assert "script" not in parsed.tags and EVIL not in page and "&lt;script&gt;" in page
    assert not [link for link in parsed.links if not link.startswith(("#", "./"))]
    assert "default-src 'none'" in page


@pytest.mark.slow
def test_copies_are_told_as_a_group_and_names_in_a_reason_are_code(graded, tmp_path, monkeypatch):
    found = [Pair("f", first, second, 1.0, None) for first, second in ("ab", "bc", "ac")]
    found += [Pair("g", f"s{number}", f"t{number}", 0.9, None) for number in range(6)]
    monkeypatch.setattr("autograder.class_report.class_page.similar_answers", lambda *_: found)
    pattern = "`out` is wrong <b> at `[N]"
    monkeypatch.setattr("autograder.class_report.overview.pattern_of", lambda *_: pattern)
    write_report(graded[0], ["ps01"], graded[2], tmp_path / "p.html")
    page = " ".join((tmp_path / "p.html").read_text().split())
    assert "<li>Answers of a, b, c are at least 85 % alike: f.</li>" in page and "2 more groups are." in page
    assert "<code>out</code> is wrong &lt;b&gt; at `[N]" in page


def test_every_plot_is_told_in_words_and_drawn_for_a_phone_too(page):
    drawings = re.findall(r"<svg[^>]*>", page)
    assert len(drawings) == 6 and all('role="img"' in one and "aria-labelledby" in one for one in drawings)
    assert sum('class="narrow"' in one for one in drawings) == 3
    assert "ps01/launch_plan: 1 all, 1 some, 3 none" in page and "median 0 %" in page


def test_the_feedback_pages_that_are_there_are_linked(page):
    assert 'href="./feedback/ada/ps01/ps01_tiny.html">34</a>' in page
    assert "20 (+5 open)" in page and "malformed" in page


@pytest.mark.slow
def test_the_command_writes_it_where_the_grades_are(graded):
    told = command(graded[0], "report")
    assert told == (0, "grades/class_report.html: ps01\n", "")
    status, _, told = command(graded[0], "report", "--grades", "nowhere")
    assert status == 2 and "no gradebook in nowhere" in told
    status, _, told = command(graded[0], "report", "ps09")
    assert status == 2 and 'unknown assignment "ps09"' in told


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone_and_one_drawing_of_two_is_shown(graded, page, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto((graded[2] / "class_report.html").as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    cut = "[...document.querySelectorAll('.table')].filter(t => t.scrollWidth > t.clientWidth + 1).length"
    assert shown.locator(".table").count() > 3 and shown.evaluate(cut) == 0
    visible = shown.evaluate(
        "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width).length"
    )
    assert visible == 3
    context.close()
