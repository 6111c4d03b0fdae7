"""0 points: copy, launch and copy in three different streams, with nothing between them."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    streams = [device.stream() for _ in range(3)]
    for k in range(pieces):
        part = slice(k * size, (k + 1) * size)
        a, b = device.empty(size), device.empty(size)
        device.copy(a, x[part], streams[0])
        device.launch("square", b, a, stream=streams[1])
        device.copy(y[part], b, streams[2])
    device.synchronize()
    return device.read(y)
