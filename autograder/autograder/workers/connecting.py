"""Which pool `autograder grade` has: this machine's threads, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from traitlets import import_item

from autograder import results
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from autograder.workers.happenings import Happenings
from autograder.workers.pool import Pool, Threads

if TYPE_CHECKING:
    from distributed import Client

TRY = 10.0  # seconds for one attempt to reach a scheduler


@dataclass(frozen=True)
class Place:
    """Where to judge: on a scheduler's cluster (its address), on so many workers, or in threads here."""

    scheduler: str | None = None
    workers: int | None = None
    jobs: int = 1
    unsafe: bool = False
    patience: float = 600.0


@contextlib.contextmanager
def opened(place: Place, happened: Happenings) -> Generator[Pool, None, None]:
    """The pool of a place, for as long as the block runs. Raises UserError where there is none."""
    if place.scheduler and place.workers:
        raise UserError("--scheduler and --workers each name a place to judge; give one of them")
    if not (place.scheduler or place.workers):
        yield Threads(choose(place.unsafe), place.jobs)
        return
    try:
        from autograder.workers.dask_pool import DaskPool
    except ModuleNotFoundError as missing:
        raise UserError(
            f"a cluster needs {missing.name}: pip install -c autograder/constraints.txt "
            '"./autograder[cluster]", here and on each worker'
        ) from None
    for name in ("distributed", "tornado", "asyncio"):  # what matters of it is told as happenings
        logging.getLogger(name).setLevel(logging.CRITICAL)
    version = results.course_version()
    with contextlib.ExitStack() as stack:
        cluster = place.scheduler or stack.enter_context(_own_cluster(place.workers or 1))

        def connect() -> Client:
            return _client(cluster)

        yield stack.enter_context(
            DaskPool(connect, happened, version, unsafe=place.unsafe, patience=place.patience)
        )


def _client(where: Any) -> Client:
    """A client of an address or a cluster; certificates stand in Dask's own configuration."""
    from distributed import Client

    try:
        return Client(where, timeout=TRY, set_as_default=False, name="autograder")
    except (OSError, ValueError, TypeError, RuntimeError) as problem:
        raise SchedulerUnreachable(
            f"no Dask scheduler answers at {where}: {problem}; expected tcp://HOST:PORT, or tls://HOST:PORT "
            "with the certificates of distributed.comm.tls in Dask's configuration"
        ) from None


class SchedulerUnreachable(UserError, OSError):
    """Nobody answers there."""


def _own_cluster(workers: int) -> Any:
    """A cluster that ends with this run; its traffic is encrypted with keys made for it.

    A scheduler does what anyone tells it who reaches its port, so that even on one machine nobody without
    the key may: another user of it would run code as this one. `autograder.cluster` in Dask's configuration
    names another class, such as dask_jobqueue.SLURMCluster, whose own configuration says what a job is.
    """
    import dask.config
    from distributed import LocalCluster
    from distributed.security import Security

    security = Security.temporary()
    name = dask.config.get("autograder.cluster", None)
    if name is None:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=cast(str, None),  # no dashboard: what distributed's own documentation says
            memory_limit=0,
            security=security,
            protocol="tls://",
            silence_logs=logging.CRITICAL,
        )
    try:
        cluster = import_item(name)(security=security, protocol="tls://")
        cluster.scale(workers)
        cluster.sync(cluster._correct_state)  # or what sbatch says would only be logged
    except (ImportError, AttributeError, ValueError, TypeError, OSError, RuntimeError) as problem:
        said = " ".join(str(problem).split())
        raise UserError(
            f"{name} starts no workers: {said}; its settings stand in ~/.config/dask, as "
            "chapters/cluster/jobqueue.yaml has them"
        ) from None
    return cluster
