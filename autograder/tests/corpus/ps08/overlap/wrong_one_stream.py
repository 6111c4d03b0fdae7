"""8 points: everything in one stream: nothing overlaps."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    streams = [device.stream() for _ in range(1)]
    for k in range(pieces):
        stream, part = streams[0], slice(k * size, (k + 1) * size)
        a, b = device.empty(size), device.empty(size)
        device.copy(a, x[part], stream)
        device.launch("square", b, a, stream=stream)
        device.copy(y[part], b, stream)
    device.synchronize()
    return device.read(y)
