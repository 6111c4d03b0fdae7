"""0 points: a work that reads one array is given seven, so that the judge's own call of it fails."""


def overlap(device, pieces):
    size = len(device.host("x"))
    arrays = [device.empty(size) for _ in range(8)]
    device.launch("square", *arrays)
    device.synchronize()
    return device.read(device.host("y"))
