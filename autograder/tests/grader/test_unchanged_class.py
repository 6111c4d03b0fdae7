"""A class that is graded a second time, unchanged: what its second run asks and writes."""

import pytest
import sqlalchemy
from grading import make_course

from autograder.gradebook import ByHand, CourseGradebook


def questions(out, assignment, students):
    """How many statements a gradebook gets that is asked what every student of a class was given by hand."""
    with CourseGradebook(out) as book:
        book.add_assignment(assignment)
        for student in students:
            book.save(assignment, student, {"launch_plan-test": 3.0})
        asked = []
        sqlalchemy.event.listen(
            book.gradebook.engine, "before_cursor_execute", lambda *words: asked.append(words[2])
        )
        book.look_up(assignment)
        for student in students:
            assert book.has(assignment, student)
            book.penalise(assignment, student)
            assert book.by_hand(assignment, student) == ByHand()
        return len(asked)


@pytest.mark.slow
def test_a_class_three_times_as_large_asks_the_gradebook_as_few_questions(tmp_path):
    _, assignment = make_course(tmp_path / "course")
    few = questions(tmp_path / "few", assignment, ["ada", "bob"])
    many = questions(tmp_path / "many", assignment, ["ada", "bob", "cyd", "dot", "eve", "fay"])
    assert few == many < 12


@pytest.mark.slow
def test_points_entered_after_the_class_was_looked_up_are_told_once_something_was_saved(tmp_path):
    _, assignment = make_course(tmp_path / "course")
    with CourseGradebook(tmp_path) as book, CourseGradebook(tmp_path) as formgrader:
        book.add_assignment(assignment)
        book.save(assignment, "ada", {})
        book.look_up(assignment)
        found = formgrader.gradebook.find_submission("ps01", "ada")
        grade = found.notebooks[0].grades[0]
        grade.manual_score, name = 2.0, grade.name
        formgrader.gradebook.db.commit()
        book.save(assignment, "bob", {})
        assert book.by_hand(assignment, "ada")[0] == {name: 2.0}
