"""Faults that are nobody's grade: a task that breaks its own contract."""

import contextlib
from collections.abc import Generator

from autograder.judge.budget import Lost
from autograder.judge.process import NotStarted
from warplab import crossing
from warplab.tasks.declaration import Task


class InternalError(Exception):
    """A task broke its own contract: points outside [0, max], or an exception of its own.

    Never credit, never the student's fault.
    """


@contextlib.contextmanager
def blamed_on(task: Task) -> Generator[None, None, None]:
    """What a task's own code raises inside is an InternalError that names the task.

    What it refuses stays the student's.
    """
    try:
        yield
    except (crossing.Refused, Lost, NotStarted, InternalError):
        raise
    except Exception as error:
        raise InternalError(f"{task.name}: {type(error).__name__}: {error}") from error
