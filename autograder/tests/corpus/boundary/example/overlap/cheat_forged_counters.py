"""6 points: right but slow, and its answer claims another time."""

from warplab.crossing import remote_device

honest = remote_device.answer
remote_device.answer = lambda *arguments: honest(*arguments) | {"counters": {"device.seconds": 0.0}}


def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    a, b = device.empty(len(x)), device.empty(len(x))
    device.copy(a, x)
    device.launch("square", b, a)
    device.copy(y, b)
    device.synchronize()
    return device.read(y)
