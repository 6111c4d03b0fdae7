"""A command of ours or of nbgrader's in a process of its own that need not import anything first.

It is forked from this process, which has imported it all: a start costs hundredths of a second, not several.
Where this process has a warm parent already, the command's jobs start from that one, too.
"""

import contextlib
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

from nbgrader.apps import nbgraderapp

from autograder import cli, follow, grade, settings  # noqa: F401 - what the commands import when they begin
from autograder.sandbox import forked


def descriptors():
    return set(map(int, os.listdir("/proc/self/fd")))


class Lent(forked.WarmParent):
    """The warm parent of the process that we come from: each job has a lifeline of its own to it."""

    def __init__(self, whole):
        super().__init__(*whole.roles)
        self.control, self.environment = whole.control, whole.environment

    def _serving(self, now):
        lent = self.process is None and self.control is not None and now == self.environment
        return self.control if lent else super()._serving(now)


def start(main, words, env=None, own_warm_parent=False, **options):
    """As subprocess.Popen(words, ...) of a program that calls main().

    own_warm_parent: as a program has it, so that all that the command starts is below it.
    """
    had = descriptors()

    def instead_of_a_program():
        """Runs where Popen would execute a program, with its pipes, folder and session."""
        for descriptor in descriptors() - had:  # the one on which Popen waits for the program to begin
            with contextlib.suppress(OSError):
                os.close(descriptor)
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # as Python begins; Popen has undone it
                signal.signal(ignored, signal.SIG_IGN)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", 1), open(2, "w", 1)
            sys.argv = list(map(str, words))
            if env is not None:
                os.environ.clear()
                os.environ.update(env)
            for name in ("PARENT", "READERS"):
                whole = getattr(forked, name)
                setattr(forked, name, forked.WarmParent(*whole.roles) if own_warm_parent else Lent(whole))
            main()
            status = 0
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except BaseException:  # noqa: BLE001 - a program that fails ends like this
            traceback.print_exc()
        finally:
            forked.PARENT.stop()
            forked.READERS.stop()
            sys.stdout.flush()
            os._exit(status)

    return subprocess.Popen(["forked"], preexec_fn=instead_of_a_program, **options)


def autograder(words, env=None, **options):
    """`autograder ...` as a Popen."""
    return start(cli.main, ["autograder", *words], env, **options)


def nbgrader(folder, words, timeout=280, env=None):
    """What `nbgrader ...` prints in a folder, and its exit status."""
    process = start(
        nbgraderapp.main,
        ["nbgrader", *words],
        env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        return process.communicate(timeout=timeout)[0], process.returncode
    finally:
        process.kill()


def descendants(pid, but=frozenset()):
    """Living processes below `pid`, by the parents that /proc tells, without `but` and what is below."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":  # a zombie runs nothing
                parents[int(name)] = int(fields[1])
    found = {pid}
    while fresh := {child for child, parent in parents.items() if parent in found} - found - but:
        found |= fresh
    return found - {pid}
