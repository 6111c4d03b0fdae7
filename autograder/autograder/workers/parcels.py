"""Grading on machines without a common network, such as CI, where each job has its own machine.

`autograder grade` writes the submissions to be judged into a folder, without students' names. `autograder
judge` judges a share of them on a machine that has no gradebook, no course folder and no secret but the seed
of the inputs. The same `autograder grade`, run again, validates and records the rulings.

A parcel is <id>.json (the conditions), <id>.ipynb (the file as it was handed in) and, once it is judged,
<id>.ruling.json, in the folder or below it.
"""

import functools
import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autograder.results import write_atomic
from autograder.user_error import UserError
from autograder.workers.commission import Commission
from autograder.workers.event_log import EventLog
from autograder.workers.machine_judge import judge_as_worker
from autograder.workers.pool import Rulings, ruling_without_judging
from autograder.workers.ruling import MOST_BYTES, BadRuling, Ruling, read_ruling, without_grade

RULING = ".ruling.json"
SENT = "waits to be judged in "


class Parcels:
    """A Pool that takes rulings from a folder. A submission without one is written there and is "not graded".

    machines: the kind of machine that judges, used as the device's name. Raises UserError if the folder
    cannot be written to.
    """

    isolation = "on other machines"

    def __init__(self, folder: str, machines: str) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # private: it holds seeds of inputs
        except OSError as problem:
            raise UserError(
                f"cannot write to {folder}: {problem.strerror}; choose another Grade.parcels"
            ) from None
        self.device: tuple[str, str] = (machines, "")
        self.files = {path.name.removesuffix(RULING): path for path in self.folder.rglob(f"*{RULING}")}

    def rulings(self, todo: deque[Commission], events: EventLog) -> Rulings:
        """As in Pool."""
        while todo:
            one = todo.popleft()
            try:
                ruling = self._ruling(one, self.files[one.id]) if one.id in self.files else self._sent(one)
            except Exception as problem:  # noqa: BLE001 - an unforeseen error costs one grade
                ruling = ruling_without_judging(one, problem)
            yield one, ruling

    def _sent(self, one: Commission) -> Ruling:
        parcel = self.folder / f"{one.id}.json"
        if parcel.exists():
            return without_grade(one.id, f"no ruling came back: judge {self.folder} again")
        write_atomic(parcel.with_suffix(".ipynb"), one.notebook())
        write_atomic(parcel, one.conditions.as_bytes())
        return without_grade(one.id, f"{SENT}{self.folder}")

    @staticmethod
    def _ruling(one: Commission, file: Path) -> Ruling:
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > MOST_BYTES:
                raise BadRuling(f"it must be a regular file of at most {MOST_BYTES // 2**20} MiB")
            ruling = read_ruling(file.read_bytes(), one.id, one.conditions.assignment)
        except (OSError, BadRuling) as problem:
            return without_grade(one.id, f"{file.name} is not a ruling: {problem}; delete it and judge again")
        if ruling.status == "refused":
            return without_grade(one.id, f"the machine may not judge: {ruling.reason}")
        return ruling


def judge_parcels(
    folder: Path, jobs: int, machine: str, share: int = 1, of: int = 1
) -> Iterator[tuple[str, str, str]]:
    """Judge every `of`-th of a folder's parcels, from number `share` on. Yields (id, status, reason) of each.

    jobs: how many at a time. machine: this machine's name. Raises UserError where there are no parcels.
    """
    parcels = sorted(path for path in folder.glob("*.json") if not path.name.endswith(RULING))
    if not parcels:
        raise UserError(f"no parcels in {folder}; `autograder grade --Grade.parcels={folder}` writes them")
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(functools.partial(_judged, machine=machine), parcels[share - 1 :: of])


def _judged(parcel: Path, machine: str) -> tuple[str, str, str]:
    answer = judge_as_worker(parcel.read_bytes(), parcel.with_suffix(".ipynb").read_bytes(), machine)
    write_atomic(parcel.with_name(parcel.stem + RULING), answer)
    told = json.loads(answer)
    return parcel.stem, told["status"], told["reason"]
