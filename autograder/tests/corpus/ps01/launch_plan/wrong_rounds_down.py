"""4 points: the ragged edge gets no block."""


def launch_plan(width, height, block):
    x, y = width // block[0], height // block[1]
    return (x, y), x * y * block[0] * block[1] - width * height
