"""Limits that no measurement can exceed: the peaks and bandwidths of a record's device in the registry."""

from __future__ import annotations

from warplab.evidence.record import Record, RecordError
from warplab.hardware import specs

FACTS = {"memory": "memory_bandwidth", "pcie": "pcie_each_way", "capacity": "memory_capacity"} | {
    name: f"peak_{name}" for name in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
}


def roof(device: str, name: str) -> float | None:
    """The bytes or operations a second, or bytes held, that a device cannot exceed; None if the registry does
    not have the device or the fact. `device` is the name that its driver reports.
    """
    if name and name not in FACTS:
        raise RecordError(f"no roof is called '{name}'; there are {', '.join(FACTS)}")
    key = specs.reported(device)
    return specs.get(key)[FACTS[name]].si if name and key and FACTS[name] in specs.get(key) else None


def impossible(record: Record) -> list[str]:
    """One line for each point that claims more than the device's peak."""
    found = []
    for p in record.points:
        claims = [(p.roof, p.rate if p.unit == "s" else p.median)]
        if p.bytes and p.flops:
            claims.append(
                ("memory", p.bytes / p.median)
            )  # the rate is that of the arithmetic, so the bandwidth is checked as well
        for name, value in claims:
            limit = roof(record.device, name)
            if limit and value > limit:
                said = f"{value:.4g} a second" if p.unit == "s" else f"{value:.4g} {p.unit}"
                where = f"{record.experiment} on {record.device}, {p.series} at {p.x:g}"
                found.append(f"{where}: {said}, above the {name} peak of {limit:.4g}")
    return found
