"""The settings of `autograder grade`: `c.Grade.name = value` in nbgrader_config.py.

On the command line `--Grade.name=value` overrides the file, as in nbgrader's own commands.
"""

import contextlib
import os
import re
from collections.abc import Generator, Iterable
from pathlib import Path

from traitlets import Bool, Float, Int, TraitError, Unicode
from traitlets.config import Config, Configurable
from traitlets.config.loader import DeferredConfigString

from autograder.release.release import nbgrader_config
from autograder.sandbox.choose import choose
from autograder.user_error import UserError, nearest
from autograder.workers.connecting import cluster_pool
from autograder.workers.event_log import EventLog
from autograder.workers.parcels import Parcels
from autograder.workers.pool import Pool, Threads

GIVEN = re.compile(r"--Grade\.(\w+)=(.*)")


class Grade(Configurable):
    """The settings of `autograder grade`."""

    time_limit = Float(
        30.0, min=1.0, help="Seconds for one cell or one task; all of a submission has ten times that."
    ).tag(config=True)
    seed = Int(
        None, allow_none=True, min=0, help="Seed of the hidden inputs; by default secret, in --out."
    ).tag(config=True)
    exchange = Bool(
        False,
        help="Times of arrival are in the timestamp.txt that `nbgrader collect` left beside each notebook.",
    ).tag(config=True)
    jobs = Int(
        min(4, os.cpu_count() or 1), min=1, help="Submissions at a time, on this machine's threads."
    ).tag(config=True)
    patience = Float(600.0, min=1.0, help="Seconds to wait for a lost scheduler, or for a worker.").tag(
        config=True
    )
    parcels = Unicode(
        help="Judge elsewhere: a folder in which the work is left for `autograder judge`, and found again."
    ).tag(config=True)
    machines = Unicode(
        "cpu", help="Kind of the machines that judge parcels; another kind judges all again."
    ).tag(config=True)

    @contextlib.contextmanager
    def pool(
        self,
        events: EventLog,
        scheduler: str | None = None,
        workers: int | None = None,
        unsafe: bool = False,
    ) -> Generator[Pool, None, None]:
        """Where submissions are judged: a Dask cluster, machines that take parcels, or threads here.

        scheduler, workers, unsafe: as the options of `autograder grade`. Raises UserError where two places
        are named, and NoSandbox where none works here.
        """
        if len([*filter(None, (scheduler, workers, self.parcels))]) > 1:
            raise UserError(
                "--scheduler, --workers and Grade.parcels each name a place to judge; give one of them"
            )
        if self.parcels:
            yield Parcels(self.parcels, self.machines)
        elif scheduler or workers:
            with cluster_pool(events, scheduler, workers or 1, unsafe, self.patience) as pool:
                yield pool
        else:
            yield Threads(choose(unsafe), self.jobs)


def grade_settings(root: Path, words: Iterable[str]) -> Grade:
    """The settings of the course at `root`, overridden by `words` such as "--Grade.seed=5".

    Raises UserError for words of another form, for unknown names and for values that a setting cannot have.
    """
    config = Config(Grade=nbgrader_config(root).get("Grade", {}))
    for word in words:
        given = GIVEN.fullmatch(word)
        if not given:
            raise UserError(f"no option {word}, see `autograder grade --help`; a setting is --Grade.x=value")
        config.Grade[given[1]] = DeferredConfigString(given[2])
    known = sorted(Grade.class_trait_names(config=True))
    for name in config.Grade:
        if name not in known:
            raise UserError(f"no setting Grade.{name}{nearest(name, known)}")
    try:
        return Grade(config=config)
    except TraitError as problem:
        raise UserError(f"a setting of Grade: {problem}") from None
