"""`make gpu-hour`: what the course wants of a CUDA machine, most wanted first, in calls of some minutes.

A machine with a GPU is often lent for minutes. A call works for at most --minutes; what it did not reach, or
had to stop, the next call does. Each step leaves OUT/<step>.log and, of tests, OUT/<step>.xml, which JUnit's
readers show; OUT/<step>.done says of which commit it is. Records go to OUT/results.
Only the standard library is imported here; the steps need torch, numba-cuda, NumPy, PyYAML, msgspec and
pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
MACHINE = """
import importlib.metadata as m, json, platform, shutil, subprocess
ask = lambda *c: subprocess.run(c, capture_output=True, text=True).stdout.strip()
names = ("torch", "numba", "numba-cuda", "triton", "numpy", "pytest")
found = {d.metadata["Name"].lower(): d.version for d in m.distributions() if d.metadata["Name"]}
fields = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu"
gpu = ask("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader")
values = [value.strip() for value in gpu.split(",")] if gpu else []
print(json.dumps({"gpu": dict(zip(fields.split(","), values)), "python": platform.python_version(),
    "kernel": platform.release(), "packages": {n: found.get(n) for n in names},
    "tools": {t: shutil.which(t) for t in ("ncu", "compute-sanitizer", "nvcc")}}, indent=1))
"""
# name, seconds that it is thought to take, file of tests ("" for the machine itself, "record" for records)
STEPS = (
    ("machine", 10, ""),
    ("engine", 60, "gpu/test_engine_against_cuda.py"),
    ("record", 20, "record"),  # begun with little time: it keeps what it measured, and goes on
    ("timed", 150, "gpu/test_timing_on_cuda.py"),
    ("counters", 120, "gpu/test_against_ncu.py"),
    ("faults", 90, "gpu/test_against_compute_sanitizer.py"),
    ("kernels", 240, "gpu/test_course_kernels.py"),
    ("cu_files", 60, "gpu/test_cu_files_on_cuda.py"),
    ("torch", 60, "gpu/test_torch_on_cuda.py"),
    ("attacks", 120, "grader/test_timing_attacks.py"),
    ("timing", 60, "crossing/test_timed.py"),
    ("bench", 60, "evidence/test_bench.py"),
    ("memory", 60, "models/test_vram.py"),
    ("experiments", 60, "evidence/test_experiments.py"),
    ("machine_after", 10, ""),
)


def command(name: str, file: str, out: Path, left: float) -> list[str]:
    """The command line of a step that has ``left`` seconds."""
    if not file:
        return [sys.executable, "-c", MACHINE]
    if file == "record":
        budget = f"{left - 5:.0f}"
        return [
            sys.executable,
            "-m",
            "warplab.evidence",
            "--results",
            str(out / "results"),
            "--budget",
            budget,
        ]
    xml = ["-o", "junit_logging=all", f"--junitxml={out / name}.xml", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", "-m", "gpu", "-rs", *xml, str(HOUSE / "tests" / file)]


def run(name: str, file: str, out: Path, left: float) -> str:
    """Run a step: "passed", "failed", or "unfinished" if its time was too short."""
    paths = os.pathsep.join(filter(None, (str(HOUSE), os.environ.get("PYTHONPATH"))))
    with (out / f"{name}.log").open("ab") as log:
        began = log.tell()
        child = subprocess.Popen(
            command(name, file, out, left),
            stdout=log,
            stderr=log,
            env=os.environ | {"PYTHONPATH": paths},
            start_new_session=True,
        )
        try:
            code = child.wait(left)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            return "unfinished"
    if code and b"run again to go on" in (out / f"{name}.log").read_bytes()[began:]:
        return "unfinished"
    return "failed" if code else "passed"


def work(out: Path, commit: str, seconds: float) -> bool:
    """Do what fits into ``seconds``; returns whether nothing is left. A step that fails costs only itself."""
    end, complete = time.monotonic() + seconds, True
    out.mkdir(parents=True, exist_ok=True)
    for name, needed, file in STEPS:
        done, left = out / f"{name}.done", end - time.monotonic()
        if done.exists() and done.read_text() == commit:
            continue
        state = run(name, file, out, left) if left >= needed else "not begun"
        print(f"{name}: {state}", flush=True)
        if state in ("passed", "failed"):
            done.write_text(commit)
        else:
            complete = False
    return complete


def commit() -> str:
    """WARPLAB_COMMIT, else what git says, else "unknown"."""
    if os.environ.get("WARPLAB_COMMIT") or not shutil.which("git"):
        return os.environ.get("WARPLAB_COMMIT", "unknown")
    asked = subprocess.run(["git", "-C", str(HOUSE), "rev-parse", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make gpu-hour", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=HOUSE.parent / "_build/gpu-hour")
    parser.add_argument("--minutes", type=float, default=8.5, help="the most that this call may take")
    options = parser.parse_args(argv)
    if not shutil.which("nvidia-smi"):
        print("gpu-hour: no nvidia-smi here, so no NVIDIA GPU to ask", file=sys.stderr)
        return 1
    complete = work(options.out, commit(), 60 * options.minutes)
    print(f"{options.out}" + ("" if complete else "; run it again to go on"))
    return 0 if complete else 75


if __name__ == "__main__":
    sys.exit(main())
