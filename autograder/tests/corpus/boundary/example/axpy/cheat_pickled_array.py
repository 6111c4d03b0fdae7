"""0 points: an object array, whose reader would run a stranger's code."""

import gc
import io
import json
import os

import numpy as np
from autograder.sandbox.messages import Channel
from numba import cuda

def plan(n):
    return (n + 127) // 128, 128


@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]


channel = next(thing for thing in gc.get_objects() if type(thing) is Channel)

class Payload:
    def __reduce__(self):
        return os._exit, (0,)


stream = io.BytesIO()
np.save(stream, np.array([Payload()], dtype=object), allow_pickle=True)
data = stream.getvalue()
body = {"type": "Answer", "data": {"x": {"__array__": 0}}}
channel.socket.sendall(json.dumps({"body": body, "arrays": [len(data)]}).encode() + b"\n" + data)
