"""0 points: brings x to the host by way of the device and squares it there; the device has not worked enough."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    a = device.empty(len(x))
    device.copy(a, x)
    device.copy(y, a)
    device.synchronize()
    return device.read(y) ** 2
