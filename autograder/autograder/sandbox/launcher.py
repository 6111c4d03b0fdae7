"""What a process for students' code is started with: its role's module, imports, environment.

Each process has its own folder with home/, which is its working folder, HOME and TMPDIR; in the sandbox it is
on a tmpfs.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

ROLES = {
    "student": "autograder.sandbox.student",
    "executor": "autograder.executor.executor",
    "reader": "autograder.reader.reader",
    "probe": "autograder.sandbox.probe",
}
WARM = "autograder.sandbox.warm"
# {word in a notebook: module that it probably imports}; the warm parent imports it once for all later jobs
OFTEN = {
    "cuda": WARM,
    "cuda_kernel": WARM,
    "ptx_kernel": WARM,
    "IPython": "IPython.display",
    "matplotlib": "matplotlib.pyplot",
    "plots": "warplab.plots",
    "torch": "torch",
    "flop_counter": "torch.utils.flop_counter",
    "FlopCounterMode": "torch._dynamo",  # imported at its first use
    "miniature": "warplab.models.miniature",
    "models": "warplab.models.networks",
    "vram": "warplab.models.vram",
}
KEEP = tuple(
    "PATH PYTHONPATH LD_LIBRARY_PATH VIRTUAL_ENV CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES "
    "NVIDIA_VISIBLE_DEVICES".split()
)


class StartError(OSError):
    """A process could not be started, or could not be ended: never the student's fault."""


def often_imported(sources: Iterable[str]) -> tuple[str, ...]:
    """The modules of OFTEN that a notebook's cells seem to need, sorted. A wrong guess only costs time."""
    words = {word for source in sources for word in re.findall(r"\w+", source)}
    return tuple(sorted(module for word, module in OFTEN.items() if word in words))


def environment(home: str | Path) -> dict[str, str]:
    """The environment of a started process: enough to find Python and a GPU, nothing else of the user's."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in KEEP or key.startswith(("WARPLAB_", "NUMBA_"))
    }
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        # kernels compile and count the same on every machine; the executor times PTX without numba
        "WARPLAB_DEVICE": "simt",
    }
