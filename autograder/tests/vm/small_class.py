"""A class of five, graded in the setting in which this runs.

Two students are honest, two take memory, and one takes the processors.

`small_class.py make FOLDER` writes the class. `small_class.py grade FOLDER` grades it, all five at once, and
prints one line of JSON: each student's row, and the most memory that a job's cgroup counted.
"""

import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MEMORY_MIB, DISK_MIB = 1024, 128  # of one submission; the machine has three times as much
SECONDS, START_SECONDS = 150.0, 500.0  # emulated processors are slow
BUSY = "import os\nfor _ in range(7):\n    if os.fork() == 0:\n        break\nwhile True:\n    pass\n"
# each takes less than one process may have, and all of them twice what the submission may have
TWELVE_TAKE = f"""import os, signal
for _ in range(12):
    if os.fork() == 0:
        taken = bytearray(b"x") * ({MEMORY_MIB} * (1 << 20) // 6)
        signal.pause()
signal.pause()
"""


def make(folder: Path) -> None:
    """Write a course with its released set and five submissions."""
    sys.path.insert(0, str(TESTS))
    from grading import answers, hand_in, make_course, notebook

    root, assignment = make_course(folder)
    good = answers(root)
    pieces = (TESTS / "corpus/cells/thirty_gigabytes_in_pieces.py").read_text()
    first = {"thirty_gigabytes": pieces, "twelve_take_memory": TWELVE_TAKE, "eight_busy": BUSY}
    for student in ("ada", "grace"):
        hand_in(root / "submitted", student, notebook(assignment, **good))
    for student, text in first.items():
        hand_in(root / "submitted", student, notebook(assignment, **good | {"launch_plan": text}))


@contextlib.contextmanager
def watching(place: Path | None):
    """The most MiB that one job's cgroup in `place` has counted so far, in a list of one; [None] without."""
    most: list[float | None] = [None]
    over = threading.Event()

    def look():
        while place and not over.wait(0.02):
            for file in place.glob("autograder-*/memory.current"):
                with contextlib.suppress(OSError):
                    most[0] = max(most[0] or 0, round(int(file.read_text()) / (1 << 20)))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def grade(folder: Path) -> dict[str, object]:
    """{student: [status, points, reason]} and what was seen of memory and of the clock."""
    from autograder.grade import Grading
    from autograder.judge import reading
    from autograder.sandbox import cgroup
    from autograder.sandbox.forked import SelfSandbox

    reading.LIMITS = replace(reading.LIMITS, start_seconds=START_SECONDS, total_seconds=START_SECONDS)
    with tempfile.TemporaryDirectory() as scratch:
        others = shutil.ignore_patterns("grades")  # closed to all but who made it
        root = Path(shutil.copytree(folder, Path(scratch, "course"), ignore=others))
        folders = root / "submitted", root / "grades"
        grading = Grading(root, "ps01", *folders, seconds=SECONDS, jobs=5, sandbox=SelfSandbox())
        grading.limits = replace(
            grading.limits, memory_mib=MEMORY_MIB, disk_mib=DISK_MIB, start_seconds=START_SECONDS
        )
        start = time.monotonic()
        with watching(cgroup.place()) as most:
            rows = {row.student: [row.status, row.score, row.reason] for row in grading.rows()}
        return {
            "rows": rows,
            "isolation": grading.pool.isolation,
            "MiB of a job at most": most[0],
            "MiB that a job's cgroup allows": MEMORY_MIB + DISK_MIB,
            "seconds": round(time.monotonic() - start),
        }


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(where)
    else:
        print(json.dumps({"class": grade(where)}))
