"""0 points: puts an array of its own in the place of the judge's."""

def total(device, x, out):
    device.empty(1, "float32")
    device.buffers = {"out": {"shape": [1], "dtype": "float32"}}
