"""Walls are attacked from inside. Each test names its protection; `-ra` shows which
could not be exercised on this machine.
"""

import contextlib
import ctypes
import ctypes.util
import fcntl
import functools
import io
import json
import mmap
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import forked_commands
import pytest
from conftest import ROOT
from grading import answers, command, hand_in, judged_here, make_course, notebook
from grading import grading as made_grading
from rich.console import Console

from autograder.doctor import ATTEMPTS, diagnose, examine
from autograder.judge.budget import Budget, Lost
from autograder.judge.process import Process
from autograder.sandbox import Limits, cgroup, landlock, linux, probe, seccomp, share
from autograder.sandbox import jail as locks
from autograder.sandbox.choose import NoSandbox, choose, problem_of
from autograder.sandbox.forked import PARENT, SelfSandbox, Unsafe
from autograder.sandbox.launcher import often_imported
from autograder.sandbox.messages import Cell, Executed

MORE = ("memory_of_many", "offspring")
AS_USER = """set -e
base=$1; python=$2; shift 2
mount --bind "$python" "$base"
mount -t tmpfs -o mode=755 none /root
mkdir -p "$python"; mount --bind "$base" "$python"
exec setpriv --reuid=1234 --regid=1234 --clear-groups "$@"
"""


def needs_walls():
    if problem := problem_of():
        pytest.skip(f"the sandbox does not work here: {problem}")


def as_user(tmp_path):
    """The beginning of a command that user 1234 runs, in a mount namespace where it can read root's Python,
    which may lie in root's home. Skips where an ordinary user could not read the course anyway: there, or
    below a folder that is closed.
    """
    for folder in (ROOT, *ROOT.parents):
        if folder == Path("/root") or not folder.stat().st_mode & 0o001:
            pytest.skip(f"an ordinary user may not read the course here: {folder} is closed")
    if not (shutil.which("setpriv") and shutil.which("unshare")):
        pytest.skip("needs util-linux (unshare, setpriv)")
    ready = ["unshare", "-m", "sh", "-c", AS_USER, "sh", str(tmp_path), sys.base_prefix]
    if subprocess.run([*ready, "true"], capture_output=True).returncode:
        pytest.skip("this root may not make a mount namespace")
    return ready


@functools.cache
def findings():
    """What `autograder doctor` finds, with canaries where a grader keeps what must not leak."""
    needs_walls()
    real = [
        ROOT / "solutions",
        ROOT / "autograder" / "tests" / "corpus",
        ROOT / "autograder" / "autograder" / "judge",
        ROOT / ".git",
    ]
    real = [next(path for path in folder.rglob("*") if path.is_file()) for folder in real if folder.is_dir()]
    with (
        tempfile.TemporaryDirectory() as course,
        tempfile.NamedTemporaryFile(dir=Path.home(), prefix="canary-") as at_home,
    ):
        planted = [Path(at_home.name), *real]
        for name in (
            "canary-gradebook.db",
            "solutions/canary-1.py",
            "autograder/tests/canary-2.py",
            "submitted/bob/canary-3.ipynb",
        ):
            path = Path(course, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("planted")
            planted.append(path)
        return {finding.name: finding for finding in examine(SelfSandbox(), planted)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ATTEMPTS, *MORE])
def test_the_wall_holds(name):
    if name == "landlock" and not landlock.abi():
        pytest.skip("this kernel has no Landlock")
    finding = findings()[name]
    assert finding.holds, f"{finding.protection}: {finding.detail}"


def test_a_process_of_the_jails_own_with_the_graders_number_is_none_outside():
    assert probe.processes({"pid": os.getpid()}, "") == "sees other processes"


def test_an_attempt_for_which_the_machine_is_too_slow_is_told_as_not_made():
    program = """import os, signal
from autograder.sandbox import probe
print(probe.memory_of_many({"seconds": 0.001, "memory_mib": 8192}, ""), flush=True)
os.killpg(0, signal.SIGKILL)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=False
    )
    assert run.stdout == "not tried: in 0.001 s only 0 of twelve processes had their memory\n"


@pytest.fixture(params=[SelfSandbox, pytest.param(Unsafe, marks=pytest.mark.full)])
def launcher(request):
    if request.param is not Unsafe:
        needs_walls()
    return request.param()


@pytest.fixture
def jail():
    """The sandbox that grading would use here."""
    try:
        return choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))


def inside(launcher, source, seconds=20.0, **limits):
    """Execute a cell in a student's process. Returns what it raised, in one sentence,
    or None; raises Lost.
    """
    with Process(launcher, "student", Budget(Limits(**limits)), often_imported([source])) as process:
        process.begin_step(seconds)
        return process.ask(Cell("cell", source), (Executed,)).error


def survivors(marker):
    """Command lines of processes on this machine that hold `marker`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        found += [command] if marker.encode() in command else []
    return found


@pytest.mark.full  # `make test` has cells/fifty_daemons.py of the corpus
def test_fifty_daemons_leave_no_survivor_in_any_mode(launcher):
    marker = f"31{os.getpid()}"
    source = f"""
import os
for number in range(50):
    if os.fork() == 0:
        os.setpgid(0, 0)
        if os.fork() == 0:
            os.execv("/bin/sh", ["sh", "-c", "trap '' TERM HUP INT; : > up.$$; sleep {marker}; exit 0"])
        os._exit(0)
while sum(name.startswith("up.") for name in os.listdir()) < 50:
    pass
"""
    assert inside(launcher, source, processes=300) is None
    assert survivors(marker) == []


@pytest.mark.slow
def test_process_1_cannot_be_killed_or_read_by_what_it_reaps(jail):
    assert "PermissionError" in inside(jail, "import os\nos.kill(1, 9)") or not landlock.abi()
    assert "PermissionError" in inside(jail, "import os\nopen('/proc/1/mem', 'rb')")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, how",
    [
        ("import os; os._exit(3)", "exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL .often: out of memory"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os; os.closerange(3, 100); import time; time.sleep(600)", "closed its channel"),
    ],
)
def test_how_a_process_ended_is_told(jail, source, how):
    with pytest.raises(Lost, match=how):
        inside(jail, source, seconds=3)


AS_MUCH_AS_SIX_MAY_HAVE = """
import os, time
held = []
for _ in range(6):
    if os.fork() == 0:
        try:
            while True:
                held.append(b"x" * (1 << 20))
        except MemoryError:
            time.sleep(60)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_process_that_takes_too_much_memory_gets_a_memory_error_or_dies(jail):
    assert "MemoryError" in inside(jail, "block = bytearray(2 << 30)", memory_mib=1024)
    with pytest.raises(Lost, match=r"killed \(memory\)"):
        inside(jail, AS_MUCH_AS_SIX_MAY_HAVE, memory_mib=600)


def test_a_full_disk_is_the_students_own(jail):
    fill = "for n in range(99):\n    open(f'f{n}', 'wb').write(bytes(1 << 20))"
    assert "No space left" in inside(jail, fill, disk_mib=40)
    assert inside(jail, "open('f', 'wb').write(bytes(1 << 20))", disk_mib=40) is None


def test_every_process_draws_its_own_random_numbers(launcher):
    source = "import random\nimport numpy as np\nraise ValueError(f'{random.random()} {np.random.rand()}')"
    assert len({number for _ in range(3) for number in inside(launcher, source).split()[1:]}) >= 6


def test_nothing_of_one_submission_is_there_for_the_next(jail):
    places = ("./left", "/tmp/left", "/dev/shm/left")
    assert inside(jail, f"for path in {places}: open(path, 'w').write('here')") is None
    assert inside(jail, f"import os\nassert not any(map(os.path.exists, {places}))") is None


def test_what_a_notebook_imports_is_there_before_it_asks_and_nothing_else(jail):
    mentioned = often_imported(["from IPython.display import display", "import this"])
    assert mentioned == ("IPython.display",)
    with Process(jail, "student", Budget(Limits()), (*mentioned, "this")) as process:
        process.begin_step(30)
        source = "import sys\nassert 'IPython.display' in sys.modules and 'this' not in sys.modules"
        assert process.ask(Cell("cell", source), (Executed,)).error is None


LOOKS = (  # what a library finds out of the machine when it is first used
    "import torch; found = torch.ones(9).half().float().sum(), torch.backends.cpu.get_cpu_capability()",
    "import torch; found = torch.backends.quantized.supported_engines, torch.get_num_threads()",
    "import torch; found = (torch.arange(9e4).sin().reshape(300, 300) @ torch.ones(300)).tolist()",
    "import numpy as np; found = (np.sin(np.arange(9e4)).reshape(300, 300) @ np.ones(300)).tolist()",
    "import llvmlite.binding as llvm; found = llvm.get_host_cpu_name(), str(llvm.get_host_cpu_features())",
    "import os, locale; found = os.cpu_count(), locale.setlocale(locale.LC_ALL, ''), open('f', 'w').encoding",
)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("look", LOOKS)
def test_a_library_finds_the_same_machine_behind_the_walls(jail, look):
    told = f"{look}\nraise ValueError(str(hash(str(found))))"
    assert inside(jail, told) == inside(Unsafe(), told)


@pytest.mark.slow
def test_a_warm_parent_that_died_is_started_again_and_has_nothing_of_the_graders_shell(jail, monkeypatch):
    """Neither what is there to steal, nor its language and the modes of its files."""
    assert inside(jail, "x = 1") is None
    PARENT.process.kill()
    PARENT.process.wait()
    for name, value in (("COURSE_TOKEN", "planted"), ("LC_ALL", "de_DE.ISO-8859-1")):
        monkeypatch.setenv(name, value)
    before = os.umask(0o077)
    try:
        assert inside(jail, "print('\u2192')\nassert open('f', 'w').encoding.lower() == 'utf-8'") is None
    finally:
        os.umask(before)
    about = Path(f"/proc/{PARENT.process.pid}")
    if os.geteuid() == 0:  # it cannot be traced, so only root may look
        assert b"planted" not in (about / "environ").read_bytes()
        targets = sorted(os.readlink(path) for path in (about / "fd").iterdir())
        assert [one for one in targets if one != "/dev/null" and not one.startswith("socket:")] == []
    else:
        with pytest.raises(PermissionError):
            (about / "environ").read_bytes()


@pytest.mark.slow
def test_a_grader_that_is_killed_takes_its_jails_along(launcher, tmp_path):
    code = f"""
import sys
from autograder.sandbox.forked import {type(launcher).__name__}
from autograder.sandbox import Limits
running = {type(launcher).__name__}().launch("student", Limits())
running.stand()
print(running.scratch or "", flush=True)
sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with forked_commands.start(lambda: exec(code, {}), ["grader"], own_warm_parent=True, **pipes) as grader:
        folder = grader.stdout.readline().strip()
        mine = forked_commands.descendants(grader.pid)
        assert len(mine) >= 3  # the warm parent, a keeper, a worker at least
        grader.kill()
    deadline = time.monotonic() + 20
    while (left := [pid for pid in mine if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    shutil.rmtree(folder or tmp_path)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def blocked(root, commands):
    """Runs in a process of its own: forbids namespaces to it and to all that it starts, and prints of each
    command its exit status, what it printed and complained, and whether there are grades then.
    """
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    clone, namespaces, unshare = (56, 0x7E020000, 272) if linux.MACHINE == "x86_64" else (220, 0x7E020000, 97)
    code = [(seccomp.LOAD, 0, 0, seccomp.NUMBER), (seccomp.EQUAL, 0, 1, unshare), *seccomp.refusal(0)]
    code += [(seccomp.EQUAL, 0, 5, clone), *seccomp.held([[0, namespaces, [0]]])]
    code += seccomp.answer(seccomp.ALLOW)
    seccomp.program = lambda gpu: b"".join(struct.pack("=HBBI", *line) for line in code)
    seccomp.install(False)
    problem_of.cache_clear()
    grades = root / "grades/grades.csv"
    print(json.dumps([(*command(root, *words), grades.exists()) for words in commands]))


@pytest.mark.slow
def test_without_a_sandbox_grading_refuses_names_what_is_missing_and_unsafe_is_stamped_everywhere(tmp_path):
    root, assignment = make_course(tmp_path / "course")
    hand_in(root / "submitted", "ada", notebook(assignment, **answers(root)))

    commands = ["grade ps01 --Grade.seed=11", "doctor", "grade ps01 --Grade.seed=11 --unsafe"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = forked_commands.start(
        lambda: blocked(root, map(str.split, commands)), ["autograder"], own_warm_parent=True, **pipes
    )
    told, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained
    (refused, _, why, grades), (examined, about, *_), (graded, said, *_) = json.loads(told)
    assert refused == 2 and not grades
    for words in ("the sandbox does not work here", "user namespace", "autograder doctor", "--unsafe"):
        assert words in why
    assert examined == 1 and "the sandbox does not work here (user namespace" in about
    assert graded == 0 and "unsafe" in said
    grades = root / "grades"
    result, page = next((grades / "results").rglob("*ada*")), next((grades / "feedback").rglob("*.html"))
    for file in (grades / "grades.csv", result, page):
        assert "unsafe" in file.read_text(), file


@pytest.mark.slow
@judged_here()
def test_a_grade_made_without_a_sandbox_is_made_again_with_one(jail, tmp_path):
    root, assignment = make_course(tmp_path / "course")
    hand_in(tmp_path / "in", "ada", notebook(assignment))
    where = root, "ps01", tmp_path / "in", tmp_path / "out"
    first, second, third = (
        list(made_grading(*where, seed=11, sandbox=sandbox).rows()) for sandbox in (Unsafe(), jail, jail)
    )
    assert [row.fresh for row in (*first, *second, *third)] == [True, True, False]


def test_a_job_enters_its_cgroup_and_the_cgroup_goes_with_it():
    """Version 2 wherever it is mounted and ours to write; controllers are asked for by
    the sandbox, not here.
    """
    found = [cgroup.place(mount, frozenset()) for mount in (cgroup.MOUNT, cgroup.MOUNT / "unified")]
    folder = next(filter(None, found), None)
    if folder is None:
        pytest.skip("this user may make no cgroup of version 2 here")
    group = cgroup.Cgroup(folder, {})
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        group.enter()
        os.write(writer, Path("/proc/self/cgroup").read_bytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert f"/{group.name}\n" in os.read(reader, 4096).decode()
    group.remove()
    assert not (folder / group.name).exists()


def test_a_cgroup_is_made_only_where_memory_and_processes_can_be_limited(tmp_path):
    own = next(
        (line[4:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")),
        None,
    )
    if own is None:
        pytest.skip("this kernel has no cgroups of version 2")
    (tmp_path / own).mkdir(parents=True, exist_ok=True)
    for place in (tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())):
        (place / "cgroup.procs").touch()
        (place / "cgroup.subtree_control").write_text("cpu memory\n")
    assert cgroup.place(tmp_path) is None
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert cgroup.place(tmp_path) == tmp_path


MANY = """
import os
for _ in range({children}):
    if os.fork() == 0:
        while True: pass
"""
ALONE = """
import os, time
used, ends = time.process_time(), time.monotonic() + {seconds}
while time.monotonic() < ends and os.getpriority(os.PRIO_PROCESS, 0) < {nice}: pass
raise ValueError(f"nice {{os.getpriority(os.PRIO_PROCESS, 0)}}, used {{time.process_time() - used:.2f}} s")
"""


@pytest.mark.slow
def test_the_more_of_a_job_is_busy_the_less_each_thread_of_it_weighs(jail):
    """6 children and their parent: 1.25 ** 9 is more than 7, 1.25 ** 8 less. One is left as it is."""
    first = os.getpriority(os.PRIO_PROCESS, 0) + locks.NICE
    told = inside(jail, MANY.format(children=6) + ALONE.format(seconds=30, nice=first + 8), seconds=40)
    assert int(told.split("nice ")[1].split(",")[0]) >= first + 8
    told = inside(jail, ALONE.format(seconds=1, nice=99), seconds=40)
    assert f"nice {first}," in told


def test_every_step_counts_until_the_last_and_none_is_taken_back(monkeypatch):
    set_to, now = [], iter([1, 2, 1, 128, 3])
    monkeypatch.setattr(share, "busy", lambda: next(now))
    monkeypatch.setattr(os, "setpriority", lambda *what: set_to.append(what))
    even_out = share.evens_out(1000, 3)
    for _ in range(5):
        even_out()
    assert set_to == [(os.PRIO_USER, 1000, 7), (os.PRIO_USER, 1000, share.LAST)]


BESIDE = """
import os, sys
from pathlib import Path
from autograder.judge.budget import Budget
from autograder.judge.process import Process
from autograder.sandbox import Limits, SelfSandbox
from autograder.sandbox.messages import Cell, Executed

group, many, alone = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
(group / "cgroup.procs").write_text("0")
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
limits = Limits(120, 120)
with Process(SelfSandbox(), "student", Budget(limits)) as bomb, \
        Process(SelfSandbox(), "student", Budget(limits)) as other:
    bomb.begin_step(100)
    other.begin_step(100)
    bomb.ask(Cell("many", many), (Executed,))
    def used():
        known = (Path("/proc", pid, "stat") for pid in (group / "cgroup.procs").read_text().split())
        fields = [file.read_text().rpartition(")")[2].split() for file in known if file.exists()]
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")
    before = used()
    told = other.ask(Cell("alone", alone), (Executed,)).error
    print(float(told.split("used ")[1].split()[0]) / (used() - before))
"""


@pytest.mark.full
def test_a_job_of_many_leaves_its_neighbour_a_share_where_only_threads_have_shares(jail):
    """Inside one cgroup of the processors' sessions have none: twenty-one busy against one, on one processor.
    Without process 1's care the one got 1.5 % beside forty, with it 36 %.
    """
    group = Path("/sys/fs/cgroup/cpu", f"autograder-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as problem:
        pytest.skip(f"this user can make no cgroup of version 1 for processors: {problem}")
    try:
        words = [
            sys.executable,
            "-c",
            BESIDE,
            str(group),
            MANY.format(children=20),
            ALONE.format(seconds=6, nice=99),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
        assert float(done.stdout) > 0.15
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("setting", "own", "told"),
    [
        ("1", "1:cpu,cpuacct:/\n0::/\n", ""),
        ("0", "1:cpu,cpuacct:/\n0::/\n", "limit. sudo sysctl kernel.sched_autogroup_enabled=1, or: [A-Z]"),
        (None, "0::/\n", "limit. [A-Z]"),
        ("1", "1:cpu,cpuacct:/docker/1\n0::/\n", "limit. [A-Z]"),
        ("1", "0::/user.slice\n", "limit. [A-Z]"),
        ("1", "0::/app\n", ""),
    ],
)
def test_doctor_says_where_processors_are_shared_out_by_thread_alone(
    tmp_path, monkeypatch, setting, own, told
):
    monkeypatch.setattr(cgroup, "name", lambda: "cgroup without shares of the processors")
    (tmp_path / "user.slice").mkdir()
    (tmp_path / "user.slice/cpu.weight").touch()
    (tmp_path / "cgroup").write_text(own)
    if setting is not None:
        (tmp_path / "setting").write_text(setting + "\n")
    found = share.at_risk(tmp_path, tmp_path / "setting", tmp_path)
    assert re.search(told, found) if told else not found
    console = Console(file=io.StringIO(), width=10_000)
    monkeypatch.setattr(share, "at_risk", lambda: found)
    monkeypatch.setattr("autograder.doctor.problem_of", lambda: "tried elsewhere")
    diagnose(console)
    assert ("four times" in console.file.getvalue()) == bool(told)


def run_filter(code, number, arguments=()):
    """What the filter's instructions return for a system call, worked out as the kernel does."""
    data = struct.pack(
        "=iIQ6Q", number, seccomp.AUDIT_ARCH[seccomp.MACHINE], 0, *arguments, *[0] * (6 - len(arguments))
    )
    lines, place, word = list(struct.iter_unpack("=HBBI", code)), 0, 0
    while True:
        kind, yes, no, value = lines[place]
        place += 1
        if kind == seccomp.LOAD:
            word = struct.unpack_from("=I", data, value)[0]
        elif kind == seccomp.AND:
            word &= value
        elif kind == seccomp.GO:
            place += value
        elif kind in (seccomp.EQUAL, seccomp.AT_LEAST):
            place += yes if (word == value if kind == seccomp.EQUAL else word >= value) else no
        else:
            return value


@pytest.mark.parametrize("gpu", [False, True])
def test_the_filter_allows_the_calls_of_its_list_and_no_others(gpu):
    listed, code = seccomp.calls(), seccomp.program(gpu)
    column = seccomp.MACHINES.index(seccomp.MACHINE)
    allowed = listed["always"] | (listed["gpu"] if gpu else {})
    numbers, conditional = (
        {pair[column] for pair in names.values()} - {None} for names in (allowed, listed["conditional"])
    )
    assert not numbers & conditional
    for number in range(1000):
        refused = seccomp.refusal(number)[0][3]
        if number not in conditional:
            assert run_filter(code, number) == (seccomp.ALLOW if number in numbers else refused), number
    assert len(code) // 8 < 4096  # BPF_MAXINSNS
    assert run_filter(code, 0x40000000) == seccomp.refusal(seccomp.YOUNG)[0][3]  # x86-64's second numbering


def test_the_filter_looks_at_arguments():
    code, column = seccomp.program(False), seccomp.MACHINES.index(seccomp.MACHINE)
    refused = seccomp.refusal(0)[0][3]
    for name, arguments, verdict in [
        ("fcntl", (0, fcntl.F_GETFL), seccomp.ALLOW),
        ("fcntl", (0, fcntl.F_SETLK), refused),
        ("fcntl", (0, 1036), refused),  # F_SET_RW_HINT
        ("fcntl", (0, 1031), refused),  # F_SETPIPE_SZ
        ("mmap", (0, 1, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), seccomp.ALLOW),
        ("mmap", (0, 1, 3, mmap.MAP_SHARED), seccomp.ALLOW),
        ("mmap", (0, 1, 3, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS), refused),
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), seccomp.ALLOW),
        ("socket", (socket.AF_UNIX, socket.SOCK_DGRAM), refused),
        ("socket", (socket.AF_INET, socket.SOCK_STREAM), refused),
        ("clone", (0x01200011,), seccomp.ALLOW),  # fork, as glibc makes it
        ("clone", (0x10000011,), refused),  # CLONE_NEWUSER
        ("ioctl", (0, 0x5412), refused),  # TIOCSTI
    ]:
        number = seccomp.calls()["conditional"][name][column]
        assert run_filter(code, number, arguments) == verdict, (name, arguments)


def test_the_list_of_calls_has_the_systems_own_numbers():
    """libseccomp knows the numbers of both machines, but not every young name."""
    path = ctypes.util.find_library("seccomp")
    if path is None:
        pytest.skip("this machine has no libseccomp")
    resolve = ctypes.CDLL(path).seccomp_syscall_resolve_name_arch
    listed = seccomp.calls()
    wrong, seen = [], 0
    for name, pair in (listed["always"] | listed["gpu"] | listed["conditional"]).items():
        for machine, number in zip(seccomp.MACHINES, pair, strict=True):
            known = resolve(seccomp.AUDIT_ARCH[machine], name.encode())
            seen += known >= 0
            if (known >= 0 and known != number) or (known < 0 and number is not None and number < 450):
                wrong.append((name, machine, number, known))
    assert wrong == [] and seen > 300


CHOOSES = ["-c", "from autograder.sandbox.choose import choose; print(choose().isolation)"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, told",
    [(CHOOSES, "sandboxed"), pytest.param(["-m", "autograder.cli", "doctor"], "", marks=pytest.mark.full)],
    ids=["choose", "doctor"],
)
def test_an_ordinary_user_has_every_protection_too_wherever_python_is_started_from(tmp_path, words, told):
    """In an environment that is a link, with a PATH that is no text."""
    needs_walls()
    user = as_user(tmp_path) if os.geteuid() == 0 else []
    more = {b"PATH": os.environb[b"PATH"] + b":/tmp/\xe9", b"PYTHONPATH": os.fsencode(ROOT / "autograder")}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "env").symlink_to(sys.prefix)
        command, around = (
            [*user, f"{folder}/env/bin/python", *words],
            os.environb | more | {b"COLUMNS": b"200"},
        )
        ran = subprocess.run(command, capture_output=True, text=True, cwd="/", env=around)
    assert ran.returncode == 0 and ran.stdout.startswith(told), ran.stdout + ran.stderr
    assert "\u2502 NO" not in ran.stdout
