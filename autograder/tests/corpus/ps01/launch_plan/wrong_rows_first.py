"""5 points: the grid is (y, x); only the number of idle threads is right."""


def launch_plan(width, height, block):
    x, y = -(-width // block[0]), -(-height // block[1])
    return (y, x), x * y * block[0] * block[1] - width * height
