"""0 points: reads x on the host, where it cannot be read."""

def overlap(device, pieces):
    return device.read(device.host("x")) ** 2
