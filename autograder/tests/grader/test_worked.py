"""Worked solutions: every task has one, and a student's page shows it only where all points are."""

from dataclasses import asdict

import pytest
import yaml
from corpus_files import SOLUTIONS
from grading import grading, make_course

from autograder.gradebook import ByHand, CourseGradebook
from autograder.judge.judge import CellVerdict, Verdict
from autograder.layout import load_assignment
from autograder.user_error import UserError
from autograder.worked import Worked, another_answer, worked, write_worked
from warplab.tasks import registry

ROOT = SOLUTIONS["ps04"].parents[1]
AFTER = yaml.safe_load((ROOT / "solutions" / "after.yml").read_text()).keys()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", sorted(set(SOLUTIONS) - {"ps00"}))  # a warm-up shows an answer to everybody
def test_each_task_has_its_solution_another_answer_and_what_comes_next(name):
    found = worked(ROOT, name)
    tasks = {one.name: one for one in found.values() if not one.written}
    assert tasks.keys() == set(registry.names(name))
    assert [one.name for one in tasks.values() if not (one.another and one.another[0])] == []
    assert {task for task, one in tasks.items() if one.after} == AFTER & tasks.keys()
    assert not any("SOLUTION" in one.answer or "points" in one.another[0] for one in tasks.values())
    (prose,) = (one for one in found.values() if one.written)
    assert "<strong>Sample answer.</strong>" in prose.answer and "<strong>Marking.</strong>" in prose.answer
    assert found.keys() <= load_assignment(ROOT, name).cells.keys()


def test_the_other_answer_is_the_one_least_like_the_solution(tmp_path):
    answer = "for i in range(9):\n    total += x[i] * y[i]\n"
    (tmp_path / "correct_alike.py").write_text(f'"""9 points: alike."""\n\n{answer}')
    (tmp_path / "correct_other.py").write_text('"""9 points: a product."""\n\nreturn x @ y\n')
    (tmp_path / "wrong_other.py").write_text('"""0 points: nothing."""\n\npass\n')
    assert another_answer(tmp_path, answer) == ("a product.", "return x @ y")
    assert another_answer(tmp_path / "nowhere", answer) is None


@pytest.mark.parametrize(
    ("given", "opened"), [({}, ["launch_plan-test"]), ({"time_it-test": 15, "explain": 5.0}, list("lte"))]
)
def test_a_page_shows_a_solution_only_beside_all_points(tmp_path, monkeypatch, given, opened):
    root, assignment = make_course(tmp_path / "course")
    cells = {
        "launch_plan-test": CellVerdict("launch_plan-test", 15.0, 15.0, "full", "ps01/launch_plan"),
        "time_it-test": CellVerdict("time_it-test", 14.5, 15.0, "partial", "ps01/time_it"),
        "explain": CellVerdict("explain", None, 5.0, "manual"),
    }
    verdict = Verdict("graded", "", cells, "sandboxed", 1.0)
    record = {"student": "ada", "status": "graded", "reason": "", "notes": [], "isolation": "sandboxed"}
    record["verdict"] = asdict(verdict)
    monkeypatch.setattr(CourseGradebook, "by_hand", lambda *_: ByHand(given))
    pages = grading(root, "ps01", tmp_path, tmp_path / "out").pages
    with CourseGradebook(tmp_path / "out") as book:
        page = pages.page(book, record, assignment.document)
        key = pages.key(book, "ada")
        (root / "solutions" / "after.yml").write_text("ps01/launch_plan: now `another` <b>")
        again = grading(root, "ps01", tmp_path, tmp_path / "out").pages
        assert "<code>another</code> &lt;b&gt;" in again.page(book, record, assignment.document)
        assert again.key(book, "ada") != key  # so that `grade` writes the page anew
        book.gradebook.update_or_create_assignment("ps01", duedate="2222-03-01 12:00:00")
        assert 'class="worked"' not in again.page(book, record, assignment.document)
        waiting = again.key(book, "ada")
        book.gradebook.update_or_create_assignment("ps01", duedate="2020-03-01 12:00:00")
        assert again.page(book, record, assignment.document).count('class="worked"') == len(opened)
        assert again.key(book, "ada") != waiting
    assert page.count('<details class="worked"') == len(opened)
    assert ("secret_columns" in page, "samples.append" in page, "so it must wait" in page) == (
        True,
        *[len(opened) == 3] * 2,
    )


@pytest.mark.parametrize("text", ["ps01/launch_plan: [", "- a list", "\0"])
def test_a_damaged_file_beside_the_solutions_is_named(tmp_path, text):
    root, _ = make_course(tmp_path / "course")
    (root / "solutions" / "after.yml").write_text(text)
    with pytest.raises(UserError, match="after.yml"):
        worked(root, "ps01")


def test_the_page_of_a_whole_set_waits_for_the_due_date_unless_it_is_asked_for_early(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    page = tmp_path / "page.html"
    with CourseGradebook(tmp_path) as book:
        book.gradebook.update_or_create_assignment("ps01", duedate="2222-03-01 12:00:00")
    with pytest.raises(UserError, match="ps01 is due 2222-03-01 12:00 UTC.*--early"):
        write_worked(root, assignment, page, tmp_path)
    assert not page.exists()
    write_worked(root, assignment, page)
    page.unlink()
    with CourseGradebook(tmp_path) as book:
        book.gradebook.update_or_create_assignment("ps01", duedate="2020-03-01 12:00:00")
    write_worked(root, assignment, page, tmp_path)
    write_worked(root, assignment, page, tmp_path / "no gradebook")
    assert page.exists()


def test_without_solutions_there_is_nothing_to_show_and_the_page_says_so(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    assert worked(tmp_path, "ps01") == {}
    assert worked(root, "ps01")["explain"] == Worked(
        "explain", "<p>The clock runs on the host, so it must wait.</p>\n", True
    )
    write_worked(root, assignment, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "secret_columns" in page and "so it must wait" in page and "<script" not in page
    for file in (root / "solutions").glob("*.py"):
        file.unlink()
    with pytest.raises(UserError, match="no solution"):
        write_worked(root, assignment, tmp_path / "page.html")
