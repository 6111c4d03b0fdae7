"""21 points: the four limits in a list; what is spare from the warps that a quarter has to hold."""

import math


def up(value, unit):
    return -(-value // unit) * unit


def latency_hiding(sm, registers, shared, threads):
    warps = -(-threads // 32)
    quarter = sm["registers"] // sm["schedulers"]
    fits = [sm["warps"] // warps, sm["blocks"]]
    fits.append(quarter // up(32 * registers, sm["register_unit"]) * sm["schedulers"] // warps)
    per_block = up(shared + sm["reserved"], sm["shared_unit"])
    if per_block:
        fits.append(sm["shared"] // per_block)
    blocks = min(fits)
    loads = math.ceil(sm["latency"] * sm["bytes_per_cycle"] / (blocks * warps * 128))
    each = -(-blocks * warps // sm["schedulers"])
    unit = sm["register_unit"]
    most = min(quarter // each // unit * unit // 32, 255)
    return blocks, blocks * warps / sm["warps"], loads, most - registers
