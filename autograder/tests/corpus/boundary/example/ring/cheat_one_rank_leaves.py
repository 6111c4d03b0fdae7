"""0 points: rank 1 ends its own process."""

import os


def ring(comm, x):
    if comm.rank == 1:
        os._exit(0)
    return x + comm.recv(1)
