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
# # Problem set 10: Many GPUs
#
# An orchestra without a conductor. Every desk has the score, or only a page of it; what keeps them together
# is what they pass to each other. You write the passing.
#
# **About 5.5 hours** (estimated), after chapter 10, without a GPU. Write in the place of
# `raise NotImplementedError()` and delete that line; `help(grade)` says how points are counted. Unless a task says
# otherwise, sizes are whole numbers from 1 on. Inputs must stay as they are: a changed one costs the row. Task 7 is a
# *case*: somebody else's program fails. Find the cause with the course's tools, and mend it.

# %%
from warplab.check import grade, needs, predict, puzzle, when_written

needs("torch")  # what the sets before could do without

import torch
import torch.distributed as dist
from warplab.models.rank_pool import RankError, Ranks

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Four ranks in a ring. In round 0 rank r passes piece r to the next rank, which adds it to its own. Which
# rank now holds a sum of two in piece 3?

# %%
puzzle("ps10/piece", ...)

# %% [markdown]
# 1,000 ranks add up an array of 1 GB around a ring. How many GB does each of them send in all?

# %%
puzzle("ps10/door", ...)

# %% [markdown]
# Weight 2 bytes, gradient 2, optimiser 12. Eight ranks divide the optimiser's part alone. How many bytes a
# parameter does each keep?

# %%
puzzle("ps10/moments", ...)

# %% [markdown]
# Four ranks in a chain, four micro-batches, forward only. For what share of the ticks does a rank stand
# still?

# %%
puzzle("ps10/bubble", ...)

# %% [markdown]
# ## How ranks talk
#
# Your functions run once for every *rank*, all at the same time, and talk through
# `torch.distributed`, whose group is open already. Here the ranks are threads; when your work is graded each
# is a process, so keep nothing in global variables. Every byte between them is counted. A rank has its
# arguments and these:
#
# | | |
# |---|---|
# | `dist.get_rank()`, `dist.get_world_size()` | who am I, how many are we |
# | `dist.send(tensor, to)` | send a tensor to a rank; waits until it receives |
# | `dist.recv(tensor, frm)` | fill a tensor with what a rank sends here; waits for it |
# | `work = dist.isend(tensor, to)`, `dist.irecv(tensor, frm)` | the same without waiting; `work.wait()` waits, and must be called |
# | `dist.all_reduce(tensor)` | fill the tensor with the sum of all ranks' tensors |
# | `dist.reduce_scatter_single(piece, tensor)` | fill `piece` with this rank's part of that sum (older: `reduce_scatter_tensor`) |
# | `dist.all_gather_single(tensor, piece)` | fill `tensor` with all ranks' pieces, in order (older: `all_gather_into_tensor`) |
# | `dist.broadcast(tensor, frm)`, `dist.barrier()` | fill it with one rank's; wait until all are here |
#
# A tensor that receives must have the length and the dtype of the one that is sent: `torch.empty_like` makes
# one. A tensor on its way must not be changed before its `wait()`.
#
# To try a function in real processes, with one tensor for all:
#
# ```python
# rooms = Ranks(2)
# rooms.run(ring_all_reduce, torch.ones(6))
# rooms.close()
# ```

# %% [markdown]
# ## 1. Around the ring
#
# Every rank has an array; every rank shall have the sum. If one rank collected them, all would pass its link; in a
# ring every link carries the same. Cut the array into n pieces: `x.tensor_split(n)` gives nearly equal ones, views of
# x.
#
# 1. For n - 1 rounds, each rank passes one piece to the next rank and adds the piece that comes to its own.
#    In round s, rank r passes piece r - s (counted modulo n). At the end rank r has the whole sum of piece
#    r + 1.
# 2. For n - 1 rounds, finished pieces are passed on and replace what is there. In round s, rank r passes
#    piece r + 1 - s.
#
# Each rank sends $2\frac{n-1}{n}$ of an array, however many ranks there are: pieces may differ in length, and
# no zeros that fill a piece up are sent.
#
# If everybody in a circle sends first, nobody receives: let each begin a send, receive, and then wait for its send.
# This is the one task in which `dist.all_reduce` and other collectives may not be used.


# %% solution="ring_all_reduce"
def ring_all_reduce(x):
    """Return the sum of all ranks' arrays. About 15 lines.

    x  float64 tensor (count,), of the same length on every rank; it need not divide by the number of ranks
    """
    ### BEGIN SOLUTION
    n, me = dist.get_world_size(), dist.get_rank()
    after, before = (me + 1) % n, (me - 1) % n
    pieces = [piece.clone() for piece in x.tensor_split(n)]
    for s in range(n - 1):
        inbox = torch.empty_like(pieces[(me - s - 1) % n])
        sending = dist.isend(pieces[(me - s) % n], after)
        dist.recv(inbox, before)
        sending.wait()
        pieces[(me - s - 1) % n] += inbox
    for s in range(n - 1):
        sending = dist.isend(pieces[(me + 1 - s) % n], after)
        dist.recv(pieces[(me - s) % n], before)
        sending.wait()
    return torch.cat(pieces)
    # Discussion. A piece is never under way and added to at once: the one that is passed on and the one that is received are neighbours,
    # and wait() stands before the addition. clone() is needed because tensor_split gives views of x. Each inbox is made anew, since uneven
    # pieces differ in length. The usual mistakes: send before recv on every rank, which waits for ever (gloo as well); no wait() for
    # the send; the second half begun with piece r instead of r + 1. Counters: 2 (n - 1) messages a rank, 6 for four ranks.
    ### END SOLUTION


# %% grade="ps10/ring_all_reduce"
grade("ps10/ring_all_reduce", ring_all_reduce)

# %% [markdown]
# ## 2. A copy of the model in each room
#
# Every rank has all weights and some of the rows. The error is the mean of $(x \cdot w - y)^2$ over the rows
# of *all* ranks, and its gradient is $\frac{2}{\text{rows}}\, x^T (x w - y)$. After each step all ranks must
# have the same weights, as if one process had seen all rows.
#
# The weights come as a list, a vector for each layer, and a row of x has a number for each weight of all layers
# together. Even a short message costs its latency. Reduce all of them in one.


# %% solution="data_parallel"
def data_parallel(w, x, y, steps, lr):
    """Return all weights, float64 (weights,), after `steps` steps of gradient descent. About 8 lines.

    w   list of float64 tensors, the same on every rank
    x   float64 tensor (rows, weights), y float64 (rows,): this rank's rows, perhaps not as many as the others', perhaps none
    steps, lr  0 or more; weights -= lr * gradient in each
    """
    ### BEGIN SOLUTION
    weights, rows = torch.cat(w), torch.tensor(len(y))
    dist.all_reduce(rows)
    for _ in range(steps):
        gradient = 2 * x.T @ (x @ weights - y)
        dist.all_reduce(gradient)
        weights = weights - lr * gradient / rows
    return weights
    # Discussion. What may be added up are sums over rows, so the division comes last, by the rows of all ranks; the number of rows is
    # reduced once, before the loop. A mean of the ranks' means is right only for equal numbers of rows, and nothing crashes when they
    # differ. torch.cat makes one bucket of all layers: 2 (n - 1) messages a rank and step instead of as many for each layer.
    ### END SOLUTION


# %% grade="ps10/data_parallel"
grade("ps10/data_parallel", data_parallel)

# %% [markdown]
# ## 3. A layer cut in two
#
# In `relu(x @ w1 + b1) @ w2 + b2` give each rank some *columns* of w1, with their numbers of the bias b1. It
# gets the same columns of the hidden layer, and relu works on each number alone. With the *rows* of w2 that
# belong to its columns, every rank has a summand of the result. The bias b2 is not cut: every rank knows it,
# and it counts once.
#
# ```text
#   x @ [ A | B ]  =  [ xA | xB ]          [ relu(xA) | relu(xB) ] @ [ C ]  =  relu(xA) C + relu(xB) D
#                                                                    [ D ]
# ```


# %% solution="tensor_parallel_mlp"
def tensor_parallel_mlp(x, w1, b1, w2, b2):
    """Return relu(x @ w1 + b1) @ w2 + b2 of the whole layer, float64 (batch, width). About 3 lines.

    x   float64 tensor (batch, width), the same on every rank
    w1  float64 (width, mine), this rank's columns; w2 float64 (mine, width), its rows
    b1  float64 (mine,), the biases of its columns; b2 float64 (width,), of the result, the same on every rank
    """
    ### BEGIN SOLUTION
    part = torch.relu(x @ w1 + b1) @ w2
    dist.all_reduce(part)
    return part + b2
    # Discussion. relu works number by number, so each rank may apply it to its own columns. Had w1 been cut into rows, every rank would hold
    # a summand of the hidden layer, and relu of a sum is not the sum of relus: it would have to wait for one more all-reduce. As it is, one
    # all-reduce of (batch, width) numbers is all that crosses, however wide the hidden layer is. Gathering all summands everywhere is right
    # and moves n / 2 times as much. b2 is added behind the sum: in each summand it would count n times.
    ### END SOLUTION


# %% grade="ps10/tensor_parallel_mlp"
grade("ps10/tensor_parallel_mlp", tensor_parallel_mlp)

# %% [markdown]
# ## 4. Divide the notes
#
# Adam keeps two moments for every weight. In data parallel training every rank keeps all of them. ZeRO lets
# rank r keep those of piece r only:
#
# 1. *reduce-scatter*: each rank gets the sum of one piece of the gradients;
# 2. it updates its moments and its piece of the weights;
# 3. *all-gather*: every rank gets all weights.
#
# The bytes are those of one all-reduce. Take the mean of the gradients over the ranks. Adam's step t, from
# 1 on:
#
# ```python
# m = 0.9 * m + 0.1 * g
# v = 0.999 * v + 0.001 * g**2
# w -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
# ```
#
# Both want pieces of *equal* length. If the weights do not divide by n, libraries fill them up with zeros at
# the end, and so shall you: `torch.nn.functional.pad(tensor, (0, k))` puts k zeros behind.


# %% solution="zero_adam"
def zero_adam(w, gradients, lr):
    """Return (all weights, this rank's moments m and v one after the other). About 14 lines.

    w          float64 tensor (weights,), the same on every rank
    gradients  float64 (steps, weights), this rank's, a row for each step

    The n pieces have equal lengths, the smallest that suffice; the moments are those of the whole piece, zeros included. The weights
    are returned without them.
    """
    ### BEGIN SOLUTION
    n, me = dist.get_world_size(), dist.get_rank()
    size = -(-len(w) // n)
    pad = (0, n * size - len(w))
    weights = torch.nn.functional.pad(w, pad)
    mine = weights[me * size : (me + 1) * size].clone()
    m, v, g = (torch.zeros_like(mine) for _ in range(3))
    for t, gradient in enumerate(gradients, 1):
        dist.reduce_scatter_single(g, torch.nn.functional.pad(gradient, pad))
        g /= n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mine -= lr * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
        dist.all_gather_single(weights, mine)
    return weights[: len(w)], torch.cat([m, v])
    # Discussion. Reduce-scatter and all-gather are the two halves of the ring of task 1, so the bytes are those of one all-reduce, and
    # a rank holds an n-th of the moments. The usual mistakes: the sum of the gradients instead of their mean (Adam nearly hides it,
    # since a factor cancels in m / sqrt(v), but not in the moments); t from 0 on; a whole all-reduce of the gradients first, which
    # is 1.5 to 2 times the traffic. A rank that keeps all moments in secret cannot be seen from outside: what is checked is what it
    # returns and sends.
    ### END SOLUTION


# %% grade="ps10/zero_adam"
grade("ps10/zero_adam", zero_adam)

# %% [markdown]
# ## 5. How far does it scale?
#
# More rooms divide the work and multiply the talk. With a ring, a step on n GPUs takes
#
# $$t(n) = \frac{\text{compute}}{n} + 2\,\frac{n-1}{n}\cdot\frac{\text{bytes}}{\text{bandwidth}} + 2(n-1)\cdot\text{latency},$$
#
# if nothing overlaps.


# %% solution="scaling_model"
def scaling_model(gpus, compute, gradient_bytes, bandwidth, latency):
    """Return (seconds, efficiency, best). About 5 lines.

    gpus            list of numbers of GPUs, in any order
    compute         seconds of a step on one GPU
    gradient_bytes  that every GPU reduces in a step
    bandwidth       bytes a second of a link; latency: seconds of a message

    seconds     t(n) for each n, list
    efficiency  compute / (n t(n)) for each n, list
    best        the n with the smallest t(n), of equal ones the smallest n
    """
    ### BEGIN SOLUTION
    seconds = [
        compute / n + 2 * (n - 1) / n * gradient_bytes / bandwidth + 2 * (n - 1) * latency for n in gpus
    ]
    efficiency = [compute / (n * t) for n, t in zip(gpus, seconds, strict=True)]
    return seconds, efficiency, min(zip(seconds, gpus, strict=True))[1]
    # Discussion. The first part falls with n, the second ends at 2 bytes / bandwidth, the third grows, so t(n) has a least. Usual slips: n
    # for n - 1 (n = 1 then pays for talking to itself), efficiency as compute / t(n), the speedup, and for the fastest the last n, the
    # most efficient one, which is always n = 1, or the first of equal ones in a list that is in no order.
    ### END SOLUTION


# %% grade="ps10/scaling_model"
grade("ps10/scaling_model", scaling_model)

# %% [markdown]
# A billion parameters, 16-bit gradients, links of 50 GB/s and 10 microseconds, all of it **assumed**:

# %%
with when_written():
    gpus = [1, 4, 16, 64, 256, 1024]
    seconds, efficiency, best = scaling_model(gpus, 1.0, 2e9, 50e9, 10e-6)
    for n, t, share in zip(gpus, seconds, efficiency, strict=True):
        print(f"{n:>5} GPUs: {1000 * t:7.1f} ms a step, {share:6.1%} of perfect")
    print(f"fastest with {best}")

# %% [markdown]
# ## 6. A chain of rooms *
#
# Each rank has one layer, `tanh(x @ w)`. Only the first has the data, cut into micro-batches: while rank 1
# works on the first of them, rank 0 can work on the second. With one *tick* for each micro-batch:
#
# ```text
#   tick      0  1  2  3  4  5
#   rank 0    0  1  2  3  .  .
#   rank 1    .  0  1  2  3  .
#   rank 2    .  .  0  1  2  3
# ```
#
# The dots are the *bubble*.
#
# Only the first rank knows how many micro-batches there are, so the number has to travel along, in a tensor
# of its own (`torch.tensor([len(x)])` holds whole numbers).


# %% solution="pipeline"
def pipeline(x, w):
    """Return (out, ticks). About 18 lines.

    x  float64 tensor (micro, batch, width) on rank 0; (0, batch, width) on the others
    w  float64 (width, width), this rank's layer

    out    the results, (micro, batch, width), on the last rank; torch.zeros(0) on the others
    ticks  the ticks at which this rank worked, a list of whole numbers
    """
    ### BEGIN SOLUTION
    me, n = dist.get_rank(), dist.get_world_size()
    first, last = me == 0, me == n - 1
    micro = torch.tensor([len(x)])
    if not first:
        dist.recv(micro, me - 1)
    if not last:
        dist.send(micro, me + 1)
    batch, kept = x.new_empty(x.shape[1:]), []
    for i in range(int(micro)):
        if first:
            batch = x[i]
        else:
            dist.recv(batch, me - 1)
        result = torch.tanh(batch @ w)
        if last:
            kept.append(result)
        else:
            dist.send(result, me + 1)
    ticks = [me + i for i in range(int(micro))]
    return torch.stack(kept) if last else torch.zeros(0), ticks
    # Discussion. All ranks but the first can size their inbox, because the empty x has the shape of a micro-batch. A waiting send
    # costs nothing here: when rank r has finished micro-batch i, rank r + 1 has finished i - 1 and is about to receive. Sending the
    # whole batch at once moves the same bytes, and the ticks show what is lost: no two ranks ever work at the same time.
    ### END SOLUTION


# %% grade="ps10/pipeline"
grade("ps10/pipeline", pipeline)

# %% [markdown]
# ## 7. A case: the run that hangs *
#
# The stations of several valleys fit one formula for the lowest temperature of the night. The fruit growers
# learn from it before midnight whether to light fires under their blossoming trees: without a forecast they
# burn oil for nothing, or lose the harvest. Each valley's computer is a rank with measurements of its own,
# and step k takes rows k * batch to (k + 1) * batch of every rank that has some. The program ran for a year
# in one valley. On the first evening with three it did not end.


# %%
def hurried(w, x, y, batch, lr):
    me, n = dist.get_rank(), dist.get_world_size()
    errors = []
    for first in range(0, len(y), batch):
        some, true = x[first : first + batch], y[first : first + batch]
        wrong = some @ w - true
        if me == 0:  # one report is enough
            error = (wrong**2).mean()
            dist.all_reduce(error)
            errors.append(float(error / n))
        gradient = 2 * some.T @ wrong / len(wrong)
        dist.all_reduce(gradient)
        gradient /= n
        w = w - lr / n * gradient  # each rank takes its share of the step
    return w, errors


def symptoms(program, *nights):
    """Run it in real processes, one for each valley's number of measurements, and print what comes of it."""

    def valley(x):
        mine, start = x[dist.get_rank()], torch.zeros(3, dtype=torch.float64)
        return program(start, mine, mine.sum(1), 2, 0.1)

    for rows in nights:
        x = [torch.arange(3.0 * n, dtype=torch.float64).cos().reshape(n, 3) for n in rows]
        ranks = Ranks(len(rows), patience=3)
        try:
            told = ranks.run(valley, x)
            print(f"rows {rows}: weights {[w.tolist() for w, _ in told]}, errors {told[0][1]}\n")
        except RankError as fault:
            print(f"rows {rows}: {fault}\n")
        ranks.close()


# %%
symptoms(hurried, [4], [4, 4, 4])  # waits for three seconds before it gives up

# %% [markdown]
# A process that hangs does not say what it waits for. The check below does, because all messages pass through
# it: copy the given program into `hung_run` unchanged, and the check says where to begin. When all is mended,
# three valleys with the same measurements have the weights of one valley alone, and valleys with different
# numbers of rows end, too. The measurements stay where they were made: only sums and counts go between the
# ranks.


# %% solution="hung_run"
def hung_run(w, x, y, batch, lr):
    """(w, errors) after one pass over all ranks' rows. About 12 lines.

    w      float64 tensor (weights,), the same on every rank
    x      float64 tensor (rows, weights), y float64 (rows,): this rank's rows, perhaps none
    batch  rows that a rank takes for a step, if it has as many left

    w       the weights after all steps, as if one process had seen all rows of each step
    errors  on rank 0 a list with the mean of (x @ w - y)**2 over all ranks' rows of each step, before the
            weights change; [] on the others
    """
    ### BEGIN SOLUTION
    steps = torch.tensor(-(-len(y) // batch))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    errors = []
    for first in range(0, int(steps) * batch, batch):
        some, true = x[first : first + batch], y[first : first + batch]
        wrong = some @ w - true
        error, gradient, rows = (wrong**2).sum(), 2 * some.T @ wrong, torch.tensor(len(wrong))
        for total in error, gradient, rows:
            dist.all_reduce(total)
        if dist.get_rank() == 0:
            errors.append(float(error / rows))
        w = w - lr * gradient / rows
    return w, errors
    # Discussion. A collective is a meeting: all ranks have to come, in the same order, and as often. Two things kept somebody away, the
    # report inside `if me == 0` and a loop as long as the rank's own rows; a rank without rows left brings zeros. The third fault
    # hangs nowhere: the sum was divided by n, and the step once more. The fourth hides behind equal rows: a mean of means. Usual slips: the loop's length
    # from the fewest rows (measurements are dropped), a mean over no rows (0 / 0), the report moved out of the `if` but not its division.
    ### END SOLUTION


# %%
symptoms(hung_run, [4], [4, 4, 4], [4, 5, 0])

# %% grade="ps10/hung_run"
grade("ps10/hung_run", hung_run)

# %% [markdown]
# ## 8. Predict and explain
#
# In task 5, double the bandwidth, or halve the latency, or overlap reduction and computing so that only the
# longer counts.
#
# 1. **Predict**, for 16 and for 1,024 GPUs: which of the three helps most? Put "bandwidth", "latency" or
#    "overlap" in the place of each `...`.
# 2. **Explain** the result with the three parts of t(n).
# 3. What else can you do about the third part?
#
# About 150 words.


# %%
def milliseconds(n):
    """{what is changed: milliseconds of a step} on n GPUs."""
    links = {"as it is": (50e9, 10e-6), "bandwidth": (100e9, 10e-6), "latency": (50e9, 5e-6)}
    found = {name: 1000 * scaling_model([n], 1.0, 2e9, *link)[0][0] for name, link in links.items()}
    talk = 2 * (n - 1) / n * 2e9 / 50e9 + 2 * (n - 1) * 10e-6
    return found | {"overlap": 1000 * max(1.0 / n, talk)}


def best(n):
    found = milliseconds(n)
    return min(found, key=found.get)


if predict({16: ..., 1024: ...}, best, found="helps most"):
    for n in 16, 1024:
        print(n, {name: f"{each:.1f} ms" for name, each in milliseconds(n).items()})

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** On 16 GPUs computing takes 62.5 ms and the transfer 75 ms; the messages' latency is 0.3 ms. So bandwidth helps (138 to
# 100 ms), latency does not, and overlap helps most (75 ms), because the shorter of two nearly equal parts disappears. On 1,024 GPUs
# computing is down to 1 ms, the transfer is 80 ms and the 2,046 messages one after the other cost 20 ms. Overlap saves the one
# millisecond of computing; bandwidth saves 40; latency 10.
#
# The transfer cannot shrink with n, since each GPU sends nearly twice its gradients however many there are. That is the wall.
#
# Against the third part: fewer, larger messages do not help inside one ring, but the ring can be replaced by a tree or by rings of rings
# (within a machine first, then between machines), whose number of steps grows with log n or with the number of machines. Sending less
# helps the second part: 8-bit gradients, or reducing only every few steps.
#
# **Marking.** 1 point: prediction or its correction. 2 points: which part dominates at 16 and at 1,024. 1 point: the transfer does not
# shrink with n. 1 point: a tree, a hierarchy, or fewer reductions.
# ### END SOLUTION
