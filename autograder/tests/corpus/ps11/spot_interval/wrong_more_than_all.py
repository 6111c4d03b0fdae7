"""13 points: loses more than everything."""

import math


def spot_interval(save, between, restart, price):
    interval = math.sqrt(2 * save * between)
    lost = save / interval + interval / (2 * between) + restart / between
    return interval, lost, price / (1 - lost) if lost < 1 else math.inf
