"""0 points: reads the clock as soon as launch() returns."""

import statistics


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        samples.append(device.clock() - start)
    return statistics.median(samples)
