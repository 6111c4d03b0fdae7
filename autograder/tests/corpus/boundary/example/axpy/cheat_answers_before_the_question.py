"""0 points: sends executed cells and full answers ahead, with results instead of a kernel."""

import gc

import numpy as np
from autograder.sandbox.messages import Answer, Channel, Executed, encode
from numba import cuda

def plan(n):
    return (n + 127) // 128, 128


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 0.0


channel = next(thing for thing in gc.get_objects() if type(thing) is Channel)

said = [Executed(None)] + 9 * [Answer({"outputs": {"out": np.ones(1)}, "counters": {"score": 10.0}})]
channel.socket.sendall(b"".join(part for message in said for part in encode(message)))
