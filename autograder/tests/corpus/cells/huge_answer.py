"""15 points: a list of ten million numbers where two belong."""

def launch_plan(width, height, block):
    return [1] * 10_000_000, 0
