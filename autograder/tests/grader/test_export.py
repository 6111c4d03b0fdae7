"""autograder export: each table as its reader takes it, what is open never as 0, no formula."""

import csv
import io
import shutil

import pytest
from grading import command, make_course, record, rows_of, stored_verdict
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config

from autograder.gradebook import CourseGradebook, write_csv
from autograder.gradebook.late_policy import PerDay
from autograder.gradebook.passing_on import (
    TABLES,
    export,
    platform_table,
    read_standings,
    totals,
    totals_csv,
)
from autograder.gradebook.standing import CellPoints, Standing
from autograder.results import Results
from autograder.roster import Person
from autograder.user_error import UserError

ADA = Person("ada", "ada", "Ada", "Lovelace", "ada@example.org", "7", "S7", "A")
BOB = Person("bob", "bob", "=cmd|' /C calc'!A0", "Hopper", "bob@example.org", "8")


def standing(student="ada", name="ps04", points=(30.0, 12.5), penalty=0.0, **more):
    """A set of 50 points: 30 checked, 15 by hand, 5 timed. points: of the three, None for what is open."""
    points = (*points, None)[:3]
    cells = (("checks", "ungraded", 30.0), ("written", "manual", 15.0), ("timed", "ungraded", 5.0))
    given = tuple(CellPoints(*cell, got) for cell, got in zip(cells, points, strict=True))
    return Standing(student, name, 50.0, "graded", cells=given, penalty=penalty, **more)


def missing(student="ada", name="ps05", status="missing"):
    return Standing(student, name, 50.0, status, "no file")


def rows(text, **options):
    return list(csv.reader(io.StringIO(text, newline=""), **options))


def test_a_standing_tells_what_is_given_decided_and_open_apart():
    one = standing(points=(30.0, None), penalty=4.0)
    assert (one.score, one.decided, one.open("ungraded"), one.open("manual")) == (26.0, 30.0, 5.0, 15.0)
    left = one.without({"timed"})
    assert (left.score, left.max, left.open("ungraded")) == (26.0, 45.0, 0.0)


def test_a_cell_that_is_left_out_takes_its_share_of_the_penalty_along():
    """A day late at 10 %: of 30 + 10 + 5 points 4.5 were taken, 0.5 of them for the timed cell's 5."""
    left = standing(points=(30.0, 10.0, 5.0), penalty=4.5).without({"timed"})
    assert (left.penalty, left.score) == (4.0, 36.0)
    assert standing(points=(0.0, 0.0, 0.0), penalty=2.0).without({"timed"}).score == 0.0


def test_totals_keep_what_is_open_beside_the_total():
    (one,) = totals([standing(), standing(name="ps05", points=(20.0, None), penalty=2.0)])
    assert one.sets == {"ps04": 42.5, "ps05": 18.0}
    assert (one.score, one.out_of, one.ungraded, one.manual, one.penalty) == (60.5, 75.0, 10.0, 15.0, 2.0)


def test_what_never_came_stays_open_unless_told_to_count_as_0_and_is_dropped_first():
    sets = [standing(), missing(), standing(name="ps06", points=(3.0, 0.0))]
    (open_,) = totals(sets)
    assert (open_.score, open_.out_of, open_.without_score) == (45.5, 90.0, ("ps05",))
    (zero,) = totals(sets, missing_zero=True)
    assert (zero.score, zero.out_of, zero.without_score) == (45.5, 140.0, ())
    (one,) = totals(sets, drop=1, missing_zero=True)
    assert (one.dropped, one.score, one.out_of) == (("ps05",), 45.5, 90.0)
    (two,) = totals(sets, drop=2, missing_zero=True)
    assert (two.dropped, two.score, two.out_of) == (("ps05", "ps06"), 42.5, 45.0)


def test_the_lowest_set_is_the_one_with_the_smallest_share_of_what_is_judged():
    # 20 of 45 judged is less than 25 of 30, whose other 20 points are open
    (one,) = totals([standing(points=(10.0, 10.0)), standing(name="ps05", points=(25.0, None))], drop=1)
    assert one.dropped == ("ps04",) and one.score == 25.0


def test_what_could_not_be_graded_is_never_dropped_nor_0():
    sets = [standing(), missing(status="malformed"), standing(name="ps06", points=(3.0, 0.0))]
    (one,) = totals(sets, drop=1, missing_zero=True)
    assert (one.dropped, one.without_score, one.out_of) == (("ps06",), ("ps05",), 45.0)


def test_a_student_who_is_in_no_folder_of_a_set_has_it_missing():
    ada, bob = totals([standing(), standing("bob", "ps05")])
    assert ada.without_score == ("ps05",) and bob.without_score == ("ps04",)


def test_as_many_sets_as_there_are_cannot_be_dropped():
    with pytest.raises(UserError, match="--drop-lowest 2 of 2 sets leaves none"):
        totals([standing(), missing()], drop=2)


def test_the_totals_as_csv():
    found = totals(
        [standing(), standing(name="ps05", points=(20.0, None)), standing("=1+1", points=(1.0, 2.0))]
    )
    assert rows(totals_csv(found)) == [
        ["student_id", "ps04", "ps05", "score", "out_of", "ungraded_points", "manual_points_pending"]
        + ["late_penalty", "without_score", "dropped"],
        ["'=1+1", "3", "", "3", "45", "5", "0", "0", "ps05", ""],
        ["ada", "42.5", "20", "62.5", "75", "10", "15", "0", "", ""],
    ]


def whole(student="ada"):
    return standing(student).without({"timed"})


def read_as_canvas_does(text):
    """{ID: score} and the points possible, by the rules of Canvas's GradebookImporter."""
    header, *lines = rows(text)
    assert len(header) > 3 and "Student" in header[0] and "ID" in header[1]
    assert header[2:5] == ["SIS User ID", "SIS Login ID", "Section"]
    possible = [line for line in lines if "Points Possible" in line[0]]
    students = [line for line in lines if "Points Possible" not in line[0]]
    return {line[1]: line[5] for line in students}, [line[5] for line in possible], header[5]


def test_canvas_reads_its_table_and_who_has_no_grade_has_no_line():
    pointed = Person("eve", "eve", "Eve", "Points Possible 9", "", "9")
    odd = Person("mal", "=mal", "Mal", "Y", "", "10")
    roster = {one.student: one for one in (ADA, BOB, pointed, odd)}
    found = [whole(), whole("bob"), whole("eve"), whole("mal"), whole("zoe")]
    text, left_out = platform_table("canvas", [*found, missing("ada")], roster, "PS 4 (123)")
    assert text == (
        "Student,ID,SIS User ID,SIS Login ID,Section,PS 4 (123)\r\n"
        "    Points Possible,,,,,45\r\n"
        '"Lovelace, Ada",7,S7,ada,A,42.5\r\n'
        "\"Hopper, =cmd|' /C calc'!A0\",8,,bob,,42.5\r\n"
    )
    assert read_as_canvas_does(text) == ({"7": "42.5", "8": "42.5"}, ["45"], "PS 4 (123)")
    assert dict(left_out) == {
        "ada": "missing: no file",
        "eve": "Canvas would read this name as the line of points: enter it by hand",
        "mal": "the roster's id begins like a formula: enter this one by hand",
        "zoe": "not in the roster",
    }


def test_moodles_table_maps_to_one_person_each_and_holds_numbers_alone():
    open_ = standing("bob", points=(30.0, None))
    text, left_out = platform_table("moodle", [whole(), open_], {"ada": ADA, "bob": BOB}, "ps04")
    assert text == "Username,Email address,ps04\r\nada,ada@example.org,42.5\r\n"
    assert left_out == [("bob", "5 points wait for a GPU, 15 points wait for you in formgrader")]


def test_blackboards_table_has_every_field_in_quotes_and_the_columns_id():
    column = "ps04 [Total Pts: 100 Score] |12345"
    text, left_out = platform_table("blackboard", [whole(), whole("bob")], {"ada": ADA, "bob": BOB}, column)
    head, ada, bob = text.splitlines()
    assert head == f'"Last Name","First Name","Username","{column}"'
    assert ada == '"Lovelace","Ada","ada","42.5"'
    assert rows(bob)[0][1].startswith("'=")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_no_target_gets_a_cell_that_begins_like_a_formula(sign):
    named = Person("ada", "ada", f"{sign}1+1", f"{sign}HYPERLINK()", "ada@example.org", "7", "", f"{sign}A")
    known = Person("bob", f"{sign}bob", "B", "B", "b@example.org", "8")
    roster = {"ada": named, "bob": known}
    for target in TABLES:
        text, left_out = platform_table(target, [whole(), whole("bob")], roster, "ps04")
        cells = [cell for row in rows(text) for cell in row]
        assert not [cell for cell in cells if cell.lstrip(" ")[:1] in "=+-@\t\r" and cell]
        assert dict(left_out).keys() == {"bob"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A graded class of the tiny course: (course, grades). ada is whole, bob waits, eve is malformed."""
    root, assignment = make_course(tmp_path_factory.mktemp("export") / "course")
    out = root / "grades"
    names = [cell.grade_id for cell in assignment.graded()]
    line = {"key": "k", "kind": "correctness", "title": "Ragged", "state": "partial", "reason": "one is off"}
    with CourseGradebook(out) as book:
        book.add_assignment(assignment)
        for student, given in (("ada", (15.0, 7.5, 5.0)), ("bob", (15.0, None, None))):
            book.save(assignment, student, dict(zip(names, given, strict=True)))
            verdict = stored_verdict(
                assignment,
                given,
                lambda cell, got: [line | {"points": got, "max": cell.points}] * bool(cell.task and got),
            )
            Results(out, "ps01").write(student, record(student, "ps01", verdict=verdict, attempt=1))
        bad = record("eve", "ps01", status="malformed", reason="no JSON")
        Results(out, "ps01").write("eve", bad)
        write_csv(book.gradebook, out, out / "grades.csv")
    (root / "roster.csv").write_text(
        "id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,a@b.org,7\nbob,,,,8\n"
    )
    return root, out


def test_standings_are_what_grades_csv_says(graded):
    found = {one.student: one for one in read_standings(graded[1])}
    assert (found["ada"].score, found["bob"].score, found["eve"].has_score) == (27.5, 15.0, False)
    table = rows_of(graded[1])
    assert (table["ada"]["score"], table["bob"]["ungraded_points"], table["eve"]["score"]) == (
        "27.5",
        "15",
        "",
    )
    assert (table["bob"]["manual_points_pending"], table["eve"]["reason"]) == ("5", "no JSON")


def test_what_is_ungraded_for_anybody_can_be_left_out_for_everybody(graded):
    root, out = graded
    done = export(root, ["ps01"], "canvas", out, leave_out_ungraded=True)
    assert read_as_canvas_does(done.path.read_text()) == ({"7": "20"}, ["20"], "ps01_tiny")
    assert dict(done.left_out)["bob"] == "5 points wait for you in formgrader"


def test_where_nobody_has_a_grade_nothing_is_written_and_the_option_is_named(graded, tmp_path):
    root, out = graded
    (tmp_path / "roster.csv").write_text("id,lms_user_id\nbob,8\n")
    shutil.copytree(out, tmp_path / "copy")
    (tmp_path / "copy" / "ps01_canvas.csv").unlink(missing_ok=True)  # of another test
    with pytest.raises(UserError) as told:
        export(root, ["ps01"], "canvas", tmp_path / "copy", roster=tmp_path / "roster.csv")
    assert "nobody has a grade to pass on" in str(told.value)
    assert (
        "bob: 15 points wait for a GPU" in str(told.value)
        and str(told.value).count("--leave-out-ungraded") == 1
    )
    assert not (tmp_path / "copy" / "ps01_canvas.csv").exists()


@pytest.mark.parametrize(
    "words, why",
    [
        (["--to", "excel"], "none of csv, canvas, moodle, blackboard"),
        (["--to", "canvas"], "takes one set, such as: autograder export ps04 --to canvas"),
        (["ps01", "--to", "canvas", "--drop-lowest", "1"], "make totals, which --to csv writes"),
        (["ps01", "--to", "canvas", "--roster", "nowhere.csv"], "cannot read nowhere.csv"),
        (["ps01", "--grades", "nowhere"], "no gradebook in nowhere"),
        (["ps07"], 'unknown assignment "ps07"'),
        (["--drop-lowest", "1"], "leaves none"),
    ],
)
def test_a_mistake_is_one_line(graded, words, why):
    status, _, told = command(graded[0], "export", *words)
    assert status == 2 and why in told and told.count("\n") == 1


def test_the_command_names_who_is_left_out(graded):
    status, told, _ = command(graded[0], "export", "ps01", "--to", "moodle")
    assert not status
    assert "left out: eve: not in the roster" in told and "ps01_moodle.csv: 1 students, 2 left out" in told


@pytest.mark.parametrize(
    "hours, taken",
    [(0.2, None), (12, 4.0), (24, 8.0), (24 * 30, 40.0)],
    ids=["grace", "half", "day", "month"],
)
def test_a_day_late_takes_a_tenth_after_the_grace_and_never_more_than_the_most(hours, taken):
    policy = PerDay(percent=10.0, grace_minutes=15, most_percent=50.0)
    assert policy.late_submission_penalty("ada", 80.0, hours * 3600) == taken


def test_nbgrader_takes_the_late_policy_from_its_configuration_by_name():
    settings = Config()
    settings.AssignLatePenalties.plugin_class = "autograder.gradebook.late_policy.PerDay"
    settings.PerDay.percent = 20.0
    late = AssignLatePenalties(config=settings)
    late.init_plugin()
    assert late.plugin_inst.late_submission_penalty("ada", 50.0, 86_400) == 10.0
