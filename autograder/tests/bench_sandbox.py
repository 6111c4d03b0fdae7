"""`make bench`: what it costs to run a submission behind walls: the start of a process
for each launcher, then whole submissions.

A whole submission is judged twice: by the grader (reader, sandbox, executor, judge: four processes), and with
every call of the same work made directly in one child of a process as warm as the warm parent, which is the
student's own run time. The difference is what the walls, the conversation, the reading and the comparing
cost; of it the reader, timed alone, is told apart. Wall-clock time of this machine, the least of several,
which take turns: what else the machine does meets them alike.
"""

import contextlib
import functools
import os
import sys
import tempfile
import time
from pathlib import Path

from autograder.judge.judge import judge_notebook, make_cases, steps_of
from autograder.judge.reading import read_submission, reader
from autograder.layout import find_root, load_assignment
from autograder.sample_class import expected_grades
from autograder.sample_class.build import build_class
from autograder.sandbox import Limits
from autograder.sandbox.choose import SANDBOXES, problem_of
from autograder.sandbox.forked import Unsafe
from autograder.sandbox.launcher import WARM, often_imported
from autograder.sandbox.messages import Cell
from autograder.sandbox.student import execute
from autograder.sandbox.zygote import prepare, settle, warm_up
from warplab import crossing
from warplab.tasks import registry

REPEATS = 15
LIMIT_MS = 150


def least(call, repeats):
    """Least wall-clock milliseconds of some calls, after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return min(times)


def start_and_end(launcher):
    """Start a student's process and end it."""
    with contextlib.closing(launcher.launch("student", Limits())) as running:
        running.stand()


def read(data, assignment, launcher):
    """A submitted file's bytes as what judge_notebook takes, by a process of its own."""
    with reader(launcher) as process:
        return read_submission(data, assignment, process)


def whole(data, assignment, cases, launcher):
    """What autograder.grade does of one submission: read and judged, while the reader's process ends."""
    with reader(launcher) as process:
        checked = read_submission(data, assignment, process)
        return judge_notebook(assignment, checked, cases, launcher)


def own_time(assignment, checked, cases):
    """Milliseconds of the same work in one fresh child of this process, timed by itself."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        started = time.perf_counter()
        directly(assignment, checked, cases)
        os.write(writer, str(1e3 * (time.perf_counter() - started)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        milliseconds = float(answer.read())
    os.wait()
    return milliseconds


def directly(assignment, checked, cases):
    """The same cells, questions, answers and kernels as in judge_notebook, by plain calls."""
    namespace = {"__name__": "__main__"}
    for step in steps_of(assignment, checked):
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
            if type(done) is crossing.Order:
                crossing.execute(done)


def main():
    """Print the two tables. Exit status 1 where a whole submission costs more than
    LIMIT_MS over its own run time.
    """
    warm_up()
    prepare([WARM])
    launchers = [kind() for kind in SANDBOXES if problem_of(kind) is None] + [Unsafe()]
    print("start and end of a student's process (least of", REPEATS, "in ms)")
    for launcher in launchers:
        print(f"  {least(functools.partial(start_and_end, launcher), REPEATS):8.1f}  {launcher.isolation}")
    root, worst = find_root(None), 0.0
    print(
        f"a whole submission, {launchers[0].isolation} (least of 5, in ms): graded, the same work directly, "
        "the difference, of it the reader"
    )
    for name in ("ps01", "ps04"):
        with tempfile.TemporaryDirectory() as folder:
            build_class(root, name, Path(folder))
            assignment = load_assignment(root, name)
            data = Path(folder, "perfect", assignment.filename).read_bytes()
        checked = read(data, assignment, launchers[0])
        cases = make_cases(assignment, 2026)
        prepare(often_imported(step.source for step in steps_of(assignment, checked)))
        settle()
        verdict = whole(data, assignment, cases, launchers[0])
        if verdict.score != expected_grades()[name]["perfect"]["score"]:
            return (
                f"{name}: the solution got {verdict.score:g} points ({verdict.reason}), so its time says "
                "nothing"
            )
        rounds = [
            (
                least(functools.partial(whole, data, assignment, cases, launchers[0]), 1),
                own_time(assignment, checked, cases),
                least(functools.partial(read, data, assignment, launchers[0]), 1),
            )
            for _ in range(5)
        ]
        graded, own, reading = map(min, zip(*rounds, strict=True))
        worst = max(worst, graded - own)
        print(f"  {graded:8.1f} {own:8.1f} {graded - own:8.1f} {reading:8.1f}  {name}")
    return int(worst > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
