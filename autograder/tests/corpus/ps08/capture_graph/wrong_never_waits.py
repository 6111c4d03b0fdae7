"""0 points: reads before anything has arrived."""

def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.copy(a, x)
    device.capture()
    device.launch("double", b, a)
    device.launch("shift", c, b)
    device.launch("square", a, c)
    graph = device.end_capture()
    for _ in range(rounds):
        device.replay(graph)
    device.copy(y, a)
    return device.read(y)
