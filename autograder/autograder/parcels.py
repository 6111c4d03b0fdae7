"""Grading in shards that share no network: for CI, where each job is another machine.

send       writes each submission that is to be judged into a shard's folder, without the student's name
judge      judges one shard, on a machine that has no gradebook, no course folder and no secret but the seed
receive    checks what came back and records it

On disk a parcel is DIR/<shard>/<id>.json (the conditions), <id>.ipynb (the file as it was handed in) and,
once it is judged, <id>.ruling.json.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from autograder.results import write_atomic
from autograder.user_error import UserError
from autograder.workers.commission import Commission
from autograder.workers.happenings import Happenings
from autograder.workers.machine_judge import judge_as_worker
from autograder.workers.pool import Rulings, of_a_file
from autograder.workers.ruling import MOST_BYTES, BadRuling, Ruling, read_ruling, without_grade

RULING = ".ruling.json"
ELSEWHERE = "in shards, on other machines"


@dataclass(frozen=True)
class Sent:
    """What `send` was asked for, which `receive` needs again; kept in OUT/sent/<assignment>.json."""

    runner: str
    seconds: float

    @classmethod
    def read(cls, out: Path, assignment: str) -> Sent:
        """Raises UserError where nothing was sent."""
        file = out / "sent" / f"{assignment}.json"
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise UserError(
                f"{file} is missing or damaged; run `autograder send {assignment}` into {out} first"
            ) from None

    def write(self, out: Path, assignment: str) -> None:
        write_atomic(out / "sent" / f"{assignment}.json", (json.dumps(vars(self)) + "\n").encode())


class Sending:
    """A Pool that judges nothing: submissions go into `shards` folders in turn, as "not graded" so far."""

    first, apart, isolation = "all", False, ELSEWHERE

    def __init__(self, folder: Path, shards: int, runner: str) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # seeds of hidden inputs go into it
        except OSError as problem:
            raise UserError(f"cannot write to {folder}: {problem.strerror}; choose another --to") from None
        self.folder = folder
        self.device: tuple[str, str] = (runner, "")
        self.places = itertools.cycle(range(1, shards + 1))

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        while todo:
            one, place = todo.popleft(), self.folder / str(next(self.places))
            try:
                write_atomic(place / f"{one.id}.ipynb", one.notebook())
                write_atomic(place / f"{one.id}.json", one.conditions.as_bytes())
                yield one, without_grade(one.id, f"sent to be judged in {place.name}")
            except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade
                yield one, of_a_file(one, problem)


class Receiving:
    """A Pool that takes the rulings of the files in a folder. Only those asked for are opened."""

    first, apart, isolation = "all", False, ELSEWHERE

    def __init__(self, folder: Path, runner: str) -> None:
        if not folder.is_dir():
            raise UserError(f"no folder {folder}; expected what the shards gave back in it")
        self.device: tuple[str, str] = (runner, "")
        self.files = {path.name.removesuffix(RULING): path for path in sorted(folder.rglob(f"*{RULING}"))}

    def rulings(self, todo: deque[Commission], happened: Happenings) -> Rulings:
        """As in Pool."""
        while todo:
            one = todo.popleft()
            yield one, self._ruling(one)

    def _ruling(self, one: Commission) -> Ruling:
        file = self.files.get(one.id)
        if file is None:
            return without_grade(one.id, "its shard gave back no ruling; send it again")
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > MOST_BYTES:
                raise BadRuling(f"it is no file of at most {MOST_BYTES // 2**20} MiB")
            ruling = read_ruling(file.read_bytes(), one.id, one.conditions.assignment)
        except (OSError, BadRuling) as problem:
            return without_grade(one.id, f"what its shard gave back is no ruling: {problem}")
        if ruling.status == "refused":
            return without_grade(one.id, f"its shard may not judge: {ruling.reason}")
        return ruling


def judge_shard(folder: Path, jobs: int, machine: str) -> Iterator[tuple[str, str, str]]:
    """Judge every parcel of one shard. Yields (id, status, reason) as each is done.

    Raises UserError for a folder without parcels.
    """
    parcels = sorted(path for path in folder.glob("*.json") if not path.name.endswith(RULING))
    if not parcels:
        raise UserError(f"no parcels in {folder}; `autograder send` writes them")
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(functools.partial(_judged, machine=machine), parcels)


def _judged(parcel: Path, machine: str) -> tuple[str, str, str]:
    answer = judge_as_worker(parcel.read_bytes(), parcel.with_suffix(".ipynb").read_bytes(), machine)
    write_atomic(parcel.with_name(parcel.stem + RULING), answer)
    told = json.loads(answer)
    return parcel.stem, told["status"], told["reason"]
