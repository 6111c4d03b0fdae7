"""The commands before a class: plan it, try the machine, write and release the problem sets."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import AnswerIsNo, Grades, Root, Submissions, console, here, resumable
from autograder.layout import find_root, load_assignment
from autograder.user_error import UserError

commands = typer.Typer()
BEFORE, WRITING = "Before a class", "Write problem sets"


@commands.command(rich_help_panel=BEFORE)
def plan(
    weeks: Annotated[int | None, typer.Option(help="Length of a term in weeks, one meeting a week.")] = None,
    hours: Annotated[int | None, typer.Option(help="Or the length of a workshop in hours.")] = None,
    study: Annotated[
        float | None, typer.Option(help="Of a term: a student's hours a week outside class (default: 7).")
    ] = None,
    begin: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Its first day (default: next Monday).")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Folder of the two files (default: plan/).")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    course: Root = None,
) -> None:
    """Write a syllabus, and a table of dates to edit: the chapters, sets and stars that fit."""
    from autograder.syllabus import STUDY, term, workshop

    at, today = here(course), date.today()
    first = begin.date() if begin else today + timedelta(days=7 - today.weekday())
    if first.year == date.max.year:
        raise UserError(f"--begin {first}: a plan ends before the year {date.max.year}")
    if study is not None and hours is not None:
        raise UserError("--study is the time outside class in a term: say it with --weeks, not with --hours")
    if weeks is not None and hours is None:
        made = term(at.root, weeks, STUDY if study is None else study, first)
    elif hours is not None and weeks is None:
        made = workshop(at.root, hours, first)
    else:
        raise UserError("say --weeks 12 or --hours 8, one of the two")
    to = to or at.root / "plan"
    files = {to / "syllabus.md": made.syllabus, to / "dates.csv": made.dates}
    if there := [path for path in files if path.exists()]:
        raise UserError(f"{at.shown(there[0])} is there and stays as it is; name another folder with --to")
    typer.echo(made.syllabus)
    for name, why in made.left.items():
        typer.echo(f"{name} is left out: {why}")
    if not (yes or typer.confirm(f"Write it and its dates into {at.shown(to)}?")):
        raise AnswerIsNo("nothing was written")
    to.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        typer.echo(f"{at.shown(path)}: written")


@commands.command(rich_help_panel=BEFORE)
def doctor(
    names: Annotated[
        list[str] | None, typer.Argument(help="With --class: problem sets (default: what was handed in).")
    ] = None,
    whole_class: Annotated[
        bool, typer.Option("--class", help="Whether everything is ready to grade this class, too.")
    ] = False,
    submissions: Submissions = None,
    out: Grades = None,
    course: Root = None,
) -> None:
    """Try to break out of the sandbox on this machine, and tell which protections hold."""
    from autograder.doctor import diagnose
    from autograder.readiness import check_class, show_class
    from autograder.sandbox.limits import Limits
    from autograder.settings import grade_settings

    walls = diagnose(console)
    ready = True
    if whole_class:
        at = here(course, out, submissions)
        settings = grade_settings(at.root, ())
        limits = Limits.of(settings.time_limit)
        console.print("Right answers are now graded behind these walls: some minutes.")
        checks = check_class(at.root, names or [], at.submissions, at.grades, limits, settings.jobs)
        ready = show_class(console, checks)
    if not walls:
        raise AnswerIsNo(
            "without a sandbox `autograder grade` refuses; "
            "--unsafe grades without, and says so on every grade"
        )
    if not ready:
        raise AnswerIsNo("not ready to grade this class: see the lines marked NOT READY")


@commands.command(rich_help_panel=BEFORE)
def sample(
    out: Annotated[
        Path | None, typer.Option(help="Where the class and its grades go (default: _build/sample).")
    ] = None,
    course: Root = None,
) -> None:
    """Grade the bundled sample class and compare with what each submission must get."""
    from autograder.sample_class.run import grade_sample

    root = find_root(course)
    with resumable():
        wrong = grade_sample(root, out or root / "_build" / "sample", console)
    if wrong:
        raise AnswerIsNo(f"{len(wrong)} of the sample grades differ from expected.yml, the first: {wrong[0]}")


@commands.command(rich_help_panel=BEFORE)
def release(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problem sets, for example ps04 (default: all).")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if exercises/ is out of date.")
    ] = False,
    template: Annotated[
        Path | None,
        typer.Option(
            help="Write these sets into this folder, too, as the template of students' repositories, with a "
            "workflow that runs the public checks at each push."
        ),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            help="What those repositories install: a requirement with the extra student, or a wheel's file."
        ),
    ] = None,
    course: Root = None,
) -> None:
    """Make the students' notebooks in exercises/ from solutions/."""
    from autograder.release.release import release as run
    from autograder.release.template_repository import write_template

    if (template is None) != (package is None):
        raise UserError("--template and --package go together: a template installs what its checks need")
    at = here(course)
    released = run(at.root, names or (), check=check)
    for one in released:
        if one.state == "drift":
            raise AnswerIsNo(
                f"{at.shown(one.path)} is not what solutions/ gives; run `autograder release {one.name}`"
            )
        points = load_assignment(at.root, one.name).max_score
        typer.echo(f"{at.shown(one.path)}: {one.state}{f', {points:g} points, not 100' * (points != 100)}")
    if template and package:
        for path in write_template(at.root, [one.name for one in released], template, package):
            typer.echo(f"{template / path}: written")
