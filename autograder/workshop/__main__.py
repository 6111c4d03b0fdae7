"""`python -m workshop`: the commands for authors of tasks, in a checkout."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.cli import run
from autograder.commands.options import AnswerIsNo, Root, console, here, resumable
from autograder.user_error import UserError

app = typer.Typer(help="What the authors of tasks use, in a checkout.", no_args_is_help=True)


@app.command("new-task")
def new_task(
    name: Annotated[str, typer.Argument(help="Problem set and name, for example ps05/gather.")],
    kind: Annotated[
        str, typer.Option(help="How it crosses: kernel, driver, function, vjp, device or ranks.")
    ],
    language: Annotated[str, typer.Option(help="Of a kernel: numba or cuda-cpp.")] = "numba",
    course: Root = None,
) -> None:
    """Write the skeleton of a new task, in a checkout: class, hints, cells, first answers."""
    from workshop.new_task import next_steps, write_skeleton

    at = here(course)
    for path in write_skeleton(at.root, name, kind, language):
        typer.echo(f"{at.shown(path)}: written")
    typer.echo(next_steps(name))


@app.command("from-scratch")
def from_scratch_notebook(
    problem_set: Annotated[str, typer.Argument(help="A released problem set, for example ps13.")],
    target: Annotated[Path, typer.Argument(help="The notebook to write.")],
    course: Root = None,
) -> None:
    """Write a released notebook without stubs, for those who want none: what is asked, and the checks."""
    from autograder.layout import find_root
    from workshop.from_scratch import from_scratch

    found = sorted((find_root(course) / "exercises" / problem_set).glob(f"{problem_set}_*.ipynb"))
    if not found:
        raise UserError(f"{problem_set} is not released; run `autograder release {problem_set}`")
    target.write_bytes(from_scratch(found[0]))
    typer.echo(f"{target}: written")


@app.command()
def writing(course: Root = None) -> None:
    """Record what the network of set 13 writes as it learns, by the reference's kernels, for chapter 13."""
    from workshop.writing import write_record

    at = here(course)
    typer.echo(f"{at.shown(write_record(at.root))}: written")


@app.command()
def mutants(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problem sets or tasks, for example ps04 (default: all).")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="A sample: only every n-th mutant.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Mutants at a time.")] = 1,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget earlier results; needed after a change of the engine.")
    ] = False,
    course: Root = None,
) -> None:
    """Test the checks, in a checkout: wrong in one place, each reference solution must lose points."""
    try:
        from workshop.mutants.sweep import Sweep
        from workshop.mutants.table import survivors
    except ModuleNotFoundError as missing:
        raise UserError(
            f"making mutants needs {missing.name}; install the course's tests: make venv, or "
            'pip install -c autograder/constraints.txt "./autograder[test]"'
        ) from None
    from autograder.layout import find_root

    root = find_root(course)
    results = root / "_build" / "mutants.jsonl"
    if fresh:
        results.unlink(missing_ok=True)
    with resumable():
        survived = survivors(console, Sweep(root, names or (), every, results), jobs)
    if survived:
        raise AnswerIsNo(
            f"{survived} mutants keep all points: draw a case that tells them from the reference, or write "
            "why they are right answers into equivalent.yml of the task's corpus"
        )


if __name__ == "__main__":
    run(app, "workshop")
