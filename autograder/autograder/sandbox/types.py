"""The typed messages between grader and sandbox."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Step:
    """One thing to do, in notebook order: execute a cell's `source`, or run a task's cases.

    id: the cell's grade id or cell id. kind: "cell" or "task".
    A task step names its `task`; its cases are in Request.cases.
    """

    id: str
    kind: str
    source: str = ""
    task: str = ""


@dataclass(frozen=True)
class Limits:
    """Wall-clock seconds for one step and for one process as a whole, memory and file size in MiB."""

    step_seconds: float = 30.0
    total_seconds: float = 300.0
    start_seconds: float = 120.0
    memory_mib: int = 6144
    file_mib: int = 512


@dataclass(frozen=True)
class Request:
    """Everything that a sandbox is told: no expected values, no other submission, no score."""

    steps: tuple[Step, ...]
    cases: dict[str, list]
    limits: Limits = Limits()


@dataclass
class Response:
    """What came back. `outcomes`: task name -> [warplab.task.Outcome], written case by case, so those made before an end stay.

    ended: "done", "timeout", "exited" (the process left or was killed) or "not started".
    step: id of the step that was running at an early end. errors: cell id -> one sentence, for cells that raised.
    """

    ended: str
    step: str = ""
    detail: str = ""
    outcomes: dict[str, list] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)


class Sandbox(Protocol):
    """Runs one request in a process of its own and leaves nothing behind."""

    isolation: str

    def run(self, request: Request) -> Response: ...
