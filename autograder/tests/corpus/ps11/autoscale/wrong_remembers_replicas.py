"""10 points: remembers how many replicas there were, so they never become fewer while a window lasts."""

import math


def autoscale(loads, target, least, most, window):
    replicas, result = least, []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else math.ceil(replicas * ratio)
        now = min(max(now, least), most)
        replicas = max([now, *result[1 - window :]]) if window > 1 else now
        result.append(replicas)
    return result
