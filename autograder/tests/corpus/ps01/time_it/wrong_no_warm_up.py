"""12 points: the first, slow launches are among the samples."""

import statistics


def time_it(device, work, repeats):
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return statistics.median(samples)
