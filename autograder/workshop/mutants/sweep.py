"""Grades mutants, each in its own process, and stores the results.

A mutant is killed if it loses points on both of two seeds; losing on one only would be luck. Results are
stored as lines of JSON, so that the next run grades only mutants whose text or task module has changed.
"""

import contextlib
import hashlib
import io
import json
import linecache
import multiprocessing
import multiprocessing.connection
import os
import resource
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from autograder.user_error import UserError, nearest
from warplab import crossing
from warplab.tasks import registry, scoring
from workshop.mutants.mutant import Mutant, mutants_of
from workshop.mutants.notebook_cells import cells_for, given_to

SEEDS = (20_261_122, 0)
LIMIT_S = 5.0
"""Seconds of processor time for one mutant; more where the reference is slow: four times its own time."""
MEMORY = 8 << 30
CORPUS = "autograder/tests/corpus"
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"


@dataclass(frozen=True)
class Fate:
    """The result of a mutant. state: KILLED, SURVIVED or EQUIVALENT. how: what killed it, or the reason."""

    mutant: Mutant
    state: str
    how: str = ""


class Sweep:
    """All mutants of some tasks.

    root: the course's folder. names: problem sets or tasks (default: all). every: grade only each `every`-th
    mutant. results: the file of stored results, None to grade everything. Raises UserError for unknown names.
    """

    def __init__(self, root: Path, names: Iterable[str] = (), every: int = 1, results: Path | None = None):
        self.root, self.results = root, results
        self.notebooks = {path.stem.split("_")[0]: path for path in (root / "solutions").glob("ps*.py")}
        known = [name for name in registry.names() if name.split("/")[0] in self.notebooks]
        wanted = tuple(names) or tuple(sorted(self.notebooks))
        for name in wanted:
            if name not in known and name not in self.notebooks:
                raise UserError(
                    f"no problem set or task is called {name}{nearest(name, [*self.notebooks, *known])}"
                )
        self.tasks = [name for name in known if name in wanted or name.split("/")[0] in wanted]
        self.every = every

    def mutants(self, name: str) -> list[Mutant]:
        """The mutants of one task that this sweep grades."""
        return mutants_of(name, self.notebook(name))[:: self.every]

    def notebook(self, name: str) -> Path:
        """The solution notebook that a task is in."""
        return self.notebooks[name.split("/")[0]]

    def run(self, jobs: int = 1) -> Iterator[Fate]:
        """Yield the Fate of each mutant, task by task. jobs: how many are graded at a time."""
        known = dict(self._remembered())
        for name in self.tasks:
            mutants, reasons = self.mutants(name), equivalent(self.root, name)
            limit_s = max(LIMIT_S, 4 * self._warm_up(name))
            given = self._given(name)

            def fate(mutant: Mutant, given=given, reasons=reasons, limit_s=limit_s) -> Fate:
                if mutant.identity in reasons:
                    return Fate(mutant, EQUIVALENT, reasons[mutant.identity])
                key = hashlib.sha256((given + mutant.source).encode()).hexdigest()[:20]
                if key not in known:
                    known[key] = graded(mutant, self.notebook(mutant.task), limit_s)
                    self._remember(key, mutant, known[key])
                return Fate(mutant, *known[key])

            with ThreadPoolExecutor(jobs) as pool:
                yield from pool.map(fate, mutants)

    def _warm_up(self, name: str) -> float:
        """Grade the reference, so that forked processes have everything imported; returns its seconds."""
        begun = time.process_time()
        source = cells_for(self.notebook(name), name.split("/")[1])[-1]
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            lost = loss(Mutant(name, "", "", source), self.notebook(name), SEEDS[0])
        if lost:
            raise UserError(f"the reference of {name} itself loses points, mutants say nothing: {lost}")
        return time.process_time() - begun

    def _given(self, name: str) -> str:
        """What a mutant's result depends on besides its own text, except for the engine."""
        module = registry.__file__.replace("registry.py", f"{name.split('/')[0]}.py")
        return Path(module).read_text() + self.notebook(name).read_text()

    def _remembered(self) -> Iterator[tuple[str, tuple[str, str]]]:
        if self.results and self.results.exists():
            for line in self.results.read_text().splitlines():
                with contextlib.suppress(ValueError):  # a line cut off when a run was stopped
                    told = json.loads(line)
                    yield told["key"], (told["state"], told["how"])

    def _remember(self, key: str, mutant: Mutant, found: tuple[str, str]) -> None:
        if self.results:
            told = {"key": key, "task": mutant.task, "mutant": mutant.identity, "operator": mutant.operator}
            self.results.parent.mkdir(parents=True, exist_ok=True)
            with self.results.open("a") as file:
                file.write(json.dumps(told | {"state": found[0], "how": found[1]}) + "\n")


def equivalent(root: Path, name: str) -> dict[str, str]:
    """{identity: reason} of the mutants in equivalent.yml, which are right answers to a task."""
    path = root / CORPUS / name / "equivalent.yml"
    groups = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
    return {identity: group["reason"] for group in groups for identity in group["mutants"]}


def graded(mutant: Mutant, notebook: Path, limit_s: float = LIMIT_S) -> tuple[str, str]:
    """(state, how) of one mutant, graded in its own process."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(mutant, notebook, theirs, limit_s), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(6 * limit_s) else (KILLED, "took too long")
    except EOFError:
        found = KILLED, "its process ended, or took too long"
    process.kill()
    process.join()
    return found


def _report(
    mutant: Mutant, notebook: Path, channel: multiprocessing.connection.Connection, limit_s: float
) -> None:
    """Runs in the forked process: grades the mutant and sends the result."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + limit_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["OMP_NUM_THREADS"] = "1"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for seed in SEEDS:
            how = loss(mutant, notebook, seed)
            if not how:
                channel.send((SURVIVED, f"full points with seed {seed}"))
                return
    channel.send((KILLED, how))


def loss(mutant: Mutant, notebook: Path, seed: int) -> str:
    """How a mutant loses points, in a few words; "" if it earns them all."""
    task = registry.get(mutant.task)
    namespace = dict(given_to(notebook, mutant.task.split("/")[1])) | {"__name__": "submission"}
    lines = mutant.source.splitlines(keepends=True)
    linecache.cache["mutant.py"] = len(mutant.source), None, lines, "mutant.py"  # where Triton reads it
    try:
        exec(compile(mutant.source, "mutant.py", "exec"), namespace)
    except Exception as error:  # noqa: BLE001 - a mutant may raise anything
        return f"does not run: {type(error).__name__}"
    outcomes = []
    cases = task.cases(seed)
    for case in cases:
        outcome = crossing.try_here(task, case, namespace.get(task.entry), namespace.get(task.plan_entry))
        if wrong := task.wrong_result(case, outcome):
            return f"{'error' if outcome.error else 'wrong'} in {case.name}: {wrong}"[:200]
        outcomes.append(outcome)
    lines = scoring.judge(task, cases, outcomes).part().lines
    return next((f"{line.key}: {line.reason}"[:200] for line in lines if line.points < line.max), "")


def tallied(fates: Iterable[Fate]) -> list[tuple[str, int, int, int, int]]:
    """[(task, made, equivalent, killed, survived)], with the sum of all tasks as the last row."""
    rows: dict[str, list[int]] = {}
    for fate in fates:
        row = rows.setdefault(fate.mutant.task, [0, 0, 0, 0])
        row[0] += 1
        row[1 + (EQUIVALENT, KILLED, SURVIVED).index(fate.state)] += 1
    total = [sum(column) for column in zip(*rows.values(), strict=True)] or [0, 0, 0, 0]
    return [(name, *counts) for name, counts in [*rows.items(), ("all", total)]]  # pyright: ignore[reportReturnType]
