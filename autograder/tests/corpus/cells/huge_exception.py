"""15 points: an exception of ten million characters with markup in it."""

def launch_plan(width, height, block):
    raise ValueError("<script>alert(1)</script>" + "x" * 10_000_000)
