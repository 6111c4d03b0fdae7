"""The list of experiments. Importing it imports them all, with torch and their kernels."""

from __future__ import annotations

from warplab.evidence.declare import DECLARED, Experiment
from warplab.evidence.experiments import (  # noqa: F401 - importing one declares it
    bandwidth,
    checkpoints,
    energy,
    fusion,
    hopper,
    inference,
    matmul,
    overhead,
    parts,
    patterns,
    precision,
    rooflines,
    stack,
)

#: What the book misses most comes first, should the time on a GPU run out.
FIRST = (
    "copy_bandwidth",
    "matmul_by_size",
    "crossover",
    "launch_overhead",
    "latency",
    "host_device_transfer",
    "decode_batch",
    "checkpointing",
)


def experiments() -> dict[str, Experiment]:
    """All of them by name, what the book misses most first."""
    return {name: DECLARED[name] for name in [*FIRST, *sorted(set(DECLARED) - set(FIRST))]}


def get(name: str) -> Experiment:
    """Raises KeyError, naming those that there are."""
    if name not in experiments():
        raise KeyError(f"no experiment '{name}'; there are {', '.join(experiments())}")
    return experiments()[name]
