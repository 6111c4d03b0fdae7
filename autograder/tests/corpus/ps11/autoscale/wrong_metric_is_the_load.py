"""0 points: takes the whole load for the load of a replica."""

import math


def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = max(wanted[-1], min(replicas, max(wanted[-window:])))
        result.append(replicas)
    return result
