"""From what a student writes to a launch on the engine: numba's kernels, CUDA C++, and their arguments."""

import os

if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
    raise ImportError(
        "NUMBA_ENABLE_CUDASIM is set, and numba's simulator and warplab cannot both run kernels: "
        "`unset NUMBA_ENABLE_CUDASIM`, and warplab's engine runs them where there is no CUDA GPU"
    )
