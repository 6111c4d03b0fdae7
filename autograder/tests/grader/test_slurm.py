"""Grading in Slurm jobs, on a Slurm of this machine alone; on Debian apt-get install slurm-wlm munge."""

import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
from dask_processes import ONE_VERSION, grader  # noqa: E402
from grading import make_course  # noqa: E402
from slurm_of_one_node import PARTITION, missing, slurm  # noqa: E402
from test_cluster import class_of, scores  # noqa: E402


@pytest.fixture
def partition(tmp_path, monkeypatch):
    """The name of a partition that takes jobs."""
    if missing():
        pytest.skip(f"no Slurm here: apt-get install {' '.join(missing())}")
    folder = tmp_path / "slurm"
    folder.mkdir()
    with slurm(folder) as settings:
        monkeypatch.setenv("SLURM_CONF", str(settings))
        yield PARTITION


@pytest.mark.full
def test_two_slurm_jobs_grade_a_class(partition, tmp_path, monkeypatch):
    root, assignment = make_course(tmp_path / "course")
    class_of(root, assignment, 8)
    preload = tmp_path / "one_version.py"
    preload.write_text(ONE_VERSION)
    jobs = {"queue": partition, "cores": 1, "memory": "2GB"}
    jobs["job_script_prologue"] = [f"export DASK_DISTRIBUTED__WORKER__PRELOAD={preload}"]
    jobs["shared_temp_directory"] = str(tmp_path)
    monkeypatch.setitem(dask.config.config.setdefault("jobqueue", {}), "slurm", jobs)
    monkeypatch.setitem(dask.config.config, "autograder", {"cluster": "dask_jobqueue.SLURMCluster"})
    run = grader(root, "--workers", "2", "--out", "slurm")
    said, complained = run.communicate(timeout=500)
    assert run.returncode == 0, (said, complained)
    table = scores(root / "slurm")
    assert table["broken"][0] == "malformed" and table["student000"] == ("graded", "15", "5")
    assert {table[f"student{number:03}"][1] for number in (1, 2, 4, 5)} == {"30"}
