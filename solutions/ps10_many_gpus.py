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
# An orchestra without a conductor. Every desk has the score, or only a page of it; what keeps them together is what they
# pass to each other, and nobody plays while waiting for paper. You write the passing: sums around a ring, a model trained
# in several rooms, a layer cut in two, the optimiser's notes divided among the desks, and a chain in which each room
# knows only one layer.
#
# **Time** about 5 hours, with chapter 10 read. **Points** 100: 95 are given by the checks below, 5 by your
# instructor for the answer at the end. The task with a star is the hard one.
#
# **How grading works.** Fill in the cells that say so, and run the test cell under each: it shows which checks
# your code passes, what each is worth, and a hint where points are missing. The final grade comes from the same
# checks with other sizes and other numbers.
#
# **Ranks.** Your functions run several times at once, once for every *rank*. Here in the notebook the ranks are threads; when
# your work is graded each is a process of its own, and every byte between them passes the judge, who counts. So
# keep nothing in global variables. All that a rank has is its arguments and `comm`:
#
# | | |
# |---|---|
# | `comm.rank`, `comm.size` | who am I, how many are we |
# | `comm.send(to, array)` | send an array to a rank; does not wait |
# | `comm.recv(frm)` | the next array from a rank; waits for it |
# | `comm.barrier()` | wait until all are here |
#
# Nothing here needs a GPU. With NCCL on real ones the same patterns run over NVLink.

# %%
import numpy as np
from warplab.check import grade, when_written

# %% [markdown]
# ## 1. Around the ring
#
# Every rank has an array; every rank shall have the sum. If all send theirs to rank 0 and get the sum back, rank 0's door
# must pass $n-1$ arrays each way. In a ring every door passes the same. Cut the array into n pieces.
#
# 1. For n - 1 rounds, each rank passes one piece to the next rank and adds the piece that comes to its own. In round s, rank r
#    passes piece r - s (counted modulo n). At the end rank r has the whole sum of piece r + 1.
# 2. For n - 1 rounds, finished pieces are passed on and replace what is there. In round s, rank r passes piece r + 1 - s.
#
# Each rank sends 2(n - 1) pieces: $2\frac{n-1}{n}$ of an array, however many ranks there are.


# %% solution="ring_all_reduce"
def ring_all_reduce(comm, x):
    """Return the sum of all ranks' arrays. About 10 lines.

    x  float64 (count,), of the same length on every rank; it need not divide by comm.size. Do not change it.
    """
    ### BEGIN SOLUTION
    n, me = comm.size, comm.rank
    after, before = (me + 1) % n, (me - 1) % n
    pieces = [piece.copy() for piece in np.array_split(x, n)]
    for s in range(n - 1):
        comm.send(after, pieces[(me - s) % n])
        pieces[(me - s - 1) % n] += comm.recv(before)
    for s in range(n - 1):
        comm.send(after, pieces[(me + 1 - s) % n])
        pieces[(me - s) % n] = comm.recv(before)
    return np.concatenate(pieces)
    ### END SOLUTION


# %% grade="ps10/ring_all_reduce"
grade("ps10/ring_all_reduce", ring_all_reduce)

# %% [markdown]
# ## 2. A copy of the model in each room
#
# Data parallel: every rank has all weights and some of the rows. The error is the mean of $(x \cdot w - y)^2$ over the rows of
# *all* ranks, and its gradient by the weights is $\frac{2}{\text{rows}}\, x^T (x w - y)$. After each step all ranks must have the
# same weights, as if one process had seen all rows.
#
# The weights come as a list, a vector for each layer, and a row of x has a number for each weight of all layers together. A ring
# for each layer would be right and slow: a short message costs as much time as a longer one. Reduce all of them in one.


# %% solution="data_parallel"
def data_parallel(comm, w, x, y, steps, lr):
    """Return all weights, float64 (weights,), after `steps` steps of gradient descent. About 8 lines.

    w   list of float64 vectors, the same on every rank
    x   float64 (rows, weights), y float64 (rows,): this rank's rows, perhaps not as many as the others'
    lr  the step: weights -= lr * gradient

    Use ring_all_reduce.
    """
    ### BEGIN SOLUTION
    weights = np.concatenate(w)
    rows = ring_all_reduce(comm, np.array([float(len(y))]))[0]
    for _ in range(steps):
        mine = 2 * x.T @ (x @ weights - y)
        weights = weights - lr * ring_all_reduce(comm, mine) / rows
    return weights
    ### END SOLUTION


# %% grade="ps10/data_parallel"
grade("ps10/data_parallel", data_parallel)

# %% [markdown]
# ## 3. A layer cut in two
#
# When a layer is too large for one card, cut the layer. In `relu(x @ w1) @ w2` give each rank some *columns* of w1. It gets the
# same columns of the hidden layer, and relu works on each number alone. The second product needs all of the hidden layer, but
# a sum can be taken in parts: with the *rows* of w2 that belong to its columns, every rank has a summand of the result.
#
# ```text
#   x @ [ A | B ]  =  [ xA | xB ]          [ relu(xA) | relu(xB) ] @ [ C ]  =  relu(xA) C + relu(xB) D
#                                                                    [ D ]
# ```


# %% solution="tensor_parallel_mlp"
def tensor_parallel_mlp(comm, x, w1, w2):
    """Return relu(x @ w1) @ w2 of the whole layer, float64 (batch, width). About 3 lines.

    x   float64 (batch, width), the same on every rank
    w1  float64 (width, mine), this rank's columns; w2 float64 (mine, width), its rows
    """
    ### BEGIN SOLUTION
    part = np.maximum(x @ w1, 0) @ w2
    return ring_all_reduce(comm, part.ravel()).reshape(part.shape)
    ### END SOLUTION


# %% grade="ps10/tensor_parallel_mlp"
grade("ps10/tensor_parallel_mlp", tensor_parallel_mlp)

# %% [markdown]
# ## 4. Divide the notes
#
# Adam keeps two moments for every weight. In data parallel training every rank keeps all of them, and all are the same. ZeRO
# lets rank r keep those of piece r only:
#
# 1. *reduce-scatter*: the first half of a ring, after which each rank has the sum of one piece of the gradients;
# 2. it updates its moments and its piece of the weights;
# 3. *all-gather*: the second half, after which every rank has all weights.
#
# The bytes are those of one all-reduce. Take the mean of the gradients over the ranks. Adam's step t, from 1 on:
#
# ```python
# m = 0.9 * m + 0.1 * g
# v = 0.999 * v + 0.001 * g**2
# w -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
# ```
#
# Mind which piece the first half leaves where: in task 1 it is piece r + 1 at rank r. Start one piece further back, and it is piece r.


# %% solution="zero_adam"
def zero_adam(comm, w, gradients, lr):
    """Return (all weights, this rank's moments m and v one after the other). About 18 lines.

    w          float64 (weights,), the same on every rank
    gradients  float64 (steps, weights), this rank's, a row for each step

    Piece r of np.array_split(w, comm.size) belongs to rank r. Do not change w.
    """
    ### BEGIN SOLUTION
    n, me = comm.size, comm.rank
    after, before = (me + 1) % n, (me - 1) % n
    weights = [piece.copy() for piece in np.array_split(w, n)]
    m, v = np.zeros_like(weights[me]), np.zeros_like(weights[me])
    for t, gradient in enumerate(gradients, 1):
        pieces = [piece.copy() for piece in np.array_split(gradient, n)]
        for s in range(n - 1):
            comm.send(after, pieces[(me - s - 1) % n])
            pieces[(me - s - 2) % n] += comm.recv(before)
        g = pieces[me] / n
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        weights[me] -= lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        for s in range(n - 1):
            comm.send(after, weights[(me - s) % n])
            weights[(me - s - 1) % n] = comm.recv(before)
    return np.concatenate(weights), np.concatenate([m, v])
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
# if nothing overlaps. The second part soon stops growing, at twice the bytes over the bandwidth. The third does not.


# %% solution="scaling_model"
def scaling_model(gpus, compute, gradient_bytes, bandwidth, latency):
    """Return (seconds, efficiency, best). About 5 lines.

    gpus            list of numbers of GPUs
    compute         seconds of a step on one GPU
    gradient_bytes  that every GPU reduces in a step
    bandwidth       bytes a second of a link; latency: seconds of a message

    seconds     t(n) for each n, list
    efficiency  compute / (n t(n)) for each n, list
    best        the n with the smallest t(n), of equal ones the smallest n
    """
    ### BEGIN SOLUTION
    seconds = [compute / n + 2 * (n - 1) / n * gradient_bytes / bandwidth + 2 * (n - 1) * latency for n in gpus]
    efficiency = [compute / (n * t) for n, t in zip(gpus, seconds, strict=True)]
    return seconds, efficiency, gpus[seconds.index(min(seconds))]
    ### END SOLUTION


# %% grade="ps10/scaling_model"
grade("ps10/scaling_model", scaling_model)

# %% [markdown]
# A model of a billion parameters with 16-bit gradients, one second of computing, links of 50 GB/s and 10 microseconds. (All of
# it assumed, nothing measured.)

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
# Each rank has one layer, `tanh(x @ w)`. Only the first has the data, cut into micro-batches: while rank 1 works on the first of
# them, rank 0 can work on the second. If a layer takes one *tick* for a micro-batch, three ranks and four micro-batches
# look like this:
#
# ```text
#   tick      0  1  2  3  4  5
#   rank 0    0  1  2  3  .  .
#   rank 1    .  0  1  2  3  .
#   rank 2    .  .  0  1  2  3
# ```
#
# The dots are the *bubble*: $p - 1$ of $m + p - 1$ ticks on every rank.
#
# Only the first rank knows how many micro-batches there are, so the number has to travel along.


# %% solution="pipeline"
def pipeline(comm, x, w):
    """Return (out, ticks). About 12 lines.

    x  float64 (micro, batch, width) on rank 0; an empty array on the others
    w  float64 (width, width), this rank's layer

    out    the results, (micro, batch, width), on the last rank; np.zeros(0) on the others
    ticks  the ticks at which this rank worked, a list of whole numbers
    """
    ### BEGIN SOLUTION
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    micro = len(x) if first else int(comm.recv(comm.rank - 1)[0])
    if not last:
        comm.send(comm.rank + 1, np.array([float(micro)]))
    kept = []
    for i in range(micro):
        result = np.tanh((x[i] if first else comm.recv(comm.rank - 1)) @ w)
        if last:
            kept.append(result)
        else:
            comm.send(comm.rank + 1, result)
    ticks = [comm.rank + i for i in range(micro)]
    return np.array(kept) if last else np.zeros(0), ticks
    ### END SOLUTION


# %% grade="ps10/pipeline"
grade("ps10/pipeline", pipeline)

# %% [markdown]
# ## 7. Predict and explain
#
# In the model of task 5, double the links' bandwidth, or halve the latency, or overlap the reduction with the computing so that
# only the longer of the two counts.
#
# 1. **Predict**, for 16 and for 1,024 GPUs: which of the three helps most?
# 2. Try it. **Explain** the result with the three parts of t(n).
# 3. What else can you do about the third part, which no link makes smaller? (Think of what is sent, and of the ring itself.)
#
# About 150 words. An instructor reads your answer; a wrong prediction costs nothing if the explanation is right.

# %%
with when_written():
    for name, bandwidth, latency in ("as it is", 50e9, 10e-6), ("bandwidth", 100e9, 10e-6), ("latency", 50e9, 5e-6):
        (few, many), _, _ = scaling_model([16, 1024], 1.0, 2e9, bandwidth, latency)
        print(f"{name:>10}: {1000 * few:5.1f} ms on 16, {1000 * many:5.1f} ms on 1,024")
    for n in 16, 1024:
        talk = 2 * (n - 1) / n * 2e9 / 50e9 + 2 * (n - 1) * 10e-6
        print(f"   overlap: {1000 * max(1.0 / n, talk):5.1f} ms on {n:,}")

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
