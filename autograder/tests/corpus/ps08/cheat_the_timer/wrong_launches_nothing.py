"""2 points: a cheat that does no work at all, and a timer of nothing."""

def careless(device, run):
    start = device.record()
    run()
    end = device.record()
    device.synchronize()
    return device.elapsed(start, end)


def cheat(device):
    pass


def careful(device, run):
    device.synchronize()
    start = device.clock()
    run()
    device.synchronize()
    return device.clock() - start


def cheat_the_timer(device, which):
    if which == "careless":
        return careless(device, lambda: cheat(device))
    if which == "careful":
        return careful(device, lambda: cheat(device))
    return careful(device, lambda: device.launch("work"))
