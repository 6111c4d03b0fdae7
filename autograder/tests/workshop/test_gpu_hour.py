"""`make gpu-hour` without a GPU: made-up steps show what is begun, kept, stopped, and gone on with."""

import sys
from pathlib import Path

import pytest

from workshop import gpu_hour
from workshop.gpu_hour import STEPS, command, main, work


@pytest.fixture
def made_up(monkeypatch):
    """Sets the steps, {name: (seconds, Python that it runs)}; returns the names of those that were begun."""
    begun = []

    def set_steps(**programs):
        def run_instead(name, file, out, left):
            begun.append(name)
            return [sys.executable, "-c", programs[name][1]]

        monkeypatch.setattr(
            gpu_hour, "STEPS", [(name, needed, "x") for name, (needed, _) in programs.items()]
        )
        monkeypatch.setattr(gpu_hour, "command", run_instead)

    return set_steps, begun


def test_a_step_that_failed_costs_only_itself_and_neither_is_done_twice(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    set_steps(bad=(1, "raise SystemExit(3)"), good=(1, "print('hello')"))
    assert work(tmp_path, "abc", 60)
    assert capsys.readouterr().out == "bad: failed\ngood: passed\n"
    assert (tmp_path / "good.log").read_text() == "hello\n"
    assert work(tmp_path, "abc", 60) and begun == ["bad", "good"]
    assert work(tmp_path, "another commit", 60) and begun == ["bad", "good"] * 2


def test_what_does_not_fit_waits_for_the_next_call(made_up, tmp_path, capsys):
    set_steps, begun = made_up
    set_steps(long=(100, ""), short=(1, ""))
    assert not work(tmp_path, "abc", 30)
    assert capsys.readouterr().out == "long: not begun\nshort: passed\n" and begun == ["short"]


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


def test_every_file_with_gpu_tests_is_a_step_and_each_step_names_a_file_that_there_is(root, tmp_path):
    tests = root / "autograder/tests"
    marked = {
        p for p in tests.rglob("test_*.py") if "mark.gpu" in p.read_text() and p.name != "test_gpu_hour.py"
    }
    named = {Path(command(name, file, tmp_path, 60)[-1]) for name, _, file in STEPS if file.endswith(".py")}
    assert named == marked


def test_without_a_gpu_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--out", str(tmp_path)]) == 1
    assert "no nvidia-smi" in capsys.readouterr().err
