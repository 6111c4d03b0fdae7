"""The walls in every mode that this machine has: as root and as an ordinary user, with cgroups, with a GPU's
devices.

What could not be exercised here is skipped, and the reason says why (`-ra`).
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import TESTS
from forked_commands import descendants
from grading import answers, hand_in, make_course, notebook
from grading import grading as made_grading
from test_corpus import CORPUS, PR_SET_CHILD_SUBREAPER, canary, listening, plant, stated, tree
from test_sandbox import AS_MUCH_AS_SIX_MAY_HAVE, AS_USER, inside, needs_open_course, needs_walls

import autograder
from autograder.judge.budget import Lost
from autograder.sandbox import Limits, cgroup, view
from autograder.sandbox.choose import NoSandbox, choose
from autograder.sandbox.forked import PARENT, READERS, SelfSandbox

DANGEROUS = """
    a_million_files appends_to_the_configuration deletes_everything fifty_daemons fills_the_disk fork_bomb
    imports_the_judge kills_everything links_to_the_gradebook loops_and_ignores_signals opens_everything
    raises_its_limits reads_the_environment reads_the_gradebook reads_the_solutions reverse_shell
    thirty_gigabytes thirty_gigabytes_in_pieces traces_its_parent updates_the_gradebook uses_the_network
    walks_the_file_system writes_a_neighbours_submission
""".split()
NODES = (
    "nvidia0",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-caps/nvidia-cap1",
    "nvidia-modeset",
)
PASSED = (
    "nvidia0",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-caps",
)  # not nvidia-modeset, which drives displays
OTHER_DEV = f"""set -e
dev=$1; shift
mount -t tmpfs -o mode=755 none "$dev"
for name in null zero full random urandom tty; do cp -a /dev/$name "$dev"; done
mkdir "$dev/shm" "$dev/nvidia-caps"
for name in {" ".join(NODES)}; do mknod -m 666 "$dev/$name" c 1 3; done
mount --bind "$dev" /dev
exec "$@"
"""
INSIDE = """
import json, os, subprocess, sys
from pathlib import Path
from forked_commands import descendants
from test_sandbox import alive
from autograder.judge.budget import Budget
from autograder.judge.process import Process
from autograder.sandbox import Limits, forked

seen = {}
for role in ("student", "executor"):
    with Process(forked.SelfSandbox(), role, Budget(Limits())) as process:
        process.begin_step(60)
        mine = [pid for pid in descendants(os.getpid()) if alive(pid)]  # it reaps at its next job
        worker, = [pid for pid in mine if not descendants(pid)]
        enter = ["nsenter", "-t", str(worker), "-U", "-m", "-S", "1000", "-G", "1000"]
        opened = subprocess.run([*enter, "sh", "-c", "echo x > /dev/nvidia0"])
        seen[role] = sorted(os.listdir(f"/proc/{worker}/root/dev")), opened.returncode == 0
print(json.dumps(seen))
"""


@pytest.mark.full
def test_the_most_dangerous_submissions_get_what_is_honest_in_them_and_do_no_harm(tmp_path):
    needs_walls()
    root, assignment = make_course(tmp_path / "course")
    plant(root, tmp_path / "home")
    good = answers(root)
    hand_in(root / "submitted", "bystander", notebook(assignment, **good))
    ctypes.CDLL(None).prctl(
        PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
    )  # what outlives its parents comes to this process
    try:
        with listening() as (port, callers):
            places = {
                "ROOT": root,
                "PACKAGE": Path(autograder.__file__).parents[1],
                "HOME": tmp_path / "home",
                "PORT": port,
            }
            for name in DANGEROUS:
                source = (CORPUS / "cells" / f"{name}.py").read_text()
                for word, value in places.items():
                    source = source.replace(f"@{word}@", str(value))
                hand_in(root / "submitted", name, notebook(assignment, **good | {"launch_plan": source}))
            watched = [
                root / name for name in ("solutions", "exercises", "submitted", "tests", "nbgrader_config.py")
            ]
            before = tree(*watched)
            options = {"seconds": 8, "seed": 11, "jobs": 2, "sandbox": SelfSandbox()}
            grading = made_grading(root, "ps01", root / "submitted", root / "grades", **options)
            rows = {row.student: row for row in grading.rows()}
            called = callers()
        PARENT.stop()
        READERS.stop()
        deadline = time.monotonic() + 10
        while (left := descendants(os.getpid())) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    print(f"{len(DANGEROUS)} attacks as uid {os.geteuid()}, {grading.pool.isolation}")
    assert {name: (rows[name].score, rows[name].status) for name in DANGEROUS} == {
        name: stated(CORPUS / "cells" / f"{name}.py")[:2] for name in DANGEROUS
    }
    assert (rows["bystander"].score, rows["bystander"].status) == (30, "graded")
    assert (left, called) == (set(), [])
    assert tree(*watched) == before
    told = "".join(
        path.read_text()
        for folder in ("feedback", "results")
        for path in (root / "grades" / folder).rglob("*")
        if path.is_file()
    )
    assert not [
        kind for kind in ("solutions", "tests", "gradebook", "environment", "home") if canary(kind) in told
    ]


@pytest.mark.full
@pytest.mark.skipif(
    os.geteuid() != 0, reason="this is the ordinary user's run already: the test above was made by one"
)
def test_an_ordinary_user_grades_the_same_dangerous_submissions(tmp_path):
    """Root lends its Python to user 1234, as in test_sandbox.py."""
    needs_open_course()
    ready, tests = as_user(tmp_path), TESTS
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(tests / "grader/test_modes.py"),
        "-rs",
        "-s",
        "-m",
        "full",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, 1234, 1234)
        command += ["--basetemp", f"{home}/pytest", "-k", "most_dangerous"]
        environment = os.environ | {"HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run([*ready, *command], capture_output=True, text=True, cwd=tests, env=environment)
    if "1 skipped" in ran.stdout:
        pytest.skip(f"as an ordinary user, too: {ran.stdout[ran.stdout.find('SKIPPED') :][:300]}")
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "attacks as uid 1234, sandboxed (" in ran.stdout


def as_user(tmp_path):
    """The beginning of a command that user 1234 runs, in a mount namespace where it can
    read root's Python.
    """
    if not (shutil.which("setpriv") and shutil.which("unshare")):
        pytest.skip("needs util-linux (unshare, setpriv)")
    ready = ["unshare", "-m", "sh", "-c", AS_USER, "sh", str(tmp_path), sys.base_prefix]
    if subprocess.run([*ready, "true"], capture_output=True).returncode:
        pytest.skip("this root may not make a mount namespace")
    return ready


def seen_in_dev(tmp_path):
    """{role: [names in its /dev, whether /dev/nvidia0 can be opened there]} on a
    machine with made-up devices: /dev/null under NVIDIA's names.
    """
    if os.geteuid() != 0 or not shutil.which("nsenter"):
        pytest.skip("needs root, who may make device files, and nsenter")
    (tmp_path / "dev").mkdir()
    ready = ["unshare", "-m", "sh", "-c", OTHER_DEV, "sh", str(tmp_path / "dev")]
    if subprocess.run([*ready, "true"], capture_output=True).returncode:
        pytest.skip("this root may not make device files in a mount namespace")
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o777)
        environment = os.environ | {"WARPLAB_DEVICE": "simt", "HOME": home, "TMPDIR": home}
        environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), str(TESTS / "grader"), *sys.path])
        ran = subprocess.run(
            [*ready, sys.executable, "-c", INSIDE],
            capture_output=True,
            text=True,
            cwd="/",
            env=environment,
        )
    if "NotStarted" in ran.stderr:
        pytest.skip(f"the sandbox does not work here: {ran.stderr.splitlines()[-1]}")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_the_gpu_is_the_executors_alone(tmp_path):
    seen = seen_in_dev(tmp_path)
    plain = ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom"]
    assert seen["student"] == [plain, False]
    assert seen["executor"] == [sorted([*plain, *PASSED]), True]


def test_what_keeps_cuda_out_of_the_jail_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "DEV", tmp_path)
    assert view.cuda_obstacle() == ""  # no GPU, no obstacle
    (tmp_path / "nvidia0").touch()
    assert "nvidia-uvm does not exist yet: run `nvidia-modprobe" in view.cuda_obstacle()
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    assert view.cuda_obstacle() == ""
    (tmp_path / "nvidiactl").chmod(0o660)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "nvidiactl is closed to the jailed user" in view.cuda_obstacle()


@pytest.fixture
def cgroups():
    """The folder in which cgroups with memory and process limits can be made."""
    folder = cgroup.place()
    if folder is None:
        mounts = [
            line.split()[1]
            for line in Path("/proc/mounts").read_text().splitlines()
            if line.split()[2] == "cgroup2"
        ]
        given = {mount: Path(mount, "cgroup.controllers").read_text().split() for mount in mounts}
        rows = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
        where = {
            row[0]: f"version 1, hierarchy {row[1]}" if row[1] != "0" else "free for version 2"
            for row in rows
        }
        held = ", ".join(
            f"{name}: {where.get(name, 'not in this kernel')}" for name in sorted(cgroup.CONTROLLERS)
        )
        pytest.skip(
            f"no cgroup of version 2 can limit memory and processes here: {given or 'none is mounted'}; "
            f"{held}; uid {os.geteuid()}"
        )
    return folder


def in_a_cgroup(folder, settings, work):
    """Run `work` in a child inside a new cgroup. Returns (its exit code, whether the
    kernel killed for want of memory).
    """
    group = cgroup.Cgroup(folder, settings)
    child = os.fork()
    if child == 0:
        try:
            group.enter()
            os._exit(work())
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ran_out = group.ran_out()
    group.remove()
    assert not (folder / group.name).exists()
    return code, ran_out


def fork_as_often_as_possible():
    for count in range(50):
        try:
            if os.fork() == 0:
                time.sleep(0.5)  # its cgroup is removed within 2 s
                os._exit(0)
        except OSError:
            return count
    return 50


def test_a_cgroup_stops_a_fork_bomb_at_its_number(cgroups):
    code, _ = in_a_cgroup(cgroups, {"pids.max": "6"}, fork_as_often_as_possible)
    assert code == 5  # and the process itself


def test_a_cgroup_kills_who_takes_more_memory_than_it_has(cgroups):
    code, ran_out = in_a_cgroup(
        cgroups, {"memory.max": str(64 << 20), "memory.oom.group": "1"}, lambda: len(b"x" * (256 << 20)) and 0
    )
    assert (code, ran_out) == (-9, True)


def test_too_much_memory_ends_at_once_in_a_cgroup(cgroups):
    try:
        jail = choose()
    except NoSandbox as problem:
        pytest.skip(str(problem))
    assert "cgroup" in jail.isolation
    with pytest.raises(Lost, match=r"killed \(memory\)"):
        inside(jail, AS_MUCH_AS_SIX_MAY_HAVE, memory_mib=600, disk_mib=64)


def test_a_cgroup_that_shares_out_no_processors_says_so(tmp_path, monkeypatch):
    """As systemd's system.slice often is, which counts memory and processes all the same."""
    monkeypatch.setattr(cgroup, "place", lambda: tmp_path)
    given = tmp_path / "cgroup.subtree_control"
    given.write_text("memory pids\n")
    assert cgroup.name() == "cgroup without shares of the processors"
    given.write_text("cpu memory pids\n")
    assert cgroup.name() == "cgroup"
    monkeypatch.setattr(cgroup, "place", lambda: None)
    assert cgroup.name() == "memory summed without a cgroup"


def test_a_jobs_limits_go_into_its_cgroups_files(tmp_path, monkeypatch):
    """Form only, on a folder that is no cgroup: which files are written, with what."""
    there = tmp_path / f"autograder-{os.getpid()}"
    there.mkdir()
    for name in (*cgroup.OPTIONAL, "memory.max", "memory.oom.group", "pids.max", "cgroup.procs"):
        (there / name).touch()
    (there / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    monkeypatch.setattr(cgroup, "place", lambda: tmp_path)
    monkeypatch.setattr(
        cgroup.os, "mkdir", lambda *_, **__: None
    )  # it stands already, as the kernel would make it
    group = cgroup.for_job(Limits(memory_mib=100, disk_mib=28, processes=20))
    group.enter()
    written = {path.name: path.read_text() for path in there.iterdir() if path.name != "memory.events"}
    assert written == {
        "memory.max": "134217728",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "cpu.weight": "50",
        "pids.max": "21",
        "cgroup.procs": "0",
    }
    assert group.ran_out()
    for name in cgroup.OPTIONAL:
        os.remove(there / name)
    cgroup.for_job(Limits())  # a kernel that counts no swap and shares out no processors has no such files
