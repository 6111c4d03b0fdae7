"""The commands before a class: try the machine, write and release the problem sets."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import AnswerIsNo, Grades, Root, Submissions, console, resumable, shown
from autograder.user_error import UserError

commands = typer.Typer()
BEFORE, WRITING = "Before a class", "Write problem sets"


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
    from autograder.layout import GRADES, SUBMITTED, find_root
    from autograder.readiness import check_class, show_class
    from autograder.sandbox.limits import Limits
    from autograder.settings import grade_settings

    walls = diagnose(console)
    ready = True
    if whole_class:
        root = find_root(course)
        out, submissions = out or root / GRADES, submissions or root / SUBMITTED
        settings = grade_settings(root, ())
        limits = Limits.of(settings.time_limit)
        ready = show_class(console, check_class(root, names or [], submissions, out, limits, settings.jobs))
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
    from autograder.layout import find_root
    from autograder.sample_class import grade_sample

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
            help="What those repositories install: a requirement with [student], or a wheel's file."
        ),
    ] = None,
    course: Root = None,
) -> None:
    """Make the students' notebooks in exercises/ from solutions/."""
    from autograder.layout import find_root
    from autograder.release import release as run
    from autograder.release.template_repository import write_template

    if (template is None) != (package is None):
        raise UserError("--template and --package go together: a template installs what its checks need")
    root = find_root(course)
    released = run(root, names or (), check=check)
    for one in released:
        if one.state == "drift":
            raise AnswerIsNo(
                f"{shown(one.path, root)} is not what solutions/ gives; run `autograder release {one.name}`"
            )
        typer.echo(f"{shown(one.path, root)}: {one.state}")
    if template and package:
        for path in write_template(root, [one.name for one in released], template, package):
            typer.echo(f"{template / path}: written")
