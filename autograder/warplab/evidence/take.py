"""Takes a record: runs an experiment's cases on this machine, and notes device, driver and clocks (by
nvidia-smi, if there is one).
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess

from warplab.evidence.clocks import Timer
from warplab.evidence.declare import Experiment
from warplab.evidence.record import SCHEMA, Point, Record
from warplab.hardware.device import processor


def run(experiment: Experiment, where: str, seconds: float = 0.5) -> list[Point]:
    """Time every case of an experiment on "cuda" or "cpu"; ``seconds`` is the limit for one case."""
    import torch

    timer = Timer(where, seconds)
    with torch.no_grad():
        return [timer.time(case) for case in experiment.cases(where)]


def take(experiment: Experiment, where: str, seconds: float = 0.5) -> Record:
    """Run an experiment and return its record."""
    import torch

    before = _smi("driver_version,clocks.sm,clocks.mem") if where == "cuda" else []
    points = run(experiment, where, seconds)
    after = _smi("clocks.sm,clocks.mem") if where == "cuda" else []
    clocks: dict[str, float] = dict(
        zip(("sm", "memory", "sm_after", "memory_after"), map(float, before[1:] + after), strict=False)
    )
    return Record(
        schema=SCHEMA,
        experiment=experiment.name,
        device=device_name(where),
        kind=where,
        driver=before[0] if before else "none",
        cuda=torch.version.cuda or "none",
        torch=torch.__version__,
        python=platform.python_version(),
        clocks=clocks,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        commit=commit(),
        code=experiment.code,
        points=points,
    )


def device_name(where: str) -> str:
    """The name of the GPU, such as "NVIDIA H200", or of the processor for "cpu"."""
    if where == "cpu":
        return processor()
    import torch

    return torch.cuda.get_device_name(0)


def commit() -> str:
    """The course's commit: WARPLAB_COMMIT, else git's answer, else "unknown"."""
    if os.environ.get("WARPLAB_COMMIT"):
        return os.environ["WARPLAB_COMMIT"]
    return _ask(["git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]) or "unknown"


def _smi(fields: str) -> list[str]:
    answer = _ask(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "--id=0"])
    values = [v.strip() for v in answer.split(",")] if answer else []
    return values if all(v and v[0].isdigit() for v in values) else []


def _ask(command: list[str]) -> str:
    """A command's output, "" if there is no such command or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
