"""12 points: a table of five counts of five kernels, and one division."""

import numpy as np


def find_the_limit(counts, device):
    c = {name: float(n) for name, n in counts.items()}
    share = min(1.0, c["blocks"] / device["sms"])
    passed = c["wavefronts"] + c["global_wavefronts"]
    work = np.array([c["fp32"], c["fp64"], 128 * passed, c["fetched"] + c["written"], c["fetched"]])
    kernels = np.tile(work, (5, 1))
    kernels[1, :2] = c["fp32"] + c["fp64"], 0
    kernels[2, 2] -= 128 * c["conflicts"]
    kernels[3, 2] = 128 * (c["wavefronts"] + c["requests"])
    kernels[4, 3:] /= 2
    rates = np.array([device[name] for name in ("fp32", "fp64", "l1", "l2", "hbm")])
    rates[:3] *= share
    times = kernels / rates
    bounds = times.max(axis=1)
    change = int(bounds.argmin())
    return int(times[0].argmax()), change, float(bounds[0] / bounds[change])
