"""5 points: the careful timer is the careless one."""


def cheat(device):
    device.launch("work", stream=device.stream())


def careful(device, run):
    return careless(device, run)


def cheat_the_timer(device, which):
    if which == "careless":
        return careless(device, lambda: cheat(device))
    if which == "careful":
        return careful(device, lambda: cheat(device))
    return careful(device, lambda: device.launch("work"))


def careless(device, run):
    start = device.record()
    run()
    end = device.record()
    device.synchronize()
    return device.elapsed(start, end)
