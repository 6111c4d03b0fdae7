"""Jails with one wall taken away, for tests: the product has no switch for that.

The warm parent is started with a few lines in front that let each job name Python code; the job's keeper runs
it before it builds anything.
"""

import contextlib
import os
import subprocess

from autograder.sandbox import forked

TAKEN_AWAY = "WALL_TAKEN_AWAY"
ONE_ID = "# the same user id for all jails\n"
IN_FRONT = f"""
import contextlib, socket, sys
from autograder.sandbox import zygote

keep, lent_id = zygote.keep, zygote.lent_id

def keep_without(job, *others):
    exec(job.environment.pop("{TAKEN_AWAY}", ""), {{}})
    keep(job, *others)

def lent_or_shared(job):
    shared = {ONE_ID!r} in job.environment.get("{TAKEN_AWAY}", "")
    return contextlib.nullcontext(61_183) if shared else lent_id(job)

zygote.keep, zygote.lent_id = keep_without, lent_or_shared
broken = zygote.warm_up()
with socket.socket(fileno=int(sys.argv[1])) as control:
    zygote.serve(control, broken)
"""


class Demolition:
    """`with demolition.of(code): ...`: the jails that start there run `code` before they build walls."""

    def __init__(self, patch):
        self.code = ""
        start, environment = subprocess.Popen, forked.environment

        def popen(command, **options):
            if command[1:3] == ["-m", "autograder.sandbox.zygote"]:
                command = [command[0], "-c", IN_FRONT, *command[3:]]
            return start(command, **options)

        def with_code(home):
            if os.fspath(home).startswith("/job/") and self.code:
                return environment(home) | {TAKEN_AWAY: self.code}
            return environment(home)

        patch.setattr(forked.subprocess, "Popen", popen)
        patch.setattr(forked, "environment", with_code)
        forked.PARENT.stop()

    @contextlib.contextmanager
    def of(self, code):
        self.code = code
        try:
            yield
        finally:
            self.code = ""


def allowing(*numbers):
    """Code that lets these system calls, by their numbers, through the filter."""
    return f"""
from autograder.sandbox import seccomp
whole = seccomp.verdicts
seccomp.verdicts = lambda gpu: whole(gpu) | dict.fromkeys({numbers}, seccomp.answer(seccomp.ALLOW))
seccomp.program.cache_clear()
"""


def without_conditions(name):
    """Code that lets a system call through the filter with any arguments."""
    return f"from autograder.sandbox import seccomp\nseccomp.calls()['conditions'].pop({name!r})\n" + (
        "seccomp.program.cache_clear()\n"
    )


def without_landlock():
    """Code that leaves Landlock out."""
    return "from autograder.sandbox import landlock\nlandlock.restrict = lambda *_: 0\n"


def without_namespace(flag):
    """Code that leaves a job in the grader's namespace of one kind, by the name of its flag."""
    return f"""
from autograder.sandbox import linux
whole = linux.unshare
linux.unshare = lambda flags: None if flags == linux.{flag} else whole(flags)
"""


def without_limit(name):
    """Code that leaves out one of the kernel's limits on a process."""
    return f"""
import resource
whole = resource.setrlimit
resource.setrlimit = lambda what, amounts: None if what == resource.{name} else whole(what, amounts)
"""
