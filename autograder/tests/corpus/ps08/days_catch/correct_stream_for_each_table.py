"""8 points: a stream for each of three tables, and one chain of events through the additions."""


def days_catch(device, boats):
    x, y = device.host("x"), device.host("y")
    size = len(y)
    total = device.empty(size)
    desks = [(device.stream(), device.empty(size)) for _ in range(3)]
    device.copy(total, x[:size])
    last = device.record()
    for boat in range(1, boats):
        stream, table = desks[boat % 3]
        device.copy(table, x[boat * size : (boat + 1) * size], stream)
        device.wait(last, stream)
        device.launch("add", total, total, table, stream=stream)
        last = device.record(stream)
    device.wait(last, 0)
    device.copy(y, total)
    device.synchronize()
    return device.read(y)
