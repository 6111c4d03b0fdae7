"""A Dask cluster that judges. Bytes go to its workers and bytes come back; what comes back is checked here.

Dask carries, reschedules, and reconnects to a scheduler that was lost. What it cannot know is decided here:
which workers may judge, what is sent when, and what is set aside because it takes its workers with it.
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
from autograder.workers.happenings import Happenings
from autograder.workers.interrupts import stop_if_asked
from autograder.workers.machine_judge import describe_worker, judge_as_worker
from autograder.workers.pool import Rulings, of_a_file
from autograder.workers.ruling import BadRuling, Ruling, read_ruling, without_grade

LOOK, GLANCE, ANSWER = 1.0, 0.05, 5.0  # seconds between looks at the cluster, at what runs; for one answer
AHEAD = 2  # submissions that are sent for each thread of a worker: one runs, one waits beside it
Errors = (OSError, TimeoutError, CommClosedError, ClosedClientError)


def on_worker(conditions: bytes, notebook: bytes) -> bytes:
    """The task that a Dask worker runs."""
    return judge_as_worker(conditions, notebook, distributed.get_worker().address)


class DaskPool:
    """The workers of a cluster that may judge for this version of the course; all time on the same device.

    client: Dask's own, which reconnects by itself for `patience`. version, unsafe: see commission.Conditions.
    patience: seconds for which a silent scheduler, or a worker, is waited for.
    Raises UserError where nobody comes for so long, or none of the workers may judge.
    """

    def __init__(
        self,
        client: distributed.Client,
        happened: Happenings,
        version: str,
        *,
        unsafe: bool = False,
        patience: float = 600.0,
    ) -> None:
        self.client, self.happened, self.patience = client, happened, patience
        self.run, self.sent = secrets.token_hex(4), 0
        self.todo, self.suspects = deque[Commission](), deque[Commission]()
        self.running: dict[Commission, Future] = {}
        self.refusals: dict[str, str] = {}  # of workers, by address: why they may not judge
        self.told: dict[str, Any] = {}  # of who is judged
        self.killed = Counter[str]()  # how often, by submission
        self._survey(version, unsafe)
        self.looked, self.waits = 0.0, False
        self.served = time.monotonic()  # when a worker that may judge was last seen

    def _survey(self, version: str, unsafe: bool) -> None:
        """Ask each worker that is there whether it may judge, and on what it would time."""
        self.happened.tell("waiting", for_what="a worker")
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
            except Exception as problem:  # noqa: BLE001 - whatever is wrong over there, it may not judge
                self._refuse(address, f"{type(problem).__name__}: {str(problem)[:300]}")
        self._some_may_judge()
        fit = self._fit()
        devices = sorted({tuple(about[address]["device"]) for address in fit})
        if len(devices) > 1:
            named = ", ".join(name for name, _ in devices)
            raise UserError(f"the workers would time on different devices ({named}): start those of one kind")
        self.device, self.isolation = devices[0], about[fit[0]]["isolation"]
        threads = sum(self.workers[address] for address in fit)
        self.happened.tell("workers", judging=len(fit), workers=len(self.workers), threads=threads)

    def _refuse(self, address: str, why: str) -> None:
        if why and address not in self.refusals:
            self.refusals[address] = why
            self.happened.tell("refused", worker=address, reason=why)

    def _some_may_judge(self) -> None:
        """Raises UserError where workers are there, and all of them refuse."""
        if self.workers and not self._fit():
            told = "; ".join(sorted({self.refusals[address] for address in self.workers}))
            raise UserError(f"none of {len(self.workers)} workers may judge: {told}")

    def _fit(self) -> list[str]:
        """The workers that may judge."""
        return [address for address in self.workers if address not in self.refusals]

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        self.happened, self.todo = happened, todo
        try:
            while todo or self.suspects or self.running:
                if time.monotonic() - self.looked >= LOOK:
                    yield from self._look()
                    self.looked = time.monotonic()
                if self.suspects and not todo and not self.running:  # each alone, so that no other is blamed
                    todo.append(self.suspects.popleft())
                if not self.waits and self.client.status == "running":
                    yield from self._send()
                for one, future in [*self.running.items()]:
                    ruling = None if future.status == "pending" else self._ruling(one, future)
                    if ruling:
                        self.running.pop(one)
                        yield one, ruling
                stop_if_asked()
                time.sleep(GLANCE)
        finally:
            self._recall([*self.running])

    def _ruling(self, one: Commission, future: Future) -> Ruling | None:
        """The ruling in a task's answer; None if the submission is to be tried again."""
        try:
            problem = future.exception(timeout=2 * ANSWER) if future.status == "error" else None
            answer = None if problem else future.result(timeout=2 * ANSWER)
        except FutureCancelledError:
            return self._again(one, self.todo, "its task was lost on the cluster")
        except Errors:
            return None  # not to be had just now
        if isinstance(problem, distributed.KilledWorker):
            return self._suspect(one)
        if problem is not None:  # raised over there, by what nobody thought of
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
        self.happened.tell("again", student=one.student, submission=one.submission, reason=why)

    def _suspect(self, one: Commission) -> Ruling | None:
        """Its workers are gone. Was it this one, or one beside it? Alone, at the end, that will be seen."""
        self.killed[one.id] += 1
        if self.killed[one.id] > 1:
            return without_grade(one.id, "each worker that judged it died, also when it was judged alone")
        why = "workers died while they had it; it is tried alone, at the end"
        return self._again(one, self.suspects, why)

    def _send(self) -> Rulings:
        """Send as much as keeps the workers busy. Yields the rulings on files that are gone."""
        fit = self._fit()
        only = fit if self.refusals else None
        room = AHEAD * sum(self.workers[address] for address in fit) - len(self.running)
        for _ in range(min(room, len(self.todo))):
            one = self.todo.popleft()
            try:
                sent = one.conditions.as_bytes(), one.notebook()
            except Exception as problem:  # noqa: BLE001 - a file that is gone costs its own submission
                yield one, of_a_file(one, problem)
                continue
            self.running[one] = self._submit("judge", on_worker, *sent, workers=only)

    def _submit(self, what: str, function: Any, *arguments: object, workers: list[str] | None) -> Future:
        self.sent += 1
        key = f"autograder-{what}-{self.run}-{self.sent}"
        return self.client.submit(function, *arguments, key=key, pure=False, workers=workers)

    def _recall(self, ones: list[Commission]) -> None:
        """Have these no longer judged. What a worker is judging already, it ends, and nobody hears of it."""
        futures = [self.running.pop(one) for one in ones]
        if futures and self.client.status == "running":
            try:
                self.client.cancel(futures, force=True)
            except Errors:
                pass  # who does not answer keeps nothing of ours: the results go with this client

    def _look(self) -> Rulings:
        """Is the scheduler there, who has joined, who has left? Yields the rulings on what nobody can judge.

        Dask itself sends what a worker had to another. Where none is left, it would wait for those that have
        gone.
        """
        try:
            found = self._present()
        except Errors:
            return self._wait("the scheduler, which does not answer")
        for address in self.workers.keys() - found.keys():
            self.refusals.pop(address, None)
            self.happened.tell("worker-left", worker=address)
        for address in found.keys() - self.workers.keys():  # it is asked by its first submission
            self.happened.tell("worker-joined", worker=address)
        self.workers = found
        self._some_may_judge()
        told = {"students": sorted(one.student for one in self.running), "queued": len(self.todo)}
        if told != self.told:
            self.told = told
            self.happened.tell("judging", **told)
        if self._fit():
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
            self.happened.tell("waiting", for_what=for_what)
            self.waits = True
        if self.client.status == "closed" or time.monotonic() - self.served > self.patience:
            raise UserError(
                f"waited {self.patience:g} s for {for_what}; what was graded is kept, "
                "run the same command when it is back"
            )

    def _present(self) -> dict[str, int]:
        """{address: threads} of the workers that the scheduler names within ANSWER seconds."""
        scheduler: Any = self.client.scheduler
        told: Any = self.client.sync(scheduler.identity, callback_timeout=ANSWER, n_workers=-1)
        return {address: about["nthreads"] for address, about in told["workers"].items()}
