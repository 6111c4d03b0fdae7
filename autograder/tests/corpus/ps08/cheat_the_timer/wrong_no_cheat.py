"""7 points: the cheat launches where the timer looks."""

def careless(device, run):
    start = device.record()
    run()
    end = device.record()
    device.synchronize()
    return device.elapsed(start, end)


def cheat(device):
    device.launch("work", stream=0)


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
