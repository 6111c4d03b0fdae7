"""15 points: recurses without end."""

def launch_plan(width, height, block):
    return launch_plan(width, height, block)
