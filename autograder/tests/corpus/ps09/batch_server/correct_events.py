"""15 points: walks through time from one decision to the next."""

import math


def batch_server(arrivals, most, patience, fixed, each):
    waiting, done, now = list(arrivals), [], 0.0
    while waiting:
        due = waiting[0] + patience
        full = waiting[most - 1] if len(waiting) >= most else math.inf
        now = max(now, min(due, full))
        going = [t for t in waiting[:most] if t <= now]
        now += fixed + each * len(going)
        done.extend(now for _ in going)
        del waiting[: len(going)]
    return done
