"""0 points: reads an event before it has happened."""


def time_it(device, work, repeats):
    first = device.record()
    device.launch(work)
    last = device.record()
    return device.elapsed(first, last)
