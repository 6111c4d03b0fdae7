"""0 points: x goes in and comes back as it is, the host squares it, and the device squares for nobody."""


def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    desks = [(device.stream(), device.empty(size), device.empty(size)) for _ in range(3)]
    for k in range(pieces):
        (stream, a, b), part = desks[k % 3], slice(k * size, (k + 1) * size)
        device.copy(a, x[part], stream)
        device.launch("square", b, a, stream=stream)
        device.copy(y[part], a, stream)
    device.synchronize()
    return [value * value for value in device.read(y)]
