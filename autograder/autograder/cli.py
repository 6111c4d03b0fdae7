"""The command line: `autograder --help` names its commands.

It parses, shows, and sets the exit status; no more.

Exit status: 0 all is well, 1 the answer is no (drift, malformed), 2 the command cannot be done, 130 stopped
by Ctrl-C.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from autograder.user_error import UserError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Release, check and grade the problem sets of the course.",
)
console = Console(highlight=False)
# a folder or a disk that takes no file, whichever command wants to write there
NO_PLACE = {
    getattr(errno, name)
    for name in (
        "EACCES",
        "EPERM",
        "EROFS",
        "ENOSPC",
        "EDQUOT",
        "ENOTDIR",
        "EEXIST",
        "EISDIR",
        "ENAMETOOLONG",
    )
}
Root = Annotated[
    Path | None, typer.Option("--course", help="The course folder (default: found from here upwards).")
]
ProblemSet = Annotated[str, typer.Argument(help="Problem set, for example ps04.")]
GradedSets = Annotated[
    list[str] | None, typer.Argument(help="Problem sets, for example ps04 (default: all that are graded).")
]
Submissions = Annotated[
    Path | None, typer.Option(help="Folder with one folder per student (default: submitted/).")
]
Grades = Annotated[Path | None, typer.Option(help="Folder of `autograder grade` (default: grades/).")]
RosterFile = Annotated[
    Path | None,
    typer.Option(help="CSV file of the class (default: roster.csv in the course folder, if it is there)."),
]


@app.command()
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


@app.command("import")
def import_(
    name: ProblemSet,
    course: Root = None,
) -> None:
    """Bring a source notebook that was edited in formgrader (_build/source/) back into solutions/."""
    from autograder.layout import find_root
    from autograder.release import import_edits

    root = find_root(course)
    solution, changed = import_edits(root, name)
    outcome = f"written; run `autograder release {name}`" if changed else "unchanged"
    typer.echo(f"{shown(solution, root)}: {outcome}")


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(help="Notebooks to check before you hand them in.")],
    assignment: Annotated[
        str | None, typer.Option(help="Problem set (default: from the file's name).")
    ] = None,
    course: Root = None,
) -> None:
    """Check notebooks as the grader will, without running them."""
    from autograder.discover import written_out
    from autograder.layout import assignment_of_file, find_root, load_assignment
    from autograder.validate import Malformed, check_file

    root = find_root(course)
    bad = False
    for file in files:
        name = str(file) if str(file).isprintable() else written_out(str(file))
        target = load_assignment(root, assignment) if assignment else assignment_of_file(root, file)
        try:
            notes = check_file(file, target).notes
            typer.echo(f"{name}: ready to hand in")
        except Malformed as malformed:
            bad, notes = True, malformed.defects
        for defect in notes:
            typer.echo(f"{name}: {'' if defect.fatal else 'note, '}{defect}")
    raise typer.Exit(1 if bad else 0)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Notebooks of your own.")],
    summary: Annotated[
        Path | None, typer.Option(help="A file that gets the table as well, in Markdown, at its end.")
    ] = None,
    course: Root = None,
) -> None:
    """Run notebooks of your own here, and show the points of their public checks."""
    from autograder.layout import assignment_of_file, find_root
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


@app.command()
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


@app.command()
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


@app.command()
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
        tell(console, f"left out: {student}: {why}")
    also = f", {len(done.left_out)} left out" if done.left_out else ""
    tell(console, f"{shown(done.path, root)}: {done.count} students{also}")
    if done.advice:
        tell(console, f"note: {done.advice}")


@app.command()
def similar(
    assignment: ProblemSet,
    grades: Grades = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="The page (default: similar/<set>.html in that folder).")
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Similarity from which on a pair is named (default: as measured)."
        ),
    ] = None,
    course: Root = None,
) -> None:
    """Name the pairs of answers that are more alike than independent ones: for a person, never points."""
    from autograder.layout import GRADES, find_root, load_assignment
    from autograder.show import tell
    from autograder.similar import similar_answers, threshold, write_page

    root = find_root(course)
    released, folder = load_assignment(root, assignment), grades or root / GRADES
    least = threshold() if at_least is None else at_least
    found = similar_answers(released, folder, least)
    page = to or folder / "similar" / f"{assignment}.html"
    write_page(released, folder, found, page, least)
    for pair in found[:20]:
        tell(console, f"{pair.cell}: {pair.first} and {pair.second}: {100 * pair.similarity:.0f} %")
    tell(
        console,
        f"{len(found)} pairs from {100 * least:.0f} % on; both texts side by side: {shown(page, root)}",
    )


@app.command()
def report(
    names: GradedSets = None,
    grades: Grades = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="The page (default: class_report.html in that folder).")
    ] = None,
    course: Root = None,
) -> None:
    """Write one page on the class: how sets and tasks went, what fails most, what is left to do."""
    from autograder.class_report import write_report
    from autograder.layout import GRADES, find_root
    from autograder.show import tell

    root = find_root(course)
    folder = grades or root / GRADES
    page = to or folder / "class_report.html"
    sets = write_report(root, names or (), folder, page)
    tell(console, f"{shown(page, root)}: {', '.join(one.name for one in sets)}")


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def doctor(
    names: Annotated[
        list[str] | None, typer.Argument(help="With --class: problem sets (default: what was handed in).")
    ] = None,
    whole_class: Annotated[
        bool, typer.Option("--class", help="Whether everything is ready to grade this class, too.")
    ] = False,
    submissions: Submissions = None,
    out: Annotated[Path | None, typer.Option(help="Where the grades go (default: grades/).")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Submissions at a time.")] = min(4, os.cpu_count() or 1),
    course: Root = None,
) -> None:
    """Try to break out of the sandbox on this machine, and tell which protections hold."""
    from autograder.doctor import diagnose
    from autograder.layout import GRADES, SUBMITTED, find_root
    from autograder.readiness import check_class, show_class
    from autograder.sandbox.limits import Limits

    walls = diagnose(console)
    ready = True
    if whole_class:
        root = find_root(course)
        out, submissions = out or root / GRADES, submissions or root / SUBMITTED
        ready = show_class(console, check_class(root, names or [], submissions, out, Limits(), jobs))
    if not walls:
        raise AnswerIsNo(
            "without a sandbox `autograder grade` refuses; "
            "--unsafe grades without, and says so on every grade"
        )
    if not ready:
        raise AnswerIsNo("not ready to grade this class: see the lines marked NOT READY")


@app.command()
def forget(
    student: Annotated[str, typer.Argument(help="The student, as the folder of submissions is named.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder with gradebook.db and grades.csv (default: grades/).")
    ] = None,
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
    left = [*(run(student, root, out, submissions) if found else []), *found.beside]
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        raise AnswerIsNo(
            f"{', '.join(str(shown(path, root)) for path in left[:3])}{more} still names {found.student}; "
            "remove the name there yourself"
        )


@app.command()
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
    from autograder.layout import find_root
    from autograder.new_task import next_steps, write_skeleton

    root = find_root(course)
    for path in write_skeleton(root, name, kind, language):
        typer.echo(f"{shown(path, root)}: written")
    typer.echo(next_steps(name))


@app.command()
def mutants(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problem sets or tasks, for example ps04 (default: all).")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Only each so manyth mutant: a sample.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Mutants at a time.")] = 1,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget earlier results; needed after a change of the engine.")
    ] = False,
    course: Root = None,
) -> None:
    """Test the checks, in a checkout: wrong in one place, each reference solution must lose points."""
    try:
        from autograder.mutants.sweep import Sweep
        from autograder.mutants.table import survivors
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


class AnswerIsNo(UserError):
    """The command worked and its answer is no."""

    status = 1


class Stopped(UserError):
    """Ctrl-C."""

    status = 130


@contextlib.contextmanager
def resumable() -> Generator[None, None, None]:
    """Ctrl-C, a full disk or a locked gradebook in here is one line, not a traceback."""
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except (OSError, OperationalError) as problem:
        what = str(getattr(problem, "orig", None) or problem)
        raise UserError(
            f"stopped: {what}; what was graded is kept, put that right and run the same command"
        ) from None
    except KeyboardInterrupt:
        raise Stopped("stopped; what was graded is kept, run the same command to go on") from None


def shown(path: Path, root: Path) -> Path:
    """A path relative to the course folder where that is shorter."""
    try:
        return path.resolve().relative_to(root)
    except ValueError:
        return path


def main() -> None:
    """Entry point: every UserError is one line on stderr, never a traceback."""
    try:
        app()
    except UserError as problem:
        print(f"autograder: {problem}", file=sys.stderr)
        raise SystemExit(problem.status) from None
    except OSError as problem:
        if problem.errno not in NO_PLACE or problem.filename is None:
            raise
        print(
            f"autograder: cannot use {problem.filename}: {problem.strerror}; "
            "put that right, or name another place",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    except RuntimeError as problem:
        # import warplab raises DeviceError, so that class cannot be imported first
        if type(problem).__module__ != "warplab.hardware.device":
            raise
        print(f"autograder: {problem}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
