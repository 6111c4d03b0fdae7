"""`make gpu-hour`: runs all tests and measurements that need a CUDA machine, in several calls of minutes.

A machine with a GPU is often available for minutes only. A call runs for at most --minutes, the most
important steps first; the next call does what was not reached, was stopped or failed. Each step writes
OUT/<step>.log; a step of tests also writes OUT/<step>.xml (JUnit) and OUT/<step>.<commit>.jsonl, a line for
each finished test, so that a stopped step continues after the tests that passed. OUT/<step>.done has the
commit that the step was done for. Records go to OUT/results. The first step imports and launches a kernel; if
it fails the others are not tried. This file imports only the standard library.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
NEEDS = """The steps need an NVIDIA GPU with its driver, and torch, numba-cuda, NumPy, PyYAML, msgspec,
IPython and pytest. NumPy 2.5 has no row_stack, which numba-cuda 0.30 imports: install "numpy<2.5" beside
that. pytest-xdist makes it shorter; a toolkit's CUDA_HOME has the headers of CUDA that no wheel brought."""
BEGIN = """
import IPython, msgspec, numpy as np, pytest, torch, yaml
from numba import cuda
import warplab
assert warplab.device().kind == "cuda", f"kernels would run on {warplab.device()}"
@cuda.jit
def ones(x):
    x[cuda.grid(1)] = 1
x = torch.zeros(32, device="cuda")
ones[1, 32](x)
assert x.cpu().numpy().all(), "a kernel that writes ones left zeros"
"""
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
NCU = "ncu --csv --page raw --set full --clock-control none".split()
# (name, expected seconds, what it runs: a test file, a program's text, or the arguments of a known program)
STEPS = (
    ("begin", 10, BEGIN),
    ("machine", 10, MACHINE),
    ("engine", 60, "gpu/test_engine_against_cuda.py"),
    ("record", 20, "record"),  # takes longer, but can be stopped and continued
    ("timed", 20, "gpu/test_timing_on_cuda.py"),  # 250 s; likewise
    ("counters", 120, "gpu/test_against_ncu.py"),
    ("ncu_cases", 60, "ncu"),
    ("ncu_caches", 80, "ncu caches"),
    ("faults", 90, "gpu/test_against_compute_sanitizer.py"),
    ("kernels", 100, "gpu/test_course_kernels.py"),
    ("cu_files", 60, "gpu/test_cu_files_on_cuda.py"),
    ("clusters", 20, "gpu/test_clusters_on_cuda.py"),
    ("tma", 20, "gpu/test_tma_on_cuda.py"),
    ("wgmma", 20, "gpu/test_wgmma_on_cuda.py"),
    ("torch", 60, "gpu/test_torch_on_cuda.py"),
    ("attacks", 120, "grader/test_timing_attacks.py"),
    ("timing", 60, "crossing/test_timed.py"),
    ("bench", 60, "evidence/test_bench.py"),
    ("memory", 60, "models/test_vram.py"),
    ("experiments", 60, "evidence/test_experiments.py"),
    ("machine_after", 10, MACHINE),
)


def command(name: str, what: str, out: Path, left: float, commit: str = "") -> list[str]:
    """The command line of a step that has ``left`` seconds."""
    python, tests = sys.executable, HOUSE / "tests"
    if what == "record":
        return [
            python,
            "-m",
            "warplab.evidence",
            "--results",
            f"{out / 'results'}",
            "--budget",
            f"{left - 5:.0f}",
        ]
    if what.startswith("ncu"):
        found = shutil.which("ncu")
        script = [python, f"{tests / 'gpu/kernels_under_ncu.py'}", *what.split()[1:]]
        return [*NCU, *script] if found else [python, "-c", "print('ncu is not on the PATH')"]
    if not what.endswith(".py"):
        return [python, "-c", what]
    kept = ["-o", "junit_family=xunit1", "-o", "junit_logging=all", f"--junitxml={out / name}.xml"]
    kept += ["--lines", f"{out / name}.{commit[:12]}.jsonl", "-p", "no:cacheprovider"]
    several = ["-n", "8"] if name == "kernels" and importlib.util.find_spec("xdist") else []
    return [python, "-m", "pytest", "-m", "gpu", "-rs", *several, *kept, str(tests / what)]


def run(name: str, what: str, out: Path, left: float, commit: str = "") -> str:
    """Run a step for at most `left` seconds: "passed", "failed", or "unfinished" if that was too short."""
    paths = os.pathsep.join(filter(None, (str(HOUSE), os.environ.get("PYTHONPATH"))))
    with (out / f"{name}.log").open("ab") as log:
        began = log.tell()
        child = subprocess.Popen(
            command(name, what, out, left, commit),
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
    nothing_left = code == 5 and list(out.glob(f"{name}.*.jsonl"))  # pytest's 5: no test was selected
    return "failed" if code and not nothing_left else "passed"


def work(out: Path, commit: str, seconds: float, keep_failed: bool = False) -> bool:
    """Do the steps that fit into ``seconds``; returns whether all steps are done.

    A failed step is tried again by the next call, after the others, unless keep_failed; a failure of the
    first step ends the program.
    """
    end, complete = time.monotonic() + seconds, True
    out.mkdir(parents=True, exist_ok=True)
    known = {p.stem: p.read_text().partition(" ") for p in out.glob("*.done")}
    states = {name: state for name, (of, _, state) in known.items() if of == commit}
    late = {name for name, state in states.items() if state == "failed" and name != "begin"}
    for name, needed, what in sorted(STEPS, key=lambda step: step[0] in late):
        left = end - time.monotonic()
        if name in states and (keep_failed or states[name] != "failed"):
            continue
        state = run(name, what, out, left, commit) if left >= needed else "not begun"
        print(f"{name}: {state}", flush=True)
        if state in ("passed", "failed"):
            (out / f"{name}.done").write_text(commit if state == "passed" else f"{commit} failed")
        else:
            complete = False
        if (name, state) == ("begin", "failed"):
            said = (out / "begin.log").read_text().strip() or "Python ended without a word"
            sys.exit(f"gpu-hour: {said.splitlines()[-1]}\n{NEEDS}")
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
    parser.add_argument("--keep-failed", action="store_true", help="try no step again that failed")
    options = parser.parse_args(argv)
    if not shutil.which("nvidia-smi"):
        print("gpu-hour: no nvidia-smi here, so no NVIDIA GPU to ask", file=sys.stderr)
        return 1
    complete = work(options.out, commit(), 60 * options.minutes, options.keep_failed)
    print(f"{options.out}" + ("" if complete else "; run it again to go on"))
    return 0 if complete else 75


if __name__ == "__main__":
    sys.exit(main())
