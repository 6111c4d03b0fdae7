"""0 points: the rounds are not chained: always from the same array."""

def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.copy(a, x)
    device.capture()
    device.launch("double", b, a)
    device.launch("shift", c, b)
    device.launch("square", b, c)
    graph = device.end_capture()
    for _ in range(rounds):
        device.replay(graph)
    device.copy(y, b)
    device.synchronize()
    return device.read(y)
