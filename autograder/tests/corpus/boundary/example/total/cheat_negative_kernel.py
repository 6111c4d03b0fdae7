"""0 points: launches kernel number -1 with a grid of -1."""

def total(device, x, out):
    device.steps.append(["launch", -1, [-1], [True], 0, ["out"]])
