"""The walls in every mode that this machine has: as root and as an ordinary user, with cgroups, with a GPU's
devices.

What could not be exercised here is skipped, and the reason says why (`-ra`).
"""

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
from test_sandbox import AS_MUCH_AS_SIX_MAY_HAVE, as_user, inside

from autograder.judge.budget import Lost
from autograder.sandbox import Limits, cgroup, view
from autograder.sandbox.choose import NoSandbox, choose

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
import json, os, psutil, subprocess
from autograder.judge.budget import Budget
from autograder.judge.process import Process
from autograder.sandbox import Limits, forked

seen = {}
for role in ("student", "executor"):
    with Process(forked.SelfSandbox(), role, Budget(Limits())) as process:
        process.begin_step(60)
        mine = psutil.Process().children(recursive=True)
        mine = [one for one in mine if one.status() != "zombie"]  # it reaps at its next job
        worker, = [one.pid for one in mine if not one.children()]
        enter = ["nsenter", "-t", str(worker), "-U", "-m", "-S", "1000", "-G", "1000"]
        opened = subprocess.run([*enter, "sh", "-c", "echo x > /dev/nvidia0"])
        seen[role] = sorted(os.listdir(f"/proc/{worker}/root/dev")), opened.returncode == 0
print(json.dumps(seen))
"""


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="this is the ordinary user's run already")
def test_an_ordinary_user_grades_the_same_dangerous_submissions(tmp_path):
    """As test_corpus.py does it as root, who lends its Python to user 1234 here."""
    wanted = " or ".join(("not attack_gets", *DANGEROUS))
    words = ["-s", "-rs", "-m", "not gpu", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", wanted]
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, 1234, 1234)
        program = [sys.executable, "-m", "pytest", "grader/test_corpus.py", "--basetemp", f"{home}/pytest"]
        environment = os.environ | {"HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(
            [*as_user(tmp_path), *program, *words], capture_output=True, text=True, cwd=TESTS, env=environment
        )
    if " skipped" in ran.stdout:
        pytest.skip(f"as an ordinary user, too: {ran.stdout[ran.stdout.find('SKIPPED') :][:300]}")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert f"{len(DANGEROUS) + 3} submissions graded" in ran.stdout
    assert "as uid 1234, {'sandboxed (" in ran.stdout


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
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
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
