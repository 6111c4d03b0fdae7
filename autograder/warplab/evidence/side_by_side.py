"""All that is known, by GPU model: which experiments have a number on an H100, and which on an A100.

Sources name one GPU in many ways ("NVIDIA A100 80 GB", "NVIDIA A100-SXM4-80GB"); a model is what they share.
How they differ, a module from a card or 40 GB from 80, is in the source's own name, shown with its number.
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
    """The GPU model that a source or a driver names: "NVIDIA A100-SXM4-80GB" is an "A100"."""
    return VARIANT.split(MAKERS.sub("", device), maxsplit=1)[0].strip()


def known(results: Path = RESULTS) -> list[tuple[Experiment, str, Evidence]]:
    """Every record, contributed record and published figure with its experiment and its GPU's model, in the
    order of the chapters; within an experiment ours first, then the newest.
    """
    from warplab.evidence.catalogue import experiments

    found = []
    for e in sorted(experiments().values(), key=lambda e: (e.chapter, e.name)):
        ours = [recorded(record, e.code) for record in records(e.name, results)]
        others = sorted(published(e.name, results), key=lambda source: -source.year)
        found += [(e, model(source.device), source) for source in [*ours, *others]]
    return found


def sheets(name: str) -> list[specs.Spec]:
    """The registry's devices of a model, the modules before the cards: two for "H100"."""
    found = [spec for spec in map(specs.get, specs.names()) if model(spec.name) == name]
    return sorted(found, key=lambda spec: spec.form_factor == "PCIe")
