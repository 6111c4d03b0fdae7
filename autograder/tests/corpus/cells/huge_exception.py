"""15 points: an exception of three million characters with markup in it."""

def launch_plan(width, height, block):
    raise ValueError("<script>alert(1)</script>" + "x" * 3_000_000)
