"""15 points: time stamps in the queue need no idle device."""

import statistics


def time_it(device, work, repeats):
    for _ in range(10):
        device.launch(work)
    pairs = []
    for _ in range(repeats):
        first = device.record()
        device.launch(work)
        pairs.append((first, device.record()))
    device.synchronize()
    return statistics.median(device.elapsed(*pair) for pair in pairs)
