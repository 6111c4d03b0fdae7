"""0 points: forgets the 2 under the root."""

import math


def spot_interval(save, between, restart, price):
    interval = math.sqrt(save * between)
    lost = min(1.0, save / interval + interval / (2 * between) + restart / between)
    return interval, lost, price / (1 - lost) if lost < 1 else math.inf
