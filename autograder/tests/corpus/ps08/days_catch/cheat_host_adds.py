"""1 points: the parts go through the device as they are, the host adds them, and the device holds the last."""


def days_catch(device, boats):
    x, y = device.host("x"), device.host("y")
    size, sums = len(y), 0
    table = device.empty(size)
    for boat in range(boats):
        device.copy(table, x[boat * size : (boat + 1) * size])
        device.copy(y, table)
        device.synchronize()
        sums = sums + device.read(y)
    return sums
