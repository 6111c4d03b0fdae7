"""0 points: a message to rank 99."""

def ring(comm, x):
    comm.send(99, x)
