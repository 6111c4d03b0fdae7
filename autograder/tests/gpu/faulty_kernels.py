"""Kernels with one fault each, and one without: `python faulty_kernels.py NAME` launches one, on the engine
or on CUDA.

On the engine the name of what it refused is printed last; on CUDA compute-sanitizer looks on. Of memory that
nobody wrote the two see different halves (the engine shared and local memory, initcheck global memory), so no
kernel here has that fault.
"""

import sys

import numpy as np
from numba import cuda, float32

THREADS = 64


@cuda.jit
def right(x, out):
    tile = cuda.shared.array(THREADS, float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    cuda.syncthreads()
    out[i] = tile[THREADS - 1 - i]


@cuda.jit
def no_barrier(x, out):
    tile = cuda.shared.array(THREADS, float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    out[i] = tile[THREADS - 1 - i]


@cuda.jit
def one_too_far(x, out):
    i = cuda.threadIdx.x
    out[i + 1] = x[i]


#: name -> (kernel, compute-sanitizer's tool, the engine's error)
FAULTS = {
    "right": (right, None, None),
    "no_barrier": (no_barrier, "racecheck", "SharedRace"),
    "one_too_far": (one_too_far, "memcheck", "OutOfBounds"),
}


def launch(name: str) -> None:
    kernel = FAULTS[name][0]
    x = cuda.to_device(np.ones(THREADS, np.float32))
    kernel[1, THREADS](x, cuda.device_array(THREADS, np.float32))
    cuda.synchronize()


if __name__ == "__main__":
    import warplab  # noqa: F401

    try:
        launch(sys.argv[1])
    except warplab.LaunchError as error:
        print(type(error).__name__)
        sys.exit(9)
