"""20 points: at the best interval both parts are equal."""


def spot_interval(save, between, restart, price):
    interval = (2 * save * between) ** 0.5
    lost = interval / between + restart / between
    if lost >= 1:
        return interval, 1.0, float("inf")
    return interval, lost, price / (1 - lost)
