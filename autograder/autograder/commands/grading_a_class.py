"""The commands that bring submissions in and grade them, here or on machines that share no network."""

import os
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.options import (
    AnswerIsNo,
    ProblemSet,
    Root,
    RosterFile,
    Submissions,
    console,
    resumable,
    shown,
)
from autograder.user_error import UserError

commands = typer.Typer()
PANEL = "Grade a class"


@commands.command(rich_help_panel=PANEL)
def collect(
    assignment: ProblemSet,
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            help="A folder with one folder per student, a zip archive of Canvas, Moodle or such folders, a "
            "folder of archives, the inbound folder of nbgrader's exchange, a CSV file of git repositories "
            "(columns student, repository, and perhaps commit and time).",
        ),
    ],
    into: Annotated[Path | None, typer.Option(help="Where submissions go (default: submitted/).")] = None,
    roster: RosterFile = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression for other file names, with (?P<student_id>...) and (?P<file_id>...), "
            "as in nbgrader zip_collect."
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            help="Of git repositories: the last commit dated before this time. A date is the student's "
            "word; name commits in the CSV file where it matters."
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(help="How git repositories are fetched: https, ssh, or file for local ones."),
    ] = "https",
    course: Root = None,
) -> None:
    """Bring what was handed in elsewhere into submitted/. What is refused is told, and the rest goes on."""
    from autograder.collect import collect as run
    from autograder.collect.collected_table import options, show
    from autograder.layout import SUBMITTED, find_root, load_assignment
    from autograder.roster import read_roster

    root = find_root(course)
    asked = options(pattern, protocol, deadline)
    people = read_roster(roster, root)
    with resumable():
        rows, times = run(
            source, load_assignment(root, assignment), into or root / SUBMITTED, people, **asked
        )
    show(console, rows, shown(times, root), assignment)
    raise typer.Exit(1 if any(row.state == "refused" for row in rows) else 0)


@commands.command(rich_help_panel=PANEL)
def grade(
    assignment: ProblemSet,
    submissions: Submissions = None,
    out: Annotated[
        Path | None, typer.Option(help="Gets gradebook.db, grades.csv, feedback/ (default: grades/).")
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            min=1.0, help="Seconds for one cell or one task; all of a submission has ten times that."
        ),
    ] = 30.0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the hidden inputs (default: secret, drawn once for --out)."),
    ] = None,
    received: Annotated[
        Path | None,
        typer.Option(help="CSV file of times of arrival, columns student and time (2026-03-02T10:00:00Z)."),
    ] = None,
    exchange: Annotated[
        bool,
        typer.Option(
            "--exchange",
            help="Times of arrival are in the timestamp.txt beside each notebook, where `nbgrader collect` "
            "left it; without this a timestamp.txt is not read.",
        ),
    ] = False,
    student: Annotated[
        list[str] | None, typer.Option(help="Only this student's folder; may be given several times.")
    ] = None,
    regrade: Annotated[
        bool,
        typer.Option(
            "--regrade", help="Judge again what is unchanged, too, on the inputs it was first judged on."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Submissions at a time, on this machine's threads.")] = min(
        4, os.cpu_count() or 1
    ),
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Judge on the workers of this Dask cluster."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Judge on so many worker processes, made for this run.")
    ] = None,
    slurm: Annotated[
        int | None,
        typer.Option(min=1, help="Judge on workers in so many Slurm jobs, by dask-jobqueue's configuration."),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(min=1.0, help="Seconds to wait for a lost scheduler, a first worker or a last GPU."),
    ] = 600.0,
    tls_ca_file: Annotated[
        Path | None, typer.Option(help="The cluster's certificate authority, for --scheduler tls://...")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Your certificate for that cluster.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
    progress: Annotated[
        str,
        typer.Option(help="bar, lines (for a log), json (one object a line) or none; auto: what fits."),
    ] = "auto",
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Run students' code without a sandbox; every grade says so.")
    ] = False,
    course: Root = None,
) -> None:
    """Grade all submissions of one problem set. What is unchanged since the last run is not graded again."""
    from autograder.follow import WAYS, follow
    from autograder.grade import Grading
    from autograder.layout import GRADES, SUBMITTED, find_root
    from autograder.show import summary
    from autograder.workers.connecting import Place, opened
    from autograder.workers.happenings import Happenings

    if received and exchange:
        raise UserError("times of arrival come from --received or from --exchange, not from both")
    if progress not in WAYS:
        raise UserError(f"--progress is {progress!r}, expected one of {', '.join(WAYS)}")
    root = find_root(course)
    out = out or root / GRADES
    happened = Happenings()
    place = Place(
        scheduler, workers, slurm, jobs, unsafe, patience, certificates=(tls_ca_file, tls_cert, tls_key)
    )
    with resumable(), opened(place, happened) as pool:
        grading = Grading(
            root,
            assignment,
            submissions or root / SUBMITTED,
            out,
            seconds=time_limit,
            seed=seed,
            pool=pool,
            students=student or (),
            regrade=regrade,
            received=received,
            exchange=exchange,
            happened=happened,
        )
        rows = follow(console, grading, progress)
    if progress != "json":
        summary(console, grading, rows, out)
    raise typer.Exit(1 if any(row.status == "not graded" for row in rows) else 0)


@commands.command(rich_help_panel=PANEL)
def send(
    assignment: ProblemSet,
    to: Annotated[Path, typer.Option(help="Folder for the shards; each goes to one machine.")],
    shards: Annotated[int, typer.Option(min=1, help="Number of shards.")] = 1,
    runner: Annotated[
        str, typer.Option(help="Kind of machine, such as cpu or gpu; another kind grades all again.")
    ] = "cpu",
    submissions: Submissions = None,
    out: Annotated[Path | None, typer.Option(help="Where the grades will go (default: grades/).")] = None,
    time_limit: Annotated[float, typer.Option(min=1.0, help="As for grade.")] = 30.0,
    regrade: Annotated[bool, typer.Option("--regrade", help="As for grade.")] = False,
    course: Root = None,
) -> None:
    """Pack what is to be judged into shards, for machines that share no network: CI's. No name goes along."""
    from autograder.grade import Grading
    from autograder.layout import GRADES, SUBMITTED, find_root
    from autograder.parcels import Sending, Sent

    root = find_root(course)
    out = out or root / GRADES
    pool = Sending(to, shards, runner)
    with resumable():
        grading = Grading(
            root,
            assignment,
            submissions or root / SUBMITTED,
            out,
            seconds=time_limit,
            pool=pool,
            regrade=regrade,
        )
        rows = list(grading.rows())
        Sent(runner, time_limit).write(out, assignment)
    waiting = sum(row.status == "not graded" for row in rows)
    typer.echo(f"{assignment}: {waiting} of {len(rows)} submissions sent to {shards} shards in {to}")


@commands.command(rich_help_panel=PANEL)
def judge(
    shard: Annotated[Path, typer.Argument(help="One shard's folder, as `autograder send` wrote it.")],
    jobs: Annotated[int, typer.Option(min=1, help="Submissions at a time.")] = min(4, os.cpu_count() or 1),
) -> None:
    """Judge one shard behind walls, and leave a ruling beside each parcel. Nothing is recorded here."""
    import platform

    from autograder.parcels import judge_shard

    told: list[str] = []
    with resumable():
        for identity, status, reason in judge_shard(shard, jobs, platform.node()):
            told.append(status)
            typer.echo(f"{identity[:12]}: {status}{f': {reason}' if reason else ''}")
    open_ = sum(status in ("not graded", "refused") for status in told)
    if open_:
        raise AnswerIsNo(f"{open_} of {len(told)} parcels in {shard} could not be judged on this machine")


@commands.command(rich_help_panel=PANEL)
def receive(
    assignment: ProblemSet,
    origin: Annotated[Path, typer.Option("--from", help="Folder that holds what the shards gave back.")],
    submissions: Annotated[
        Path | None, typer.Option(help="The same folder as was sent (default: submitted/).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The same folder as for send (default: grades/).")] = None,
    received: Annotated[Path | None, typer.Option(help="Times of arrival, as for grade.")] = None,
    course: Root = None,
) -> None:
    """Check the rulings of the shards, and record them: gradebook, grades.csv, feedback."""
    from autograder.grade import Grading
    from autograder.layout import GRADES, SUBMITTED, find_root
    from autograder.parcels import Receiving, Sent
    from autograder.show import summary

    root = find_root(course)
    out = out or root / GRADES
    sent = Sent.read(out, assignment)
    with resumable():
        grading = Grading(
            root,
            assignment,
            submissions or root / SUBMITTED,
            out,
            seconds=sent.seconds,
            pool=Receiving(origin, sent.runner),
            received=received,
        )
        rows = sorted(grading.rows(), key=lambda row: row.student)
    summary(console, grading, rows, out)
    raise typer.Exit(1 if any(row.status == "not graded" for row in rows) else 0)
