"""Plans of a term and of a workshop, from the chapters and sets of this course."""

import csv
import re
from dataclasses import replace
from datetime import date, timedelta

import pytest
from conftest import ROOT

from autograder.syllabus import ORDER, STUDY, TOGETHER, ProblemSet, read_chapters, read_sets, term, workshop

BEGIN = date(2027, 2, 1)
CHAPTERS = len(read_chapters(ROOT))
LESSONS = CHAPTERS - len(TOGETHER)  # weeks that the whole book takes


def rows(plan):
    return [
        (date.fromisoformat(day), what, which)
        for day, what, which in list(csv.reader(plan.dates.split("\n")))[1:-1]
    ]


def test_chapters_and_sets_are_read_from_what_they_say_of_themselves():
    chapters, sets = read_chapters(ROOT), {one.name: one for one in read_sets(ROOT)}
    assert [one.number for one in chapters] == list(range(1, CHAPTERS + 1)) and len(sets) == 16
    assert sorted(ORDER) == [one.number for one in chapters], "ORDER says which chapters stay where few fit"
    fourth = sets["ps04"]
    assert fourth == ProblemSet("ps04", "Matrix multiplication", 4, 4.5, 100, 15, 1.5)
    assert (sets["ps00"].chapter, sets["ps00"].hours, sets["ps12"].chapter) == (0, 1, 8)
    assert sets["ps15"] == ProblemSet(
        "ps15", "Tomorrow's kernels", 14, 5, 100, 0, 0
    )  # stars alone: all or none


def test_stars_come_on_top_where_the_head_says_so_and_are_a_share_by_points_elsewhere():
    sets = {one.name: one for one in read_sets(ROOT)}
    took = {name: (sets[name].takes, replace(sets[name], starred=False).takes) for name in ("ps05", "ps07")}
    assert took == {"ps05": (6, 4.5), "ps07": (5, 4)}  # 20 of ps07's 100 points have a star


def test_a_course_may_lack_chapters_have_its_own_and_a_set_that_does_not_say_its_hours(tmp_path):
    for place in ("chapters/01-pixels.md", "chapters/04-matmul.md", "exercises/ps01", "exercises/ps04"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).symlink_to(ROOT / place)
    fourth = (ROOT / "chapters/04-matmul.md").read_text()
    (tmp_path / "chapters/15-ours.md").write_text(fourth.replace("# 4. ", "# 15. "))
    head = (ROOT / "exercises/ps02/ps02_cores.ipynb").read_text()
    (tmp_path / "exercises/ps02").mkdir()
    (tmp_path / "exercises/ps02/ps02_cores.ipynb").write_text(head.replace("**About", "**Some"))
    for plan in (term(tmp_path, 3, 8, BEGIN), workshop(tmp_path, 3, BEGIN)):
        assert [which for _, kind, which in rows(plan) if kind == "chapter"] == ["1", "4", "15"]
    assert "does not say how long" in term(tmp_path, 3, 8, BEGIN).left["ps02"]


@pytest.mark.parametrize("weeks, study", [(4, 6), (12, 5), (12, 6), (14, 8), (30, 12)])
def test_no_week_of_a_term_takes_more_than_a_student_has(weeks, study):
    plan = term(ROOT, weeks, study, BEGIN)
    own = [float(hours) for hours in re.findall(r"\| ([\d.]+) h \|$", plan.syllabus, re.MULTILINE)]
    assert own and max(own) <= study
    told = rows(plan)
    given, due = ({which: day for day, kind, which in told if kind == what} for what in ("given", "due"))
    assert given.keys() == due.keys() and given.keys() | plan.left.keys() == {
        one.name for one in read_sets(ROOT)
    }
    assert all(due[name] - given[name] == timedelta(weeks=1 if name == "ps00" else 2) for name in given)
    assert max(due.values()) <= BEGIN + timedelta(weeks=weeks)
    chapters = [int(which) for _, kind, which in told if kind == "chapter"]
    pairs = sum(set(pair) <= set(chapters) for pair in TOGETHER)
    assert chapters == sorted(chapters) and len(chapters) - pairs == min(weeks, LESSONS)


def test_a_term_of_two_weeks_more_than_the_book_takes_has_two_without_a_chapter():
    plan = term(ROOT, LESSONS + 2, 8, BEGIN).syllabus
    free = [line.split(" | ")[0] for line in plan.split("\n") if "work on the sets" in line]
    assert free == [f"| {(LESSONS + 1) // 2 + 1}", f"| {LESSONS + 2}"]


def test_the_hours_that_nobody_named_hold_all_sets_but_the_closing_ones_in_twelve_weeks():
    assert term(ROOT, 12, STUDY, BEGIN).left.keys() == {"ps12", "ps13", "ps14", "ps15"}
    assert {"ps03", "ps04"} <= term(ROOT, 12, STUDY - 1, BEGIN).left.keys()
    assert "\n1 week, one meeting. " in term(ROOT, 1, STUDY, BEGIN).syllabus


def test_a_workshop_has_the_chapters_of_the_books_own_plans():
    for hours, chapters in ((2, "1 5"), (4, "1 2 4 5"), (8, "1 2 3 4 5 6 7 9")):
        assert [which for _, _, which in rows(workshop(ROOT, hours, BEGIN))] == chapters.split()
    long = workshop(ROOT, CHAPTERS + 2, BEGIN)  # all but the last of ORDER, which is for a term
    assert long.syllabus.count("at the keyboard: the problem sets") == 3
    assert max(day for day, _, _ in rows(long)) == BEGIN + timedelta(days=1)
