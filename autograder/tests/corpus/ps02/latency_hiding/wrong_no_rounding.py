"""19 points: registers and shared memory without their units."""

import math


def up(value, unit):
    return -(-value // unit) * unit


def latency_hiding(sm, registers, shared, threads):
    warps = -(-threads // 32)
    quarter = sm["registers"] // sm["schedulers"]
    fits = [sm["warps"] // warps, sm["blocks"]]
    fits.append(quarter // (32 * registers) * sm["schedulers"] // warps)
    per_block = shared + sm["reserved"]
    if per_block:
        fits.append(sm["shared"] // per_block)
    blocks = min(fits)
    loads = math.ceil(sm["latency"] * sm["bytes_per_tick"] / (blocks * warps * 128))
    return blocks, blocks * warps / sm["warps"], loads
