"""0 points: calls without end; after 100,000 the device answers no more."""

def overlap(device, pieces):
    while True:
        device.clock()
