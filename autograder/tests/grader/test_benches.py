"""`make bench` runs to its end: it uses the grader's own functions, and nothing else here runs it."""

import subprocess
import sys

import pytest
from conftest import TESTS

SMALL_CLASS = ["bench_class.py", "--sets", "--of", "ps11", "--sizes", "1", "2"]


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [SMALL_CLASS, ["bench_sandbox.py"], ["bench_tasks.py"]], ids=lambda words: words[0]
)
def test_a_bench_prints_its_tables(words, root):
    name, *options = words
    command = [sys.executable, str(TESTS / name), *options]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and done.stdout.count("\n") > 3, done.stderr
