"""numba-cuda's own test suite: the recorded run, its reasons and the page agree, and
(make full) a run gives what the record says.
"""

import importlib.metadata
import json
import re
import subprocess
import sys

import pytest

from workshop import conformance
from workshop.conformance.__main__ import modules, run

LESSONS = (  # the modules whose subjects the lessons teach
    "array array_args array_reductions atomics bfloat16_bindings blackscholes complex_kernel constmem "
    "device_func fastmath forall gufunc idiv intrinsics laplace libdevice localmem mandel math matmul minmax "
    "montecarlo nondet operator print random record_dtype reduction slicing sm sync transpose ufuncs "
    "vector_type vectorize warp_ops"
)


def test_the_recorded_run_is_of_the_numba_cuda_that_the_course_pins(root):
    pins = {
        re.search(r"numba-cuda\[cu13\]==([\d.]+)", (root / name).read_text())[1]
        for name in ("requirements.txt", "autograder/pyproject.toml")
    }
    assert pins == {conformance.recorded().numba_cuda} == {importlib.metadata.version("numba-cuda")}


def test_the_recorded_run_is_whole_on_the_engine_and_on_the_simulator():
    data = json.loads(conformance.RESULTS.read_text())
    assert sorted(data["engine"]) == sorted(data["simulator"]) == modules()
    assert len(modules()) == 103


def test_at_least_1400_tests_pass_and_more_than_on_numbas_simulator():
    recorded = conformance.recorded()
    assert recorded.engine.passed >= 1400
    assert recorded.simulator.passed < recorded.engine.passed


def test_each_failure_has_one_reason_and_each_reason_is_of_a_failure():
    explained = [test for reason in conformance.reasons() for test in reason.tests]
    assert sorted(explained) == sorted(conformance.recorded().failures())
    assert {reason.fault for reason in conformance.reasons()} <= {"suite", "engine", "setting"}


def test_the_page_shows_the_record_and_says_rightly_that_most_failures_are_the_suites(root):
    page = (root / "chapters" / "reference-engine.md").read_text()
    assert "conformance.recorded()" in page and "Most of the failures are the suite's own mistakes:" in page
    recorded = conformance.recorded()
    told = recorded.numba_cuda, recorded.date, str(recorded.engine), str(recorded.simulator)
    table = recorded._repr_html_()
    assert [text for text in (*told, *recorded.failures()) if text not in table] == []
    of_the_suite = sum(len(reason.tests) for reason in conformance.reasons() if reason.fault == "suite")
    assert of_the_suite > len(recorded.failures()) / 2


def test_the_table_escapes_what_a_test_or_its_reason_says(monkeypatch):
    reason = conformance.Reason(("test_<script>",), "suite", "1 < 2")
    monkeypatch.setattr(conformance, "reasons", lambda: (reason,))
    table = conformance.recorded()._repr_html_()
    assert "<code>test_&lt;script&gt;</code>" in table and "1 &lt; 2" in table and "<script" not in table


def test_the_modules_that_lessons_lean_on_are_green_in_the_record():
    assert red(conformance.recorded().modules()) == {}


def red(results: dict[str, dict]) -> dict[str, dict]:
    """Of the lessons' modules those with a failure that is not the suite's own mistake,
    or without a pass: {module: its failures}.
    """
    excused = {test for reason in conformance.reasons() if reason.fault == "suite" for test in reason.tests}
    of_lessons = {name: results[name] for name in map("test_{}".format, LESSONS.split())}
    return {name: r["fail"] for name, r in of_lessons.items() if r["fail"].keys() - excused or not r["pass"]}


@pytest.mark.slow
def test_what_a_module_does_not_finish_within_its_limit_has_failed():
    # 40 tests that take most of a minute; a slow machine is not even through the imports
    result = run("test_ufuncs", "engine", 1)
    assert set(result["fail"].values()) == {"not finished after 1 s of CPU time"}
    assert result["pass"] + len(result["fail"]) in (1, 40)


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_interrupted_and_ends_with_the_tally(tmp_path):
    begun = {
        "numba_cuda": conformance.recorded().numba_cuda,
        "date": "2020-01-01",
        "engine": {"test_sync": {"pass": 7, "skip": 1, "fail": {}}},
    }
    results = tmp_path / "results.json"
    results.write_text(json.dumps(begun))
    command = [sys.executable, "-m", "workshop.conformance", "test_sync", "test_alignment", "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "[1/1] test_alignment: 2 of 2 pass, 0 skipped" in done.stdout
    assert done.stdout.splitlines()[-1] == "9 of 10 pass, 1 skipped"
    data = json.loads(results.read_text())
    assert data["date"] == "2020-01-01" and sorted(data["engine"]) == ["test_alignment", "test_sync"]


@pytest.mark.full
def test_the_whole_suite_on_the_engine(tmp_path):
    command = [sys.executable, "-m", "workshop.conformance", "--jobs", "2"]
    command += ["--json", tmp_path / "results.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results = json.loads((tmp_path / "results.json").read_text())["engine"]
    total = conformance.tally(results)
    assert done.stdout.splitlines()[-1] == str(total)
    assert total.passed >= 1400, done.stdout
    assert red(results) == {}
    failures = {test for module in results.values() for test in module["fail"]}
    assert failures <= {test for reason in conformance.reasons() for test in reason.tests}, done.stdout
