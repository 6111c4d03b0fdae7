"""2 points: notes every round down, so the host still gives three orders a round."""


def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.copy(a, x)
    device.capture()
    for _ in range(rounds):
        device.launch("double", b, a)
        device.launch("shift", c, b)
        device.launch("square", a, c)
    device.replay(device.end_capture())
    device.copy(y, a)
    device.synchronize()
    return device.read(y)
