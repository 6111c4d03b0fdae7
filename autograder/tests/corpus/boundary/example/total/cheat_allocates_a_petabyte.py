"""0 points: allocates more than there is."""

def total(device, x, out):
    device.buffers["#0"] = {"shape": [1 << 50], "dtype": "float32"}
    device.steps.append(["fill", "#0", 0])
