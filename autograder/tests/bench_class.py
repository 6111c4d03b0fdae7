"""`make bench`: what a class costs, by the same clock in the same run: `nbgrader autograde` as it comes, and
`autograder grade` with sandbox and judge.

python autograder/tests/bench_class.py [--sets ps04 ps09] [--rounds 2] [--sizes 30 100 300 1000] [--of ps09]

Without options: one round of ps04 and of a set without kernels, and two small classes. First the ratio of one
set after the other, the two graders in turn. A submission's time is the difference between a larger and a
smaller class, divided by how many more there are, so that both are told without their start. Then one set in
classes of several sizes, start and all, and each graded a second time unchanged. Processor time is all that
the machine's processors worked meanwhile, so that nothing a jail did is left out: run it on a machine that
does nothing else. Memory is what the machine had less of.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grading import grading as made_grading
from nbgrader.api import Gradebook

from autograder.layout import Assignment, find_root, load_assignment
from autograder.release.source import stable_json
from autograder.sample_class.build import submission
from autograder.sandbox.choose import choose
from autograder.sandbox.forked import PARENT, READERS, Launcher

FEW, MORE = (1, 2), (2, 20)  # sizes of the two classes: of nbgrader, which takes its time, and of ours
WANTED = {"ps01": 15, "ps04": 15}  # times nbgrader; 30 for a set without kernels


@dataclass
class ClassCost:
    """Seconds by the clock, seconds of processors, MiB of memory that the machine had less of."""

    wall: float = 0.0
    processor: float = 0.0
    memory: float = 0.0
    scores: set[float] = field(default_factory=set)


def busy() -> float:
    """Seconds that this machine's processors have worked so far, whoever for.

    What the kernel tells of a process and its children leaves out whoever was in a jail when its process 1
    was killed: nobody waited for them.
    """
    user, nice, system, _, _, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def available() -> float:
    """MiB of memory that could be had now."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) / 1024


@contextlib.contextmanager
def measured() -> Iterator[ClassCost]:
    """What happens inside, once it is over."""
    spent, over = ClassCost(), threading.Event()
    before, least = available(), [available()]

    def watch() -> None:
        while not over.wait(0.1):
            least[0] = min(least[0], available())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    started, worked = time.perf_counter(), busy()
    try:
        yield spent
    finally:
        spent.wall, spent.processor = time.perf_counter() - started, busy() - worked
        over.set()
        watcher.join()
        spent.memory = before - least[0]


def class_of(root: Path, assignment: Assignment, size: int, folder: Path, inside: str = "") -> None:
    """The solutions, handed in by `size` students; a comment makes each file another."""
    notebook = json.loads(submission(root, assignment.name, {"start": "solution"}, "everybody"))
    answers = [cell for cell in notebook["cells"] if cell["id"] in assignment.cells]
    written = [cell for cell in answers if assignment.cells[cell["id"]].kind == "solution"]
    texts = ["".join(cell["source"]) for cell in written]
    for number in range(size):
        for cell, text in zip(written, texts, strict=True):
            cell["source"] = f"{text}\n# student {number}"
        target = folder / f"s{number:04}" / inside / assignment.filename
        target.parent.mkdir(parents=True)
        target.write_bytes(stable_json(notebook))


def stock(root: Path, assignment: Assignment, size: int, folder: Path) -> ClassCost:
    """`nbgrader autograde` with nbgrader's own settings, of a course that has nothing of ours but warplab."""
    name = assignment.name
    source = folder / "source" / name / assignment.filename
    source.parent.mkdir(parents=True)
    source.write_bytes(stable_json(assignment.document))
    (folder / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.root = {str(folder)!r}\nc.ExecutePreprocessor.timeout = 600\n"
    )
    class_of(root, assignment, size, folder / "submitted", name)
    _nbgrader(folder, "generate_assignment", name)
    with measured() as spent:
        _nbgrader(folder, "autograde", name)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        spent.scores = {round(one.score, 2) for one in gradebook.assignment_submissions(name)}
    return spent


def _nbgrader(folder: Path, *words: str) -> None:
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [programs / "nbgrader", *words],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"nbgrader {' '.join(words)} failed:\n{done.stderr[-2000:]}")


def ours(root: Path, name: str, submitted: Path, out: Path, launcher: Launcher) -> ClassCost:
    """`autograder grade`, in this process."""
    with measured() as spent:
        grading = made_grading(root, name, submitted, out, jobs=os.cpu_count() or 1, sandbox=launcher, seed=1)
        rows = list(grading.rows())
        for parent in (PARENT, READERS):
            parent.stop()  # what its children used counts once it has ended
    problem = next((row for row in rows if row.status != "graded"), None)
    if problem:
        raise SystemExit(f"{name}: {problem.student} was not graded: {problem.reason}")
    spent.scores = {row.score for row in rows if row.score is not None}
    return spent


def each(small: ClassCost, large: ClassCost, sizes: tuple[int, int]) -> tuple[float, float]:
    """(seconds by the clock, processor seconds) of one submission more."""
    more = sizes[1] - sizes[0]
    return (large.wall - small.wall) / more, (large.processor - small.processor) / more


def ratios(root: Path, names: list[str], launcher: Launcher, rounds: int) -> None:
    """Print one line a set."""
    print(f"a submission, median of {rounds} rounds, {os.cpu_count()} processors, {launcher.isolation}")
    print(
        "  set   nbgrader: s, processor s   ours: s, processor s   times: clock, processor   wanted   score"
    )
    for name in names:
        assignment, theirs, mine = load_assignment(root, name), [], []
        scores: set[float] = set()
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as place:
                base = Path(place)
                found = [stock(root, assignment, size, base / f"stock{size}") for size in FEW]
                theirs.append(each(*found, FEW))
                scores |= found[0].scores | found[1].scores
                found = []
                for size in MORE:
                    class_of(root, assignment, size, base / f"in{size}")
                    found.append(ours(root, name, base / f"in{size}", base / f"out{size}", launcher))
                mine.append(each(*found, MORE))
                scores |= found[0].scores | found[1].scores
        if len(scores) != 1:
            raise SystemExit(f"{name}: the two graders give different scores: {sorted(scores)}")
        them, us = (list(map(statistics.median, zip(*rows, strict=True))) for rows in (theirs, mine))
        print(
            f"  {name}  {them[0]:10.2f} {them[1]:10.2f} {us[0]:14.3f} {us[1]:10.3f} {them[0] / us[0]:10.1f}"
            f" {them[1] / us[1]:10.1f} {WANTED.get(name, 30):7}   {scores.pop():g}"
        )


def sizes_of(root: Path, name: str, sizes: list[int], launcher: Launcher) -> None:
    """Print one line a class: graded, and graded again unchanged."""
    print(f"a class of {name}, start included")
    print("  size   graded: s, ms each, processor s, MiB   unchanged: s")
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            submitted, out = Path(place, "in"), Path(place, "out")
            class_of(root, load_assignment(root, name), size, submitted)
            first = ours(root, name, submitted, out, launcher)
            again = ours(root, name, submitted, out, launcher)
            shutil.rmtree(out)
        print(
            f"  {size:4} {first.wall:10.1f} {1e3 * first.wall / size:8.0f} {first.processor:10.1f}"
            f" {first.memory:8.0f} {again.wall:12.2f}"
        )


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["ps04", "ps11"])
    parser.add_argument("--of", default="ps11")
    parser.add_argument("--sizes", nargs="*", type=int, default=[10, 30])
    parser.add_argument("--rounds", type=int, default=1)
    words = parser.parse_args()
    root, launcher = find_root(None), choose()
    if words.sets:
        ratios(root, words.sets, launcher, words.rounds)
    if words.sizes:
        sizes_of(root, words.of, words.sizes, launcher)


if __name__ == "__main__":
    main()
