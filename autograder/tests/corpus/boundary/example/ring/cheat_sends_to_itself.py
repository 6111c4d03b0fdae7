"""0 points: a message to itself, which would be counted by nobody."""

def ring(comm, x):
    comm.send(comm.rank, x)
    return comm.recv(comm.rank)
