"""0 points: a block too many where the blocks fit exactly."""


def launch_plan(width, height, block):
    x, y = width // block[0] + 1, height // block[1] + 1
    return (x, y), x * y * block[0] * block[1] - width * height
