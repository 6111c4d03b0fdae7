"""All evidence by GPU model: which experiments have results on an H100, on an A100, ...

Sources name a GPU in many ways ("NVIDIA A100 80 GB", "NVIDIA A100-SXM4-80GB"); the model is their common
part. The variant (SXM or PCIe, 40 or 80 GB) is in the source's own name, which is shown with each number.
"""

from __future__ import annotations

import re
from pathlib import Path

from warplab.evidence.declare import Experiment
from warplab.evidence.measure import RESULTS, Evidence, published, recorded, records
from warplab.hardware import specs

MAKERS = re.compile(r"^(NVIDIA|AMD|Intel)? ?(GeForce|Tesla|Instinct)? ?")
VARIANT = re.compile(r"( |-)(SXM|PCIe|NVL|\d+ ?Gi?B|HBM|at |and )|[,(]|  ")


def model(device: str) -> str:
    """The GPU model in a source's or driver's name: "A100" for "NVIDIA A100-SXM4-80GB"."""
    return VARIANT.split(MAKERS.sub("", device), maxsplit=1)[0].strip()


def all_evidence(results: Path = RESULTS) -> list[tuple[Experiment, str, Evidence]]:
    """(experiment, GPU model, evidence) of all records and published figures, in the order of the chapters;
    within an experiment records first, then the newest figures.
    """
    from warplab.evidence.catalogue import experiments

    found = []
    for e in sorted(experiments().values(), key=lambda e: (e.chapter, e.name)):
        ours = [recorded(record, e.code) for record in records(e.name, results)]
        others = sorted(published(e.name, results), key=lambda source: -source.year)
        found += [(e, model(source.device), source) for source in [*ours, *others]]
    return found


def sheets(name: str) -> list[specs.Spec]:
    """The registry's devices of a GPU model, such as two for "H100", PCIe cards last."""
    found = [spec for spec in map(specs.get, specs.names()) if model(spec.name) == name]
    return sorted(found, key=lambda spec: spec.form_factor == "PCIe")
