"""`make gpu-hour` without a GPU: made-up steps show what is begun, kept, stopped, and gone on with."""

import json
import sys
import time
from pathlib import Path

import pytest

from workshop.gpu_hour import GpuStep, Hour, cases, main, report, steps, work


def step(name, code, seconds=1, resumable=False):
    command = [sys.executable, "-c", code, *(["{left:.0f}"] if resumable else [])]
    return GpuStep(name, f"says {name}", seconds, command, resumable)


def test_each_step_is_done_once_and_a_failure_costs_only_itself(tmp_path):
    todo = [step("good", "print('well')"), step("bad", "raise SystemExit(3)"), step("next", "print('on')")]
    assert work(Hour(tmp_path, "abc"), todo, 60)
    kept = json.loads((tmp_path / "state.json").read_text())["steps"]
    assert {name: did["state"] for name, did in kept.items()} == {
        "good": "passed",
        "bad": "failed",
        "next": "passed",
    }
    assert kept["bad"]["exit"] == 3 and (tmp_path / "good.log").read_text() == "well\n"
    assert work(Hour(tmp_path, "abc"), todo, 60) and (tmp_path / "good.log").read_text() == "well\n"
    work(Hour(tmp_path, "another"), todo[:1], 60)
    assert (tmp_path / "good.log").read_text() == "well\nwell\n", "another commit is measured anew"


def test_what_does_not_fit_is_left_for_the_next_call_and_what_fits_is_done(tmp_path, capsys):
    todo = [step("long", "print(1)", seconds=600), step("short", "print(2)")]
    assert not work(Hour(tmp_path, "abc"), todo, 60)
    assert "long: not begun" in capsys.readouterr().out
    assert list(Hour(tmp_path, "abc").done) == ["short"]
    assert "| long | says long | not begun |" in (tmp_path / "report.md").read_text()
    assert work(Hour(tmp_path, "abc"), todo, 700)


def test_a_step_that_hangs_is_stopped_with_its_children(tmp_path):
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(3); open({str(mark)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    hour = Hour(tmp_path, "abc")
    assert not work(hour, [step("hangs", code, seconds=0.5)], 1, reserve=0)
    assert hour.done["hangs"]["state"] == "unfinished"
    with pytest.raises(FileNotFoundError):
        time.sleep(3.2)
        mark.read_text()


def test_a_resumable_step_is_told_what_is_left_and_goes_on(tmp_path):
    code = (
        "import sys, pathlib; p = pathlib.Path('seen'); n = len(p.read_text()) if p.exists() else 0; "
        "p.write_text('x' * (n + 1)); print(sys.argv[1]); "
        "n or (print('the budget is spent; run again to go on from here'), sys.exit(1))"
    ).replace("'seen'", repr(str(tmp_path / "seen")))
    todo = [step("record", code, seconds=600, resumable=True)]
    assert not work(Hour(tmp_path, "abc"), todo, 60)
    assert Hour(tmp_path, "abc").done["record"]["state"] == "unfinished"
    assert work(Hour(tmp_path, "abc"), todo, 60)
    first = int((tmp_path / "record.log").read_text().splitlines()[0])
    assert 40 <= first <= 50, "60 s less the reserves"


def test_the_report_tells_what_failed_and_what_was_measured(tmp_path):
    (tmp_path / "timed.xml").write_text(
        '<testsuites><testsuite><testcase name="test_a[x]"><properties>'
        '<property name="time.ratio" value="1.3"/></properties></testcase>'
        '<testcase name="test_b"><failure message="lost &lt;2 points&gt;&#10;more"/></testcase>'
        '<testcase name="test_c"><skipped message="no ncu"/></testcase></testsuite></testsuites>'
    )
    (tmp_path / "results/copy").mkdir(parents=True)
    (tmp_path / "results/copy/h.json").write_text("{}")
    text = report(Hour(tmp_path, "abc"), [step("timed", "")])
    assert "1 passed, 1 failure, 1 skipped" in text and "| test_a[x] | time.ratio | 1.3 |" in text
    assert "- `test_b`: lost <2 points>" in text and "results/copy/h.json" in text
    assert cases(tmp_path / "missing.xml") == []


def test_a_state_that_cannot_be_read_begins_anew(tmp_path):
    (tmp_path / "state.json").write_text("{")
    assert Hour(tmp_path, "abc").done == {}


def test_the_real_steps_name_files_that_there_are_and_their_list_runs_nothing(tmp_path, capsys):
    for s in steps(tmp_path):
        named = [word for word in s.command if word.endswith(".py")]
        assert all(Path(word).exists() for word in named), s.name
    assert main(["--list", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "record" in out and "counters" in out and not list(tmp_path.glob("*.log"))


def test_without_a_gpu_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--out", str(tmp_path)]) == 1
    assert "no nvidia-smi" in capsys.readouterr().err


def test_every_file_with_gpu_tests_is_a_step(root, tmp_path):
    tests = root / "autograder/tests"
    marked = {
        p for p in tests.rglob("test_*.py") if "mark.gpu" in p.read_text() and p.name != "test_gpu_hour.py"
    }
    asked = {word for s in steps(tmp_path) for word in s.command if word.endswith(".py")}
    assert {str(p) for p in marked} == asked
