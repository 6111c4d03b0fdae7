"""0 points: one rank waits at a barrier that the others have passed by."""

def ring(comm, x):
    if comm.rank == 0:
        comm.barrier()
    return x
