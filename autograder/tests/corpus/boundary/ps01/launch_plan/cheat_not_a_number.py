"""0 points: NaN, infinity and the largest float where whole numbers belong."""

from warplab.crossing import function

function.read_results = lambda *_: {"grid": [float("nan"), float("inf")], "idle": 1.7e308}


def launch_plan(width, height, block):
    return None
