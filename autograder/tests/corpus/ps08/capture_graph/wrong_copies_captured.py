"""0 points: captures the copy in as well: every round begins again."""

def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.capture()
    device.copy(a, x)
    device.launch("double", b, a)
    device.launch("shift", c, b)
    device.launch("square", a, c)
    graph = device.end_capture()
    for _ in range(rounds):
        device.replay(graph)
    device.copy(y, a)
    device.synchronize()
    return device.read(y)
