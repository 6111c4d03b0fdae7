"""LocalProcess: an ordinary process with limits. The place where the real sandbox goes in."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import warplab.task
from autograder.sandbox import messages
from autograder.sandbox.types import Request, Response

KEEP = (
    "PATH",
    "PYTHONPATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)


class LocalProcess:
    """Runs a request in a process group of its own, in a private folder, and kills the group at the end.

    Setting `stopping` ends every run within half a second; such a run counts as not started.
    """

    isolation = "unsafe: limits on time, memory and file size, no isolation"

    def __init__(self):
        self.stopping = threading.Event()

    def run(self, request: Request) -> Response:
        folder = Path(tempfile.mkdtemp(prefix="submission-"))
        try:
            return self._run(request, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, request, folder):
        for name in ("in", "out", "home"):
            (folder / name).mkdir()
        _write_request(request, folder / "in")
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "autograder.sandbox.worker", str(folder), str(writer)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder / "home",
                env=_environment(folder / "home"),
                pass_fds=(writer,),
                start_new_session=True,
            )
        finally:
            os.close(writer)
        try:
            response = _watch(process, reader, request, self.stopping)
        finally:
            os.close(reader)
            _kill_group(process)
        _collect(response, request, folder / "out")
        return response


def _environment(home):
    """What the worker inherits: enough to find Python and a GPU, none of the instructor's secrets."""
    kept = {key: value for key, value in os.environ.items() if key in KEEP or key.startswith(("WARPLAB_", "NUMBA_"))}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
    }


def _write_request(request, folder):
    steps = []
    for number, step in enumerate(request.steps):
        cases = request.cases.get(step.task, []) if step.kind == "task" else []
        for index, case in enumerate(cases):
            messages.write(folder / f"case-{number}-{index}.json", vars(case))
        steps.append(vars(step) | {"cases": len(cases)})
    limits = request.limits
    messages.write(folder / "request.json", {"steps": steps, "memory_mib": limits.memory_mib, "file_mib": limits.file_mib})


def _watch(process, reader, request, stopping):
    """Follow the worker's progress on the pipe until it is done, leaves, or runs out of time."""
    limits = request.limits
    started = time.monotonic()
    deadline = started + limits.start_seconds
    response = Response(ended="not started")
    pending = b""
    while True:
        if stopping.is_set():
            return Response(ended="not started", detail="stopped")
        left = min(deadline, started + limits.start_seconds + limits.total_seconds) - time.monotonic()
        ready = left > 0 and select.select([reader], [], [], min(left, 0.5))[0]
        if ready:
            data = os.read(reader, 65536)
            if not data:
                return _left(process, response)
            *lines, pending = (pending + data)[-4096:].split(b"\n")
            for line in lines:
                word, _, number = line.decode("ascii", "replace").partition(" ")
                if word == "done":
                    response.ended, response.step = "done", ""
                    return response
                if number.isdigit() and int(number) < len(request.steps):
                    step = request.steps[int(number)].id
                    deadline = time.monotonic() + limits.step_seconds
                    response.ended, response.step = "exited", step
                    if word == "end" and step not in response.finished:
                        response.finished.append(step)
        elif left <= 0:
            if response.ended != "not started":
                response.ended = "timeout"
            response.detail = (
                f"ran longer than the limit of {limits.step_seconds:g} s" if response.step else "the worker did not start in time"
            )
            return response
        elif process.poll() is not None:
            return _left(process, response)


def _left(process, response):
    """The pipe closed, or the process is gone, without the word "done"."""
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        response.detail = "the process closed its channel to the grader"
        return response
    if code < 0:
        response.detail = f"the process was killed by {signal.Signals(-code).name}"
        if code == -signal.SIGKILL:
            response.detail += " (often: out of memory)"
    else:
        response.detail = f"the code ended its own process (exit status {code})"
    return response


def _kill_group(process):
    """End the worker and whatever it started in its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _collect(response, request, folder):
    """Read the outcomes and cell errors that were written; what cannot be read becomes an error outcome."""
    for number, step in enumerate(request.steps):
        error = folder / f"cell-{number}.json"
        if error.exists():
            response.errors[step.id] = _text_of(error)
        if step.kind != "task":
            continue
        outcomes = response.outcomes.setdefault(step.task, [])
        for index, case in enumerate(request.cases[step.task]):
            file = folder / f"case-{number}-{index}.json"
            if file.exists():
                outcomes.append(_outcome(file, case))


def _text_of(file):
    try:
        return str(messages.read(file).get("error", ""))[:2000]
    except (messages.BadMessage, AttributeError):
        return "the cell's error could not be read"


def _outcome(file, case):
    """Build an Outcome from untrusted data: the case name is ours, types are checked, texts are capped."""
    try:
        data = messages.read(file)
    except messages.BadMessage as problem:
        return warplab.task.Outcome(case.name, error=f"the result could not be read: {problem}")
    if not isinstance(data, dict):
        return warplab.task.Outcome(case.name, error="the result could not be read")
    error = data.get("error")
    outputs, counters, modified = data.get("outputs"), data.get("counters"), data.get("modified")
    return warplab.task.Outcome(
        case=case.name,
        outputs=outputs if isinstance(outputs, dict) else {},
        counters={key: value for key, value in counters.items() if type(value) in (int, float)} if isinstance(counters, dict) else {},
        error=None if error is None else str(error)[:2000],
        modified=tuple(str(name)[:80] for name in modified) if isinstance(modified, list) else (),
    )
