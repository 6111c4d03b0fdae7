"""The commands after grading: pass grades on, look at the class, forget a student."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import (
    AnswerIsNo,
    GradedSets,
    Grades,
    Page,
    ProblemSet,
    Root,
    RosterFile,
    Students,
    Submissions,
    Yes,
    here,
    tell,
)
from autograder.layout import load_assignment
from autograder.user_error import UserError, first_few

commands = typer.Typer()
PANEL = "Afterwards"


@commands.command(rich_help_panel=PANEL)
def report(
    names: GradedSets = None,
    grades: Grades = None,
    to: Page = None,
    table: Annotated[
        str | None, typer.Option(metavar="TASK", help="Also a page for the class: who counts least in it.")
    ] = None,
    course: Root = None,
) -> None:
    """Write one page on the class: how sets and tasks went, what fails most, what is left to do."""
    from autograder.class_report.class_page import write_report
    from autograder.class_report.class_table import write_table

    at = here(course, grades)
    page = to or at.grades / "class_report.html"
    sets = write_report(at.root, names or (), at.grades, page)
    tell(f"{at.shown(page)}: {', '.join(one.name for one in sets)}")
    if table:
        public = at.grades / f"{table.replace('/', '_')}_table.html"
        whose = write_table(at.root, table, at.grades, public)
        tell(f"{at.shown(public)}: a page for the class; whose the names are: {at.shown(whose)}")


@commands.command(rich_help_panel=PANEL)
def worked(
    assignment: ProblemSet,
    early: Annotated[
        bool, typer.Option("--early", help="Also before the set's due date, while others are at work.")
    ] = False,
    grades: Grades = None,
    to: Page = None,
    course: Root = None,
) -> None:
    """Write a page of worked solutions, for after the deadline; feedback pages have those of full points."""
    from autograder.worked import write_worked

    at = here(course, grades)
    page = to or at.grades / "worked" / f"{assignment}.html"
    write_worked(at.root, load_assignment(at.root, assignment), page, None if early else at.grades)
    tell(f"{at.shown(page)}: written")


@commands.command(rich_help_panel=PANEL)
def oral(
    assignment: ProblemSet,
    student: Students = None,
    grades: Grades = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="A folder (default: oral/<set>/ in that one).")
    ] = None,
    course: Root = None,
) -> None:
    """Write a sheet of questions about each student's own lines, with what to look for in the answers."""
    from autograder.oral.sheet import write_sheets

    at = here(course, grades)
    released, folder = load_assignment(at.root, assignment), to or at.grades / "oral" / assignment
    for path in write_sheets(released, at.grades, student or [], folder):
        tell(f"{at.shown(path)}: written")


@commands.command(rich_help_panel=PANEL)
def similar(
    assignment: ProblemSet,
    grades: Grades = None,
    to: Page = None,
    course: Root = None,
) -> None:
    """Name groups whose answers are more alike than independent ones: for a person, never points."""
    from autograder.similar import groups, similar_answers, threshold, write_page

    at = here(course, grades)
    released, page = load_assignment(at.root, assignment), to or at.grades / "similar" / f"{assignment}.html"
    found = similar_answers(released, at.grades)
    write_page(released, at.grades, found, page)
    linked = groups(found)
    for group in linked[:20]:
        cells = ", ".join(f"{cell} ({count})" for cell, count in group.cells.items())
        tell(f"{', '.join(group.students)}: {cells}, up to {100 * group.most:.0f} %")
    count = f"{len(linked)} group{'s' * (len(linked) != 1)}, {len(found)} pair{'s' * (len(found) != 1)}"
    tell(f"{count} from {100 * threshold():.0f} % on; both texts side by side: {at.shown(page)}")


@commands.command(rich_help_panel=PANEL)
def export(
    names: GradedSets = None,
    to: Annotated[
        str,
        typer.Option("--to", help="csv: a line a student, all sets. canvas, moodle, blackboard: one set."),
    ] = "csv",
    grades: Grades = None,
    roster: RosterFile = None,
    column: Annotated[
        str | None, typer.Option(help="Head of the grades' column, as the platform has it.")
    ] = None,
    drop_lowest: Annotated[
        int, typer.Option(min=0, help="Of each student's sets, this many do not count.")
    ] = 0,
    missing_zero: Annotated[
        bool, typer.Option("--missing-zero", help="What was not handed in counts 0 (default: it stays open).")
    ] = False,
    leave_out_ungraded: Annotated[
        bool, typer.Option("--leave-out-ungraded", help="What is ungraded for anybody counts for nobody.")
    ] = False,
    course: Root = None,
) -> None:
    """Write grades for another system. Who has no grade yet is left out and named, and never has a 0."""
    from autograder.gradebook.passing_on import cure
    from autograder.gradebook.passing_on import export as run

    at = here(course, grades)
    done = run(
        at.root,
        names or (),
        to,
        at.grades,
        roster=roster,
        column=column,
        drop=drop_lowest,
        missing_zero=missing_zero,
        leave_out_ungraded=leave_out_ungraded,
    )
    for student, why in done.left_out:
        tell(f"left out: {student}: {why}{cure(why)}")
    also = f", {len(done.left_out)} left out" if done.left_out else ""
    tell(f"{at.shown(done.path)}: {done.count} students{also}")
    if done.advice:
        tell(f"note: {done.advice}")


@commands.command(rich_help_panel=PANEL)
def give_back(
    assignment: ProblemSet,
    to: Annotated[
        str,
        typer.Option(
            help="canvas, moodle: an archive to upload there. repositories: a branch in those of --list. "
            "web: a folder for a web server."
        ),
    ],
    grades: Grades = None,
    submissions: Submissions = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--list", help="CSV file as `collect` reads it: student and repository, or GitHub Classroom's."
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help="How is pushed: ssh, https, or file.")] = "ssh",
    course: Root = None,
) -> None:
    """Give the feedback pages back: an archive for Canvas or Moodle, by git, or a folder for the web."""
    from autograder import giving_back

    at = here(course, grades, submissions)
    released, archives = load_assignment(at.root, assignment), giving_back.ARCHIVES
    if to in archives:
        place = at.grades / f"{assignment}_feedback_{to}.zip"
        done = giving_back.archive(released, at.grades, at.submissions, archives[to], place)
    elif to == "web":
        place = at.grades / "web"
        done = giving_back.folder(released, at.grades, place)
    elif to == "repositories" and listed:
        place, done = listed, giving_back.repositories(released, at.grades, at.submissions, listed, protocol)
    else:
        raise UserError("--to canvas, moodle, web, or repositories with --list repositories.csv")
    told = list(done)
    missed = [(student, why) for student, why in told if why]
    for student, why in missed:
        tell(f"not given back: {student}: {why}")
    tell(f"{at.shown(place)}: {len(told) - len(missed)} of {len(told)} pages")
    raise typer.Exit(1 if missed else 0)


@commands.command(rich_help_panel=PANEL)
def requests(
    assignment: ProblemSet, grades: Grades = None, submissions: Submissions = None, course: Root = None
) -> None:
    """List who asks for a regrade, beside the rows of the answer; your answers go onto the feedback pages."""
    from autograder.discover import written_out
    from autograder.report.asked import list_requests

    at = here(course, grades, submissions)
    rows = list_requests(load_assignment(at.root, assignment), at.grades, at.submissions)
    for row in rows:
        more = (f"    {what}: {written_out(row[what])}" for what in ("asks", "rows", "answer") if row[what])
        tell("\n".join((f"{row['student']}: {written_out(row['task'])}: {row['points']}", *more)))
    open_ = sum(not row["answer"] for row in rows)
    count = f"{len(rows)} request{'s' * (len(rows) != 1)}, {open_} without an answer"
    tell(f"{count}; enter answers in {at.shown(at.grades / f'{assignment}.requests.csv')},")
    tell(f"points in formgrader, and autograder grade {assignment} puts both onto the pages")


@commands.command(rich_help_panel=PANEL)
def forget(
    student: Annotated[str, typer.Argument(help="The student, as the folder of submissions is named.")],
    out: Grades = None,
    submissions: Submissions = None,
    yes: Yes = False,
    course: Root = None,
) -> None:
    """Remove one student's work, results, feedback and gradebook entries, and say what is left elsewhere."""
    from autograder.forget import forget as run
    from autograder.forget import traces_of

    at = here(course, out, submissions)
    found = traces_of(student, at.root, at.grades, at.submissions)
    if not found and not found.beside:
        raise UserError(f'nothing here is of "{student}": looked in {at.grades} and {at.submissions}')
    for line in found.described():
        tell(line)
    if found and not (yes or typer.confirm("Remove all of it?")):
        raise AnswerIsNo("nothing was removed")
    left = run(student, at.root, at.grades, at.submissions) if found else found.beside
    if left:
        named = first_few([str(at.shown(path)) for path in left])
        raise AnswerIsNo(f"{named} still names {found.student}; remove the name there yourself")
