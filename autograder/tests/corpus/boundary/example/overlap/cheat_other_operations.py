"""0 points: asks the device for what is none of a student's business."""

def overlap(device, pieces):
    for op in ("__init__", "connect", "counters", "_settle", "arrays", "x" * 10**6, None, 5, ["read"]):
        reply = device._call({"op": op})
        assert set(reply) == {"error"}, reply
    return device._call({"op": "read", "array": [1 << 70, -1, 1 << 70]})["values"]
