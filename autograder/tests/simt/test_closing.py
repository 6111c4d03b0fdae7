"""``cuda.close()`` ends, and the engine can be used again after it, as numba's own tests do on a GPU."""

import subprocess
import sys
import threading

import pytest

import warplab
from warplab.simt.frontends import numba_hook

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the engine stands in only where there is no CUDA"
)

PROGRAM = """
import numpy as np
import warplab
from numba import cuda

@cuda.jit
def fills(x):
    x[cuda.grid(1)] = 3

for _ in range(2):
    x = cuda.to_device(np.zeros(32, np.float32))
    fills[1, 32](x)
    assert (x.copy_to_host() == 3).all()
    with cuda.gpus[0]:
        fills[1, 32](np.zeros(32, np.float32))
    cuda.close()
    assert cuda.cudadrv.driver.driver.pop_active_context() is None
"""


def test_close_ends_and_kernels_run_again_after_it():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=240)


def test_each_thread_pops_as_many_contexts_as_it_pushed():
    driver = object.__new__(numba_hook.EngineDriver)
    numba_hook.EngineDriver.__init__(driver, warplab.device().target)
    driver.cuCtxPushCurrent(None)
    driver.cuCtxPushCurrent(None)
    seen = []
    other = threading.Thread(target=lambda: seen.append(int(driver.cuCtxGetCurrent())))
    other.start()
    other.join()
    assert seen == [0]
    assert [int(driver.cuCtxPopCurrent()) for _ in range(3)] == [1, 1, 0]
