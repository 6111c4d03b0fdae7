"""0 points: only one half of the ring; where two GPUs are slower than one, it finds them faster."""

def scaling_model(gpus, compute, gradient_bytes, bandwidth, latency):
    seconds = [compute / n + (n - 1) / n * gradient_bytes / bandwidth + 2 * (n - 1) * latency for n in gpus]
    efficiency = [compute / (n * t) for n, t in zip(gpus, seconds, strict=True)]
    return seconds, efficiency, gpus[seconds.index(min(seconds))]
