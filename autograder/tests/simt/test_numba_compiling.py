"""numba's compiler makes the same PTX with the changes of `numba_hook`, and is otherwise left alone."""

import gc
import json
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

from warplab.hardware.target import Target
from warplab.simt.frontends import numba_hook

KERNELS = """
import importlib
import json
import math
import re
import sys

from numba import cuda, float32
from numba.cuda import debuginfo
from numba.cuda import float64, int32, int64


def tiled(a, b, c):
    tile = cuda.shared.array((8, 8), float32)
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 8):
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[row, start] if row < a.shape[0] else 0
        cuda.syncthreads()
        for k in range(8):
            acc += tile[cuda.threadIdx.y, k] * b[k, col]
        cuda.syncthreads()
    c[row, col] = acc


def mixed(x, n, out):
    i = cuda.grid(1)
    z, count = complex(x[i], n), 0
    while abs(z) < 4 and count < min(n, 8) and not (count == 7 and n > 3):
        z = z * z + 0.5
        count += 1
    point = (count // 3, -x[i] ** 2, count % 5)
    out[i] = max(point[0], point[1]) + (point[2] & 1) + math.exp(x[i] / 3) + (count << 2)


def counted(x, out):
    i = cuda.grid(1)
    for k in range(i, x.size, cuda.gridsize(1)):
        if x[k] > 0 or x[k] == -7:
            cuda.atomic.add(out, x[k] % 16, 1)


def compiled():
    f, g = float32[:, ::1], float64[::1]
    for kernel, types in (
        (tiled, (f, f, f)), (mixed, (g, int32, g)), (mixed, (float32[::1], int64, g)),
        (counted, (int32[::1], int32[::1])),
    ):
        for options in ({"lineinfo": True}, {}, {"fastmath": True}):
            ptx, _ = cuda.compile_ptx(kernel, types, cc=(9, 0), **options)
            # numba links what a kernel calls in the order of a set, and so declares these
            lines = [line for line in ptx.splitlines() if "_ZN08NumbaEnv" not in line]
            # with ours the names of shared arrays say more
            yield [re.sub(r"_cudapy_smem[\\w$]*", "name", line) for line in lines]


for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps([hasattr(debuginfo.CUDADIBuilder._var_type, '__wrapped__'), list(compiled())]))
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """[whether numba's own functions are in place, PTX], without and with ours."""
    script = tmp_path_factory.mktemp("compared") / "kernels.py"
    script.write_text(KERNELS)
    started = [
        subprocess.Popen([sys.executable, script, *more], stdout=subprocess.PIPE, text=True)
        for more in ([], ["warplab"])
    ]
    return [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]


@pytest.mark.slow
def test_every_kernel_has_the_ptx_that_numba_alone_makes(compared):
    (replaced, plain), (by_ours, ours) = compared
    assert (replaced, by_ours) == (False, True)
    assert len(plain) == 12 and all("\tret;" in ptx for ptx in plain)
    assert ours == plain


HOST_FIRST = """
import math
import random
import warplab
import numba
import numpy as np
from numba import cuda, njit, prange
from numba.extending import register_jitable
from warplab.simt.frontends.numba_words import does_not_compile


@njit(parallel=True)
def add(a, out):
    for i in prange(a.shape[0]):
        for j in prange(a.shape[1]):
            out[i, j] = a[i, j] + 1 if a[i, j] > 2 else -a[i, j]


@register_jitable
def own(x):
    return x + 3


def told(kernel):
    try:
        cuda.jit(kernel)[1, 1](out)
    except Exception as error:
        return does_not_compile(error, kernel)


def rand(x): x[0] = np.random.rand()
def gauss(x): x[0] = random.gauss(0, 1)
def median(x): x[0] = np.median(x)
def fine(x): x[0] = own(math.sqrt(x[0]))

a = np.arange(12.0).reshape(3, 4)
b = np.zeros_like(a)
add(a, b)
assert (b == np.where(a > 2, a + 1, -a)).all() and add.parallel_diagnostics is not None
out = np.full(3, 4.0)
print(told(rand), told(gauss), told(median), told(fine), out[0], sep="\\n")
"""


@pytest.mark.slow
def test_what_njit_compiles_is_as_without_the_course_and_changes_no_kernel_after_it():
    """Flags for the host hold a list: a cache under a key of all flags refused nested parallel loops."""
    done = subprocess.run([sys.executable, "-c", HOST_FIRST], capture_output=True, text=True, timeout=120)
    rand, gauss, median, *fine = done.stdout.splitlines() or pytest.fail(done.stderr[-2000:])
    assert "a kernel has no `numpy.random.rand`: numba.cuda.random has generators" in rand, done.stderr
    assert "a kernel has no `random.gauss`: numba.cuda.random has generators" in gauss
    assert "a kernel cannot call `median` with an array of 1 dimension" in median
    assert fine == ["None", "5.0"]


@cuda.jit
def right(out):
    out[cuda.grid(1)] = 1


@cuda.jit
def wrong(out):
    out[cuda.grid(1)] = nobody_knows_it  # noqa: F821


def test_garbage_is_collected_again_after_a_compilation_and_after_one_that_fails():
    assert gc.isenabled()
    right[1, 4](np.zeros(4, np.int32))
    assert gc.isenabled()
    with pytest.raises(Exception, match="nobody_knows_it"):
        wrong[1, 4](np.zeros(4, np.int32))
    assert gc.isenabled()
    gc.disable()
    try:
        right[1, 4](np.zeros(4, np.float64))
        assert not gc.isenabled()  # as who turned it off left it
    finally:
        gc.enable()


@pytest.mark.slow
def test_no_full_collection_runs_while_a_kernel_is_compiled():
    generations = []
    gc.callbacks.append(lambda phase, info: generations.append(info["generation"]))
    try:
        right.compile((types.Array(types.int16, 1, "C"),))
    finally:
        gc.callbacks.pop()
    assert 2 not in generations


@pytest.mark.parametrize("arch, target", [("sm_89", "sm_89"), ("sm_90", "sm_90a")])
def test_from_hopper_on_numba_gets_the_instructions_of_that_architecture_alone(arch, target):
    @cuda.jit
    def kernel(x):
        x[0] = 1

    compiled = numba_hook.compiled_for(kernel, (np.zeros(1),))
    assert f".target {target}" in numba_hook.ptx_of(compiled, Target.of(arch))[0]
