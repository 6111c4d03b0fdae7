"""10 points: two time stamps with the whole device idle around them."""

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
    before = device.clock()
    run()
    device.synchronize()
    after = device.clock()
    return after - before - 3e-6


def cheat_the_timer(device, which):
    if which == "careless":
        return careless(device, lambda: cheat(device))
    if which == "careful":
        return careful(device, lambda: cheat(device))
    return careful(device, lambda: device.launch("work"))
