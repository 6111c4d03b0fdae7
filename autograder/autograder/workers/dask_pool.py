"""A Dask cluster that judges. Bytes go to its workers and bytes come back; what comes back is checked here.

Dask carries and reschedules. What it cannot know is decided here: which workers may judge, what is sent when,
what is tried again after a loss, and what is set aside because it takes its workers with it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    about: dict[str, Any] = field(default_factory=dict)


class DaskPool:
    """The workers of a cluster that may judge for this version of the course.

    connect: gives a Client, and raises OSError where no scheduler answers. version, unsafe: see
    commission.Conditions. patience: seconds for which a lost scheduler, a first worker or a last GPU is
    waited for.
    Raises UserError where no worker comes, or none of them may judge.
    """

    first = "untimed"

    def __init__(
        self,
        connect: Callable[[], distributed.Client],
        happened: Happenings,
        version: str,
        *,
        unsafe: bool = False,
        patience: float = 600.0,
    ) -> None:
        self.connect, self.version, self.unsafe = connect, version, unsafe
        self.patience, self.run = patience, secrets.token_hex(4)
        self.workers: dict[str, _Worker] = {}
        self.running: dict[Commission, Future | _Decided] = {}
        self.where: dict[str, str] = {}  # key of a task: the worker that has it
        self.sent, self.silent_since, self.looked = 0, 0.0, 0.0
        self.idle_since: dict[bool, float] = {}
        self.killed: Counter[str] = Counter()
        self.abandoned: Counter[str] = Counter()  # by submission: times that the last worker left with it
        self.told: dict[str, Any] = {}  # of who is judged
        self.happened = happened
        self.client = connect()
        try:
            self._survey()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the cluster go."""
        self.client.close(timeout=ANSWER)

    def _survey(self) -> None:
        """Ask each worker that is there whether it may judge, and on what it would time."""
        deadline = time.monotonic() + self.patience
        self.happened.tell("waiting", for_what="a worker")
        while not (found := self._identity()):
            if time.monotonic() > deadline:
                raise UserError(f"no worker joined the scheduler within {self.patience:g} s; start one")
            time.sleep(LOOK / 4)
        self.workers = found
        told = {
            address: self.client.submit(
                describe_worker,
                self.version,
                self.unsafe,
                workers=[address],
                pure=False,
                key=self._key("about"),
            )
            for address in found
        }
        for address, future in told.items():
            try:
                found[address].about = json.loads(future.result(timeout=max(60.0, ANSWER)))
                found[address].refusal = found[address].about["refusal"]
            except Exception as problem:  # noqa: BLE001 - whatever is wrong over there, it may not judge
                found[address].refusal = f"{type(problem).__name__}: {str(problem)[:300]}"
            if found[address].refusal:
                self.happened.tell("refused", worker=address, reason=found[address].refusal)
        fit = [worker for worker in found.values() if not worker.refusal]
        if not fit:
            raise self._nobody()
        timing = [worker for worker in fit if worker.gpus]
        devices = sorted({tuple(worker.about["device"]) for worker in timing})
        if len(devices) > 1:
            named = ", ".join(name for name, _ in devices)
            raise UserError(
                f"the workers have different GPUs ({named}); give the resource GPU to one kind only"
            )
        self.device = devices[0] if devices else tuple(fit[0].about["device"])
        self.apart, self.isolation = bool(timing), fit[0].about["isolation"]
        self.happened.tell(
            "workers",
            judging=len(fit),
            workers=len(found),
            threads=sum(worker.threads for worker in fit),
            gpus=len(timing),
        )

    def _nobody(self) -> UserError:
        reasons = "; ".join(sorted({worker.refusal for worker in self.workers.values()}))
        return UserError(f"none of {len(self.workers)} workers may judge: {reasons}")

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        self.happened, suspects = happened, deque[Commission]()
        try:
            while todo or suspects or self.running:
                self._look(todo, suspects)
                if suspects and not todo and not self.running:  # each alone, so that no other is blamed
                    todo.append(suspects.popleft())
                self._send(todo)
                for one, future in [*self.running.items()]:
                    ruling = self._taken(one, future, todo, suspects)
                    if ruling is not None:
                        yield one, ruling
                yield from self._set_aside(todo)
                stop_if_asked()
                time.sleep(GLANCE)
        finally:
            self._recall([*self.running])

    def _taken(
        self,
        one: Commission,
        future: Future | _Decided,
        todo: deque[Commission],
        suspects: deque[Commission],
    ) -> Ruling | None:
        """The ruling in a task's answer; None if there is none yet, or if the submission is tried again."""
        if future.status == "pending":
            return None
        if future.status in ("cancelled", "lost"):
            return self._again(one, todo, "its task was lost on the cluster")
        try:
            problem = future.exception(timeout=2 * ANSWER) if future.status == "error" else None
            answer = None if problem else future.result(timeout=2 * ANSWER)
        except Errors:
            return None  # not to be had just now
        except FutureCancelledError:
            return self._again(one, todo, "its task was lost on the cluster")
        if isinstance(problem, distributed.KilledWorker):
            return self._killed(one, suspects)
        self.running.pop(one)
        if problem is not None:  # raised over there, by what nobody thought of
            return without_grade(one.id, f"fault in a worker: {type(problem).__name__}: {str(problem)[:300]}")
        try:
            ruling = read_ruling(answer, one.id, one.conditions.assignment)
        except BadRuling as bad:
            return without_grade(one.id, f"a worker's answer is not to be believed: {bad}")
        if ruling.status != "refused":
            return ruling
        if ruling.machine in self.workers and not self.workers[ruling.machine].refusal:
            self.workers[ruling.machine].refusal = ruling.reason
            self.happened.tell("refused", worker=ruling.machine, reason=ruling.reason)
        return self._again(one, todo, "a worker refused it")

    def _again(self, one: Commission, todo: deque[Commission], why: str) -> None:
        self.running.pop(one, None)
        todo.appendleft(one)
        self.happened.tell("again", student=one.student, submission=one.submission, reason=why)

    def _killed(self, one: Commission, suspects: deque[Commission]) -> Ruling | None:
        """So many workers died while they had it. Was it this one, or one beside it?"""
        self.running.pop(one, None)
        self.killed[one.id] += 1
        self.abandoned[one.id] = 0
        if self.killed[one.id] > 1:
            return without_grade(one.id, "each worker that judged it died, also when it was judged alone")
        suspects.append(one)
        why = "workers died while they had it; it is tried alone, at the end"
        self.happened.tell("again", student=one.student, submission=one.submission, reason=why)
        return None

    def _send(self, todo: deque[Commission]) -> None:
        """Send as much as keeps the workers busy."""
        if self.silent_since or self.client.status != "running":
            return
        room = {timed: self._room(timed) for timed in (False, True)}
        for one in [*todo]:
            if not any(room.values()):
                break
            if room[one.timed]:
                room[one.timed] -= 1
                todo.remove(one)
                self._submit(one)

    def _room(self, timed: bool) -> int:
        """How many more submissions may be sent."""
        places = sum(worker.gpus if timed else worker.threads for _, worker in self._fit(timed))
        return max(0, AHEAD * places - sum(one.timed == timed for one in self.running))

    def _fit(self, timed: bool) -> list[tuple[str, _Worker]]:
        """The workers that may judge such a submission."""
        return [
            (address, worker)
            for address, worker in self.workers.items()
            if not worker.refusal and (worker.gpus or not timed)
        ]

    def _submit(self, one: Commission) -> None:
        try:
            notebook = one.notebook()
        except Exception as problem:  # noqa: BLE001 - a file that is gone by now costs its own submission
            self.running[one] = _Decided(of_a_file(one, problem))
            return
        self.running[one] = self.client.submit(
            on_worker,
            one.conditions.as_bytes(),
            notebook,
            key=self._key("judge"),
            pure=False,
            workers=[address for address, _ in self._fit(one.timed)] if self._any_refused() else None,
            resources={"GPU": 1} if one.timed else None,
        )

    def _any_refused(self) -> bool:
        return any(worker.refusal for worker in self.workers.values())

    def _key(self, what: str) -> str:
        self.sent += 1
        return f"autograder-{what}-{self.run}-{self.sent}"

    def _recall(self, ones: list[Commission]) -> None:
        """Have these no longer judged. What a worker is judging already, it ends, and nobody hears of it."""
        futures = [future for one in ones if isinstance(future := self.running.pop(one), Future)]
        if futures and self.client.status == "running":
            try:
                self.client.cancel(futures, force=True)
            except Errors:
                pass  # who does not answer keeps nothing of ours: the results go with this client

    def _look(self, todo: deque[Commission], suspects: deque[Commission]) -> None:
        """Every second: is the scheduler there, who has joined, who has left, who judges what?

        What the last worker has left with is sent again under another key, so that Dask, which counts by key,
        would count a poisoned one's deaths from the beginning each time: they are counted here.
        """
        if time.monotonic() - self.looked < LOOK:
            return
        try:
            if self.client.status == "closed":
                self.client = self.connect()
            found = self._identity()
            self.where = self._processing()
        except Errors:
            self._is_silent()
            return
        finally:
            self.looked = time.monotonic()
        if self.silent_since:
            seconds = round(time.monotonic() - self.silent_since, 1)
            self.silent_since = 0.0
            self.happened.tell("scheduler-back", seconds=seconds)
        self._compare(found)
        self._tell_who_is_judged(todo)
        if self.workers and not any(not worker.refusal for worker in self.workers.values()):
            raise self._nobody()
        gone = [
            one
            for one, future in self.running.items()
            if isinstance(future, Future) and future.status == "pending" and not self._fit(one.timed)
        ]
        self._recall(gone)
        for one in gone:
            self.abandoned[one.id] += 1
            if self.abandoned[one.id] < LOSSES:
                todo.appendleft(one)
            elif (ruling := self._killed(one, suspects)) is not None:
                self.running[one] = _Decided(ruling)

    def _tell_who_is_judged(self, todo: deque[Commission]) -> None:
        there = sorted((one.student, where) for one in self.running if (where := self._worker_of(one)))
        queued = [*todo, *(one for one in self.running if not self._worker_of(one))]
        told = {
            "students": [student for student, _ in there],
            "workers": [where for _, where in there],
            "queued": len(queued),
            "for_gpu": sum(one.timed for one in queued),
        }
        if told != self.told:
            self.told = told
            self.happened.tell("judging", **told)

    def _is_silent(self) -> None:
        if not self.silent_since:
            self.silent_since = time.monotonic()
            self.happened.tell("scheduler-silent", patience=self.patience)
        elif time.monotonic() - self.silent_since > self.patience:
            raise UserError(
                f"the scheduler has not answered for {self.patience:g} s; what was graded is kept, "
                "run the same command when it is back"
            )

    def _compare(self, found: Mapping[str, _Worker]) -> None:
        """Take over who is there now. Who comes late is asked by its first submission."""
        for address in self.workers.keys() - found.keys():
            mine = sorted(one.student for one in self.running if self._worker_of(one) == address)
            del self.workers[address]
            self.happened.tell("worker-left", worker=address, students=", ".join(mine) or "nothing")
        for address in found.keys() - self.workers.keys():
            self.workers[address] = found[address]
            self.happened.tell("worker-joined", worker=address)

    def _worker_of(self, one: Commission) -> str | None:
        future = self.running.get(one)
        return self.where.get(str(future.key)) if isinstance(future, Future) else None

    def _set_aside(self, todo: deque[Commission]) -> Rulings:
        """What waits for longer than `patience` for a worker that could judge it."""
        for timed in (False, True):
            mine = [one for one in todo if one.timed == timed]
            if not mine or self._fit(timed) or self.silent_since:
                self.idle_since.pop(timed, None)
                continue
            since = self.idle_since.setdefault(timed, time.monotonic())
            what = "a worker with a GPU" if timed else "a worker"
            if since > time.monotonic() - GLANCE:
                self.happened.tell("waiting", for_what=f"{what}: {len(mine)} submissions")
            if time.monotonic() - since > self.patience:
                for one in mine:
                    todo.remove(one)
                    yield one, without_grade(one.id, f"{what} did not come within {self.patience:g} s")

    def _asked(self, question: str, **about: Any) -> Any:
        """What the scheduler answers within ANSWER seconds."""
        return self.client.sync(getattr(self.client.scheduler, question), callback_timeout=ANSWER, **about)

    def _identity(self) -> dict[str, _Worker]:
        told = self._asked("identity", n_workers=-1)
        return {
            address: _Worker(about["nthreads"], int(about.get("resources", {}).get("GPU", 0)))
            for address, about in told["workers"].items()
        }

    def _processing(self) -> dict[str, str]:
        told = self._asked("processing", workers=None)
        return {key: address for address, keys in told.items() for key in keys}


class _Decided:
    """Stands where a Future does, for a submission that was decided about before it was sent."""

    status = "finished"

    def __init__(self, ruling: Ruling) -> None:
        self.ruling = ruling

    def exception(self, timeout: float | None = None) -> None:
        return None

    def result(self, timeout: float | None = None) -> bytes:
        return self.ruling.as_bytes()
