"""Grading in Slurm jobs: needs a Slurm that runs here; on Debian apt-get install slurmctld slurmd munge."""

import shutil
import subprocess

import pytest
from dask_processes import grader
from grading import make_course
from test_cluster import class_of, scores


@pytest.fixture
def partition():
    """The name of a partition that takes jobs."""
    if not shutil.which("sbatch"):
        pytest.skip("no Slurm: apt-get install slurmctld slurmd munge, and start them")
    found = subprocess.run(["sinfo", "-h", "-o", "%R %a"], capture_output=True, text=True, timeout=60)
    up = [line.split()[0] for line in found.stdout.splitlines() if line.split()[1:] == ["up"]]
    if not up:
        pytest.skip(f"Slurm has no partition that is up: {found.stderr.strip() or found.stdout.strip()}")
    return up[0]


@pytest.mark.full
def test_two_slurm_jobs_grade_a_class(partition, tmp_path, monkeypatch):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 8)
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__QUEUE", partition)
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__CORES", "1")
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__MEMORY", "2GB")
    preload = tmp_path / "one_version.py"
    preload.write_text("import autograder.results\nautograder.results.course_version = lambda: 'test'\n")
    monkeypatch.setenv(
        "DASK_JOBQUEUE__SLURM__JOB_SCRIPT_PROLOGUE", f"['export DASK_DISTRIBUTED__WORKER__PRELOAD={preload}']"
    )
    run = grader(root, "--slurm", "2", "--out", "slurm")
    said, complained = run.communicate(timeout=500)
    assert run.returncode == 0, (said, complained)
    table = scores(root / "slurm")
    assert table["broken"][0] == "malformed" and table["student000"] == ("graded", "15", "5")
    assert {table[f"student{number:03}"][1] for number in (1, 2, 4, 5)} == {"30"}
