"""The list of experiments. Importing it imports all of them, and torch."""

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

#: The experiments that the book needs most; they run first, as the time on a GPU may run out.
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
    """All experiments by name, those in FIRST first."""
    return {name: DECLARED[name] for name in [*FIRST, *sorted(set(DECLARED) - set(FIRST))]}


def get(name: str) -> Experiment:
    """An experiment by name. Raises KeyError, which lists all names."""
    if name not in experiments():
        raise KeyError(f"no experiment '{name}'; there are {', '.join(experiments())}")
    return experiments()[name]
