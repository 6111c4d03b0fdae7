"""`make gpu-hour`: all that the course wants of a CUDA machine, most wanted first, in pieces.

A machine with a GPU is often lent for minutes. A call works for at most --minutes; what it did not reach,
or had to stop, the next call does. Everything lands in one folder: each step's output, its results as data,
and a page.
Only the standard library is imported here; the steps need torch, numba-cuda, NumPy, PyYAML and pytest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
TESTS = HOUSE / "tests"
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


@dataclass(frozen=True)
class GpuStep:
    """One process. `seconds` is what it is thought to take: it is begun only if so much is left. A step that
    is `resumable` is also begun with less, keeps what it did when it is stopped, and goes on from there.
    """

    name: str
    what: str
    seconds: float
    command: list[str]
    resumable: bool = False


def steps(out: Path, python: str = sys.executable) -> list[GpuStep]:
    """The steps, most wanted first."""

    def tests(name: str, what: str, seconds: float, file: str) -> GpuStep:
        xml = ["-o", "junit_logging=all", f"--junitxml={out / name}.xml"]
        command = [
            python,
            "-m",
            "pytest",
            "-m",
            "gpu",
            "-rs",
            "-p",
            "no:cacheprovider",
            *xml,
            str(TESTS / file),
        ]
        return GpuStep(name, what, seconds, command)

    record = [python, "-m", "warplab.evidence", "--results", str(out / "results"), "--budget"]
    return [
        GpuStep("machine", "device, driver, clocks, versions", 10, [python, "-c", MACHINE]),
        tests("engine", "the engine's results beside CUDA's", 60, "gpu/test_engine_against_cuda.py"),
        GpuStep("record", "a record of every experiment", 240, [*record, "{left:.0f}"], resumable=True),
        tests(
            "timed",
            "timed tasks beside their yardsticks; timer and itself",
            150,
            "gpu/test_timing_on_cuda.py",
        ),
        tests("counters", "the engine's counters beside Nsight Compute's", 120, "gpu/test_against_ncu.py"),
        tests(
            "faults",
            "the engine's findings beside compute-sanitizer's",
            90,
            "gpu/test_against_compute_sanitizer.py",
        ),
        tests("kernels", "every kernel of the course on CUDA", 240, "gpu/test_course_kernels.py"),
        tests("cu_files", "whole .cu files on CUDA", 60, "gpu/test_cu_files_on_cuda.py"),
        tests("torch", "tensors of torch on CUDA", 60, "gpu/test_torch_on_cuda.py"),
        tests("attacks", "attacks on the clock", 120, "grader/test_timing_attacks.py"),
        tests("timing", "the crossing of a timed kernel", 60, "crossing/test_timed.py"),
        tests("bench", "what a benchmark on CUDA says", 60, "evidence/test_bench.py"),
        tests("memory", "bytes that torch holds beside the model's", 60, "models/test_vram.py"),
        tests("experiments", "the experiments' kernels on CUDA", 60, "evidence/test_experiments.py"),
        GpuStep("machine_after", "the same after the work: clocks, temperature", 10, [python, "-c", MACHINE]),
    ]


class Hour:
    """What has been done so far, in `out`/state.json, of one commit: another's results are not this one's."""

    def __init__(self, out: Path, commit: str):
        self.out, self.file = out, out / "state.json"
        out.mkdir(parents=True, exist_ok=True)
        try:
            kept = json.loads(self.file.read_text())
        except (OSError, ValueError):
            kept = {}
        self.commit = commit
        self.done: dict[str, dict] = kept.get("steps", {}) if kept.get("commit") == commit else {}

    def keep(self, name: str, **what: object) -> None:
        self.done[name] = what
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({"commit": self.commit, "steps": self.done}, indent=1))
        fresh.replace(self.file)

    def left_of(self, todo: list[GpuStep]) -> list[GpuStep]:
        return [
            step for step in todo if self.done.get(step.name, {}).get("state") not in ("passed", "failed")
        ]


def work(
    hour: Hour,
    todo: list[GpuStep],
    seconds: float,
    now: Callable[[], float] = time.monotonic,
    reserve: float = 5,
) -> bool:
    """Do what fits into `seconds`; True if nothing is left. A step that does not end in time is stopped with
    its children and is "unfinished"; one that fails is "failed", and costs only itself.
    """
    start = now()
    for step in hour.left_of(todo):
        left = seconds - reserve - (now() - start)
        if left < (min(step.seconds, 20) if step.resumable else step.seconds):
            print(
                f"{step.name}: not begun, {step.seconds:.0f} s do not fit into {max(left, 0):.0f} s",
                flush=True,
            )
            continue
        print(f"{step.name}: {step.what} (about {step.seconds:.0f} s)", flush=True)
        began = now()
        state, code = run(step, hour.out / f"{step.name}.log", left)
        hour.keep(step.name, state=state, seconds=round(now() - began, 1), exit=code)
        print(f"  {state} after {now() - began:.0f} s", flush=True)
    (hour.out / "report.md").write_text(report(hour, todo), encoding="utf-8")
    return not hour.left_of(todo)


def run(step: GpuStep, log: Path, left: float) -> tuple[str, int | None]:
    """(state, exit status) of one process, which writes into `log` and has `left` seconds."""
    command = [word.format(left=left - 5) if word == "{left:.0f}" else word for word in step.command]
    environment = os.environ | {"PYTHONPATH": f"{HOUSE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with log.open("ab") as output:
        begins = output.tell()
        try:
            child = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
        except OSError as problem:
            output.write(f"{problem}\n".encode())
            return "failed", None
        try:
            code = child.wait(left)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            return "unfinished", None
    if step.resumable and code != 0:
        spent = b"run again to go on" in log.read_bytes()[begins:]
        return ("unfinished" if spent else "failed"), code
    return ("passed" if code == 0 else "failed"), code


def cases(xml: Path) -> list[dict]:
    """Of each test in a JUnit file its name, outcome, message and recorded properties."""
    try:
        root = ElementTree.parse(xml).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    found = []
    for case in root.iter("testcase"):
        outcome = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        found.append(
            {
                "name": case.get("name", ""),
                "outcome": outcome.tag if outcome is not None else "passed",
                "message": (outcome.get("message") or "") if outcome is not None else "",
                "properties": {p.get("name", ""): p.get("value", "") for p in case.iter("property")},
            }
        )
    return found


def report(hour: Hour, todo: list[GpuStep]) -> str:
    """One page in Markdown: what ran, what failed and with which words, and every recorded property."""
    lines = ["# A GPU hour", "", f"Commit {hour.commit}.", ""]
    log = hour.out / "machine.log"
    if log.exists():
        lines += ["```", log.read_text(errors="replace").strip(), "```", ""]
    lines += ["| step | what | state | seconds | tests |", "|---|---|---|---|---|"]
    found = {step.name: cases(hour.out / f"{step.name}.xml") for step in todo}
    for step in todo:
        did = hour.done.get(step.name, {"state": "not begun", "seconds": ""})
        counts = {
            o: sum(c["outcome"] == o for c in found[step.name])
            for o in ("passed", "failure", "error", "skipped")
        }
        tests = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
        lines.append(f"| {step.name} | {step.what} | {did['state']} | {did['seconds']} | {tests} |")
    records = sorted((hour.out / "results").glob("*/*.json"))
    lines += [
        "",
        f"Records: {len(records)}" + "".join(f"\n- {path.relative_to(hour.out)}" for path in records),
    ]
    for step in todo:
        wrong = [c for c in found[step.name] if c["outcome"] in ("failure", "error")]
        if wrong:
            lines += ["", f"## Failed: {step.name}", ""]
            lines += [
                f"- `{c['name']}`: {c['message'].splitlines()[0] if c['message'] else ''}" for c in wrong
            ]
        told = [c for c in found[step.name] if c["properties"]]
        if told:
            lines += ["", f"## Measured: {step.name}", "", "| test | what | value |", "|---|---|---|"]
            lines += [f"| {c['name']} | {k} | {v} |" for c in told for k, v in c["properties"].items()]
    return "\n".join(lines) + "\n"


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
    parser.add_argument(
        "--list", action="store_true", help="the steps and what they are thought to take; runs nothing"
    )
    options = parser.parse_args(argv)
    todo = steps(options.out)
    hour = Hour(options.out, commit())
    if options.list:
        for step in todo:
            state = hour.done.get(step.name, {}).get("state", "")
            print(f"{step.name:<14}{step.seconds:>5.0f} s  {state:<11}{step.what}")
        print(f"{'all':<14}{sum(step.seconds for step in todo):>5.0f} s")
        return 0
    if not shutil.which("nvidia-smi"):
        print(
            "gpu-hour: no nvidia-smi here, so no NVIDIA GPU to ask; --list shows the steps", file=sys.stderr
        )
        return 1
    complete = work(hour, todo, 60 * options.minutes)
    print(f"{options.out / 'report.md'}" + ("" if complete else "; run it again to go on"))
    return 0 if complete else 75


if __name__ == "__main__":
    sys.exit(main())
