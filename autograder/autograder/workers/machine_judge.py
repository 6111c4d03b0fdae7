"""Judges commissions on one machine, in its own sandbox: reads, runs and scores a submission.

The same code serves a thread of `autograder grade` and a Dask worker on another machine.
"""

import functools
import json
import platform
import threading

from msgspec.structs import replace

import warplab
from autograder import results
from autograder.judge.faults import InternalError
from autograder.judge.judge import Cases, judge_notebook, legible, make_cases
from autograder.judge.process import NotStarted
from autograder.judge.reading import read_submission, reader
from autograder.reader.contents import reduced
from autograder.sandbox import Launcher
from autograder.sandbox.choose import NoSandbox, choose
from autograder.validate import Malformed
from autograder.workers.commission import Conditions
from autograder.workers.ruling import Ruling, fault_of, without_grade


class MachineJudge:
    """Judges with one launcher; may be used by several threads. Keeps the inputs of the last two rounds."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._inputs: dict[tuple[object, ...], Cases] = {}
        self._making = threading.Lock()

    def inputs(self, conditions: Conditions) -> Cases:
        """The cases of one round of inputs, made when first needed.

        Submissions come in the order of their rounds, so keeping two is enough; timed inputs are large.
        """
        key = (*conditions.assignment.tasks(), conditions.seed)
        with self._making:
            if key not in self._inputs:
                made = make_cases(conditions.assignment, conditions.seed)
                self._inputs = dict([*self._inputs.items()][-1:]) | {key: made}
            return self._inputs[key]

    def rule(self, conditions: Conditions, notebook: bytes) -> Ruling:
        """Judge one submission: its file is read and its code runs in sandboxed processes. Never raises."""
        of, assignment, launcher = conditions.id, conditions.assignment, self.launcher
        try:
            with reader(launcher) as process:
                found = read_submission(notebook, assignment, process)
                cases = self.inputs(conditions)
                verdict = judge_notebook(assignment, found, cases, launcher, conditions.limits)
            notes = tuple(legible(defect.text) for defect in found.notes)
            cells = [reduced(cell) for cell in found.notebook["cells"]]
            return Ruling(of, verdict.status, verdict.reason, notes, cells, verdict, launcher.isolation)
        except Malformed as malformed:
            return Ruling(of, "malformed", legible(str(malformed)), isolation=launcher.isolation)
        except NotStarted as problem:
            return without_grade(of, f"the worker did not run: {problem}")
        except InternalError as problem:
            return without_grade(of, f"fault in the task, not in the submission: {problem}")
        except Exception as problem:  # noqa: BLE001 - an unforeseen error costs one grade, not the run
            return without_grade(of, fault_of(problem))


def judge_as_worker(conditions: bytes, notebook: bytes, machine: str = "") -> bytes:
    """Judge one commission on another machine. conditions: Conditions.as_bytes(). machine: a name for it.

    Returns Ruling.as_bytes(), with the status "refused" where this machine may not judge.
    """
    asked = Conditions.of(conditions)
    unfit = why_unfit(asked.version, asked.unsafe)
    if unfit:
        return without_grade(asked.id, unfit, machine, "refused").as_bytes()
    ruling = own_judge(asked.unsafe).rule(asked, notebook)
    return replace(ruling, machine=machine).as_bytes()


def describe_worker(version: str, unsafe: bool) -> bytes:
    """About a cluster's worker, as JSON: refusal ("" if it may judge), isolation, device [name, arch]."""
    unfit = why_unfit(version, unsafe)
    device = warplab.device()
    isolation = "" if unfit else own_judge(unsafe).launcher.isolation
    told = {"refusal": unfit, "isolation": isolation, "device": [device.name, device.arch]}
    return json.dumps(told).encode()


def why_unfit(version: str, unsafe: bool) -> str:
    """Why this process may not judge for a grader with that version of the course; "" if it may."""
    own = course_version_of_this_process()
    if own != version:
        return (
            f"{platform.node()} has another version of the course ({own[:12]}, the grader {version[:12]}); "
            "install the grader's commit there and start the worker again"
        )
    try:
        own_judge(unsafe)
    except NoSandbox as problem:
        return f"{platform.node()}: {problem}"
    return ""


@functools.cache
def course_version_of_this_process() -> str:
    """results.course_version(), computed once: loaded code does not change when the files do."""
    return results.course_version()


@functools.cache
def own_judge(unsafe: bool) -> MachineJudge:
    """This process's MachineJudge. Raises NoSandbox."""
    return MachineJudge(choose(unsafe))
