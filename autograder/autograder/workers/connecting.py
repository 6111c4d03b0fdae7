"""Which pool `autograder grade` has: this machine's threads, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from autograder import results
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from autograder.workers.happenings import Happenings
from autograder.workers.pool import Pool, Threads

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

TRY = 10.0  # seconds for one attempt to reach a scheduler


@dataclass(frozen=True)
class Place:
    """Where to judge. At most one of scheduler (an address), workers and slurm (a number) is given.

    certificates: CA file, certificate and key, as paths, or Nones for what Dask's own configuration says.
    """

    scheduler: str | None = None
    workers: int | None = None
    slurm: int | None = None
    jobs: int = 1
    unsafe: bool = False
    patience: float = 600.0
    certificates: tuple[Path | None, Path | None, Path | None] = (None, None, None)

    def check(self) -> None:
        """Raises UserError for options that do not go together."""
        named = {"--scheduler": self.scheduler, "--workers": self.workers, "--slurm": self.slurm}
        given = [option for option, value in named.items() if value is not None]
        if len(given) > 1:
            raise UserError(f"{' and '.join(given)} each name a place to judge; give one of them")
        if any(self.certificates) and not (self.scheduler and all(self.certificates)):
            raise UserError(
                "--tls-ca-file, --tls-cert and --tls-key go together, with --scheduler tls://HOST:PORT; "
                "--workers and --slurm make keys of their own"
            )


@contextlib.contextmanager
def opened(place: Place, happened: Happenings) -> Generator[Pool, None, None]:
    """The pool of a place, for as long as the block runs. Raises UserError where there is none."""
    place.check()
    if not (place.scheduler or place.workers or place.slurm):
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
        cluster = None if place.scheduler else stack.enter_context(_own_cluster(place))
        security = _security(place)

        def connect() -> Client:
            return _client(cluster or place.scheduler, security)

        yield stack.enter_context(
            DaskPool(connect, happened, version, unsafe=place.unsafe, patience=place.patience)
        )


def _client(where: Any, security: Security | None) -> Client:
    from distributed import Client

    options: dict[str, Any] = {"security": security} if security else {}
    try:
        return Client(where, timeout=TRY, set_as_default=False, name="autograder", **options)
    except (OSError, ValueError, TypeError, RuntimeError) as problem:
        raise SchedulerUnreachable(
            f"no Dask scheduler answers at {where}: {problem}; expected tcp://HOST:PORT, or tls://HOST:PORT "
            "with --tls-ca-file, --tls-cert and --tls-key"
        ) from None


class SchedulerUnreachable(UserError, OSError):
    """Nobody answers there."""


def _security(place: Place) -> Security | None:
    """The certificates that were given; None for Dask's own configuration."""
    if not any(place.certificates):
        return None
    from distributed.security import Security

    ca, certificate, key = map(str, place.certificates)
    for file in (ca, certificate, key):
        if not Path(file).is_file():
            raise UserError(f"there is no file {file}, which was named for TLS")
    return Security(tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key, require_encryption=True)


def _own_cluster(place: Place) -> Any:
    """A cluster that ends with this run. Its traffic is encrypted with keys made for it.

    A scheduler does what anyone tells it who reaches its port, so that even on one machine nobody without
    the key may: another user of it would run code as this one.
    """
    from distributed.security import Security

    security = Security.temporary()
    if place.slurm:
        return _slurm(place.slurm, security)
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=place.workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=cast(str, None),  # no dashboard: what distributed's own documentation says
        memory_limit=0,
        security=security,
        protocol="tls://",
        silence_logs=logging.CRITICAL,
    )


def _slurm(jobs: int, security: Security) -> Any:
    """Workers as Slurm jobs: cores, memory, queue and time stand in dask-jobqueue's configuration."""
    from dask_jobqueue.slurm import SLURMCluster

    keys = Path.home() / ".cache" / "autograder"  # a home folder is what the nodes of a cluster share
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        cluster = SLURMCluster(
            security=security,
            shared_temp_directory=str(keys),
            protocol="tls://",
            scheduler_options={"dashboard": False},
        )
        cluster.scale(jobs=jobs)
        cluster.sync(cluster._correct_state)  # or what sbatch says would only be logged
    except (ValueError, TypeError, OSError, RuntimeError) as problem:
        said = " ".join(str(problem).split())
        raise UserError(
            f"Slurm takes no such job: {said}; set cores, memory and queue under jobqueue.slurm in "
            "~/.config/dask/jobqueue.yaml, as chapters/cluster/jobqueue.yaml does"
        ) from None
    return cluster
