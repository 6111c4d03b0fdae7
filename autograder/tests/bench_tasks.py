"""`make bench`: every task in one table: what its check costs, what its corpus holds,
and how far its bounds lie apart.

Seconds are of one check of the reference solution in this process, as in a notebook, compilation included:
the least of two, by the clock and as CPU time (where other work shares the cores, the one to compare; that of
the processes it starts included). A bound gives full points up to `full` and none from `zero`; beside both
stands what the reference needs. All totals are the engine's counts.
"""

import contextlib
import io
import math
import resource
import sys
import time
import warnings
from pathlib import Path

from corpus_files import entries_of, solution_of

from warplab.tasks import registry
from warplab.tasks.feedback import report_on
from warplab.tasks.rubric import number

NAMES = [
    name
    for path in sorted(Path(registry.__file__).parent.glob("ps*.py"))
    for name in registry.names(path.stem)
]

REPEATS = 2
LIMIT_S = 5
SEPARATION = 1.5
HEAD = (
    "task",
    "points",
    "timed",
    "crossing",
    "correct / wrong / cheat",
    "clock s",
    "CPU s",
    "structure: reference, full, zero, zero / full, zero / reference",
)


def cpu_seconds():
    """CPU time of this process and of those it has started and waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def checked(name):
    """(report, least seconds by the clock, least seconds of CPU time): a fresh solution
    each time, so that it is compiled each time.
    """
    clock, work = [], []
    for _ in range(REPEATS):
        with contextlib.redirect_stdout(io.StringIO()):  # notebooks show things
            submission = solution_of(name)
        start, used = time.perf_counter(), cpu_seconds()
        report = report_on(name, *submission)
        clock.append(time.perf_counter() - start)
        work.append(cpu_seconds() - used)
    return report, min(clock), min(work)


def separations(task, report):
    """(row's key, the reference's total, Bound) of each structure row's narrowest case."""
    cases = task.cases()
    for line in report.lines:
        if line.kind == "structure":
            bounds = {
                case.name: task.bounds(case.inputs)[line.key] for case in cases if case.item == line.key
            }
            case = min(bounds, key=lambda name: ratio(bounds[name].zero, bounds[name].full))
            yield line.key, bounds[case].total(line.counters[case]), bounds[case]


def corpus(name):
    """How many correct, wrong and cheating submissions the task is tested with."""
    kinds = [entry.kind for entry in entries_of(name)]
    return [kinds.count(kind) for kind in ("correct", "wrong", "cheat")]


def ratio(most, least):
    return most / least if least else math.inf


def main():
    warnings.simplefilter("ignore")
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    points = timed = clocks = works = 0
    files, slow, close = [0, 0, 0], [], []
    for name in NAMES:
        task = registry.get(name)
        report, clock, work = checked(name)
        if report.score != report.max:
            sys.exit(
                f"{name}: its reference solution gets {report.score:g} of {report.max:g} points; run pytest "
                "autograder/tests/tasks/test_right_answers.py"
            )
        found, cells = corpus(name), []
        for key, total, bound in separations(task, report):
            totals = ", ".join(map(number, (total, bound.full, bound.zero)))
            cells.append(
                f"{key}: {totals}, {ratio(bound.zero, bound.full):.3g}, {ratio(bound.zero, total):.3g}"
            )
            close += [f"{name} {key}"] if ratio(bound.zero, total) < SEPARATION else []
        row = (
            name,
            f"{task.points:g}",
            f"{task.points_for('time'):g}",
            task.crossing,
            " / ".join(map(str, found)),
            f"{clock:.2f}",
            f"{work:.2f}",
        )
        print(f"| {' | '.join(row)} | {'; '.join(cells)} |", flush=True)
        points, timed, clocks, works = (
            points + task.points,
            timed + task.points_for("time"),
            clocks + clock,
            works + work,
        )
        files = [a + b for a, b in zip(files, found, strict=True)]
        slow += [name] if work > LIMIT_S else []
    total = (
        f"{len(NAMES)} tasks",
        f"{points:g}",
        f"{timed:g}",
        "",
        " / ".join(map(str, files)),
        f"{clocks:.1f}",
        f"{works:.1f}",
    )
    print(f"| {' | '.join(total)} | |")
    print(f"\nchecks of more than {LIMIT_S} s of CPU time: {', '.join(slow) or 'none'}")
    print(f"zero is less than {SEPARATION} times the reference's total: {', '.join(close) or 'nowhere'}")


if __name__ == "__main__":
    main()
