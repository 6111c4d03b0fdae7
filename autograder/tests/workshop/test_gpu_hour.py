"""`make gpu-hour` without a GPU: made-up steps show what is begun, kept, stopped, and gone on with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workshop import gpu_hour
from workshop.gpu_hour import STEPS, command, main, work

TESTS = Path(__file__).parents[1]


@pytest.fixture
def made_up(monkeypatch):
    """Sets the steps, {name: (seconds, Python that it runs)}; returns the names of those that were begun."""
    begun = []

    def set_steps(**programs):
        def run_instead(name, what, out, left, commit):
            begun.append(name)
            return [sys.executable, "-c", programs[name][1]]

        monkeypatch.setattr(
            gpu_hour, "STEPS", [(name, needed, "x") for name, (needed, _) in programs.items()]
        )
        monkeypatch.setattr(gpu_hour, "command", run_instead)

    return set_steps, begun


def test_a_step_that_failed_costs_only_itself_and_is_tried_again_after_the_others(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    set_steps(bad=(1, "raise SystemExit(3)"), good=(1, "print('hello')"))
    assert work(tmp_path, "abc", 60)
    assert capsys.readouterr().out == "bad: failed\ngood: passed\n"
    assert (tmp_path / "good.log").read_text() == "hello\n"
    assert work(tmp_path, "abc", 60, keep_failed=True) and begun == ["bad", "good"]
    set_steps(bad=(1, ""), late=(1, ""), good=(1, ""))
    assert work(tmp_path, "abc", 60) and begun == ["bad", "good", "late", "bad"]
    assert work(tmp_path, "abc", 60) and begun == ["bad", "good", "late", "bad"]
    assert work(tmp_path, "another commit", 60) and begun[4:] == ["bad", "late", "good"]


def test_what_all_steps_need_is_missed_once_with_its_cause_and_what_to_do(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    set_steps(begin=(1, "import no_such_library"), other=(1, ""))
    for _ in range(2):
        with pytest.raises(
            SystemExit, match="gpu-hour: ModuleNotFoundError: .*no_such_library'\nThe steps need"
        ):
            work(tmp_path, "abc", 60)
    assert begun == ["begin", "begin"]


@pytest.mark.slow
def test_the_first_step_ends_the_hour_where_kernels_would_run_on_the_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPLAB_DEVICE", "simt")
    assert STEPS[0][0] == "begin"
    with pytest.raises(SystemExit, match="gpu-hour: AssertionError: kernels would run on the SIMT engine"):
        work(tmp_path, "abc", 100)


@pytest.mark.slow
def test_a_step_of_tests_that_was_stopped_goes_on_behind_those_that_passed(tmp_path):
    file, lines = tmp_path / "test_three.py", tmp_path / "lines"
    file.write_text("""
def test_one(record_property):
    record_property("seconds", 0.5)

def test_two():
    assert False

def test_three(): ...
""")
    (tmp_path / "conftest.py").write_text(f"import sys; sys.path.insert(0, {str(TESTS)!r})")
    ask = [sys.executable, "-m", "pytest", *"-p conftest -p no:cacheprovider -q".split(), f"--lines={lines}"]

    def told(*more):
        run = subprocess.run([*ask, str(file), *more], cwd=TESTS, capture_output=True, text=True)
        known = [json.loads(line) for line in lines.read_text().splitlines()]
        return run.returncode, [(one["test"].partition("::")[2], one["outcome"]) for one in known], known

    assert told("-x")[:2] == (1, [("test_one", "passed"), ("test_two", "failed")])
    file.write_text(file.read_text().replace("False", "True"))
    code, tests, known = told()
    assert (code, tests[2:]) == (0, [("test_two", "passed"), ("test_three", "passed")])
    assert known[0]["properties"] == {"seconds": 0.5}


def test_what_does_not_fit_waits_for_the_next_call(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    set_steps(long=(100, ""), short=(1, ""))
    assert not work(tmp_path, "abc", 30)
    assert capsys.readouterr().out == "long: not begun\nshort: passed\n" and begun == ["short"]


@pytest.mark.slow
def test_a_step_that_takes_too_long_is_stopped_with_its_children_and_begun_again(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    late = tmp_path / "late"
    child = f"import time, pathlib; time.sleep(4); pathlib.Path({str(late)!r}).touch()"
    set_steps(slow=(1, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"))
    assert not work(tmp_path, "abc", 1.5)
    assert capsys.readouterr().out == "slow: unfinished\n" and not late.exists()
    set_steps(slow=(1, ""))
    assert work(tmp_path, "abc", 30) and begun == ["slow", "slow"]


def test_records_that_ran_out_of_time_are_gone_on_with(made_up, tmp_path):
    set_steps, _ = made_up
    set_steps(record=(1, "print('2 left; run again to go on'); raise SystemExit(1)"))
    assert not work(tmp_path, "abc", 30) and not (tmp_path / "record.done").exists()


def test_every_file_with_gpu_tests_is_a_step_and_each_step_names_a_file_that_there_is(
    root, tmp_path, monkeypatch
):
    tests = root / "autograder/tests"
    marked = {
        p for p in tests.rglob("test_*.py") if "mark.gpu" in p.read_text() and p.name != "test_gpu_hour.py"
    }
    named = {Path(command(name, what, tmp_path, 60)[-1]) for name, _, what in STEPS if what.endswith(".py")}
    assert named == marked
    monkeypatch.setattr(gpu_hour.shutil, "which", lambda name: f"/usr/bin/{name}")
    cases, caches = (command(name, what, tmp_path, 60) for name, _, what in STEPS if what.startswith("ncu"))
    assert (*cases, "caches") == tuple(caches) and cases[0] == "ncu" and Path(cases[-1]).exists()
    monkeypatch.setattr(gpu_hour.shutil, "which", lambda name: None)
    assert command("ncu_cases", "ncu", tmp_path, 60)[-1] == "print('ncu is not on the PATH')"


def test_without_a_gpu_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--out", str(tmp_path)]) == 1
    assert "no nvidia-smi" in capsys.readouterr().err
