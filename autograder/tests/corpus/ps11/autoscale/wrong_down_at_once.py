"""10 points: goes down as fast as up."""

import math


def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = wanted[-1]
        result.append(replicas)
    return result
