"""12 points: the first sample waits for what was in the queue."""

import statistics


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return statistics.median(samples)
