"""One small task for each way of crossing, with a right answer as source text."""

import math

import numpy as np

from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import DriverTask, KernelTask, RanksTask, Task, VjpTask, task
from warplab.tasks.rubric import Bound, Case, Item

UNIT = 2.0**-24  # unit roundoff of float32


@task("example/axpy", points=10)
class Axpy(KernelTask):
    """out = alpha * x + y, with the student's own launch plan."""

    entry, plan_entry = "axpy", "plan"
    arguments = ("alpha", "x", "y", "out")
    items = (Item("right", 6, title="any length"), Item("sectors", 4, "structure", title="coalesced"))

    def make_cases(self, rng):
        def case(item, n):
            x, y = (rng.random(n, dtype=np.float32) for _ in range(2))
            return Case(f"{item}, {n}", {"alpha": float(rng.random()), "x": x, "y": y}, item)

        return [case("right", 1), case("right", int(rng.integers(100, 900))), case("sectors", 1024)]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def plan_arguments(self, inputs):
        return {"n": inputs["x"].size}

    def reference(self, inputs):
        return {"out": inputs["alpha"] * inputs["x"].astype(np.float64) + inputs["y"]}

    def tolerance(self, inputs, expected):
        return {"out": sum_tolerance(2, expected["out"])}

    def bounds(self, inputs):
        """8 floats a sector; x and y are read once, out is written once."""
        fewest = 3 * inputs["x"].size / 8
        return {"sectors": Bound("global_memory.sectors", fewest, 2 * fewest, "sectors")}


AXPY = """
from numba import cuda

def plan(n):
    return (n + 127) // 128, 128

@cuda.jit
def axpy(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = alpha * x[i] + y[i]
"""


@task("example/total", points=10)
class Total(DriverTask):
    """The sum of an array of any length, in two passes: a partial sum a block, then one block."""

    entry = "total"
    arguments = ("device", "x", "out")
    items = (Item("right", 6, title="any length"), Item("launches", 4, "structure", title="two launches"))

    def make_cases(self, rng):
        def case(item, n):
            return Case(f"{item}, {n}", {"x": 2 * rng.random(n, dtype=np.float32) - 1}, item)

        return [case("right", 1), case("right", int(rng.integers(3_000, 9_000))), case("launches", 4096)]

    def result(self, inputs):
        return {"out": ((1,), "float32")}

    def reference(self, inputs):
        return {"out": inputs["x"].astype(np.float64).sum(keepdims=True)}

    def tolerance(self, inputs, expected):
        return {"out": sum_tolerance(inputs["x"].size, np.abs(inputs["x"]).astype(np.float64).sum())}

    def bounds(self, inputs):
        return {"launches": Bound("launches", 2, 4, "launches")}


TOTAL = """
import numpy as np
from numba import cuda, float32

@cuda.jit
def sums(x, out):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    acc = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        acc += x[i]
    part[t] = acc
    cuda.syncthreads()
    step = 128
    while step:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]

def total(device, x, out):
    blocks = min(64, (x.size + 255) // 256)
    partial = device.empty(blocks, np.float32)
    device.launch(sums, blocks, 256, x, partial)
    device.launch(sums, 1, 256, partial, out)
"""


@task("example/gelu", points=10)
class Gelu(VjpTask):
    """y = x * Phi(x), with its gradient; what is kept for the way back is counted."""

    entry = "gelu"
    arguments = differentiable = ("x",)
    items = (
        Item("right", 8, title="y and its gradient"),
        Item("saved", 2, "structure", title="only x is kept"),
    )

    def make_cases(self, rng):
        def case(item, *shape):
            x, grad_out = (rng.normal(0, 2, shape).astype(np.float32) for _ in range(2))
            return Case(f"{item}, {shape}", {"x": x, "grad_out": grad_out}, item)

        return [case("right", 1), case("right", 5, 7), case("saved", 64)]

    def forward(self, inputs):
        x = inputs["x"].astype(np.float64)
        return x * self.normal(x)

    @staticmethod
    def normal(x):
        """Phi(x), the integral of the normal density."""
        return np.vectorize(lambda value: 0.5 * math.erfc(-value / math.sqrt(2)))(x)

    def rounding(self, inputs):
        """Phi and its density are below 1 and 0.4, and are each made of at most 8 rounded operations of
        values up to 1 + |x| (erf is computed around 1, so its error is absolute); y and dy/dx multiply
        them by x, and by grad_out.
        """
        x = np.abs(inputs["x"]).astype(np.float64)
        limit = 16 * UNIT * (1 + x) ** 2
        return {"y": limit, "grad_x": limit * np.abs(inputs["grad_out"])}

    def bounds(self, inputs):
        """x alone takes 4 bytes a number; autograd's own chain of operations keeps several such arrays."""
        return {"saved": Bound("saved_bytes", 4 * inputs["x"].size, 12 * inputs["x"].size, "bytes kept")}


GELU = """
import math
import torch

class gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        phi = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return grad_out * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * phi)
"""


@task("example/overlap", points=10)
class Overlap(Task):
    """Square the host array x into the host array y in pieces, so that copies and work overlap."""

    entry, crossing = "overlap", "device"
    arguments = ("device", "pieces")
    returns = {"y": "numbers"}
    items = (
        Item("right", 6, title="y is complete when it is read"),
        Item("seconds", 4, "structure", title="copies and work overlap"),
    )

    def make_cases(self, rng):
        x = rng.random(int(rng.integers(1, 4)) * 80_000)
        return [Case(item, {"x": x, "pieces": 8}, item) for item in ("right", "seconds")]

    def device(self, inputs):
        """A copy of n float64 takes 8 n / 25e9 s, and so does the work; calls take almost nothing."""
        timing = DeviceTiming(copy_latency=0.0, launch_overhead=1e-9, sync_overhead=1e-9)
        host = {"x": inputs["x"], "y": np.zeros(inputs["x"].size)}
        return VirtualDevice(timing, host, {"square": Work(np.square, 8 / 25e9)}, unread=("x",))

    def reference(self, inputs):
        return {"y": inputs["x"] ** 2}

    def bounds(self, inputs):
        """In, work and out of all pieces one after the other take 3 T.

        Overlapped it is T and two pieces more: T (1 + 2 / 8).
        """
        whole = 8 * inputs["x"].size / 25e9
        return {"seconds": Bound("device.seconds", 1.3 * whole, 3 * whole, "s on the virtual clock")}


OVERLAP = """
def overlap(device, pieces):
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    streams = [device.stream() for _ in range(3)]
    for k in range(pieces):
        stream, part = streams[k % 3], slice(k * size, (k + 1) * size)
        a, b = device.empty(size), device.empty(size)
        device.copy(a, x[part], stream)
        device.launch("square", b, a, stream=stream)
        device.copy(y[part], b, stream)
    device.synchronize()
    return device.read(y)
"""


@task("example/ring", points=10)
class Ring(RanksTask):
    """Every rank ends with the sum of all arrays, and none sends more than 2 (n - 1) / n of its bytes."""

    entry = "ring"
    arguments = sharded = ("x",)
    rule = "this example is to write the sum from send and recv"
    returns = {"out": "float64"}
    items = (Item("right", 6, title="the sum"), Item("bytes", 4, "structure", title="a ring's bytes"))

    def make_cases(self, rng):
        def case(item, ranks, n):
            return Case(f"{item}, {ranks} ranks of {n}", {"x": [rng.random(n) for _ in range(ranks)]}, item)

        return [case("right", 2, 6), case("right", 3, 9), case("bytes", 4, 40)]

    def world(self, inputs):
        return len(inputs["x"])

    def reference_of(self, rank, inputs):
        return {"out": np.sum(inputs["x"], axis=0)}

    def tolerance_of(self, rank, inputs, expected):
        return {"out": sum_tolerance(self.world(inputs), np.abs(expected["out"]), np.float64)}

    def bounds(self, inputs):
        n, size = self.world(inputs), inputs["x"][0].nbytes
        exact = 2 * (n - 1) / n * size
        return {
            "bytes": Bound("ranks.bytes_of_one", exact, 1.5 * exact, "bytes sent by the busiest rank", exact)
        }


RING = """
import torch
import torch.distributed as dist

def ring(x):
    n, me = dist.get_world_size(), dist.get_rank()
    parts = x.clone().chunk(n)
    inbox = torch.empty_like(parts[0])
    for step in range(2 * (n - 1)):
        give, take = parts[(me - step) % n], parts[(me - step - 1) % n]
        sending = dist.isend(give, (me + 1) % n)
        dist.recv(inbox, (me - 1) % n)
        sending.wait()
        take.copy_(take + inbox if step < n - 1 else inbox)
    return torch.cat(parts)
"""

ANSWERS = {
    "example/axpy": AXPY,
    "example/total": TOTAL,
    "example/gelu": GELU,
    "example/overlap": OVERLAP,
    "example/ring": RING,
}
