"""A Dask cluster that judges. Bytes go to its workers and bytes come back; what comes back is checked here.

Dask carries, reschedules, and reconnects to a scheduler that was lost. What it cannot know is decided here:
which workers may judge, what is sent when, and what is set aside because it takes its workers with it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter, deque
from dataclasses import dataclass
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
LOSSES = 3  # times that the last worker leaves with a submission: it is tried alone then, and then set aside
Errors = (OSError, TimeoutError, CommClosedError, ClosedClientError)


def on_worker(conditions: bytes, notebook: bytes) -> bytes:
    """The task that a Dask worker runs."""
    return judge_as_worker(conditions, notebook, distributed.get_worker().address)


@dataclass
class _Worker:
    """What is known of one worker. refusal: why it may not judge, "" if it may."""

    threads: int
    gpus: int
    refusal: str = ""


class DaskPool:
    """The workers of a cluster that may judge for this version of the course.

    client: Dask's own, which reconnects by itself for `patience`. version, unsafe: see commission.Conditions.
    patience: seconds for which a silent scheduler, a first worker or a last GPU is waited for.
    Raises UserError where no worker comes, or none of them may judge.
    """

    first = "untimed"

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
        self.decided: list[tuple[Commission, Ruling]] = []
        self.silent_since = self.looked = 0.0
        self.idle_since: dict[bool, float] = {}
        self.told: dict[str, Any] = {}  # of who is judged
        self.killed, self.abandoned = Counter[str](), Counter[str]()  # how often, by submission
        self._survey(version, unsafe)

    def _survey(self, version: str, unsafe: bool) -> None:
        """Ask each worker that is there whether it may judge, and on what it would time."""
        self.happened.tell("waiting", for_what="a worker")
        try:
            self.client.wait_for_workers(1, timeout=self.patience)
        except TimeoutError:
            raise UserError(f"no worker joined the scheduler within {self.patience:g} s; start one") from None
        self.workers = found = self._present()
        asked = {address: self._submit("about", describe_worker, version, unsafe, workers=[address])
                 for address in found}  # fmt: skip
        about: dict[str, Any] = {}
        for address, future in asked.items():
            try:
                about[address] = json.loads(future.result(timeout=60.0))
                self._refuse(address, about[address]["refusal"])
            except Exception as problem:  # noqa: BLE001 - whatever is wrong over there, it may not judge
                self._refuse(address, f"{type(problem).__name__}: {str(problem)[:300]}")
        self._some_may_judge()
        fit, timing = self._fit(False), self._fit(True)
        devices = sorted({tuple(about[address]["device"]) for address in timing})
        if len(devices) > 1:
            named = ", ".join(name for name, _ in devices)
            raise UserError(
                f"the workers have different GPUs ({named}); give the resource GPU to one kind only"
            )
        self.device = devices[0] if devices else tuple(about[fit[0]]["device"])
        self.apart, self.isolation = bool(timing), about[fit[0]]["isolation"]
        threads = sum(found[address].threads for address in fit)
        self.happened.tell("workers", judging=len(fit), workers=len(found), threads=threads, gpus=len(timing))

    def _refuse(self, address: str, why: str) -> None:
        worker = self.workers.get(address)
        if why and worker and not worker.refusal:
            worker.refusal = why
            self.happened.tell("refused", worker=address, reason=why)

    def _some_may_judge(self) -> None:
        """Raises UserError where workers are there, and all of them refuse."""
        reasons = {worker.refusal for worker in self.workers.values()}
        if reasons and "" not in reasons:
            told = "; ".join(sorted(reasons))
            raise UserError(f"none of {len(self.workers)} workers may judge: {told}")

    def _fit(self, timed: bool) -> list[str]:
        """The workers that may judge such a submission."""
        return [
            address
            for address, worker in self.workers.items()
            if not worker.refusal and (worker.gpus or not timed)
        ]

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        self.happened, self.todo = happened, todo
        try:
            while todo or self.suspects or self.running:
                if time.monotonic() - self.looked >= LOOK:
                    self._look()
                    self.looked = time.monotonic()
                if self.suspects and not todo and not self.running:  # each alone, so that no other is blamed
                    todo.append(self.suspects.popleft())
                if not self.silent_since and self.client.status == "running":
                    self._send()
                for one, future in [*self.running.items()]:
                    if future.status != "pending":
                        self._take(one, future)
                self._set_aside()
                while self.decided:
                    yield self.decided.pop(0)
                stop_if_asked()
                time.sleep(GLANCE)
        finally:
            self._recall([*self.running])

    def _take(self, one: Commission, future: Future) -> None:
        """The ruling in a task's answer, if the submission is not to be tried again."""
        try:
            problem = future.exception(timeout=2 * ANSWER) if future.status == "error" else None
            answer = None if problem else future.result(timeout=2 * ANSWER)
        except FutureCancelledError:
            return self._again(one, "its task was lost on the cluster")
        except Errors:
            return None  # not to be had just now
        if isinstance(problem, distributed.KilledWorker):
            return self._suspect(one)
        if problem is not None:  # raised over there, by what nobody thought of
            why = f"fault in a worker: {type(problem).__name__}: {str(problem)[:300]}"
            return self._decide(one, without_grade(one.id, why))
        try:
            ruling = read_ruling(answer, one.id, one.conditions.assignment)
        except BadRuling as bad:
            why = f"a worker's answer is not to be believed: {bad}"
            return self._decide(one, without_grade(one.id, why))
        if ruling.status != "refused":
            return self._decide(one, ruling)
        self._refuse(ruling.machine, ruling.reason)
        return self._again(one, "a worker refused it")

    def _decide(self, one: Commission, ruling: Ruling) -> None:
        self.running.pop(one, None)
        self.decided.append((one, ruling))

    def _again(self, one: Commission, why: str) -> None:
        self.running.pop(one, None)
        self.todo.appendleft(one)
        self.happened.tell("again", student=one.student, submission=one.submission, reason=why)

    def _suspect(self, one: Commission) -> None:
        """So many workers died while they had it. Was it this one, or one beside it?"""
        self.running.pop(one, None)
        self.killed[one.id] += 1
        self.abandoned[one.id] = 0
        if self.killed[one.id] > 1:
            why = "each worker that judged it died, also when it was judged alone"
            return self._decide(one, without_grade(one.id, why))
        self.suspects.append(one)
        why = "workers died while they had it; it is tried alone, at the end"
        self.happened.tell("again", student=one.student, submission=one.submission, reason=why)

    def _send(self) -> None:
        """Send as much as keeps the workers busy."""
        for timed in (False, True):
            fit = self._fit(timed)
            places = sum(self.workers[one].gpus if timed else self.workers[one].threads for one in fit)
            room = AHEAD * places - sum(one.timed == timed for one in self.running)
            restricted = any(worker.refusal for worker in self.workers.values())
            for one in [one for one in self.todo if one.timed == timed][: max(0, room)]:
                self.todo.remove(one)
                try:
                    sent = one.conditions.as_bytes(), one.notebook()
                except Exception as problem:  # noqa: BLE001 - a file that is gone costs its own submission
                    self._decide(one, of_a_file(one, problem))
                    continue
                resources = {"GPU": 1} if timed else None
                workers = fit if restricted else None
                self.running[one] = self._submit(
                    "judge", on_worker, *sent, workers=workers, resources=resources
                )

    def _submit(self, what: str, function: Any, *arguments: object, **where: Any) -> Future:
        self.sent += 1
        key = f"autograder-{what}-{self.run}-{self.sent}"
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def _recall(self, ones: list[Commission]) -> None:
        """Have these no longer judged. What a worker is judging already, it ends, and nobody hears of it."""
        futures = [self.running.pop(one) for one in ones]
        if futures and self.client.status == "running":
            try:
                self.client.cancel(futures, force=True)
            except Errors:
                pass  # who does not answer keeps nothing of ours: the results go with this client

    def _look(self) -> None:
        """Is the scheduler there, who has joined, who has left?

        What the last worker has left with is sent again under another key, so that Dask, which counts by key,
        would count a poisoned one's deaths from the beginning each time: they are counted here.
        """
        try:
            found = self._present()
        except Errors:
            return self._is_silent()
        if self.silent_since:
            seconds, self.silent_since = round(time.monotonic() - self.silent_since, 1), 0.0
            self.happened.tell("scheduler-back", seconds=seconds)
        for address in self.workers.keys() - found.keys():
            del self.workers[address]
            self.happened.tell("worker-left", worker=address)
        for address in found.keys() - self.workers.keys():  # it is asked by its first submission
            self.workers[address] = found[address]
            self.happened.tell("worker-joined", worker=address)
        self._some_may_judge()
        names, waiting = sorted(one.student for one in self.running), [one.timed for one in self.todo]
        told = {"students": names, "queued": len(waiting), "for_gpu": sum(waiting)}
        if told != self.told:
            self.told = told
            self.happened.tell("judging", **told)
        pending = [one for one, future in self.running.items() if future.status == "pending"]
        gone = [one for one in pending if not self._fit(one.timed)]
        self._recall(gone)
        for one in gone:
            self.abandoned[one.id] += 1
            if self.abandoned[one.id] < LOSSES:
                self.todo.appendleft(one)
            else:
                self._suspect(one)

    def _is_silent(self) -> None:
        if not self.silent_since:
            self.silent_since = time.monotonic()
            self.happened.tell("scheduler-silent", patience=self.patience)
        elif self.client.status == "closed" or time.monotonic() - self.silent_since > self.patience:
            raise UserError(
                f"the scheduler has not answered for {self.patience:g} s; what was graded is kept, "
                "run the same command when it is back"
            )

    def _set_aside(self) -> None:
        """What waits for longer than `patience` for a worker that could judge it."""
        for timed in (False, True):
            mine = [one for one in self.todo if one.timed == timed]
            if not mine or self._fit(timed) or self.silent_since:
                self.idle_since.pop(timed, None)
                continue
            what = "a worker with a GPU" if timed else "a worker"
            if timed not in self.idle_since:
                self.happened.tell("waiting", for_what=f"{what}: {len(mine)} submissions")
            if time.monotonic() - self.idle_since.setdefault(timed, time.monotonic()) > self.patience:
                for one in mine:
                    self.todo.remove(one)
                    why = f"{what} did not come within {self.patience:g} s"
                    self._decide(one, without_grade(one.id, why))

    def _present(self) -> dict[str, _Worker]:
        """The workers that the scheduler names within ANSWER seconds."""
        scheduler: Any = self.client.scheduler
        told: Any = self.client.sync(scheduler.identity, callback_timeout=ANSWER, n_workers=-1)
        return {
            address: _Worker(about["nthreads"], int(about.get("resources", {}).get("GPU", 0)))
            for address, about in told["workers"].items()
        }
