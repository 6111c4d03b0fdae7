"""What holds in the setting in which this runs, as one line of JSON on stdout.

The attempts are those of `autograder doctor`. The warm parent imports no compiler, which no attempt needs:
under emulation that takes minutes.
"""

import contextlib
import json
import os
import platform
import resource
import signal
import subprocess
import time

from autograder import doctor
from autograder.sandbox import cgroup, choose, forked
from autograder.sandbox.launcher import StartError

PATIENCE = 500.0
LIGHT_PARENT = """
import socket, sys
from autograder.sandbox import probe, seccomp, zygote
seccomp.program(False)
with socket.socket(fileno=int(sys.argv[1])) as control:
    zygote.serve(control, {})
"""
SECONDS = 6.0


def start(command, popen=subprocess.Popen, **options):
    """Stands in for subprocess.Popen where the warm parent is started."""
    if command[1:3] == ["-m", "autograder.sandbox.zygote"]:
        command = [command[0], "-c", LIGHT_PARENT, *command[3:]]
    return popen(command, **options)


def findings(kind):
    """{attempt: what it could do}, or why no process of this kind starts."""
    try:
        with contextlib.closing(kind().launch("probe", doctor.LIMITS)) as running:
            running.stand()
        return {finding.name: finding.detail or "held" for finding in doctor.examine(kind())}
    except StartError as problem:
        return str(problem)


def shares(folder):
    """Seconds of one processor that a job with one busy process got, and one with eight, at the same time."""
    settings, jobs, children = {"pids.max": "20"}, [], []
    for count in (1, 8):
        group = cgroup.Cgroup(folder, settings, f"autograder-shares-{count}")
        jobs.append(group)
        for _ in range(count):
            children.append(os.fork())
            if children[-1] == 0:
                os.sched_setaffinity(0, {0})
                group.enter()
                while True:
                    pass
    before = [job.processor_seconds() for job in jobs]
    time.sleep(SECONDS)
    used = [round(job.processor_seconds() - was, 2) for job, was in zip(jobs, before, strict=True)]
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for job in jobs:
        job.remove()
    return used


if __name__ == "__main__":
    forked.subprocess.Popen = start
    doctor.LIMITS = doctor.replace(doctor.LIMITS, start_seconds=PATIENCE, total_seconds=PATIENCE)
    place = cgroup.place()
    seen = {
        "uid": os.geteuid(),
        "kernel": platform.release(),
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "walls": cgroup.name(),
        "processor seconds of one and of eight": shares(place) if place else None,
        "next step": choose.next_step(),
        "sandboxes": {kind.name: findings(kind) for kind in choose.SANDBOXES},
    }
    print(json.dumps(seen))
