"""0 points: everybody receives first; the router says who waits for whom."""

def ring(comm, x):
    got = comm.recv((comm.rank - 1) % comm.size)
    comm.send((comm.rank + 1) % comm.size, x)
    return x + got
