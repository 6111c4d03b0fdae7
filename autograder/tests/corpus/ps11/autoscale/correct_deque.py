"""20 points: remembers in a list of fixed length."""

import math


def autoscale(loads, target, least, most, window):
    remembered, replicas, out = [], least, []
    for load in loads:
        metric = load / replicas
        if 0.9 - 1e-12 <= metric / target <= 1.1 + 1e-12:
            wanted = replicas
        else:
            wanted = math.ceil(replicas * metric / target)
        wanted = max(least, min(most, wanted))
        remembered = ([wanted] + remembered)[:window]
        if wanted >= replicas:
            replicas = wanted
        else:
            replicas = min(replicas, max(remembered))
        out.append(replicas)
    return out
