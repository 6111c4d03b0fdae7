"""The puzzles that open problem set 8: the stack."""

import re

import numpy as np
from numba import cuda

from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work
from warplab.puzzles.blank import Puzzle, asks


@asks("ps08/kernels")
def kernels():
    import torch

    x, bias = torch.zeros(2, 4, requires_grad=True), torch.zeros(4)
    z = x + bias
    left, seen = [(z / 2 * (1 + torch.tanh(0.8 * (z + 0.044715 * z**3)))).grad_fn], set()
    while left:  # autograd's graph has a node for each operation, and one more for x itself
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [before for before, _ in node.next_functions]
    n = len(seen) - 1
    return Puzzle(
        n,
        f"PyTorch carried out {n} operations, and each reads an array and writes another: {2 * n} trips "
        "to memory at least, where one kernel makes 2. The arithmetic is nothing; the trips are what you "
        "save in task 1.",
        {
            1: "One line of Python each, but every operator in it is a kernel of its own.",
            2: "Two lines of Python, but every operator in them is a kernel of its own.",
            n - 1: "Nearly. Did you count the sum with the bias, and the power?",
        },
        "Count every `+`, `*`, `/`, `**` and the `tanh`: each is a kernel.",
    )


@asks("ps08/bits")
def bits():
    @cuda.jit
    def half(x, out):
        out[0] = 0.1 * x[0]

    text = half.compile("void(float32[::1], float32[::1])").library.get_asm_str()
    written, bits = re.findall(r"(mul[.a-z]*\.f(\d+))", text)[0]
    return Puzzle(
        int(bits),
        f"The compiler wrote `{written}`, with a conversion before "
        "and one behind: in Python 0.1 is a double, and the wider number wins. `float32(0.1) * x[0]` "
        "stays at 32.",
        {
            32: "In PyTorch and NumPy it would: there a plain number takes the array's type. numba goes "
            "by Python's own, and a Python float has 64 bits.",
            16: "Nobody has asked for half precision: x is float32.",
        },
        "How many bits has a Python float? The wider of the two wins.",
    )


def ticks(streams, pieces=6, numbers=1000):
    """Stages, all equally long, that pass until the pieces are copied in, worked on and copied out."""
    stage = numbers * 8 / DeviceTiming.bandwidth
    free = DeviceTiming(launch_overhead=0, sync_overhead=0, clock_overhead=0, copy_latency=0)
    host = {name: np.zeros(pieces * numbers) for name in "xy"}
    device = VirtualDevice(free, host, {"square": Work(np.square, stage / numbers)})
    client = device.connect()
    x, y, lanes = client.host("x"), client.host("y"), [client.stream() for _ in range(streams)]
    for piece in range(pieces):
        first, last, lane = piece * numbers, (piece + 1) * numbers, lanes[piece % streams]
        fresh, done = client.empty(numbers), client.empty(numbers)
        client.copy(fresh, x[first:last], lane)
        client.launch("square", done, fresh, stream=lane)
        client.copy(y[first:last], done, lane)
    client.synchronize()
    return round(device.counters()["device.seconds"] / stage)


@asks("ps08/pieces")
def pieces():
    return Puzzle(
        ticks(3),
        f"The virtual device takes {ticks(3)} ticks with three streams and {ticks(1)} with one. The first "
        "piece passes three stages, then one piece comes out at every tick: the stages are paid once, "
        "not six times.",
        {
            ticks(
                1
            ): "That is one stream: each stage waits for the one before, and two engines always stand still.",
            6: "All three engines would have to be busy from the first tick on. What does the last one "
            "do then?",
            ticks(1) // 3 + 1: "The first piece has to pass all three stages.",
        },
        "Draw it: a row for each engine, and piece 0 in columns 0, 1 and 2.",
    )


@asks("ps08/orders")
def orders():
    works, rounds = 3, 100
    return Puzzle(
        works + rounds,
        f"{works} launches noted once, then {rounds} replays: {works + rounds} instead of "
        f"{works * rounds}. The GPU does the same work; what gets shorter is the host's.",
        {
            works * rounds: "That is without a graph: every launch is an order of its own.",
            rounds: "And noting the works, which costs as much as launching them?",
            1 + rounds: "The recording is not one order: each work is noted for itself.",
            works * rounds + 1: "That notes every round. One round is enough, replayed.",
        },
        "Note each work once, then replay.",
    )
