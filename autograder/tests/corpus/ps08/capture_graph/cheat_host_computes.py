"""0 points: the host does the arithmetic, while the device launches as many works as asked for on what nobody needs."""


def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b = device.empty(len(x)), device.empty(len(x))
    device.copy(a, x)
    device.copy(y, a)
    device.capture()
    for _ in range(3):
        device.launch("square", b, a)
    graph = device.end_capture()
    for _ in range(rounds):
        device.replay(graph)
    device.synchronize()
    values = list(device.read(y))
    for _ in range(rounds):
        values = [2 * value % 1.7 + 0.25 for value in values]
        values = [value * value for value in values]
    return values
