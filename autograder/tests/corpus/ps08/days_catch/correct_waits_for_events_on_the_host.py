"""8 points: the host waits for the addition that still reads a table, one boat late, so that the next copy goes on."""


def days_catch(device, boats):
    x, y = device.host("x"), device.host("y")
    size = len(y)
    fetch = device.stream()
    total, one, two = (device.empty(size) for _ in range(3))
    device.copy(total, x[0:size])
    events = []
    for boat in range(1, boats):
        table = (one, two)[boat % 2]
        if len(events) >= 2:
            device.synchronize(event=events[-2])
        device.copy(table, x[boat * size : boat * size + size], fetch)
        arrived = device.record(fetch)
        device.wait(arrived, 0)
        device.launch("add", total, table, total)
        events.append(device.record())
    device.copy(y, total)
    device.synchronize(0)
    return device.read(y)
