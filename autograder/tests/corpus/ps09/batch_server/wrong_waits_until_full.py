"""4 points: waits until the batch is full, whatever it costs."""

def batch_server(arrivals, most, patience, fixed, each):
    free, first, done = 0.0, 0, []
    while first < len(arrivals):
        start = arrivals[min(first + most, len(arrivals)) - 1]
        start = max(start, free)
        batch = sum(t <= start for t in arrivals[first : first + most])
        free = start + fixed + each * batch
        done += [free] * batch
        first += batch
    return done
