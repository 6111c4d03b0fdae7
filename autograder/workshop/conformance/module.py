"""The child of ``python -m workshop.conformance``: one module of the suite, one JSON
line a test on the real standard output.

It is run by its path and imports warplab for the engine only: numba's simulator wants to be alone.
"""

import importlib
import inspect
import json
import os
import resource
import sys
import traceback
import unittest

PACKAGE = "numba.cuda.tests.cudapy"


class Progress(unittest.TestResult):
    """Writes each result to ``stream`` as it comes, so that a killed module keeps what it had."""

    def __init__(self, stream):
        super().__init__()
        self.out = stream
        self.said: set[str] = set()

    def _say(self, test, outcome, why=""):
        test = getattr(test, "test_case", test)  # a sub-test's own test, which counts once
        if test.id() in self.said:
            return
        self.said.add(test.id())
        lines = [
            line for line in why.strip().splitlines() if line.strip() and not line.startswith("  Look at:")
        ]
        last = lines[-1][:300] if lines else ""
        print(
            json.dumps({"test": test.id().removeprefix(PACKAGE + "."), "outcome": outcome, "why": last}),
            file=self.out,
            flush=True,
        )

    def addSuccess(self, test):
        self._say(test, "pass")

    def addFailure(self, test, error):
        self._say(test, "fail", "".join(traceback.format_exception(*error)))

    def addError(self, test, error):
        if error[0].__name__ == "Skipped":  # pytest.importorskip in a unittest
            self._say(test, "skip", str(error[1]))
        else:
            self.addFailure(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._say(test, "fail", "".join(traceback.format_exception(*error)))

    def addSkip(self, test, reason):
        self._say(test, "skip", reason)

    def addExpectedFailure(self, test, error):
        self._say(test, "pass")

    def addUnexpectedSuccess(self, test):
        self._say(test, "fail", "unexpected success")


def main(name: str, device: str, limit: str) -> None:
    """Run the tests of module ``name`` on ``device`` ("engine" or "simulator") within
    ``limit`` seconds of CPU time.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if device == "engine":
        import warplab  # noqa: F401  (the hook)
    try:
        module = importlib.import_module(f"{PACKAGE}.{name}")
    except BaseException as error:  # noqa: BLE001  (pytest's Skipped is one)
        skipped = type(error).__name__ in ("Skipped", "SkipTest")
        said = {
            "test": f"{name} (whole module)",
            "outcome": "skip" if skipped else "fail",
            "why": f"{type(error).__name__}: {error}"[:300],
        }
        print(json.dumps({"tests": 1}), json.dumps(said), sep="\n", file=out, flush=True)
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if not suite.countTestCases():  # a module of plain functions, written for pytest
        functions = [
            f for n, f in sorted(vars(module).items()) if n.startswith("test_") and inspect.isfunction(f)
        ]
        suite.addTests(unittest.FunctionTestCase(f) for f in functions if not inspect.signature(f).parameters)
    print(json.dumps({"tests": suite.countTestCases()}), file=out, flush=True)
    suite.run(Progress(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
