"""``pytest -p warplab.pytest_plugin``: a project's own tests of its kernels run on the engine without a GPU.

It is imported before every ``conftest.py``, so that numba-cuda, numba-cuda-mlir and Triton find their device
in place. Where there is a GPU the tests run there, as they would without it.
"""

import warplab


def pytest_report_header() -> str:
    return f"warplab {warplab.__version__}: kernels run on {warplab.device()}"
