"""``python -m workshop.conformance``: runs numba-cuda's own cudapy test suite, from its wheel, on the engine.

Each test module runs in its own process with a limit of CPU time, so that a crash or a hang costs one module.
``--numba-simulator`` runs the same tests on numba's simulator for comparison. Needs ``filecheck`` and
``pytest``. The last line is ``N of M pass, K skipped``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workshop.conformance import RESULTS, tally

LEFT_OUT = {"test_ipc", "test_multiprocessing", "test_multithreads"}  # processes and threads that share a GPU
CHILD = Path(__file__).with_name("module.py")
PATIENCE = (
    6  # wall-clock limit as a multiple of the CPU time limit: the machine may be busy, a test may only wait
)


def modules() -> list[str]:
    """Names of the suite's test modules, without those that need several processes or threads on one GPU."""
    package = importlib.util.find_spec("numba.cuda")  # found, not imported
    assert package and package.submodule_search_locations
    folder = next(
        path for place in package.submodule_search_locations if (path := Path(place, "tests/cudapy")).is_dir()
    )
    return sorted(p.stem for p in folder.glob("test_*.py") if p.stem not in LEFT_OUT)


def run(name: str, device: str, limit: int) -> dict:
    """Run one test module in its own process; tests unfinished after `limit` seconds of CPU time fail.

    device: "engine" or "simulator". Returns {"pass": count, "skip": count, "fail": {test: the last line of
    its error}, "seconds": wall-clock time}.
    """
    simulator = device == "simulator"
    environment = {**os.environ, "WARPLAB_DEVICE": "simt", "NUMBA_ENABLE_CUDASIM": "1" if simulator else "0"}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        if not simulator:  # so that Python processes started by tests get the hook, too
            Path(folder, "sitecustomize.py").write_text("import warplab\n")
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-P", str(CHILD), name, device, str(limit)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, cwd=folder
        ) as child:
            try:
                text, _ = child.communicate(timeout=PATIENCE * limit)
            except subprocess.TimeoutExpired:
                child.kill()
                text, _ = child.communicate()
    results = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    expected = results.pop(0)["tests"] if results else 1
    ended = (
        f"not finished after {limit} s of CPU time"
        if child.returncode < 0
        else f"the process ended with {child.returncode}"
    )
    missing = {f"{name} (unfinished {i + 1})": ended for i in range(expected - len(results))}
    return {
        "pass": sum(r["outcome"] == "pass" for r in results),
        "skip": sum(r["outcome"] == "skip" for r in results),
        "fail": {r["test"]: r["why"] for r in results if r["outcome"] == "fail"} | missing,
        "seconds": round(time.perf_counter() - start),
    }


def main() -> int:
    """Parse the arguments, run, print; 1 if anything was interrupted."""
    parser = argparse.ArgumentParser(prog="python -m workshop.conformance", description=__doc__)
    parser.add_argument("names", nargs="*", help="modules to run (default: all)")
    parser.add_argument(
        "--numba-simulator", action="store_true", help="run on numba's simulator instead of the engine"
    )
    parser.add_argument(
        "--limit", type=int, default=200, help="seconds of CPU time that a module may take (default 200)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="modules to run at a time (default 1)")
    parser.add_argument(
        "--json",
        type=Path,
        help="write the results here, after each module; modules that are there already are not run again",
    )
    parser.add_argument(
        "--record",
        action="store_const",
        const=RESULTS,
        dest="json",
        help="the same into the package, for the book's appendix",
    )
    options = parser.parse_args()
    device = "simulator" if options.numba_simulator else "engine"
    data = _begun(options.json)
    done = data.setdefault(device, {})
    names = [name for name in options.names or modules() if name not in done]
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    running = {pool.submit(run, name, device, options.limit): name for name in names}
    try:
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            name = running[future]
            done[name] = result = future.result()
            print(
                f"[{number}/{len(names)}] {name}: {tally({name: result})}, {result['seconds']} s", flush=True
            )
            for test, why in result["fail"].items():
                print(f"      {test.split('.', 1)[-1]}: {why[:220]}", flush=True)
            if options.json:
                data[device] = dict(sorted(done.items()))
                options.json.write_text(json.dumps(data, indent=1) + "\n")
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)
        print(
            f"interrupted after {len(done)} modules"
            + (f"; run it again to go on with {options.json}" if options.json else "")
        )
        return 1
    print(tally(done))
    return 0


def _begun(path: Path | None) -> dict:
    """What ``path`` holds of a run of this version, or the beginning of a new one."""
    version = importlib.metadata.version("numba-cuda")
    if path and path.is_file():
        data = json.loads(path.read_text())
        if data["numba_cuda"] == version:
            return data
    return {"numba_cuda": version, "date": datetime.date.today().isoformat()}


if __name__ == "__main__":
    sys.exit(main())
