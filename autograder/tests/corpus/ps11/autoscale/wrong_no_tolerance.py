"""16 points: changes at every flutter."""

import math


def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = math.ceil(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = max(wanted[-1], min(replicas, max(wanted[-window:])))
        result.append(replicas)
    return result
