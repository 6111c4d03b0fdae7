"""10 points: counts idle threads only along the edges, and leaves out the corner."""


def launch_plan(width, height, block):
    x, y = -(-width // block[0]), -(-height // block[1])
    return (x, y), (x * block[0] - width) * height + (y * block[1] - height) * width
