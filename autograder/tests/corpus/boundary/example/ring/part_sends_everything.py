"""6 points: right, but every rank sends its whole array to all others."""

def ring(comm, x):
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    for rank in others:
        comm.send(rank, x)
    return x + sum(comm.recv(rank) for rank in others)
