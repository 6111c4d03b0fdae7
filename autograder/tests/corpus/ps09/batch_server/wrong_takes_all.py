"""0 points: takes everybody who waits, however many."""

def batch_server(arrivals, most, patience, fixed, each):
    free, first, done = 0.0, 0, []
    while first < len(arrivals):
        start = arrivals[first] + patience
        if first + most <= len(arrivals):
            start = min(start, arrivals[first + most - 1])
        start = max(start, free)
        batch = sum(t <= start for t in arrivals[first:])
        free = start + fixed + each * batch
        done += [free] * batch
        first += batch
    return done
