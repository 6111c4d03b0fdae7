"""One budget a submission: whatever its code does, and however often it is tried again, in all its processes
together it costs no more time, messages and memory than sandbox/limits.py says. What was finished counts.
"""

import json
import os
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import crossing_examples  # noqa: F401 - registers the tasks example/...
import numpy as np
import pytest
from corpus_files import launcher_here
from grading import run_notebook

from autograder.judge import timed_rows
from autograder.judge.budget import Budget, UsedUp
from autograder.judge.process import NotStarted, Process
from autograder.sandbox import Limits, Unsafe, held_memory, processor_time
from autograder.sandbox.launcher import StartError
from autograder.sandbox.messages import Cell, Executed
from autograder.sandbox.processor_time import ProcessorTime
from warplab.crossing.device_client import VirtualDeviceError
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.tasks import registry

PLAN, RING, AXPY, OVERLAP = "ps01/launch_plan", "example/ring", "example/axpy", "example/overlap"
LIMITS = Limits(step_seconds=2, total_seconds=5)
END = 15.0  # seconds for the last process to be gone; the slowest that was found took 8, on a busy machine
RIGHT = """
def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
"""
LOOPS = "while True: pass"
LEAVES = "import os, time\ntime.sleep(1)\nos._exit(0)"
CHILDREN = """
import os, time
for _ in range(100):
    if os.fork() == 0:
        while True: pass
time.sleep(100)
"""
PAGE_TABLES = """
import mmap, os, time
sparse = os.open("sparse", os.O_RDWR | os.O_CREAT)
os.ftruncate(sparse, 512 << 20)
for _ in range(20):
    if os.fork() == 0:
        held = [mmap.mmap(sparse, 512 << 20) for _ in range(50)]
        for one in held:
            for byte in range(0, 512 << 20, 2 << 20): one[byte]
        time.sleep(100)
time.sleep(100)
"""
FILES = """
import contextlib, time
with contextlib.suppress(OSError):
    for number in range(1_000_000):
        open(f"{number}", "wb").close()
time.sleep(100)
"""
NEVER_ENDS = """
from numba import cuda

def plan(n):
    return (n + 127) // 128, 128

@cuda.jit
def axpy(alpha, x, y, out):
    while x[0] == x[0]:
        out[0] = 1
"""
FLOODS = """
def overlap(device, pieces):
    while True:
        try: device.clock()
        except Exception: pass
"""
WORST = {
    "every cell loops": [*[LOOPS] * 9, PLAN],
    "every cell takes nearly as long as a step may": [*["import time; time.sleep(1.5)"] * 9, PLAN],
    "every cell ends the process": [*[LEAVES] * 9, PLAN],
    "every rank loops": ["def ring(x):\n    while True: pass", RING, *[LOOPS] * 3, PLAN],
    "every rank's cells take long": [*["import time; time.sleep(0.9)"] * 3, "def ring(x): return x", RING],
    "a kernel that never ends": [*["import time; time.sleep(1.2)"] * 3, NEVER_ENDS, AXPY, FLOODS, OVERLAP],
    "calls without end": [FLOODS, OVERLAP, *[LOOPS] * 3, PLAN],
    "a hundred children that loop": [*[CHILDREN] * 3, PLAN],
    "page tables": [*[PAGE_TABLES] * 3, PLAN],
    "files": [*[FILES] * 3, PLAN],
}


@pytest.fixture(scope="module")
def launcher():
    return launcher_here()


def run(steps, launcher, limits=LIMITS):
    return run_notebook(steps, launcher, limits)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",  # loops and children that stay are in test_corpus.py, too
    [pytest.param(one, marks=() if "never ends" in one else pytest.mark.full) for one in WORST],
)
def test_no_submission_takes_longer_than_its_total_and_one_end(name, launcher):
    """What came first, in time, has its points; where the total is used up, the student is told."""
    with Process(launcher, "student", Budget(Limits())) as warm:  # the warm parent's own start is nobody's
        warm.begin_step(60)
    began = time.monotonic()
    done, scores = run([RIGHT, PLAN, *WORST[name]] if PLAN not in WORST[name] else WORST[name], launcher)
    took = time.monotonic() - began
    print(f"{name}: {took:.1f} s, {done.reason}")
    assert took < LIMITS.total_seconds + END
    assert done.status in ("timeout", "crashed")
    assert PLAN in WORST[name] or scores[PLAN] == 15


@pytest.mark.full
def test_a_class_takes_as_many_totals_as_it_has_submissions_a_job(launcher):
    began = time.monotonic()
    with ThreadPoolExecutor(2) as jobs:
        ran = list(jobs.map(lambda _: run(WORST["every cell loops"], launcher)[0].status, range(6)))
    assert ran == ["timeout"] * 6
    assert time.monotonic() - began < 3 * LIMITS.total_seconds + END


@pytest.mark.slow
def test_the_total_is_told_and_what_was_finished_counts():
    """One cell of 2 s loops, another takes 1.5 s: the total of 3 s ends in the second attempt."""
    done, scores = run(
        [RIGHT, PLAN, LOOPS, "import time; time.sleep(1.5)", "", OVERLAP], Unsafe(), Limits(2, 3)
    )
    told = "this submission's total of 3 s is used up; what was finished before counts"
    assert scores == {PLAN: 15, OVERLAP: 0}
    assert (done.status, done.reason) == ("timeout", f"2: ran longer than the limit of 2 s; {told}")
    assert {one.error for one in done.outcomes[OVERLAP]} == {told}


@pytest.mark.slow
def test_a_step_that_may_take_long_ends_with_the_total():
    done, _ = run([LOOPS, PLAN], Unsafe(), Limits(60, 1))
    assert done.reason.startswith("0: this submission's total of 1 s is used up")


@pytest.mark.slow
def test_the_end_of_a_process_and_a_further_start_cost_time(monkeypatch):
    """Two attempts begin: the first one's slow end uses up the rest of the total."""
    honest, started = Process.close, []
    monkeypatch.setattr(Process, "close", lambda self: self.closed or (honest(self), time.sleep(1.2)))

    class Counted(Unsafe):
        def launch(self, role, limits, imports=()):
            started.append((role, limits.total_seconds))
            return super().launch(role, limits, imports)

    done, _ = run(["import os; os._exit(0)", RIGHT, PLAN], Counted(), Limits(1, 1))
    assert started == [("student", 1)] and done.reason.startswith("0: the code ended its own process")
    assert "total of 1 s is used up" in done.outcomes[PLAN][0].error
    started.clear()
    run(["import os; os._exit(0)", RIGHT, PLAN], Counted(), Limits(2, 10))
    assert [role for role, _ in started] == ["student", "student"]
    assert 7 < started[1][1] < 8.8  # what the second one may take: 10 s less the slow end


@pytest.mark.slow
def test_the_clock_starts_when_the_first_process_is_up_and_a_start_in_vain_is_nobodys_fault():
    class Slow(Unsafe):
        def launch(self, *rest):
            running = super().launch(*rest)
            stand = running.stand
            running.stand = lambda: (time.sleep(1.5), stand())
            return running

    assert run([RIGHT, PLAN], Slow(), Limits(1, 1))[1] == {PLAN: 15}
    budget = Budget(Limits(1, 1))
    budget.start()
    with Process(Slow(), "student", budget) as late, pytest.raises(UsedUp, match="total of 1 s"):
        late.begin_step(1)  # a further one: it came up after the submission's time
    time.sleep(0.1)
    with pytest.raises(UsedUp, match="total of 1 s"):
        Process(Slow(), "student", budget)


@pytest.mark.slow
def test_a_start_that_fails_while_there_is_time_is_the_machines_fault():
    class Broken(Unsafe):
        def launch(self, *rest):
            running = super().launch(*rest)

            def stand():
                running.close()
                raise StartError("no more processes")

            running.stand = stand
            return running

    class Unlaunched(Unsafe):
        def launch(self, *_):
            raise StartError("no more processes")

    for launcher in (Broken(), Unlaunched()):
        with pytest.raises(NotStarted, match="did not come up: .*no more processes"):
            run([RIGHT, PLAN], launcher)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "limits", "why"),
    [
        ("clock()", Limits(20, 60, messages=400), "more messages came"),
        ("launch('x' * 40_000)", Limits(20, 60, message_mib=1), "more data came"),
    ],
)
def test_a_step_may_use_a_quarter_of_the_messages(call, limits, why):
    done, scores = run([RIGHT, PLAN, FLOODS.replace("clock()", call), OVERLAP], Unsafe(), limits)
    assert (done.status, scores) == ("crashed", {PLAN: 15, OVERLAP: 0})
    assert done.outcomes[OVERLAP][0].error == f"{why} than one step may send: does a loop never end?"


def test_messages_are_counted_over_all_steps():
    many = Limits(20, 60, messages=100, message_mib=1)
    budget = Budget(many)
    with Process(Unsafe(), "student", budget) as process:
        for _ in range(many.messages // 25):
            process.begin_step(10)
            for _ in range(24):
                process.ask(Cell("c", ""), (Executed,))
        process.begin_step(10)
        with pytest.raises(UsedUp, match="total of 100 messages"):
            for _ in range(25):
                process.ask(Cell("c", ""), (Executed,))
    budget.allowance.bytes = -1
    assert "total of 1 MiB of messages is used up" in str(budget.too_much())


@pytest.mark.slow
def test_ranks_and_the_notebooks_own_process_share_what_one_submission_may_use_at_one_time():
    """Six ranks of the ring's largest case and the notebook's process, which waits for them: a part each."""
    given = []

    class Listed(Unsafe):
        def launch(self, role, limits, imports=()):
            given.append((role, limits))
            return super().launch(role, limits, imports)

    limits = Limits(20, 60)
    run(["import torch\ndef ring(x): return x", RING], Listed(), limits)  # imported once, for all of them
    size = max(registry.get(RING).world(case.inputs) for case in registry.get(RING).cases(3))
    assert len(given) == size + 1
    for what in ("memory_mib", "disk_mib", "processes"):
        total = sum(getattr(mine, what) for _, mine in given)
        assert getattr(limits, what) - (size + 1) <= total <= getattr(limits, what)


def test_waiting_for_the_gpu_costs_nothing_and_each_timed_row_has_its_own_time(monkeypatch):
    budgets = []
    monkeypatch.setattr(
        timed_rows, "_timed", lambda task, case, order, launcher, budget: budgets.append(budget)
    )
    for _ in range(2):
        timed_rows.time_case(None, None, None, None, Limits(2, 5, timed_seconds=40))
    assert all(39 < budget.left() <= 40 for budget in budgets)
    assert [budget.allowance.bytes for budget in budgets] == [float("inf")] * 2


@pytest.mark.slow
def test_a_thousand_streams_and_their_events_take_little_of_the_judge():
    """Each event of a stream that waits for a thousand others knows as many numbers: kept without a limit,
    ten thousand events were 350 MiB of the judge's.
    """
    works = {"work": Work(np.positive, 1e-9)}
    device = VirtualDevice(DeviceTiming(), host={"x": np.zeros(990)}, works=works).connect()
    there, here = device.empty(990), device.host("x")
    tracemalloc.start()
    try:
        for number in range(990):
            stream = device.stream()
            device.copy(there[number : number + 1], here[number : number + 1], stream=stream)
            device.wait(device.record(stream), 0)
        with pytest.raises(VirtualDeviceError, match="too many events that stand for many streams"):
            for _ in range(10_000):
                device.record(0)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


BURNS = """
import time
began = time.process_time()
while time.process_time() < began + 1.2: pass
"""
FORGETS = """
import contextlib, os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        began = time.process_time()
        while time.process_time() < began + 0.4: pass
        os._exit(0)
    with contextlib.suppress(ChildProcessError): os.wait()  # until it has ended; nobody is told its time
"""
OUT_OF_PROCESSOR = (
    "this submission's total of 2 s of processor time is used up; what was finished before counts"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([f"import os\nfor _ in range(4): os.fork()\n{LOOPS}"], marks=pytest.mark.full),
        pytest.param([f"{BURNS}\nimport os\nos._exit(0)"] * 5, marks=pytest.mark.full),
        pytest.param([BURNS] * 5, marks=pytest.mark.full),
        [FORGETS],
    ],
    ids=["many processes", "many attempts", "many cells", "children that nobody waits for"],
)
def test_processor_time_is_added_up_over_all_processes_and_attempts(steps, launcher):
    if not launcher.isolation.startswith("sandboxed"):
        pytest.skip(f"needs a sandbox: {launcher.isolation}")
    limits = Limits(120, 240, processor_seconds=2)  # a busy machine gives little of it
    done, scores = run([RIGHT, PLAN, *steps, OVERLAP], launcher, limits)
    assert scores == {PLAN: 15, OVERLAP: 0}
    assert done.outcomes[OVERLAP][0].error == OUT_OF_PROCESSOR
    assert done.reason.endswith(OUT_OF_PROCESSOR)


def test_processor_time_of_the_living_the_waited_for_and_the_forgotten(tmp_path):
    """In ticks of 1/100 s; a process's own user and system time, then those of the children it waited for."""

    def lives(pid, began, *times):
        folder = tmp_path / str(pid)
        folder.mkdir(exist_ok=True)
        fields = ["S", *["0"] * 10, *map(str, times), *["0"] * 4, str(began), "0"]
        (folder / "stat").write_text(f"{pid} (a) b) {' '.join(fields)}\n")

    def ends(pid):
        (tmp_path / str(pid) / "stat").unlink()
        (tmp_path / str(pid)).rmdir()

    ticks = processor_time.TICKS
    used = ProcessorTime(str(tmp_path))
    (tmp_path / "self").mkdir()
    lives(1, 5, 1, 2, 0, 0)
    lives(7, 9, 30, 10, 0, 0)
    assert used.seconds() == 43 / ticks
    lives(1, 5, 1, 2, 35, 12)  # it waited for 7, which had used 47 in the end
    ends(7)
    assert used.seconds() == 50 / ticks
    lives(8, 11, 20, 0, 0, 0)
    assert used.seconds() == 70 / ticks
    ends(8)  # nobody waits for it: it counts as it was last seen
    assert used.seconds() == 70 / ticks
    lives(9, 12, 5, 0, 0, 0)
    lives(9, 13, 4, 0, 0, 0)  # another one with its id
    assert used.seconds() == 74 / ticks
    ends(9)
    lives(1, 5, 1, 2, 35, 13)  # one tick was waited for, of the four that it had
    assert used.seconds() == 74 / ticks
    tmp_path.rename(tmp_path.with_name("gone"))  # the whole namespace
    assert used.seconds() == 74 / ticks


HOSTILE = """
import io, json, os, resource, socket, sys, threading
import numpy as np
import autograder.judge.attempts
from autograder.sandbox.messages import Answer, BadMessage, Call, Channel, Failure, Missing

def npy(count):
    stream = io.BytesIO()
    np.save(stream, np.zeros(count))
    return stream.getvalue()

def line(data, sizes=()):
    body = {"type": "Answer", "data": data}
    return json.dumps({"body": body, "arrays": list(sizes)}, separators=(",", ":")).encode() + b"\\n"

def values(text, most=240_000):
    text += b","
    count = min(most, (5 << 20) // len(text))
    return b'{"body":{"type":"Answer","data":{"a":[' + (text * count)[:-1] + b']}},"arrays":[]}\\n'

LARGE = npy((4 << 17) - 100)
SEQUENCES = {
    "an answer of 1,000 MiB": [line({}, [1000 << 20]), *[bytes(1 << 20)] * 1000],
    "two answers of 500 MiB": [line({}, [500 << 20]), *[bytes(1 << 20)] * 500] * 2,
    "a line without end": [b"[" * (1 << 20)] * 64,
    "answers as large as they may be": [line({"x": {"__array__": 0}}, [len(LARGE)]), LARGE] * 8,
    "texts": [values(b'"0123456789abcde"')] * 3,
    "numbers": [values(b"1.5e300")] * 3,
    "large numbers": [values(b"9" * 20)] * 3,
    "very large numbers": [values(b"9" * 4000)] * 3,
    "lists": [values(b"[]")] * 3,
    "objects": [values(b'{"a":0}', 80_000)] * 3,
    "one text": [line({"a": "\\u00e9" * 900_000})] * 3,
    "escaped quotes": [b'{"body":"' + b'\\\\"' * (5 << 19) + b"\\n"] * 3,
    "a message nested deep": [b"[" * (5 << 20) + b"\\n"] * 3,
    "four thousand arrays": [line({}, [len(npy(1))] * 4096), npy(1) * 4096] * 3,
    "call": [line({}).replace(b"Answer", b"Call"), line({}, [5 << 20]).replace(b"Answer", b"Call")],
}

def peak():
    with open("/proc/self/status") as file:
        return next(int(text.split()[1]) for text in file if text.startswith("VmHWM")) >> 10

def judge(parts):
    ours, theirs = socket.socketpair()
    def send():
        try:
            for part in parts:
                theirs.sendall(part)
        except OSError:
            pass
        theirs.close()
    writer = threading.Thread(target=send)
    writer.start()
    channel = Channel(ours)
    try:
        while True:
            channel.receive((Answer, Failure, Missing, Call))
    except Exception as end:
        ours.close()
        writer.join()
        return f"{type(end).__name__}: {end}"

def job(name):
    told[name] = judge(SEQUENCES[name])

told, jobs = {}, int(sys.argv[1])
for name in [*SEQUENCES][:: int(sys.argv[2])]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak()
    threads = [threading.Thread(target=job, args=(name,)) for _ in range(jobs)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(json.dumps([name, peak() - before, told[name]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)], ids=["some", "all"])
def test_whatever_arrives_takes_little_of_the_judges_memory(every):
    """Two jobs at a time, in a judge of their own: below 100 MiB a job, and no error but a refusal."""
    words = [sys.executable, "-c", HOSTILE, "2", str(every)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = [json.loads(text) for text in done.stdout.splitlines()]
    print(*(f"{mib} MiB for {name}: {end}" for name, mib, end in found), sep="\n")
    assert len(found) == -(-15 // every)
    for name, mib, end in found:
        assert mib < 2 * 100, name
        assert end.startswith(("BadMessage: ", "Closed: ")), (name, end)


@pytest.mark.slow
def test_a_sum_of_memory_that_would_take_long_counts_as_too_much(tmp_path, monkeypatch):
    """Sixty processes of 62,000 mappings each held the keeper up for four seconds, in which others took what
    they liked. Here forty are one: below the limit, above the quick upper bound.
    """
    for number in range(40):
        (tmp_path / f"{2 + number}").symlink_to(f"/proc/{os.getpid()}")
    held = held_memory._held(f"/proc/{os.getpid()}")
    limit = 40 * (held.pages + held.of_kernel + (16 << 20))
    assert not held_memory.over(limit, str(tmp_path), [])
    for most in ("MOST_PIECES", "MOST_RESIDENT"):
        with monkeypatch.context() as patch:
            patch.setattr(held_memory, most, 10_000)
            assert held_memory.over(limit, str(tmp_path), [])
    assert not held_memory.over(1, str(tmp_path / "gone"), [])


@pytest.mark.parametrize("planted", ["link", "folder", "another's", "no room"])
def test_a_lock_of_timed_rows_that_somebody_planted_is_told_and_not_followed(tmp_path, monkeypatch, planted):
    """Everybody may write into the folder of temporary files: a sentence, and no grade, but a next try."""
    monkeypatch.setattr(timed_rows.tempfile, "gettempdir", lambda: str(tmp_path))
    lock = tmp_path / f"autograder-times-{os.getuid()}"
    if planted == "link":
        lock.symlink_to(tmp_path / "elsewhere")
    elif planted == "folder":
        lock.mkdir()
    elif planted == "another's":
        if os.getuid():
            pytest.skip("only root can make a file of another user's")
        lock.touch()
        os.chown(lock, 1234, -1)
    else:
        monkeypatch.setattr(timed_rows.tempfile, "gettempdir", lambda: str(tmp_path / "nowhere"))
    with pytest.raises(NotStarted, match=r"cannot lock .*autograder-times-.*; remove it, or let TMPDIR name"):
        with timed_rows.one_at_a_time():
            raise AssertionError("it timed without its turn")
    assert not (tmp_path / "elsewhere").exists()
