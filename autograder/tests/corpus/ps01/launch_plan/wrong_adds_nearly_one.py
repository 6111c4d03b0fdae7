"""9 points: rounds up by adding 0.99, which is too little for blocks of more than a hundred threads."""


def launch_plan(width, height, block):
    threads_x, threads_y = block
    grid = int(width / threads_x + 0.99), int(height / threads_y + 0.99)
    columns, rows = width + -width % threads_x, height + -height % threads_y
    return grid, columns * rows - width * height
