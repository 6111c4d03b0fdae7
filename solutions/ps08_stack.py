# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Problem set 8: The stack
#
# A restaurant at the sea. The cook calls out orders, the kitchen works behind a door, boats bring fish and
# take away boxes. You keep the three out of each other's way.
#
# **About 5.5 hours** (estimated), after chapter 8. Of the 100 points 3 need a CUDA GPU. Write in the place of
# `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted. Unless a task says
# otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs the row. Tasks 6 and
# 7 are *cases*: somebody else's program fails. Find the cause with the course's tools, and mend it.

# %%
from warplab.check import grade, needs, predict, puzzle, when_written

needs("torch", "cuda")  # what the sets before could do without

import math
import re

import numpy as np
import torch
import warplab
from IPython.display import display
from numba import cuda, float32
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice, Work

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# `z = x + bias`, then `z / 2 * (1 + torch.tanh(c * (z + a * z**3)))`; a and c are plain numbers. How many
# kernels does PyTorch launch without `torch.compile`?

# %%
puzzle("ps08/kernels", ...)

# %% [markdown]
# `x` is a float32 array. How many bits has `0.1 * x[0]` in a numba kernel?

# %%
puzzle("ps08/bits", ...)

# %% [markdown]
# Six pieces pass three engines: copy in, work, copy out, a tick each. How many ticks with three streams?

# %%
puzzle("ps08/pieces", ...)

# %% [markdown]
# Three tiny works, in 100 rounds. Note each work once in a graph and replay it: how many orders does the host
# give?

# %%
puzzle("ps08/orders", ...)

# %% [markdown]
# ## 1. One order instead of three
#
# After a product a network adds a bias and applies GELU, here in its tanh form:
#
# $$\text{gelu}(z) = \frac z2 \left(1 + \tanh\left(c\,(z + 0.044715\,z^3)\right)\right), \qquad c = \sqrt{2/\pi},\quad z = x + \text{bias}.$$
#
# In one kernel a number is read once, stays in a register until it is finished, and is written once.
#
# A trap: `0.5` is a double, and makes doubles of everything it meets. Wrap constants: `float32(0.5)`.
# (`math.tanh` of a float32 is a float32.)


# %% solution="fused_bias_gelu"
@cuda.jit
def fused_bias_gelu(x, bias, out):
    """out[row, col] = gelu(x[row, col] + bias[col]) for one element. About 5 lines. Blocks have 32 x 8 threads.

    x, out  float32 (rows, cols)
    bias    float32 (cols,)
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    if row < x.shape[0] and col < x.shape[1]:
        z = x[row, col] + bias[col]
        inner = float32(math.sqrt(2 / math.pi)) * (z + float32(0.044715) * z * z * z)
        out[row, col] = float32(0.5) * z * (float32(1) + math.tanh(inner))
    # x is read once and out written once, four sectors a warp each; the bias costs four more, which caches answer. Usual slips: the
    # chapter's erf form, the bias chosen by the row, z kept in out on the way (five trips), bare constants. A bare 0.044715 makes the
    # whole line 64-bit and costs 1.7 times the instructions, and no digit of the result shows it; a bare 1 or 2 is a whole number and
    # does little harm.
    ### END SOLUTION


# %% grade="ps08/fused_bias_gelu"
grade("ps08/fused_bias_gelu", fused_bias_gelu)

# %% [markdown]
# On a CUDA GPU, full points up to three times a copy's time.

# %% grade="ps08/fused_bias_gelu" rubric="time"
grade("ps08/fused_bias_gelu", fused_bias_gelu, rubric="time")

# %% [markdown]
# ## 2. Tell autograd
#
# PyTorch cannot look into a kernel, so somebody must say what its gradient is: a `torch.autograd.Function`.
# Its `forward` keeps what will be needed by `backward`, which gets the gradient of the result and returns one
# for each input. With $t = \tanh(c(z + az^3))$, $a = 0.044715$,
#
# $$\text{gelu}'(z) = \frac{1 + t}{2} + \frac z2\,(1 - t^2)\,c\,(1 + 3az^2).$$
#
# Write one, and keep x and the bias only; the rest is cheap to compute again. Mind the bias: it serves every
# row, so its gradient is a sum over rows.


# %% solution="custom_function"
class BiasGelu(torch.autograd.Function):
    """gelu(x + bias). About 12 lines in all. (Torch's operations will do here; on a GPU you would launch your kernel.)"""

    @staticmethod
    def forward(ctx, x, bias):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, bias)
        z = x + bias
        return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        # x and the bias are the caller's anyway, so keeping them costs nothing; z and tanh would be two more arrays.
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_out):
        ### BEGIN SOLUTION
        x, bias = ctx.saved_tensors
        z, c = x + bias, math.sqrt(2 / math.pi)
        t = torch.tanh(c * (z + 0.044715 * z**3))
        slope = 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * c * (1 + 3 * 0.044715 * z**2)
        grad_x = grad_out * slope
        return grad_x, grad_x.sum(0)
        # The same product feeds both gradients. Usual slips: the second half of the product rule, grad_out left out, a gradient of
        # the bias with all its rows (autograd adds up silently where the shapes allow it). Plain operations have the right gradients,
        # and earn nothing: nobody has told autograd anything.
        ### END SOLUTION


def custom_function(x, bias):
    """gelu(x + bias) with gradients. x: float32 tensor (rows, cols), bias: float32 tensor (cols,)."""
    return BiasGelu.apply(x, bias)


# %% grade="ps08/custom_function"
grade("ps08/custom_function", BiasGelu)

# %% [markdown]
# ## 3. Boats and kitchen
#
# A *virtual device*, whose clock is simulated, has one engine for work, one for copies in, one for copies
# out. Whatever is put into one *stream* happens in order; different streams do not wait for each other. In a
# single stream two of the three engines always stand still:

# %%
host = {"x": np.arange(12_000.0), "y": np.zeros(12_000)}
works = {"square": Work(np.square, 8 / 25e9)}
device = VirtualDevice(DeviceTiming(copy_latency=0.0), host, works)
client = device.connect()
x, y, a, b = client.host("x"), client.host("y"), client.empty(12_000), client.empty(12_000)
client.copy(a, x)
client.launch("square", b, a)
client.copy(y, b)
print("before waiting", client.read(y)[:4])
client.synchronize()
print("after waiting ", client.read(y)[:4])
print(f"{1e6 * device.counters()['device.seconds']:.1f} us on the virtual clock")

# %% [markdown]
# Cut the array into pieces, and give the pieces to three streams in turn: while one is worked on, the next
# comes in and the last goes out.
#
# ```python
# part, stream = x[a:b], device.stream()
# device.copy(target, source, stream)
# device.launch("square", target, source, stream=stream)
# ```
#
# The device has room for six pieces, and no more: its arrays have to be used again. `device.empty(size)` is
# full of NaN: a NaN in your result was read too early, or from the wrong array. Two streams that write and
# read one array with nothing between them that orders them are an error here, at any speed; different arrays,
# or different parts of one, are free.


# %% solution="overlap"
def overlap(device, pieces):
    """Square host array "x" into host array "y", and return device.read(y). About 10 lines.

    pieces  their lengths all the same: it divides the length of x

    The host cannot read x; its values have to go through the device.
    """
    ### BEGIN SOLUTION
    x, y = device.host("x"), device.host("y")
    size = len(x) // pieces
    desks = [(device.stream(), device.empty(size), device.empty(size)) for _ in range(3)]
    for k in range(pieces):
        (stream, a, b), part = desks[k % 3], slice(k * size, (k + 1) * size)
        device.copy(a, x[part], stream)
        device.launch("square", b, a, stream=stream)
        device.copy(y[part], b, stream)
    device.synchronize()
    return device.read(y)
    # Three streams are enough for three engines, and each has a pair of arrays of its own, which its order protects: the fourth piece
    # comes in behind the first one's work. Two take 1.36 times as long as three. Usual slips: new arrays for each piece, copy, launch and copy back in three different streams without events (no order, so stale data), waiting in the loop (right,
    # nothing overlaps), waiting for the last stream only. 12 pieces take T (1 + 2/12) where one stream takes 3 T.
    ### END SOLUTION


# %% grade="ps08/overlap"
grade("ps08/overlap", overlap)

# %% [markdown]
# ## 4. Cheat the stopwatch
#
# This timer looks careful. It even waits.


# %%
def careless(device, run):
    """Seconds of run() by two time stamps in the default stream."""
    start = device.record()
    run()
    end = device.record()
    device.synchronize()
    return device.elapsed(start, end)


# %% [markdown]
# Write a `cheat` that really launches the work, once, and that this timer believes to be ten times as fast as
# it is, or better. Then write a timer, `careful`, that is not cheated, and that still times honest work
# rightly. `device.clock()` will do, and so will events.


# %% solution="cheat_the_timer"
def cheat(device):
    """Launch "work" once, where `careless` does not look. 1 line."""
    ### BEGIN SOLUTION
    device.launch("work", stream=device.stream())
    # Events see their own stream. On a real GPU the legacy default stream waits for other blocking streams, so a cheat has to make
    # its stream non-blocking; the lesson stays: time with the whole device idle at both ends.
    ### END SOLUTION


def careful(device, run):
    """Seconds of run(), whatever stream it uses; what was under way before does not count. About 5 lines."""
    ### BEGIN SOLUTION
    device.synchronize()
    start = device.clock()
    run()
    device.synchronize()
    return device.clock() - start
    # The first synchronize keeps earlier work out of the measurement, the second waits for all streams. What it adds is the host's
    # own calls, some microseconds; the check allows 5 %. Usual slip: the second reading of the clock before the waiting.
    ### END SOLUTION


def cheat_the_timer(device, which):
    """What the judge asks for; nothing to change here."""
    if which == "careless":
        return careless(device, lambda: cheat(device))
    if which == "careful":
        return careful(device, lambda: cheat(device))
    return careful(device, lambda: device.launch("work"))


# %% grade="ps08/cheat_the_timer"
grade("ps08/cheat_the_timer", cheat_the_timer)

# %% [markdown]
# ## 5. Read what the compiler wrote
#
# PTX tells how often a thread goes to global memory, whether its variables had to be *spilled* to local
# memory, and whether a product and a sum were left apart that one FMA could have done. It is text, one
# instruction a line; some of your own kernel's:

# %%
compiled = fused_bias_gelu.compile("void(float32[:, ::1], float32[::1], float32[:, ::1])")
lines = [
    line.strip()
    for line in compiled.library.get_asm_str().splitlines()
    if line.strip() and not line.strip().startswith(("//", ".loc"))
]
print(
    *[line for line in lines if re.match(r"(ld|st|fma|mul|add)\S*\.(global\S*|f32)\s", line)][:12], sep="\n"
)

# %% [markdown]
# Write the reader. A line may have a predicate in front, `@%p1` or `@!%p1`, and a comment behind, from `//`
# on; a line that is nothing but a comment counts for nothing. An instruction begins with its name, and the
# parts of the name are separated by points: `ld.global.nc.v4.f32` is one load from global memory. The first
# operand is written: in `mul.f32 %f3, %f1, %f2;` it is `%f3`.


# %% solution="read_ptx"
def read_ptx(ptx):
    """Return (loads, local, missed). About 16 lines.

    loads   instructions that load from global memory
    local   instructions that load from or store to local memory
    missed  mul with .f32 in its name, where the next instruction is an add with .f32 that reads what mul wrote
    """
    ### BEGIN SOLUTION
    loads = local = missed = 0
    product = None
    for line in ptx.splitlines():
        text = re.sub(r"^@!?%\w+\s+", "", line.split("//")[0].strip())
        if not text:
            continue
        name, _, rest = text.partition(" ")
        parts, registers = name.split("."), re.findall(r"%\w+", rest)
        loads += parts[:2] == ["ld", "global"]
        local += parts[:2] in (["ld", "local"], ["st", "local"])
        missed += parts[0] == "add" and "f32" in parts and product in registers[1:]
        product = registers[0] if parts[0] == "mul" and "f32" in parts else None
    return loads, local, missed
    # Cutting the name at its points makes .nc, .v4 and .ftz harmless, and ld.global differs from ld.shared in the second part. Usual
    # slips: predicates, a count of the text (comments count, too), product and sum anywhere in the file. A label between the two
    # lines would be an instruction of its own here; that errs on the safe side, since a jump may come in.
    ### END SOLUTION


# %% grade="ps08/read_ptx"
grade("ps08/read_ptx", read_ptx)

# %%
with when_written():
    print(
        "your kernel: {} loads, {} accesses to local memory, {} missed".format(
            *read_ptx(compiled.library.get_asm_str())
        )
    )

# %% [markdown]
# ## 6. A case: the slow till
#
# The till adds up what each dish has earned, and the dishes that earn least leave the menu. `x` has a row for each evening and a column for each dish, in
# cents; `out[col]` gets a hundredth of the sum of column `col`. Somebody wrote the kernel in a hurry, and
# complaints came: the sums are right on one machine and wrong on another; with 70 dishes it stops; otherwise
# it is right, and slow.

# %%
hurried = r"""
// Blocks have 32 x 32 threads, each block for 32 columns.
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    __shared__ float part[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = 32 * blockIdx.x + ty;
    float sum = 0;
    for (int row = tx; row < rows; row += 32)
        sum += 0.01 * x[row * cols + col];
    part[tx][ty] = sum;
    for (int half = 16; half > 0; half /= 2) {
        if (tx < half)
            part[tx][ty] += part[tx + half][ty];
        __syncthreads();
    }
    if (tx == 0)
        out[col] = part[0][ty];
}
"""


def symptoms(kernel, *sides):
    """Run it on the engine over tables of several sizes, and print what is wrong."""
    for rows, cols in sides:
        x = np.random.default_rng(0).uniform(100, 9000, (rows, cols)).astype(np.float32)
        out = np.zeros(cols, np.float32)
        try:
            warplab.profile(kernel[-(-cols // 32), (32, 32)], x, out, rows, cols)
            print(f"{rows} x {cols}: off by {abs(out - 0.01 * x.sum(0)).max():.2g} euros at most")
        except warplab.LaunchError as fault:
            print(f"{rows} x {cols}: {fault}\n")


symptoms(warplab.cuda_kernel(hurried, "read_report"), (64, 64), (65, 70))

# %% [markdown]
# First mend what the sanitizer says, then what the report below says, from its findings back to the lines.


# %% solution="read_report"
mended = r"""
// Blocks have 32 x 32 threads, each block for 32 columns. About 14 lines.
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    /* Copy the lines between the braces in here, and mend them.
    ### BEGIN SOLUTION
    */
    // The barrier keeps the sums apart from the tree, the check keeps the last block inside, tx along the columns makes whole sectors of
    // the loads and rows of the table, 0.01f keeps the doubles out. Usual slips: an early return (its words of the table stay
    // unwritten), a barrier inside `if (ty < half)`, only the loads turned.
    __shared__ float part[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = 32 * blockIdx.x + tx;
    float sum = 0;
    if (col < cols)
        for (int row = ty; row < rows; row += 32)
            sum += 0.01f * x[row * cols + col];
    part[ty][tx] = sum;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (ty < half)
            part[ty][tx] += part[ty + half][tx];
        __syncthreads();
    }
    if (ty == 0 && col < cols)
        out[col] = part[0][tx];
    /*
    ### END SOLUTION
    */
}
"""
read_report = warplab.cuda_kernel(mended, "read_report")

# %%
symptoms(read_report, (64, 64), (65, 70))
x, out = np.ones((256, 64), np.float32), np.zeros(64, np.float32)
with when_written():
    display(warplab.report(read_report[2, (32, 32)], x, out, 256, 64, device="t4"))

# %% grade="ps08/read_report"
grade("ps08/read_report", read_report)

# %% [markdown]
# ## 7. A case: the day's catch *
#
# The harbour adds up what its boats have landed: x has one boat's catch after another, a number for each kind
# of fish, and y gets the sums. A kind whose sum reaches the quota may not be fished tomorrow, so a boat that is
# left out costs the sea fish, and one that is counted twice costs a crew its wages. The program was written to
# fetch a boat's numbers while those of the boat before are added. With CUDA's defaults nobody complained except
# about its speed: the default stream and all others wait for each other there, and a copy back to memory that
# is not page-locked returns when it is done. On the virtual device stream 0, the default, is a stream like any
# other, and every copy returns at once.


# %%
def hurried_catch(device, boats):
    x, y = device.host("x"), device.host("y")
    size = len(y)
    fetch = device.stream()
    total, catch = device.empty(size), device.empty(size)
    device.copy(total, x[:size])
    for boat in range(1, boats):
        device.copy(catch, x[boat * size : (boat + 1) * size], fetch)
        device.launch("add", total, total, catch)
    device.copy(y, total, fetch)
    return device.read(y)


def landed(program, *counts):
    """Let so many boats land 3,000 kinds of fish each, and print what is wrong, and how long it takes."""
    timing = DeviceTiming(copy_latency=0.0, launch_overhead=0.0, sync_overhead=0.0)
    for boats in counts:
        x = np.arange(3_000.0 * boats)
        host = {"x": x, "y": np.zeros(3_000)}
        device = VirtualDevice(timing, host, {"add": Work(np.add, 8 / 25e9)})
        try:
            off = abs(program(device.connect(), boats) - x.reshape(boats, -1).sum(0)).max()
            seconds = device.counters()["device.seconds"]
            print(f"boats {boats}: off by {off:g}, {1e6 * seconds:.1f} us on the virtual clock")
        except RuntimeError as fault:
            print(f"boats {boats}: {fault}\n")


# %%
landed(hurried_catch, 1, 12)

# %% [markdown]
# Mend it, so that every operation waits for what it needs and for no more. `event = device.record(stream)`
# marks the place that a stream has reached, and `device.wait(event, other)` makes later operations in the
# stream `other` wait until it is reached; the host does not wait. The device has room for four arrays as long
# as y.


# %% solution="days_catch"
def days_catch(device, boats):
    """Add up the boats' parts of host array "x" into host array "y", and return device.read(y). About 14 lines.

    The host cannot read x; the sums have to be made on the device.
    """
    ### BEGIN SOLUTION
    x, y = device.host("x"), device.host("y")
    size = len(y)
    fetch, work = device.stream(), device.stream()
    total, tables, added = device.empty(size), [device.empty(size) for _ in range(2)], []
    device.copy(total, x[:size], work)
    for boat in range(1, boats):
        catch = tables[boat % 2]
        if boat > 2:
            device.wait(added[boat - 3], fetch)
        device.copy(catch, x[boat * size : (boat + 1) * size], fetch)
        device.wait(device.record(fetch), work)
        device.launch("add", total, total, catch, stream=work)
        added.append(device.record(work))
    device.copy(y, total, work)
    device.synchronize()
    return device.read(y)
    # Four waits were missing: an addition for its copy, a copy for the addition that still reads the table, the copy back for the last
    # addition, the host for the copy back. With one table the second wait undoes the overlap, so there are two, in turn. Usual slips:
    # device.synchronize() in the loop, or all in one stream (right, nothing overlaps); an event recorded before the operation that it
    # is to stand for; a wait in the stream that recorded it.
    ### END SOLUTION


# %%
with when_written():
    landed(days_catch, 1, 12)

# %% grade="ps08/days_catch"
grade("ps08/days_catch", days_catch)

# %% [markdown]
# ## A case without points: the cold store *
#
# A column of `x` has one shelf's temperatures, a row for each minute; `out` gets the lowest of the last eight, in
# the first minutes of those so far. Where that is above 4 degrees, the fish has been warm for eight minutes on end
# and is thrown away. The kernel keeps eight numbers for each thread. It is right, and somebody complains that it is
# slow, though it makes a copy's requests to global memory and ptxas reports 0 bytes spilled:


# %%
@cuda.jit
def coolest_given(x, out):
    last = cuda.local.array(8, float32)
    col = cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[k] = math.inf
        for row in range(x.shape[0]):
            last[row % 8] = x[row, col]
            coolest = last[0]
            for k in range(1, 8):
                coolest = min(coolest, last[k])
            out[row, col] = coolest


def watched(kernel, *sides):
    """Run it over tables of several sizes, and print what is wrong, or which memory it asks too often."""
    for rows, cols in sides:
        x = np.random.default_rng(rows).uniform(-3, 9, (rows, cols)).astype(np.float32)
        want = np.array([x[max(0, row - 7) : row + 1].min(0) for row in range(rows)])
        out = np.full_like(x, np.nan)
        try:
            p = warplab.profile(kernel[-(-cols // 64), 64], x, out)
        except warplab.LaunchError as fault:
            print(f"{rows} x {cols}: {fault}\n")
            continue
        wrong = np.argwhere(out != want)
        if len(wrong):
            at = tuple(wrong[0])
            told = f"wrong at [{at[0]}, {at[1]}], {out[at]:.3g} instead of {want[at]:.3g}"
        elif p.local_requests:
            told = f"right, and {p.local_requests:,} requests to local memory beside {p.global_memory.requests:,} to global"
        elif p.global_memory.sectors > x.size / 4:
            told = f"right, and {p.global_memory.sectors / (x.size / 4):.1f} times a copy's sectors"
        elif p.shared_memory.bank_conflicts:
            told = f"right, and {p.shared_memory.bank_conflicts:,} bank conflicts"
        else:
            told = f"mended: {p.global_memory.requests:,} requests to global memory, none to local memory"
        print(f"{rows} x {cols}: {told}")


watched(coolest_given, (67, 104), (3, 40))

# %% [markdown]
# `warplab.report` names the line. Find why its table cannot lie in registers, and mend that: nothing in local
# memory, each number fetched once, no bank conflicts. How much time it costs a GPU was not measured. A *spill*
# proper, of more values than registers, is made by ptxas: PTX does not show it, only a profile's `spill_bytes`.

# %%
coolest = coolest_given  # until you have mended it
watched(coolest, (67, 104), (3, 40))

# %% [markdown]
# ## 8. The orders that repeat *
#
# Three tiny works, a hundred times over, keep the host busy and not the device. Between `device.capture()` and
# `graph = device.end_capture()` launches are noted and not carried out; `device.replay(graph)` then gives them all
# for the price of one. Noting a launch costs the host as much as giving the order, so note each work once, not once a
# round.
#
# The works are "double", "shift" and "square", in this order: `device.launch("double", b, a)` fills b from a.
# After `rounds` rounds the result is in y.


# %% solution="capture_graph"
def capture_graph(device, rounds):
    """Apply the three works to host array "x", `rounds` times, into host array "y"; return device.read(y). About 12 lines.

    rounds  0 or more
    """
    ### BEGIN SOLUTION
    x, y = device.host("x"), device.host("y")
    a, b, c = (device.empty(len(x)) for _ in range(3))
    device.copy(a, x)
    device.capture()
    device.launch("double", b, a)
    device.launch("shift", c, b)
    device.launch("square", a, c)
    graph = device.end_capture()
    for _ in range(rounds):
        device.replay(graph)
    device.copy(y, a)
    device.synchronize()
    return device.read(y)
    # The third work writes where the first one reads, so replays chain. Usual slips: capturing taken for a first round, the copy in
    # captured as well (each replay begins again), one replay of a graph that holds all rounds (right, and recording it costs the host
    # three orders a round).
    ### END SOLUTION


# %% grade="ps08/capture_graph"
grade("ps08/capture_graph", capture_graph)

# %% [markdown]
# ## 9. Predict and explain
#
# The job of task 3 in 1, 2, 3, 6, 24 and 96 pieces, on a simulated device with 5 µs of the host for every
# order and 10 µs of latency for every copy.
#
# 1. **Predict** the microseconds for each number of pieces, in the place of the `...`. One
#    piece takes about 120.
# 2. **Explain** both ends of the curve.
# 3. With a hundred times the data, would the best number of pieces be smaller or larger? Why?
#
# About 150 words.


# %%
def microseconds(pieces):
    """What the job takes on the virtual clock."""
    host = {"x": np.arange(96_000.0), "y": np.zeros(96_000)}
    device = VirtualDevice(DeviceTiming(), host, works)
    overlap(device.connect(), pieces)
    return 1e6 * device.counters()["device.seconds"]


predict({1: 120, 2: ..., 3: ..., 6: ..., 24: ..., 96: ...}, microseconds, found="us on the virtual clock")

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** 120, 99, 99, 119, 377 and 1,454 microseconds: best with two or three pieces, and far worse with many than with one.
#
# With one piece copy in, work and copy out follow one another, three times 31 µs and the latencies; two of three engines always
# stand still. With p pieces, all the engines work at the same time except in the first and the last pieces, and the total would
# fall towards a third.
#
# But each piece has a price of its own: two copies' latencies of 10 µs, and three orders of 5 µs from the host. Copies in do not overlap
# each other, so their latencies add up to 10 µs a piece. From some six pieces on the host is slowest of all: 96 pieces are
# 288 orders, 1,440 µs, nearly the whole total. The device waits for the cook.
#
# With a hundred times the data the same price buys a hundred times larger pieces: more of them are worth while, until a piece takes
# about as long as its orders. A graph would move the right end, because its orders cost the host once.
#
# **Marking.** 1 point: prediction (falls, then rises) or its correction. 2 points: left end, no overlap of the three engines; right
# end, latency and orders for each piece (1 each). 1 point: the host's orders as the limit. 1 point: more pieces for more data, with the reason.
# ### END SOLUTION
