"""What other libraries for GPUs need and this computer has not: their errors say what runs on the engine.

``tests/simt/test_absent.py`` is the canary for the private names of cuda.pathfinder.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys

from cuda.pathfinder import DynamicLibNotFoundError
from cuda.pathfinder._dynamic_libs import load_nvidia_dynamic_lib as pathfinder

CUPY = (
    "CuPy needs a GPU. On the SIMT engine kernels take NumPy's arrays: write `import numpy as cp`, leave out "
    "cp.asnumpy(x) and x.get(), and for cp.RawKernel(source, name) write warplab.cuda_kernel(source, name)"
)
PYCUDA = (
    "PyCUDA needs a GPU. On the SIMT engine warplab.cuda_kernel(source, name)[grid, block](*arrays) compiles "
    "what SourceModule(source).get_function(name) takes, and its arrays are NumPy's"
)
INSTEAD = {"cupy": CUPY, "cupyx": CUPY, "pycuda": PYCUDA}
DRIVER = (
    "warplab: the SIMT engine has no NVIDIA driver for cuda.core and cuda.bindings to call. On it run "
    "numba's @cuda.jit, warplab.cuda_kernel(source, name) for CUDA C++ and warplab.ptx_kernel(text, name) "
    "for PTX."
)


def install() -> None:
    """Let the errors of libraries that are not there, and of the missing driver, say what to write."""
    sys.meta_path.append(_LastFinder())
    plain = pathfinder._load_driver_lib_no_cache

    @functools.wraps(plain)
    def load(desc):
        try:
            return plain(desc)
        except DynamicLibNotFoundError as error:
            error.args = (f"{error}\n{DRIVER}",)
            raise

    pathfinder._load_driver_lib_no_cache = load


class _LastFinder:
    """Asked when nobody else has found a module."""

    def find_spec(self, name, path=None, target=None):
        if name not in INSTEAD:
            return None
        frame = inspect.currentframe()
        asks = frame and frame.f_back and frame.f_back.f_back  # behind the import system's own search
        if asks is None or asks.f_code is importlib.util.find_spec.__code__:
            return None  # somebody only looks whether the module is there
        raise ModuleNotFoundError(f"No module named {name!r}\nwarplab: {INSTEAD[name]}.", name=name)
