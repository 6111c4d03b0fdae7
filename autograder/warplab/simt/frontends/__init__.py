"""From what a student writes to a launch on the engine: numba's kernels, CUDA C++, and their arguments."""
