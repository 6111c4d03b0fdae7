"""`make bench`: what it costs to run a submission behind walls: the start of a process for each launcher, a
question and its answer, then whole submissions.

A whole submission is judged twice: by the grader (reader, student, executor, judge: four processes), and with
the same calls made in one child of a process as warm as the warm parent: the file read, its cells run, its
kernels executed, its results compared. The difference is what the boundary between judge and student costs:
processes, walls and conversation, and what two processes do twice that one does once.

By the clock, and of all processors together, which tells also what two of them did at the same time; both are
of a machine that does nothing else, and how much it does is said first. Rounds take turns.
"""

import contextlib
import functools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_class import busy

from autograder.judge.budget import Budget
from autograder.judge.judge import judge_notebook, make_cases, steps_of
from autograder.judge.process import Process
from autograder.judge.reading import read_submission, reader
from autograder.layout import find_root, load_assignment
from autograder.reader.reader import examine, read
from autograder.sample_class.build import build_class
from autograder.sample_class.run import expected_grades
from autograder.sandbox import Limits, linux
from autograder.sandbox.choose import problem_of
from autograder.sandbox.forked import SelfSandbox, Unsafe
from autograder.sandbox.launcher import WARM, often_imported
from autograder.sandbox.messages import Cell, Executed, Read
from autograder.sandbox.student import execute
from autograder.sandbox.zygote import prepare, settle, warm_up
from warplab import crossing
from warplab.tasks import registry, scoring

STARTS, TRIPS, ROUNDS = 15, 400, 9
LIMIT_MS = 150


def timed(call, repeats):
    """Milliseconds of some calls: an array of one row each, by the clock and of all processors."""
    rows = []
    for _ in range(repeats):
        clock, processors = time.perf_counter(), busy()
        call()
        rows.append((time.perf_counter() - clock, busy() - processors))
    return 1e3 * np.array(rows)


def told(times):
    """Median by the clock with the least and the most, and the mean of processors, whose ticks are coarse."""
    clock, processors = times.T
    return f"{statistics.median(clock):7.1f} ({min(clock):.0f} to {max(clock):.0f}) {processors.mean():7.1f}"


def start_and_end(launcher, role):
    """Start a process and end it; the readers' warm parent stays the small one that it is."""
    imports = () if role == "reader" else (WARM,)
    with contextlib.closing(launcher.launch(role, Limits(), imports)) as running:
        running.stand()


def ask_often(launcher):
    """Milliseconds of one question to a student's process and its answer, for a cell that does nothing."""
    with Process(launcher, "student", Budget(Limits())) as process:
        process.begin_step(Limits().step_seconds)

        def ask():
            for _ in range(TRIPS):
                process.ask(Cell("cell", "pass"), (Executed,))

        ask()
        return timed(ask, 3) / TRIPS


def whole(data, assignment, cases, launcher):
    """What autograder.grade does of one submission: read and judged, while the reader's process ends."""
    with reader(launcher) as process:
        checked = read_submission(data, assignment, process)
        return judge_notebook(assignment, checked, cases, launcher)


class Here:
    """The reader without a process."""

    def begin_step(self, seconds):
        pass

    def ask(self, message, allowed):
        return read(message) if isinstance(message, Read) else examine(message)

    def let_go(self):
        pass


def directly(data, assignment, cases):
    """The same reading, cells, questions, answers, kernels and comparisons as in whole(), by plain calls.

    Returns the score.
    """
    namespace = {"__name__": "__main__"}
    outcomes = {name: [] for name in cases}
    for step in steps_of(assignment, read_submission(data, assignment, Here())):
        if step.kind == "cell":
            execute(Cell(step.id, step.source), namespace)
            continue
        task = registry.get(step.task)
        kind, names = crossing.CROSSINGS[task.crossing], (task.entry, task.plan_entry)
        plan = namespace.get(task.plan_entry)
        for case in cases[task.name]:
            host = crossing.host(task, case)
            answer = kind.answer(
                kind.question(task, case), names, namespace[task.entry], plan, host and host.call
            )
            done = crossing.finish(task, case, answer, host)
            done = crossing.execute(done) if type(done) is crossing.Order else done
            outcomes[task.name].append(done.of(case))
    reports = [scoring.judge(registry.get(name), cases[name], found) for name, found in outcomes.items()]
    return sum(line.points for report in reports for line in report.lines)


def in_a_child(data, assignment, cases, score):
    """directly(), in a fresh child of this process whose allocator is set as a jail's is."""
    child = os.fork()
    if child == 0:
        linux.keep_freed_memory()
        os._exit(int(directly(data, assignment, cases) != score))
    if os.waitpid(child, 0)[1]:
        raise AssertionError("done directly, the solution gets other points than it should")


@contextlib.contextmanager
def counted_questions():
    """A list to which each message of the judge's is added, and which expects an answer."""
    sent, send = [], Process.send
    Process.send = lambda process, message: (sent.append(message), send(process, message))
    yield sent
    Process.send = send


def main():
    """Print the tables. Exit status 1 where the boundary costs more than LIMIT_MS by the clock."""
    warm_up()
    prepare([WARM])
    others = timed(functools.partial(time.sleep, 1.0), 3)[:, 1].mean() / 10
    note = ", and what follows tells of them, too" if others > 10 else ""
    print(f"other programs use {others:.0f}% of one processor{note}")
    print("in ms: the median by the clock (least to most), then the mean of all processors together\n")
    launchers = [SelfSandbox(), Unsafe()] if problem_of() is None else [Unsafe()]
    costs = [starts(launcher) for launcher in launchers]
    trip = np.median(ask_often(launchers[0]), axis=0)
    print(f"  {trip[0]:7.3f} {trip[1]:.3f}  a question and its answer, behind the first walls\n")
    differences = [compared(name, launchers[0], costs[0], trip) for name in ("ps01", "ps04")]
    return int(max(differences) > LIMIT_MS)


def starts(launcher):
    """Print what a start and end of each role's process cost. Returns the sum, by clock and processors."""
    print(launcher.isolation)
    total = np.zeros(2)
    for role in ("reader", "student", "executor"):
        call = functools.partial(start_and_end, launcher, role)
        call()
        times = timed(call, STARTS)
        total += times.mean(axis=0)
        print(f"  {told(times)}  {role}: start and end")
    return total


def compared(name, launcher, three, trip):
    """Print what the solution of one set costs. Returns the milliseconds of its boundary, by the clock."""
    root, score = find_root(None), expected_grades()[name]["perfect"]["score"]
    with tempfile.TemporaryDirectory() as folder:
        build_class(root, name, Path(folder))
        assignment = load_assignment(root, name)
        data = Path(folder, "perfect", assignment.filename).read_bytes()
    cases = make_cases(assignment, 2026)
    cells = steps_of(assignment, read_submission(data, assignment, Here()))
    prepare(often_imported(step.source for step in cells))
    settle()
    with counted_questions() as sent:
        verdict = whole(data, assignment, cases, launcher)
    earned, *_ = verdict.so_far({}, 0)
    if earned != score:
        sys.exit(f"{name}: the solution got {earned:g} points ({verdict.reason}): its time says nothing")
    rounds = [
        (
            timed(functools.partial(whole, data, assignment, cases, launcher), 1)[0],
            timed(functools.partial(in_a_child, data, assignment, cases, score), 1)[0],
        )
        for _ in range(ROUNDS)
    ]
    graded, own = map(np.array, zip(*rounds, strict=True))
    print(f"{name}\n  {told(graded)}  graded\n  {told(own)}  the same work directly")
    print(f"  {told(graded - own)}  between: the boundary; of all processors, as measured apart above:")
    print(f"  {three[1]:7.1f} three processes, {len(sent) * trip[1]:.1f} questions and answers ({len(sent)})")
    return float(np.median((graded - own)[:, 0]))


if __name__ == "__main__":
    sys.exit(main())
