"""9 points: waits the patience out although the batch is full."""

def batch_server(arrivals, most, patience, fixed, each):
    free, first, done = 0.0, 0, []
    while first < len(arrivals):
        start = arrivals[first] + patience
        start = max(start, free)
        batch = sum(t <= start for t in arrivals[first : first + most])
        free = start + fixed + each * batch
        done += [free] * batch
        first += batch
    return done
