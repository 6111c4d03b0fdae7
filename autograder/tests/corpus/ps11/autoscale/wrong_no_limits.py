"""16 points: forgets the least and the most."""

import math


def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        wanted.append(max(now, 1))
        replicas = max(wanted[-1], min(replicas, max(wanted[-window:])))
        result.append(replicas)
    return result
