"""`make record [EXPERIMENT=name]`: run experiments without a current record on this machine's GPU.

Missing records come first, then those whose experiment has changed since; current ones are skipped (--again
repeats them). Each experiment runs in its own process, so that a failure costs only its own record.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from pathlib import Path

from warplab.evidence import take as machine
from warplab.evidence.catalogue import experiments, get
from warplab.evidence.declare import Experiment
from warplab.evidence.measure import RESULTS
from warplab.evidence.record import SCHEMA, RecordError, read, slug, write
from warplab.evidence.roofs import impossible


def state(experiment: Experiment, device: str, folder: Path) -> str:
    """The state of a record: "missing", "stale" (the experiment has changed, or the file cannot be read) or
    "current".
    """
    path = folder / experiment.name / f"{slug(device)}.json"
    if not path.exists():
        return "missing"
    try:
        return "current" if read(path).code == experiment.code else "stale"
    except RecordError:
        return "stale"


def plan(names: list[str], device: str, folder: Path, again: bool) -> list[Experiment]:
    """The experiments to record, in order: missing, stale, and if ``again`` or named also current ones."""
    chosen = [get(name) for name in names] if names else list(experiments().values())
    wanted = ("missing", "stale", "current") if again or names else ("missing", "stale")
    return sorted(
        (e for e in chosen if state(e, device, folder) in wanted),
        key=lambda e: wanted.index(state(e, device, folder)),
    )


def record_one(name: str, where: str, folder: str, seconds: float) -> None:
    """Take and write one record, in the child process; exits with status 1 if that fails."""
    try:
        record = machine.take(get(name), where, seconds)
        if wrong := impossible(record):
            raise RecordError(f"not written, because something was timed that did not happen: {wrong[0]}")
    except Exception as error:  # noqa: BLE001 - whatever an experiment raises costs this record only, and is shown
        traceback.print_exc()
        print(f"  {name}: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
    path = write(record, Path(folder))
    print(f"  {len(record.points)} points, largest IQR/median {record.spread():.1%}, {path}", flush=True)


def record_all(
    todo: list[Experiment],
    where: str,
    folder: Path,
    seconds: float = 0.5,
    limit: float = 120,
    budget: float = 600,
) -> list[str]:
    """Record each experiment in a child process. Returns the names of those that failed, timed out (``limit``
    seconds each) or no longer fitted the ``budget`` of seconds.
    """
    fork, failed, start = multiprocessing.get_context("fork"), [], time.monotonic()
    for number, experiment in enumerate(todo, 1):
        left = budget - (time.monotonic() - start)
        if left <= 0:
            print(f"the budget of {budget:.0f} s is spent; run again to go on from here")
            return failed + [e.name for e in todo[number - 1 :]]
        print(f"[{number}/{len(todo)}] {experiment.name}: {experiment.question}", flush=True)
        began = time.monotonic()
        child = fork.Process(target=record_one, args=(experiment.name, where, str(folder), seconds))
        child.start()
        child.join(min(limit, left))
        if child.is_alive():
            child.kill()
            child.join()
            print(f"  stopped after {time.monotonic() - began:.0f} s")
        if child.exitcode != 0:
            failed.append(experiment.name)
        print(f"  {time.monotonic() - began:.1f} s", flush=True)
    return failed


def pack(device: str, folder: Path, file: Path, by: str) -> int:
    """Put a device's records into one file to send; ``by``: the sender. Returns the exit status."""
    found = [
        json.loads(path.read_text(encoding="utf-8")) | {"by": by}
        for path in sorted(folder.glob(f"*/{slug(device)}.json"))
    ]
    if not found:
        print(f"record: there is no record of {device} yet; run make record first", file=sys.stderr)
        return 1
    file.write_text(json.dumps({"schema": SCHEMA, "records": found}) + "\n", encoding="utf-8")
    print(f"{len(found)} records of {device} in {file}")
    return 0


def main(argv: list[str] | None = None) -> int:
    from warplab.hardware.device import device

    parser = argparse.ArgumentParser(prog="make record", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("experiment", nargs="*", help="names; default: all that have no current record")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="current records too")
    parser.add_argument("--seconds", type=float, default=0.5, help="the most that one case may take")
    parser.add_argument("--budget", type=float, default=600, help="seconds for all")
    parser.add_argument("--list", action="store_true", help="measure nothing, say what there is and what not")
    parser.add_argument(
        "--pack",
        type=Path,
        metavar="FILE",
        help="measure nothing, put this device's records into one file to send",
    )
    parser.add_argument(
        "--by",
        default="",
        metavar="NAME",
        help="with --pack: who measured, and on which machine, as the book is to show it",
    )
    options = parser.parse_args(argv)
    if options.pack and not options.by.strip():
        parser.error("--pack needs --by: a record that nobody stands for is not taken")
    try:
        here = device()
        if options.list:
            for e in map(get, options.experiment or experiments()):
                print(f"{e.name:<22}{state(e, here.name, options.results):<10}{e.question}")
            return 0
        todo = plan(options.experiment, here.name, options.results, options.again)
    except KeyError as error:
        print(f"record: {error.args[0]}", file=sys.stderr)
        return 2
    if here.kind != "cuda":
        print(
            "record: no CUDA GPU, so nothing to record or pack; --list says what is missing", file=sys.stderr
        )
        return 1
    if options.pack:
        return pack(here.name, options.results, options.pack, options.by)
    if machine.commit() == "unknown":
        print("record: no git here: without WARPLAB_COMMIT nobody can take the records", file=sys.stderr)
    failed = record_all(todo, "cuda", options.results, options.seconds, budget=options.budget)
    print(f"{len(todo) - len(failed)} recorded" + (f"; not recorded: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
