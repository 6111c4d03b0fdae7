"""The commands that bring submissions in and grade them, here or on machines that share no network."""

import os
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import (
    AnswerIsNo,
    Grades,
    ProblemSet,
    Root,
    RosterFile,
    Students,
    Submissions,
    Unsafe,
    console,
    here,
    resumable,
    tell,
)
from autograder.layout import load_assignment
from autograder.user_error import UserError, tell_table

commands = typer.Typer()
PANEL = "Grade a class"


@commands.command(rich_help_panel=PANEL)
def collect(
    assignment: ProblemSet,
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            help="A folder with one folder per student, a zip archive of Canvas, Moodle, Gradescope or such "
            "folders, issues.json, a folder of archives, the inbound folder of nbgrader's exchange, a CSV "
            "file of git repositories (columns student, repository, and perhaps commit and time).",
        ),
    ],
    into: Annotated[Path | None, typer.Option(help="Where submissions go (default: submitted/).")] = None,
    roster: RosterFile = None,
    pattern: Annotated[
        str | None, typer.Option(help="Regular expression of other file names, as in nbgrader zip_collect.")
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="Of repositories: the last commit that its author dated before this time."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="How git repositories are fetched: https, ssh, or file for local ones.")
    ] = "https",
    course: Root = None,
) -> None:
    """Bring what was handed in elsewhere into submitted/. Refused files are listed; the rest goes on."""
    from autograder.collect.collected_table import options, told
    from autograder.collect.intake import collect as run
    from autograder.roster import read_roster

    at = here(course, submissions=into)
    asked = options(pattern, protocol, deadline)
    people = read_roster(roster, at.root)
    with resumable("what was collected is kept"):
        found = run(source, load_assignment(at.root, assignment), at.submissions, people, asked)
    rows = ((row.student, row.state, row.place, row.why) for row in found.rows)
    tell_table(console, ("student", "", "from", "note"), rows, f"{assignment}, collected")
    for line in told(found, assignment, at.shown):
        tell(line)
    raise typer.Exit(1 if any(row.state == "refused" for row in found.rows) else 0)


@commands.command(
    rich_help_panel=PANEL, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def grade(
    context: typer.Context,
    assignment: ProblemSet,
    submissions: Submissions = None,
    out: Grades = None,
    received: Annotated[
        Path | None,
        typer.Option(help="CSV file of times of arrival, columns student and time (2026-03-02T10:00:00Z)."),
    ] = None,
    student: Students = None,
    regrade: Annotated[
        bool,
        typer.Option("--regrade", help="Judge what is unchanged, too, on the inputs of the first time."),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of Dask workers to start for this run.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tls://HOST:PORT", help="Judge on the workers of this Dask cluster.")
    ] = None,
    unsafe: Unsafe = False,
    course: Root = None,
) -> None:
    """Grade all submissions of one problem set. What is unchanged since the last run is not graded again.

    Time limit, seed, threads, patience and parcels for machines elsewhere are settings, c.Grade in
    nbgrader_config.py: for one run, --Grade.time_limit=60.
    """
    from autograder.follow import follow
    from autograder.grade import Asked, Grading
    from autograder.settings import grade_settings
    from autograder.show import summary
    from autograder.workers.event_log import EventLog
    from autograder.workers.parcels import SENT

    at, events = here(course, out, submissions), EventLog()
    settings = grade_settings(at.root, context.args)
    if received and settings.exchange:
        raise UserError("times of arrival come from --received or from Grade.exchange, not from both")
    asked = Asked(settings.time_limit, settings.seed, student or (), regrade, received, settings.exchange)
    with resumable(), settings.pool(events, scheduler, workers, unsafe) as pool:
        grading = Grading(at.root, assignment, at.submissions, at.grades, asked, pool=pool, events=events)
        rows = follow(console, grading)
    summary(console, grading, rows, at.grades)
    open_ = [row for row in rows if row.status == "not graded" and not row.reason.startswith(SENT)]
    raise typer.Exit(1 if open_ else 0)


@commands.command(rich_help_panel=PANEL)
def judge(
    folder: Annotated[
        Path, typer.Argument(help="Parcels, as `autograder grade --Grade.parcels=...` wrote them.")
    ],
    share: Annotated[int, typer.Option(min=1, help="Of several machines, which this is.")] = 1,
    of: Annotated[int, typer.Option(min=1, help="How many machines there are.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Submissions at a time.")] = min(4, os.cpu_count() or 1),
) -> None:
    """Judge a share of the parcels behind walls, and leave a ruling beside each. Nothing is recorded here."""
    import platform

    from autograder.workers.parcels import judge_parcels

    told: list[str] = []
    with resumable():
        for identity, status, reason in judge_parcels(folder, jobs, platform.node(), share, of):
            told.append(status)
            typer.echo(f"{identity[:12]}: {status}{f': {reason}' if reason else ''}")
    open_ = sum(status in ("not graded", "refused") for status in told)
    if open_:
        raise AnswerIsNo(f"{open_} of {len(told)} parcels in {folder} could not be judged on this machine")
