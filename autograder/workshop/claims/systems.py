"""Claims about many GPUs, clouds and other chips."""

import math

import numpy as np

from warplab.hardware import prices, specs
from workshop.claims.decision import Decision


def data_parallel_limit() -> Decision:
    """The published run of Goyal et al. (2017) used 256 GPUs."""
    return Decision({"more than 16 are of use": 256 > 16}, {"gpus": 256})


def ring_all_reduce() -> Decision:
    """A ring of 8 ranks adds up 64 numbers each: every rank ends with the sum, having
    sent 2 (n - 1) / n of its 64.
    """
    n, size = 8, 64
    ranks = [np.arange(size) * (r + 1) for r in range(n)]
    total, sent = sum(ranks), 0
    parts = [list(np.split(x.copy(), n)) for x in ranks]
    for phase in ("reduce", "gather"):
        for step in range(n - 1):
            shift = 0 if phase == "reduce" else 1
            moving = [(r, (r - step + shift) % n, parts[r][(r - step + shift) % n].copy()) for r in range(n)]
            for r, k, data in moving:
                parts[(r + 1) % n][k] = parts[(r + 1) % n][k] + data if phase == "reduce" else data
                sent += data.size if r == 0 else 0
    same = all((np.concatenate(p) == total).all() for p in parts)
    return Decision(
        {"every copy has the sum": bool(same)}, {"sent": sent, "size": size, "factor": sent / size}
    )


def ring_traffic() -> Decision:
    """What one of n ranks sends in a ring all-reduce, in sizes of what is added: 2 (n - 1) / n."""
    sent = {n: 2 * (n - 1) / n for n in (2, 8, 1024)}
    return Decision(
        {"8 against 2": sent[8] > 1.5 * sent[2], "1,024 against 8": sent[1024] > 1.5 * sent[8]},
        {"eight": sent[8], "many": sent[1024]},
    )


def wires() -> Decision:
    """One way, against a port of 400 Gbit/s, the network that Llama 3's clusters had for each GPU."""
    inside, between = specs.get("h100-sxm")["nvlink_each_way"].si, 400e9 / 8
    return Decision(
        {"NVLink is nine times as wide": inside == 9 * between},
        {"inside": inside / 1e9, "between": between / 1e9},
    )


def rented_by_anybody() -> Decision:
    """39.3 million H100-hours, as Meta counts them for Llama 3.1, at the cheapest hour of our file."""
    offer = prices.cheapest("h100-sxm")
    assert offer is not None, "the file of prices has this card"
    hour = offer.gpu_hour
    bill = 39.3e6 * hour
    return Decision(
        {
            "an afternoon for under 100 dollars": 8 * hour < 100,
            "a large model for under a million": bill < 1e6,
        },
        {"hour": hour, "bill": bill / 1e6},
    )


def zero_stages() -> Decision:
    """Bytes for 7.5 B parameters on 64 GPUs, and what each stage tends to with more."""
    p, n = 7.5, 64
    size = {"all": 16 * p, "one": 4 * p + 12 * p / n, "two": 2 * p + 14 * p / n, "three": 16 * p / n}
    limits = {"stage 1": 16 / 4, "stage 2": 16 / 2, "stage 3": n}
    return Decision({stage: limit == 8 for stage, limit in limits.items()}, size)


def nvlink_900() -> Decision:
    h100 = specs.get("h100-sxm")
    one_way = h100["nvlink_each_way"].si / 1e9
    return Decision(
        {"both ways": 2 * one_way == 900, "one way": one_way == 900},
        {"one_way": one_way, "links": h100["nvlink_links"].value},
    )


def tbps() -> Decision:
    """57.6 T a second over 256 GPUs, as bits: would a GPU get even what its PCIe slot gives it?"""
    bits, whole = 57.6e12 / 8 / 256 / 1e9, 57.6e12 / 256 / 1e9
    pcie = specs.get("h100-sxm")["pcie_each_way"].si / 1e9
    return Decision({"as bits": bits >= pcie}, {"bits": bits, "bytes": whole, "pcie": pcie})


def scale_out() -> Decision:
    h100 = specs.get("h100-sxm")
    memory, link = h100["memory_bandwidth"].si, h100["nvlink_each_way"].si
    return Decision({"the memory is the narrow place": memory < link}, {"ratio": memory / link})


def bubble() -> Decision:
    """Idle share of a pipeline of 8 stages: (p - 1) / (m + p - 1)."""
    idle = {m: 7 / (m + 7) for m in (1, 32)}
    return Decision(
        {f"{m} micro-batches": share < 0.2 for m, share in idle.items()},
        {"one": 100 * idle[1], "many": 100 * idle[32]},
    )


def _hourly(key: str) -> float:
    """Dollars an hour of an offer of the price registry."""
    return prices.get(key).hourly


def hourly_price() -> Decision:
    found = {"p4d": _hourly("aws-p4d"), "p5": _hourly("aws-p5"), "one": _hourly("azure-a100")}
    return Decision({name: 10 <= price <= 100 for name, price in found.items()}, found)


def spot_discount() -> Decision:
    """Discounts of August 2026 on eight H200, and the largest that is advertised."""
    found = {
        region: 100 * (1 - _hourly(f"{key}-spot") / _hourly(key))
        for region, key in (("us", "aws-p5en"), ("eu", "aws-p5en-eu"))
    }
    readings = {region: 60 <= off <= 90 for region, off in found.items()} | {
        "the most that is advertised": 60 <= 90 <= 90
    }
    return Decision(readings, found)


def spot_savings() -> Decision:
    factor = {off: 1 / (1 - off / 100) for off in (50, 60, 80, 90)}
    return Decision(
        {f"{off} % off": 1.99 <= f <= 5.01 for off, f in factor.items()},
        {"sixty": factor[60], "ninety": factor[90]},
    )


def checkpoint_interval() -> Decision:
    """sqrt(2 d M) with a save of d = 60 s and interruptions M apart (Young 1974)."""
    minutes = {hours: math.sqrt(2 * 60 * hours * 3600) / 60 for hours in (1, 4, 24)}
    return Decision(
        {f"every {h} h": 10 <= m <= 30 for h, m in minutes.items()},
        {"one": minutes[1], "four": minutes[4], "day": minutes[24]},
    )


def systolic_peak() -> Decision:
    """The first TPU: 256 x 256 multipliers at 700 MHz, two operations each (Jouppi et
    al. 2017 print 92 TOP/s).
    """
    peak = 256 * 256 * 2 * 0.7e9 / 1e12
    return Decision({"the array explains the peak": round(peak) == 92}, {"peak": peak, "cells": 256 * 256})
