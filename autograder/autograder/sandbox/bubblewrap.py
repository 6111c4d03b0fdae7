"""The same view of the file system, made by Debian's bubblewrap.

It is for machines that let bwrap make namespaces and us not. bwrap has to execute a program, so nothing of
the warm parent's survives: each process imports its libraries anew.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from autograder.sandbox import view
from autograder.sandbox.job import JailedJob


def program() -> str | None:
    """Path of bwrap, None where it is not installed."""
    return shutil.which("bwrap")


def beside_processes() -> list[Path]:
    """What stands in /proc besides processes and links: it tells of the whole machine."""
    return sorted(
        path for path in Path("/proc").iterdir() if not path.name.isdigit() and not path.is_symlink()
    )


def command(bwrap: str, job: JailedJob, channel: int, report: int, info: int) -> list[str]:
    """The command line of the program `bwrap` for a job; the numbers are descriptors that it inherits.

    `info` tells the id of its first process.
    """
    package = Path(__file__).parents[1]
    own = [str(package / name) for name in ("__init__.py", "sandbox", "executor", "reader")]
    line: list[str | Path] = [
        bwrap,
        "--unshare-all",
        "--unshare-user",
        "--uid",
        str(job.student),
        "--gid",
        str(job.student),
        "--cap-drop",
        "ALL",
    ]
    line += ["--die-with-parent", "--new-session", "--hostname", "jail", "--info-fd", str(info), "--clearenv"]
    line += ["--as-pid-1"]  # our process 1 hides itself, bwrap's shows the student its descriptors
    for key, value in job.environment.items():
        line += ["--setenv", key, value]
    line += ["--proc", "/proc", "--tmpfs", "/dev"]  # not bwrap's --dev: the kernel counts terminals for all
    share = (job.limits.disk_mib << 20) // len(view.WRITABLE)
    for path in view.WRITABLE:  # before the folders that are shown, which may lie in one of these
        line += ["--size", str(share), "--tmpfs", path]
    for path in [*view.visible(job.gpu), *own]:
        line += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for path in view.covered():
        line += ["--tmpfs", path, "--remount-ro", path]
    for path in view.devices(job.gpu):
        line += ["--dev-bind", path, path]
    for path, target in view.LINKS.items():
        line += ["--symlink", target, path]
    for path in () if view.has_gpu(job.gpu) else beside_processes():
        line += ["--tmpfs", path, "--remount-ro", path] if path.is_dir() else ["--ro-bind", os.devnull, path]
    line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", f"{view.JOB}/home"]
    return [
        *map(str, line),
        "--",
        sys.executable,
        "-m",
        "autograder.sandbox.cold",
        json.dumps(asdict(job)),
        str(channel),
        str(report),
        str(info),
    ]
