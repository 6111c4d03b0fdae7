"""10 points: two rounds in a graph, and one left over without."""


def capture_graph(device, rounds):
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))

    def one_round():
        device.launch("double", b, a)
        device.launch("shift", c, b)
        device.launch("square", a, c)

    device.copy(a, x)
    device.capture()
    one_round()
    one_round()
    graph = device.end_capture()
    for _ in range(rounds // 2):
        device.replay(graph)
    if rounds % 2:
        one_round()
    device.copy(y, a)
    device.synchronize()
    return device.read(y)
