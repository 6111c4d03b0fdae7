"""Faults of a task's own code, which must not change anybody's grade."""

import contextlib
from collections.abc import Generator

from autograder.judge.budget import Lost
from autograder.judge.process import NotStarted
from warplab import crossing
from warplab.tasks.declaration import Task


class InternalError(Exception):
    """A task broke its own contract: points outside [0, max], or an exception in its own code.

    The submission is then not graded, instead of getting or losing points.
    """


@contextlib.contextmanager
def blamed_on(task: Task) -> Generator[None, None, None]:
    """Turn an exception of a task's own code in the block into an InternalError that names the task.

    Refused passes through: it is about the student's answer.
    """
    try:
        yield
    except (crossing.Refused, Lost, NotStarted, InternalError):
        raise
    except Exception as error:
        raise InternalError(f"{task.name}: {type(error).__name__}: {error}") from error
