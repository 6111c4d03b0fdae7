"""15 points: a text of twenty million characters where two numbers belong."""

def launch_plan(width, height, block):
    return "1" * 20_000_000, 0
