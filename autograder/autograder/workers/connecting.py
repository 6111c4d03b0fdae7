"""Connects to a running Dask cluster, or starts workers for the run."""

import contextlib
import logging
from collections.abc import Generator
from typing import Any

from traitlets import import_item

from autograder import results
from autograder.user_error import UserError
from autograder.workers.event_log import EventLog
from autograder.workers.pool import Pool

TRY = 10.0  # seconds for the first attempt to reach a scheduler


@contextlib.contextmanager
def cluster_pool(
    events: EventLog, scheduler: str | None, workers: int, unsafe: bool, patience: float
) -> Generator[Pool, None, None]:
    """A DaskPool for the duration of the block. Raises UserError where no scheduler answers.

    scheduler: the address of a running one, or None to start a cluster of `workers` for this run. unsafe,
    patience: as in DaskPool.
    """
    try:
        from distributed import Client

        from autograder.workers.dask_pool import DaskPool
    except ModuleNotFoundError as missing:
        raise UserError(
            f"a cluster needs {missing.name}: pip install -c autograder/constraints.txt "
            '"./autograder[cluster]", here and on each worker'
        ) from None
    for name in ("distributed", "tornado", "asyncio"):  # what the user needs to know is in the event log
        logging.getLogger(name).setLevel(logging.CRITICAL)
    version = results.course_version()
    with contextlib.ExitStack() as stack:
        cluster: Any = scheduler or stack.enter_context(_own_cluster(workers))
        try:
            Client(cluster, timeout=TRY, set_as_default=False).close()
            # this client tries to reconnect to a lost scheduler for `patience` seconds
            client = Client(cluster, timeout=patience, set_as_default=False, name="autograder")
        except (OSError, ValueError, TypeError, RuntimeError) as problem:
            raise UserError(
                f"no Dask scheduler answers at {cluster}: {problem}; expected tcp://HOST:PORT, or "
                "tls://HOST:PORT with the certificates of distributed.comm.tls in Dask's configuration"
            ) from None
        stack.enter_context(client)
        yield DaskPool(client, events, version, unsafe=unsafe, patience=patience)


def _own_cluster(workers: int) -> Any:
    """A cluster that ends with this run; its traffic is encrypted with keys made for it.

    A scheduler obeys anyone who reaches its port, so without keys another user of the machine could run code
    as this one. `autograder.cluster` in Dask's configuration may name another class, such as
    dask_jobqueue.SLURMCluster, which has its own configuration.
    """
    import dask.config
    from distributed.security import Security

    name = dask.config.get("autograder.cluster", "distributed.LocalCluster")
    local = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "memory_limit": 0}
    local |= {"n_workers": 0, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    try:
        settings = local if name == "distributed.LocalCluster" else {}
        cluster = import_item(name)(security=Security.temporary(), protocol="tls://", **settings)
        cluster.scale(workers)
        cluster.sync(cluster._correct_state)  # so that an error of sbatch is raised here, not only logged
    except (ImportError, AttributeError, ValueError, TypeError, OSError, RuntimeError) as problem:
        said = " ".join(str(problem).split())
        raise UserError(
            f"{name} starts no workers: {said}; its settings stand in ~/.config/dask, as "
            "chapters/cluster/jobqueue.yaml has them"
        ) from None
    return cluster
