"""`make course` after the environment is set up: the book, the students' notebooks, a graded sample class.

Run as `python -m workshop.course [book] [exercises] [sample]`, all three by default. For every step a hash of
the files that it depends on is kept in `_build/.stamps/`, so a second run redoes only what changed.
"""

import csv
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import find_root
from autograder.user_error import UserError
from workshop import book

GRADING = (
    "autograder/warplab",
    "autograder/autograder",
    "solutions",
    "nbgrader_config.py",
    "requirements.txt",
)
SAMPLE = "_build/sample"
IGNORED = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache"}


@dataclass(frozen=True)
class BuildStep:
    """One step of the build, done by `run(root, say)`.

    inputs: paths that it depends on. made: whether its result exists. kept: results that a person may edit
    afterwards, so that a change of them also makes the step run again.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    made: Callable[[Path], bool]
    run: Callable[[Path, Callable[[str], None]], None]
    kept: tuple[str, ...] = ()


def fingerprint(root: Path, inputs: tuple[str, ...]) -> str:
    """SHA-256 of the names and contents of all files at or below `inputs`; a missing path counts as empty."""
    digest = hashlib.sha256(sys.version.encode())
    for name in inputs:
        top = root / name
        files = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
        for path in files:
            relative = path.relative_to(root)
            if not IGNORED.intersection(relative.parts) and path.suffix != ".pyc":
                digest.update(f"{relative.as_posix()}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def stamp_path(root: Path, name: str) -> Path:
    return root / "_build" / ".stamps" / f"{name}.json"


def read_stamp(root: Path, name: str) -> str:
    """The fingerprint of the last successful run of a step; "" without one, or if its file is damaged."""
    try:
        return json.loads(stamp_path(root, name).read_text(encoding="utf-8"))["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write_stamp(root: Path, name: str, value: str) -> None:
    path = stamp_path(root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"fingerprint": value}) + "\n", encoding="utf-8")


def run_step(root: Path, step: BuildStep, say: Callable[[str], None]) -> bool:
    """Run `step` if its result is missing or something it depends on has changed; returns whether it ran."""
    now = fingerprint(root, step.inputs)
    if step.made(root) and read_stamp(root, step.name) == now + fingerprint(root, step.kept):
        say(f"{step.title}: up to date")
        return False
    say(f"{step.title}: working")
    stamp_path(root, step.name).unlink(missing_ok=True)
    began = time.monotonic()
    step.run(root, say)
    write_stamp(root, step.name, now + fingerprint(root, step.kept))
    say(f"{step.title}: done in {time.monotonic() - began:.0f} s")
    return True


def make_book(root: Path, say) -> None:
    code = fingerprint(root, book.CODE)
    changed = read_stamp(root, "book-code") != code
    if changed:
        stamp_path(root, "book-code").unlink(missing_ok=True)
    book.build(root, code_changed=changed, say=say)
    write_stamp(root, "book-code", code)


def make_exercises(root: Path, say) -> None:
    from autograder.release.release import release

    for released in release(root):
        say(f"    {released.path.relative_to(root)}: {released.state}")


def grade_sample_class(root: Path, say) -> None:
    from rich.console import Console

    from autograder.sample_class.run import grade_sample

    wrong = grade_sample(
        root, root / SAMPLE, Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    )
    if wrong:
        raise UserError(
            f"{len(wrong)} of the sample grades differ from what they must be, the first: {wrong[0]}"
        )


def released_all(root: Path) -> bool:
    return all(
        list((root / "exercises" / source.stem.split("_")[0]).glob("*.ipynb"))
        for source in (root / "solutions").glob("ps*.py")
    )


STEPS = (
    BuildStep(
        "book", "book", (*book.PROSE, *book.CODE), lambda root: not book.missing_pages(root), make_book
    ),
    BuildStep("exercises", "exercises", GRADING, released_all, make_exercises, kept=("exercises",)),
    BuildStep(
        "sample",
        "sample class",
        (*GRADING, "exercises"),
        lambda root: any((root / SAMPLE).rglob("grades.csv")),
        grade_sample_class,
    ),
)


def score_lines(root: Path) -> list[str]:
    """A line for each problem set of the sample class, with the score or status of each submission."""
    sets: dict[str, list[str]] = {}
    with open(root / SAMPLE / "grades" / "grades.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            result = row["score"] or row["status"]
            sets.setdefault(row["assignment"], []).append(f"{row['student_id']} {result}")
    return [f"  {name}  {', '.join(results)}" for name, results in sets.items()]


def where_to_look(root: Path) -> str:
    """The closing lines of `make course`."""
    lines = ["", "The sample class, points of 100", *score_lines(root)]
    lines += [
        "",
        "Where to look",
        "  the book        make serve, then http://127.0.0.1:8000 (or open _build/html/index.html)",
    ]
    for path in sorted((root / "exercises").glob("ps*/*.ipynb")):
        lines.append(f"  a problem set   .venv/bin/jupyter lab {path.relative_to(root)}")
    lines.append(
        f"  the grades      {SAMPLE}/grades/grades.csv, and what each student gets back in "
        f"{SAMPLE}/grades/feedback/"
    )
    return "\n".join(lines)


def make(names: list[str], say: Callable[[str], None]) -> None:
    """Run the named steps; without names all, then print where to look. Raises UserError."""
    known = [step.name for step in STEPS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f'unknown step "{unknown[0]}" (known: {", ".join(known)})')
    root = find_root()
    os.chdir(root)
    for step in STEPS:
        if not names or step.name in names:
            run_step(root, step, say)
    if not names:
        say(where_to_look(root))


def main(arguments: list[str] | None = None) -> int:
    """Entry point: an error that the user can fix is one line on stderr, never a traceback."""
    try:
        make(sys.argv[1:] if arguments is None else arguments, say=functools.partial(print, flush=True))
    except UserError as error:
        print(f"make: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"make: {where}{error.strerror or error}; put that right and run make again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("make: stopped; run it again to go on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
