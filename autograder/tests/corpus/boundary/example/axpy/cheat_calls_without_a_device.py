"""0 points: messages for a device, in a task that has none."""

import gc

from autograder.sandbox.messages import Call, Channel
from numba import cuda

def plan(n):
    return (n + 127) // 128, 128


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


channel = next(thing for thing in gc.get_objects() if type(thing) is Channel)

while True:
    channel.send(Call({"op": "clock"}))
