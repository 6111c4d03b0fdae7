"""0 points: the work does not wait for the copy in the other stream, and squares what is not there yet."""

def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    a, b = device.empty(len(x)), device.empty(len(x))
    copies, work = device.stream(), device.stream()
    device.copy(a, x, copies)
    device.launch("square", b, a, stream=work)
    device.copy(y, b, work)
    device.synchronize()
    return device.read(y)
