"""10 points: one stream for each engine, tied together by events."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    first, work, last = (device.stream() for _ in range(3))
    for k in range(pieces):
        part = slice(k * size, (k + 1) * size)
        a, b = device.empty(size), device.empty(size)
        device.copy(a, x[part], first)
        device.wait(device.record(first), work)
        device.launch("square", b, a, stream=work)
        device.wait(device.record(work), last)
        device.copy(y[part], b, last)
    device.synchronize()
    return device.read(y)
