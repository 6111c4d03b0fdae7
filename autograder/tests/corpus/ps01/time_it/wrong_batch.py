"""11 points: times all launches at once, which is a mean."""


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    start = device.clock()
    for _ in range(repeats):
        device.launch(work)
    device.synchronize()
    return (device.clock() - start) / repeats
