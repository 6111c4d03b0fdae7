"""0 points: rounds to the nearest."""

def autoscale(loads, target, least, most, window):
    replicas, wanted, result = least, [], []
    for load in loads:
        ratio = load / replicas / target
        now = replicas if abs(ratio - 1) <= 0.1 else round(replicas * ratio)
        wanted.append(min(max(now, least), most))
        replicas = max(wanted[-1], min(replicas, max(wanted[-window:])))
        result.append(replicas)
    return result
