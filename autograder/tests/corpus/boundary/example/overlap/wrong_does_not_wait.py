"""0 points: reads y while the copies are under way: it holds what was there before."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    a, b = device.empty(len(x)), device.empty(len(x))
    device.copy(a, x)
    device.launch("square", b, a)
    device.copy(y, b)
    return device.read(y)
