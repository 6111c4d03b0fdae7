"""The commands that students run on their own notebooks."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import Root
from autograder.layout import RELEASE, assignment_of_file, find_root

commands = typer.Typer()
PANEL = "Your own notebook"


@commands.command(rich_help_panel=PANEL)
def validate(
    files: Annotated[list[Path], typer.Argument(help="Notebooks to check before you hand them in.")],
    course: Root = None,
) -> None:
    """Check notebooks as the grader will, without running them."""
    from autograder.discover import written_out
    from autograder.validate import Malformed, check_file
    from autograder.validate.unfinished import unfinished

    root = find_root(course)
    bad = False
    for file in files:
        name = str(file) if str(file).isprintable() else written_out(str(file))
        target = assignment_of_file(root, file)
        try:
            checked = check_file(file, target)
            missing = unfinished(checked, target)
            notes = (*checked.notes, *missing)
            left = f"can be handed in, but is not finished ({len(missing)}):"
            typer.echo(f"{name}: {left if missing else 'ready to hand in'}")
        except Malformed as malformed:
            bad, notes = True, malformed.defects
        for defect in notes:
            typer.echo(f"{name}: {'' if defect.fatal else 'note, '}{defect}")
    raise typer.Exit(1 if bad else 0)


@commands.command(rich_help_panel=PANEL)
def progress(
    folder: Annotated[
        Path | None, typer.Argument(help="Where your notebooks are (default: here, else exercises/).")
    ] = None,
    course: Root = None,
) -> None:
    """Show what checks gave when you last ran them in your notebooks here. Nothing that grades reads it."""
    from warplab.tasks.progress import files_in, told_in

    for text in told_in(folder or (Path() if files_in(Path()) else find_root(course) / RELEASE)):
        typer.echo(text)


@commands.command(rich_help_panel=PANEL)
def check(
    files: Annotated[list[Path], typer.Argument(help="Notebooks of your own.")],
    summary: Annotated[
        Path | None, typer.Option(help="A file that gets the table as well, in Markdown, at its end.")
    ] = None,
    course: Root = None,
) -> None:
    """Run notebooks of your own here, and show the points of their public checks."""
    from autograder.validate import Malformed
    from autograder.validate.public_checks import markdown, public_checks

    root, complete = find_root(course), True
    for file in files:
        try:
            cells = public_checks(file, assignment_of_file(root, file))
            complete = complete and all(one.complete for one in cells)
            told = markdown(file.stem, cells)
        except Malformed as malformed:
            complete, told = False, f"### {file.name} cannot be checked: {malformed}\n"
        typer.echo(told)
        if summary:
            with open(summary, "a", encoding="utf-8") as page:
                page.write(f"{told}\n")
    raise typer.Exit(0 if complete else 1)
