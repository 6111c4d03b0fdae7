"""The languages of kernels (numba, CUDA C++, Triton, PTX): compiling them, passing arguments, launching."""

import os

if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
    raise ImportError(
        "NUMBA_ENABLE_CUDASIM is set, and numba's simulator and warplab cannot both run kernels: "
        "`unset NUMBA_ENABLE_CUDASIM`, and warplab's engine runs them where there is no CUDA GPU"
    )
