"""11 points: solves the two equations of the straight line by hand."""

import math

import numpy as np


def amdahl_fit(workers, seconds):
    x, t = 1 / np.array(workers, float), np.median(seconds, axis=1)
    b = ((x - x.mean()) * (t - t.mean())).sum() / ((x - x.mean()) ** 2).sum()
    a = t.mean() - b * x.mean()
    share = float(np.clip(a / (a + b), 0, 1))
    return share, 1 / share if share > 0 else math.inf
