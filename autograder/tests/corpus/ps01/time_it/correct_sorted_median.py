"""15 points: its own median, and a wait before each sample."""


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        device.synchronize()
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    samples.sort()
    return samples[len(samples) // 2]
