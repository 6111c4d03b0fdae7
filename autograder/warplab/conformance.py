"""``python -m warplab.conformance``: numba-cuda's own cudapy test suite, as shipped in the wheel, on the SIMT engine.

One process a module, with a time limit, so that a crash or a hang costs one module. ``--numba-simulator`` runs the same
tests on numba's simulator for comparison. Needs ``filecheck`` and ``pytest``. The last line is ``N of M pass, K skipped``.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LEFT_OUT = {"test_ipc", "test_multiprocessing", "test_multithreads"}  # processes and threads that share a GPU
PACKAGE = "numba.cuda.tests.cudapy"


def modules() -> list[str]:
    """Names of the suite's test modules, without those that need several processes or threads on one GPU."""
    from numba.cuda.tests import cudapy

    return sorted(p.stem for p in Path(cudapy.__file__).parent.glob("test_*.py") if p.stem not in LEFT_OUT)


class _Progress(unittest.TestResult):
    """Writes each result to ``stream`` as it comes, so that a killed module keeps what it had."""

    def __init__(self, stream):
        super().__init__()
        self.out = stream
        self.failed: set[str] = set()

    def _say(self, test, outcome, why=""):
        said = [line for line in why.strip().splitlines() if line.strip() and not line.startswith("  Look at:")]
        last = said[-1][:300] if said else ""
        print(json.dumps({"test": test.id().removeprefix(PACKAGE + "."), "outcome": outcome, "why": last}), file=self.out, flush=True)

    def addSuccess(self, test):
        self._say(test, "pass")

    def addFailure(self, test, error):
        self._say(test, "fail", self._exc_info_to_string(error, test))

    def addError(self, test, error):
        if error[0].__name__ == "Skipped":  # pytest.importorskip in a unittest
            self._say(test, "skip", str(error[1]))
        else:
            self.addFailure(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None and test.id() not in self.failed:  # a test whose sub-tests fail counts once
            self.failed.add(test.id())
            self._say(test, "fail", self._exc_info_to_string(error, test))

    def addSkip(self, test, reason):
        self._say(test, "skip", reason)

    def addExpectedFailure(self, test, error):
        self._say(test, "pass")

    def addUnexpectedSuccess(self, test):
        self._say(test, "fail", "unexpected success")


def run_module(name: str, simulator: bool) -> None:
    """The child: run one module's tests, one JSON line each on the real standard output."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if not simulator:
        import warplab  # noqa: F401  (the hook)
    suite = unittest.defaultTestLoader.loadTestsFromName(f"{PACKAGE}.{name}")
    if not suite.countTestCases():  # a module of plain functions, written for pytest
        module = importlib.import_module(f"{PACKAGE}.{name}")
        functions = [f for n, f in sorted(vars(module).items()) if n.startswith("test_") and inspect.isfunction(f)]
        suite.addTests(unittest.FunctionTestCase(f) for f in functions if not inspect.signature(f).parameters)
    print(json.dumps({"tests": suite.countTestCases()}), file=out, flush=True)
    suite.run(_Progress(out))


def supervise(name: str, simulator: bool, limit: float) -> list[dict]:
    """Run one module in its own process; what it did not finish within ``limit`` seconds is a failure."""
    environment = {**os.environ, "WARPLAB_DEVICE": "simt", "NUMBA_ENABLE_CUDASIM": "1" if simulator else "0"}
    with tempfile.TemporaryDirectory() as folder:
        if not simulator:  # tests that start a Python of their own get the hook too
            Path(folder, "sitecustomize.py").write_text("import warplab\n")
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        return _results(name, simulator, limit, environment)


def _results(name: str, simulator: bool, limit: float, environment: dict) -> list[dict]:
    command = [sys.executable, "-m", "warplab.conformance", "--module", name] + (["--numba-simulator"] if simulator else [])
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        text, _ = child.communicate(timeout=limit)
        ended = f"the process ended with {child.returncode}"
    except subprocess.TimeoutExpired:
        child.kill()
        text, _ = child.communicate()
        ended = f"not finished after {limit:.0f} s"
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    results = [r for r in lines if "outcome" in r]
    expected = next((r["tests"] for r in lines if "tests" in r), 0)
    missing = expected - len(results)
    if not expected:
        results.append({"test": f"{name} (whole module)", "outcome": "not loaded", "why": ended})
    results += [{"test": f"{name} (unfinished {i + 1})", "outcome": "fail", "why": ended} for i in range(max(0, missing))]
    return results


def main() -> int:
    """Parse the arguments, run, print."""
    parser = argparse.ArgumentParser(prog="python -m warplab.conformance", description=__doc__)
    parser.add_argument("names", nargs="*", help="modules to run (default: all)")
    parser.add_argument("--numba-simulator", action="store_true", help="run on numba's simulator instead of the engine")
    parser.add_argument("--limit", type=float, default=300, help="seconds a module may take (default 300)")
    parser.add_argument("--json", type=Path, help="also write every result here")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.module:
        run_module(options.module, options.numba_simulator)
        return 0
    everything: list[dict] = []
    names = options.names or modules()
    for number, name in enumerate(names, 1):
        start = time.perf_counter()
        results = supervise(name, options.numba_simulator, options.limit)
        everything += results
        passed = sum(r["outcome"] == "pass" for r in results)
        skipped = sum(r["outcome"] == "skip" for r in results)
        print(
            f"[{number}/{len(names)}] {name}: {passed} of {len(results)} pass, {skipped} skipped, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        for r in results:
            if r["outcome"] not in ("pass", "skip"):
                print(f"      {r['test'].split('.', 1)[-1]}: {r['why'][:220]}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1))
    passed = sum(r["outcome"] == "pass" for r in everything)
    skipped = sum(r["outcome"] == "skip" for r in everything)
    print(f"{passed} of {len(everything)} pass, {skipped} skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
