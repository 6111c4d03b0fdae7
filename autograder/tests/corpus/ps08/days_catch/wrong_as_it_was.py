"""0 points: the program as it was found."""


def days_catch(device, boats):
    x, y = device.host("x"), device.host("y")
    size = len(y)
    fetch = device.stream()
    total, catch = device.empty(size), device.empty(size)
    device.copy(total, x[:size])
    for boat in range(1, boats):
        device.copy(catch, x[boat * size : (boat + 1) * size], fetch)
        device.launch("add", total, total, catch)
    device.copy(y, total, fetch)
    return device.read(y)
