"""2 points: three orders a round: right, and the host is busy."""


def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.copy(a, x)
    for _ in range(rounds):
        device.launch("double", b, a)
        device.launch("shift", c, b)
        device.launch("square", a, c)
    device.copy(y, a)
    device.synchronize()
    return device.read(y)
