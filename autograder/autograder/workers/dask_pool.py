"""Judging on a Dask cluster. Requests and answers are bytes; the answers are validated here.

Dask transports tasks, reschedules them and reconnects to a lost scheduler. This module decides the rest:
which workers may judge, how many submissions are sent ahead, and which ones are given up because they kill
their workers.
"""

import json
import secrets
import time
from collections import Counter, deque
from typing import Any

import distributed
from distributed.client import ClosedClientError, Future, FutureCancelledError
from distributed.comm.core import CommClosedError

from autograder.user_error import UserError
from autograder.workers.commission import Commission
from autograder.workers.event_log import EventLog
from autograder.workers.interrupts import stop_if_asked
from autograder.workers.machine_judge import describe_worker, judge_as_worker
from autograder.workers.pool import Rulings, ruling_without_judging
from autograder.workers.ruling import BadRuling, Ruling, read_ruling, without_grade

# seconds between two looks at the cluster, at the running tasks; to wait for the scheduler's answer
POLL_CLUSTER, POLL_TASKS, ANSWER = 1.0, 0.05, 5.0
AHEAD = 2  # submissions sent for each thread of a worker: one runs, the next waits there
Errors = (OSError, TimeoutError, CommClosedError, ClosedClientError)


def on_worker(conditions: bytes, notebook: bytes) -> bytes:
    """The task that a Dask worker runs."""
    return judge_as_worker(conditions, notebook, distributed.get_worker().address)


class DaskPool:
    """A Pool of the cluster's workers that have this version of the course; all have the same kind of device.

    client: Dask's, which reconnects by itself for `patience` seconds. version, unsafe: as in
    commission.Conditions. patience: how long to wait for a silent scheduler or for a worker, in seconds.
    Raises UserError where no worker joins in that time, and where none of them may judge.
    """

    def __init__(
        self,
        client: distributed.Client,
        events: EventLog,
        version: str,
        *,
        unsafe: bool = False,
        patience: float = 600.0,
    ) -> None:
        self.client, self.events, self.patience = client, events, patience
        self.run, self.sent = secrets.token_hex(4), 0
        self.todo, self.suspects = deque[Commission](), deque[Commission]()
        self.running: dict[Commission, Future] = {}
        self.refusals: dict[str, str] = {}  # {worker's address: why it may not judge}
        self.told: dict[str, Any] = {}  # the last "judging" event
        self.killed = Counter[str]()  # {commission id: how often its workers died}
        self._survey(version, unsafe)
        self.looked, self.waits = 0.0, False
        self.served = time.monotonic()  # when a worker that may judge was last present

    def _survey(self, version: str, unsafe: bool) -> None:
        """Ask each present worker whether it may judge, and for its device."""
        self.events.tell("waiting", for_what="a worker")
        try:
            self.client.wait_for_workers(1, timeout=self.patience)
        except TimeoutError:
            raise UserError(f"no worker joined the scheduler within {self.patience:g} s; start one") from None
        self.workers = self._present()
        asked = {
            address: self._submit("about", describe_worker, version, unsafe, workers=[address])
            for address in self.workers
        }
        about: dict[str, Any] = {}
        for address, future in asked.items():
            try:
                about[address] = json.loads(future.result(timeout=60.0))
                self._refuse(address, about[address]["refusal"])
            except Exception as problem:  # noqa: BLE001 - whatever is wrong with the worker, it may not judge
                self._refuse(address, f"{type(problem).__name__}: {str(problem)[:300]}")
        self._require_fit_worker()
        fit = self._fit_workers()
        devices = sorted({tuple(about[address]["device"]) for address in fit})
        if len(devices) > 1:
            named = ", ".join(name for name, _ in devices)
            raise UserError(f"the workers would time on different devices ({named}): start those of one kind")
        self.device, self.isolation = devices[0], about[fit[0]]["isolation"]
        threads = sum(self.workers[address] for address in fit)
        self.events.tell("workers", judging=len(fit), workers=len(self.workers), threads=threads)

    def _refuse(self, address: str, why: str) -> None:
        if why and address not in self.refusals:
            self.refusals[address] = why
            self.events.tell("refused", worker=address, reason=why)

    def _require_fit_worker(self) -> None:
        """Raise UserError if there are workers but all of them refuse."""
        if self.workers and not self._fit_workers():
            told = "; ".join(sorted({self.refusals[address] for address in self.workers}))
            raise UserError(f"none of {len(self.workers)} workers may judge: {told}")

    def _fit_workers(self) -> list[str]:
        """The workers that may judge."""
        return [address for address in self.workers if address not in self.refusals]

    def rulings(self, todo: deque[Commission], events: EventLog) -> Rulings:
        """As in Pool."""
        self.events, self.todo = events, todo
        try:
            while todo or self.suspects or self.running:
                if time.monotonic() - self.looked >= POLL_CLUSTER:
                    yield from self._look()
                    self.looked = time.monotonic()
                if self.suspects and not todo and not self.running:  # alone, so that no other is blamed
                    todo.append(self.suspects.popleft())
                if not self.waits and self.client.status == "running":
                    yield from self._send()
                for one, future in [*self.running.items()]:
                    ruling = None if future.status == "pending" else self._ruling(one, future)
                    if ruling:
                        self.running.pop(one)
                        yield one, ruling
                stop_if_asked()
                time.sleep(POLL_TASKS)
        finally:
            self._recall([*self.running])

    def _ruling(self, one: Commission, future: Future) -> Ruling | None:
        """The ruling of a finished task; None if the submission will be judged again."""
        try:
            problem = future.exception(timeout=2 * ANSWER) if future.status == "error" else None
            answer = None if problem else future.result(timeout=2 * ANSWER)
        except FutureCancelledError:
            return self._again(one, self.todo, "its task was lost on the cluster")
        except Errors:
            return None  # the answer cannot be fetched now
        if isinstance(problem, distributed.KilledWorker):
            return self._suspect(one)
        if problem is not None:  # an unforeseen exception in the worker
            why = f"fault in a worker: {type(problem).__name__}: {str(problem)[:300]}"
            return without_grade(one.id, why)
        try:
            ruling = read_ruling(answer, one.id, one.conditions.assignment)
        except BadRuling as bad:
            return without_grade(one.id, f"a worker's answer is not to be believed: {bad}")
        if ruling.status != "refused":
            return ruling
        self._refuse(ruling.machine, ruling.reason)
        return self._again(one, self.todo, "a worker refused it")

    def _again(self, one: Commission, where: deque[Commission], why: str) -> None:
        self.running.pop(one, None)
        where.appendleft(one)
        self.events.tell("again", student=one.student, submission=one.submission, reason=why)

    def _suspect(self, one: Commission) -> Ruling | None:
        """Handle a submission whose workers died: judge it again alone, at the end; give up the second time.

        The first time another submission in the same worker may have been the cause.
        """
        self.killed[one.id] += 1
        if self.killed[one.id] > 1:
            return without_grade(one.id, "each worker that judged it died, also when it was judged alone")
        why = "workers died while they had it; it is tried alone, at the end"
        return self._again(one, self.suspects, why)

    def _send(self) -> Rulings:
        """Send enough submissions to keep the workers busy. Yields rulings for files that cannot be read."""
        fit = self._fit_workers()
        only = fit if self.refusals else None
        room = AHEAD * sum(self.workers[address] for address in fit) - len(self.running)
        for _ in range(min(room, len(self.todo))):
            one = self.todo.popleft()
            try:
                sent = one.conditions.as_bytes(), one.notebook()
            except Exception as problem:  # noqa: BLE001 - an unreadable file costs its own submission only
                yield one, ruling_without_judging(one, problem)
                continue
            self.running[one] = self._submit("judge", on_worker, *sent, workers=only)

    def _submit(self, what: str, function: Any, *arguments: object, workers: list[str] | None) -> Future:
        self.sent += 1
        key = f"autograder-{what}-{self.run}-{self.sent}"
        return self.client.submit(function, *arguments, key=key, pure=False, workers=workers)

    def _recall(self, ones: list[Commission]) -> None:
        """Cancel these submissions. A worker finishes what it is judging, and its answer is dropped."""
        futures = [self.running.pop(one) for one in ones]
        if futures and self.client.status == "running":
            try:
                self.client.cancel(futures, force=True)
            except Errors:
                pass  # a silent scheduler drops the results when it loses this client

    def _look(self) -> Rulings:
        """Update which workers are present. Yields rulings for submissions that are given up.

        Dask itself moves tasks of a lost worker to another one. If none is left it would wait for the lost
        ones, so the tasks are cancelled here.
        """
        try:
            found = self._present()
        except Errors:
            return self._wait("the scheduler, which does not answer")
        for address in self.workers.keys() - found.keys():
            self.refusals.pop(address, None)
            self.events.tell("worker-left", worker=address)
        for address in found.keys() - self.workers.keys():  # its first task asks whether it may judge
            self.events.tell("worker-joined", worker=address)
        self.workers = found
        self._require_fit_worker()
        told = {"students": sorted(one.student for one in self.running), "queued": len(self.todo)}
        if told != self.told:
            self.told = told
            self.events.tell("judging", **told)
        if self._fit_workers():
            self.served, self.waits = time.monotonic(), False
            return
        gone = [one for one, future in self.running.items() if future.status == "pending"]
        self._recall(gone)
        for one in gone:
            if ruling := self._suspect(one):
                yield one, ruling
        self._wait("a worker")

    def _wait(self, for_what: str) -> None:
        if not self.waits:
            self.events.tell("waiting", for_what=for_what)
            self.waits = True
        if self.client.status == "closed" or time.monotonic() - self.served > self.patience:
            raise UserError(
                f"waited {self.patience:g} s for {for_what}; what was graded is kept, "
                "run the same command when it is back"
            )

    def _present(self) -> dict[str, int]:
        """{address: threads} of the workers present. Raises one of Errors if the scheduler is silent."""
        scheduler: Any = self.client.scheduler
        told: Any = self.client.sync(scheduler.identity, callback_timeout=ANSWER, n_workers=-1)
        return {address: about["nthreads"] for address, about in told["workers"].items()}
