"""20 points: counts threads / 32 without rounding up."""

import math


def up(value, unit):
    return -(-value // unit) * unit


def latency_hiding(sm, registers, shared, threads):
    warps = threads // 32
    quarter = sm["registers"] // sm["schedulers"]
    fits = [sm["warps"] // warps, sm["blocks"]]
    fits.append(quarter // up(32 * registers, sm["register_unit"]) * sm["schedulers"] // warps)
    per_block = up(shared + sm["reserved"], sm["shared_unit"])
    if per_block:
        fits.append(sm["shared"] // per_block)
    blocks = min(fits)
    loads = math.ceil(sm["latency"] * sm["bytes_per_tick"] / (blocks * warps * 128))
    return blocks, blocks * warps / sm["warps"], loads
