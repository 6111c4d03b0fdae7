"""12 points: one launch is not enough to be warm."""

import statistics


def time_it(device, work, repeats):
    device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return statistics.median(samples)
