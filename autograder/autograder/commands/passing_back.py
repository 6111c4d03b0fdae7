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
    Submissions,
    console,
    shown,
)
from autograder.user_error import UserError

commands = typer.Typer()
PANEL = "Afterwards"


@commands.command(rich_help_panel=PANEL)
def report(
    names: GradedSets = None,
    grades: Grades = None,
    to: Page = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TASK", help="Also a page to show: who counts least in this task, under other names."
        ),
    ] = None,
    course: Root = None,
) -> None:
    """Write one page on the class: how sets and tasks went, what fails most, what is left to do."""
    from autograder.class_report import write_report
    from autograder.class_report.class_table import write_table
    from autograder.layout import GRADES, find_root
    from autograder.show import tell

    root = find_root(course)
    folder = grades or root / GRADES
    page = to or folder / "class_report.html"
    sets = write_report(root, names or (), folder, page)
    tell(console, f"{shown(page, root)}: {', '.join(one.name for one in sets)}")
    if table:
        public = folder / f"{table.replace('/', '_')}_table.html"
        whose = write_table(root, table, folder, public)
        tell(
            console, f"{shown(public, root)}: a page for the class; whose the names are: {shown(whose, root)}"
        )


@commands.command(rich_help_panel=PANEL)
def worked(
    assignment: ProblemSet,
    grades: Grades = None,
    to: Page = None,
    course: Root = None,
) -> None:
    """Write a page of worked solutions, for after the deadline; feedback pages have those of full points."""
    from autograder.layout import GRADES, find_root, load_assignment
    from autograder.show import tell
    from autograder.worked import write_worked

    root = find_root(course)
    page = to or (grades or root / GRADES) / "worked" / f"{assignment}.html"
    write_worked(root, load_assignment(root, assignment), page)
    tell(console, f"{shown(page, root)}: written")


@commands.command(rich_help_panel=PANEL)
def oral(
    assignment: ProblemSet,
    student: Annotated[
        list[str] | None, typer.Option(help="Only this student; may be given several times.")
    ] = None,
    grades: Grades = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="A folder (default: oral/<set>/ in that one).")
    ] = None,
    course: Root = None,
) -> None:
    """Write a sheet of questions about each student's own lines, with what to look for in the answers."""
    from autograder.layout import GRADES, find_root, load_assignment
    from autograder.oral import write_sheets

    root = find_root(course)
    grades = grades or root / GRADES
    released, folder = load_assignment(root, assignment), to or grades / "oral" / assignment
    for path in write_sheets(released, grades, student or [], folder):
        typer.echo(f"{shown(path, root)}: written")


@commands.command(rich_help_panel=PANEL)
def similar(
    assignment: ProblemSet,
    grades: Grades = None,
    to: Page = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Similarity from which on a pair is named (default: as measured)."
        ),
    ] = None,
    course: Root = None,
) -> None:
    """Name groups whose answers are more alike than independent ones: for a person, never points."""
    from autograder.layout import GRADES, find_root, load_assignment
    from autograder.show import tell
    from autograder.similar import groups, similar_answers, threshold, write_page

    root = find_root(course)
    released, folder = load_assignment(root, assignment), grades or root / GRADES
    least = threshold() if at_least is None else at_least
    found = similar_answers(released, folder, least)
    page = to or folder / "similar" / f"{assignment}.html"
    write_page(released, folder, found, page, least)
    linked = groups(found)
    for group in linked[:20]:
        cells = ", ".join(f"{cell} ({count})" for cell, count in group.cells.items())
        tell(console, f"{', '.join(group.students)}: {cells}, up to {100 * group.most:.0f} %")
    count = f"{len(linked)} group{'s' * (len(linked) != 1)}, {len(found)} pair{'s' * (len(found) != 1)}"
    tell(console, f"{count} from {100 * least:.0f} % on; both texts side by side: {shown(page, root)}")


@commands.command(rich_help_panel=PANEL)
def export(
    names: GradedSets = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="csv: one line a student with a total. canvas, moodle, blackboard: what they import, one "
            "set. gradescope: one results.json a student, one set.",
        ),
    ] = "csv",
    grades: Grades = None,
    file: Annotated[Path | None, typer.Option(help="Where to write (default: in that folder).")] = None,
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
        bool,
        typer.Option(
            "--leave-out-ungraded",
            help="Checks that are ungraded for anybody count for nobody; the set has as many points fewer.",
        ),
    ] = False,
    course: Root = None,
) -> None:
    """Write grades for another system. Who has no grade yet is left out and named, and never has a 0."""
    from autograder.gradebook.passing_on import cure
    from autograder.gradebook.passing_on import export as run
    from autograder.layout import GRADES, find_root
    from autograder.show import tell

    root = find_root(course)
    done = run(
        root,
        names or (),
        to,
        grades or root / GRADES,
        file=file,
        roster=roster,
        column=column,
        drop=drop_lowest,
        missing_zero=missing_zero,
        leave_out_ungraded=leave_out_ungraded,
    )
    for student, why in done.left_out:
        tell(console, f"left out: {student}: {why}{cure(why)}")
    also = f", {len(done.left_out)} left out" if done.left_out else ""
    tell(console, f"{shown(done.path, root)}: {done.count} students{also}")
    if done.advice:
        tell(console, f"note: {done.advice}")


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
    file: Annotated[
        Path | None, typer.Option(help="The archive or folder (default: in that of grades).")
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", help="CSV file with the columns student and repository.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="How is pushed: ssh, https, or file.")] = "ssh",
    course: Root = None,
) -> None:
    """Give the feedback pages back: an archive for Canvas or Moodle, by git, or a folder for the web."""
    from autograder import giving_back
    from autograder.layout import GRADES, SUBMITTED, find_root, load_assignment
    from autograder.show import tell

    root = find_root(course)
    released, out = load_assignment(root, assignment), grades or root / GRADES
    place = file or out / (f"{assignment}_feedback_{to}.zip" if to in ("canvas", "moodle") else "web")
    if to in ("canvas", "moodle"):
        name = giving_back.for_canvas if to == "canvas" else giving_back.for_moodle
        done = giving_back.archive(released, out, submissions or root / SUBMITTED, name, place)
    elif to == "web":
        done = giving_back.folder(released, out, place)
    elif to == "repositories" and listed:
        place, done = listed, giving_back.repositories(released, out, listed, protocol)
    else:
        raise UserError("--to canvas, moodle, web, or repositories with --list repositories.csv")
    told = list(done)
    missed = [(student, why) for student, why in told if why]
    for student, why in missed:
        tell(console, f"not given back: {student}: {why}")
    tell(console, f"{shown(place, root)}: {len(told) - len(missed)} of {len(told)} pages")
    raise typer.Exit(1 if missed else 0)


@commands.command(rich_help_panel=PANEL)
def requests(
    assignment: ProblemSet, grades: Grades = None, submissions: Submissions = None, course: Root = None
) -> None:
    """List who asks for a regrade, beside the rows of the answer; your answers go onto the feedback pages."""
    from rich.table import Table
    from rich.text import Text

    from autograder.layout import GRADES, SUBMITTED, find_root, load_assignment
    from autograder.report.asked import list_requests
    from autograder.results import Results
    from autograder.show import tell

    root = find_root(course)
    out, released = grades or root / GRADES, load_assignment(root, assignment)
    rows = list_requests(released, out, submissions or root / SUBMITTED, Results(out, assignment).all())
    table = Table("student", "task", "points", "rows", "asks", "answer")
    for row in rows:
        table.add_row(*map(Text, row.values()))
    console.print(table)
    open_ = sum(not row["answer"] for row in rows)
    file = shown(out / f"{assignment}.requests.csv", root)
    count = f"{len(rows)} request{'s' * (len(rows) != 1)}"
    tell(console, f"{count}, {open_} without an answer; enter answers in {file},")
    tell(console, f"points in formgrader, and autograder grade {assignment} puts both onto the pages")


@commands.command(rich_help_panel=PANEL)
def forget(
    student: Annotated[str, typer.Argument(help="The student, as the folder of submissions is named.")],
    out: Grades = None,
    submissions: Submissions = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    course: Root = None,
) -> None:
    """Remove one student's work, results, feedback and gradebook entries, and say what is left elsewhere."""
    from autograder.forget import forget as run
    from autograder.forget import traces_of
    from autograder.layout import GRADES, SUBMITTED, find_root

    root = find_root(course)
    out, submissions = out or root / GRADES, submissions or root / SUBMITTED
    found = traces_of(student, root, out, submissions)
    if not found and not found.beside:
        raise UserError(f'nothing here is of "{student}": looked in {out} and {submissions}')
    for line in found.described():
        typer.echo(line)
    if found and not (yes or typer.confirm("Remove all of it?")):
        raise AnswerIsNo("nothing was removed")
    left = run(student, root, out, submissions) if found else found.beside
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        raise AnswerIsNo(
            f"{', '.join(str(shown(path, root)) for path in left[:3])}{more} still names {found.student}; "
            "remove the name there yourself"
        )
