"""14 points: multiplies the price by what is lost."""

import math


def spot_interval(save, between, restart, price):
    interval = math.sqrt(2 * save * between)
    lost = min(1.0, save / interval + interval / (2 * between) + restart / between)
    return interval, lost, price * (1 + lost)
