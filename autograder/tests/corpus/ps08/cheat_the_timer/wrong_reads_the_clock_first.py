"""3 points: waits, but only after the second reading of the clock."""


def careless(device, run):
    start = device.record()
    run()
    end = device.record()
    device.synchronize()
    return device.elapsed(start, end)


def cheat(device):
    device.launch("work", stream=device.stream())


def careful(device, run):
    device.synchronize()
    start = device.clock()
    run()
    end = device.clock()
    device.synchronize()
    return end - start


def cheat_the_timer(device, which):
    if which == "careless":
        return careless(device, lambda: cheat(device))
    if which == "careful":
        return careful(device, lambda: cheat(device))
    return careful(device, lambda: device.launch("work"))
