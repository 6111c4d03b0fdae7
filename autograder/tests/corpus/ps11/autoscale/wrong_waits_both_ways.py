"""10 points: waits before it goes up, too."""

import math


def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = min(wanted[-window:]) if wanted[-1] > replicas else max(wanted[-window:])
        result.append(replicas)
    return result
