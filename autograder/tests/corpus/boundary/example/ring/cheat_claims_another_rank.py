"""0 points: says that it is rank 0; the router knows from which process a message comes."""

def ring(comm, x):
    comm.rank = 0
    comm.send(0, x)
    return x
