"""Start a process for other people's code, say how it ended, and leave nothing of it behind.

A launcher knows walls and limits and nothing of what is said: the conversation runs over `Running.channel`, and no file
crosses. The job's folder has home/, the working folder, HOME and TMPDIR of a process without walls; behind walls that
process has a home of its own, in memory, which goes when it goes.
"""

import os
import socket
import threading
from pathlib import Path
from typing import Protocol

from autograder.sandbox.types import Limits

ROLES = {"student": "autograder.sandbox.worker", "executor": "autograder.executor.worker", "probe": "autograder.sandbox.probe"}
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


class LaunchError(OSError):
    """The process could not be started, or not be ended: never the student's fault."""


class Running(Protocol):
    """One started process and everything that it started itself."""

    channel: socket.socket

    def ended(self) -> str | None:
        """None while it runs, else one phrase: "exited 3", "killed by SIGSEGV", "killed (memory)"."""

    def close(self) -> None:
        """Kill the whole tree and wait until nothing of it is left. Idempotent."""


class Launcher(Protocol):
    """Starts one process per call. `isolation` is stamped on every grade; setting `stopping` asks conversations to end.

    launch returns when the process stands behind its walls and is about to enter its role's main(folder, channel descriptor),
    where `folder` is the path of the job's folder as that process sees it. launch and close raise LaunchError.
    """

    isolation: str
    stopping: threading.Event

    def launch(self, role: str, folder: Path, limits: Limits) -> Running: ...


def environment(home):
    """What a started process inherits: enough to find Python and a GPU, none of the instructor's secrets."""
    kept = {key: value for key, value in os.environ.items() if key in KEEP or key.startswith(("WARPLAB_", "NUMBA_"))}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        "WARPLAB_DEVICE": "simt",  # kernels are compiled and counted alike everywhere; the executor times PTX without numba
    }
