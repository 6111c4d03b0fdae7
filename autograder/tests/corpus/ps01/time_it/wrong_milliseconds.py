"""0 points: seconds were asked for."""

import statistics


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return 1000 * statistics.median(samples)
