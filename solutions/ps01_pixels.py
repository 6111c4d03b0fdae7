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
# # Problem set 1: Pixels
#
# A screen of 3840 x 2160 pixels, redrawn 120 times a second, wants a billion pixels a second, and no pixel
# asks another for help. You write kernels that colour one pixel each, and a stopwatch that does not flatter
# them.
#
# **About 3.5 hours** (estimated), after chapter 1; if you have never written a kernel, do `ps00` first. Of the 100
# points 2 need a CUDA GPU. Write in the place of `raise NotImplementedError()` and delete that line; `help(grade)`
# says how points are counted. Unless a task says otherwise, sizes are whole numbers from 1 on. Inputs must stay as
# they are: a changed one costs the row. Tasks 6 and 7 are a *case*: somebody else's program fails. Find the cause
# with the course's tools, write a function that says what the broken program does, then mend the program.

# %%
import statistics

import numpy as np
import warplab
from IPython.display import display
from numba import cuda
from warplab import plots
from warplab.check import grade, predict, puzzle, when_written
from warplab.crossing.virtual_device import DeviceTiming, VirtualDevice

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Memory is one long row of numbers. At which place in it lies pixel `(row, col)` of an image that is `width`
# wide?

# %%
puzzle("ps01/place", lambda row, col, width: ...)

# %% [markdown]
# A laptop's screen has 1366 x 768 pixels. In blocks of 16 x 16 threads, how many threads have no pixel?

# %%
puzzle("ps01/idle", ...)

# %% [markdown]
# A blur of radius 2 takes the mean of the pixels at most 2 rows and 2 columns away. How many pixels are those in a
# corner?

# %%
puzzle("ps01/corner", ...)

# %% [markdown]
# 31 lanes of a warp want one round of a loop, one lane wants 100. How many rounds does the warp go through?

# %%
puzzle("ps01/slowest", ...)

# %% [markdown]
# A picture to work on. A pixel is `photo[row, col]`, three colours; row 0 is at the top.

# %%
y, x = np.mgrid[0:128, 0:192].astype(np.float32)
sun = np.hypot(x - 130, y - 62) < 26
dusk = np.clip(y / 100, 0, 1)[..., None]
sky = (1 - dusk) * [0.24, 0.32, 0.60] + dusk * [0.98, 0.62, 0.38]
hills = y > 84 + 10 * np.sin(x / 21) + 5 * np.sin(x / 8)
photo = np.where(sun[..., None], [1.0, 0.86, 0.35], sky)
photo = np.where(hills[..., None], [0.09, 0.28, 0.26], photo).astype(np.float32)
alt = "A yellow sun over dark green hills, at dusk."
plots.picture((255 * photo).astype(np.uint8), alt=alt, zoom=3)

# %% [markdown]
# ## 1. Grey
#
# The eye sees green best and blue worst, so the grey that looks as bright as a colour is
#
# $$\text{grey} = 0.299\,R + 0.587\,G + 0.114\,B .$$
#
# Every thread runs the kernel once, for the pixel that its own position names. `cuda.grid(2)` gives that
# position, **x first**: x is the column. Neighbours in x should touch neighbours in memory, which moves numbers in
# **sectors** of 32 bytes, eight floats side by side; a check counts the sectors that you write.
#
# Blocks are never cut. An image 37 wide and 20 high gets 3 x 2 blocks of 16 x 16 threads:
#
# ```text
#     0        16       32   37  48
#   0 +--------+--------+----+---+
#     |        |        |    |xxx|
#  16 +--------+--------+----+xxx|
#     |        |        |    |xxx|
#  20 +--------+--------+----+xxx|
#     |xxxxxxxx|xxxxxxxx|xxxxxxxx|
#  32 +--------+--------+--------+
# ```
#
# The threads marked x have no pixel. They run your kernel all the same, and must not write anything.


# %% solution="grayscale"
@cuda.jit
def grayscale(rgb, out):
    """Make one pixel grey. About 5 lines.

    rgb  float32 (height, width, 3), values from 0 to 1
    out  float32 (height, width)

    Launched with blocks of 16 x 16 threads and the smallest grid that covers the image.
    1. Do nothing if this thread has no pixel.
    2. Write the weighted sum of the pixel's three colours.
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    # The launch has replaced both loops: one thread, one pixel, and of the two indices x, the column, comes first. Usual
    # slips: no bounds check (only ragged sizes notice), row and column exchanged (right for squares, four times the
    # sectors), the loops kept, so that every thread makes the whole image. Python's 0.299 is a 64-bit number; with
    # np.float32(0.299) the kernel spares most GPUs their slow 64-bit products.
    height, width = out.shape
    if col >= width or row >= height:
        return
    red, green, blue = rgb[row, col, 0], rgb[row, col, 1], rgb[row, col, 2]
    out[row, col] = 0.299 * red + 0.587 * green + 0.114 * blue
    ### END SOLUTION


# %% grade="ps01/grayscale"
grade("ps01/grayscale", grayscale)

# %% [markdown]
# On a CUDA GPU, full points up to twice a copy's time.

# %% grade="ps01/grayscale" rubric="time"
grade("ps01/grayscale", grayscale, rubric="time")

# %% [markdown]
# Your picture, in 12 x 8 blocks:

# %%
gray = np.zeros((128, 192), np.float32)
grayscale[(12, 8), (16, 16)](photo, gray)
alt = "The same picture in shades of grey."
plots.picture((255 * gray).astype(np.uint8), alt=alt, zoom=3)

# %% [markdown]
# ## 2. How many blocks?
#
# An image of 100 x 50 pixels, in blocks of 32 x 8 threads:
#
# | | x | y |
# |---|---|---|
# | pixels / threads in a block | 100 / 32 = 3.125 | 50 / 8 = 6.25 |
# | blocks | 4 | 7 |
#
# These blocks have 128 x 56 = 7,168 threads, and 2,168 of them have no pixel.


# %% solution="launch_plan"
def launch_plan(width, height, block):
    """Return ((blocks_x, blocks_y), idle): smallest grid, idle threads. About 4 lines.

    width, height  pixels
    block          (threads_x, threads_y), 1 to 1,024 each

    Whole numbers only; rounding is safest with //, without floats.
    """
    ### BEGIN SOLUTION
    # (n + b - 1) // b rounds up without floats. Usual slips: n // b + 1, one too many where b divides n; the height for x;
    # idle columns times idle rows, which is the corner alone.
    threads_x, threads_y = block
    blocks_x = (width + threads_x - 1) // threads_x
    blocks_y = (height + threads_y - 1) // threads_y
    idle = blocks_x * threads_x * blocks_y * threads_y - width * height
    return (blocks_x, blocks_y), idle
    ### END SOLUTION


# %% grade="ps01/launch_plan"
grade("ps01/launch_plan", launch_plan)

# %% [markdown]
# A corner of the photo under your blocks:

# %%
with when_written():
    (blocks_x, blocks_y), idle = launch_plan(44, 25, (16, 16))
    caption = f"{blocks_x} x {blocks_y} blocks; {idle:,} threads (hatched) have no pixel."
    alt = "Six blocks over a piece of the photo, sticking out at the right and below."
    display(plots.show(plots.tiles(photo[60:85, 100:144], (16, 16)), alt=alt, caption=caption))

# %% [markdown]
# ## 3. Blur
#
# A pixel of a blurred image is the mean of a square window around it: with radius 1 the pixel and its eight
# neighbours, with radius *r* a window of $(2r+1)^2$ pixels. Threads read what their neighbours read too,
# but each still writes only its own pixel.
#
# At the border a part of the window hangs over the edge. Take the mean of the pixels that exist.
#
# ```text
#     image           window of (0, 0)     window of (0, 2)
#     8 4 6 2         [8 4] 6 2             8 [4 6 2]
#     0 4 1 9         [0 4] 1 9             0 [4 1 9]
#     5 7 3 3          5 7  3 3             5  7 3 3
#                     16 / 4 = 4            26 / 6 = 4.33
# ```
#
# Keep the running sum in a local variable, which lives in a register. A check counts the store requests, one for
# each time that the 32 threads of a warp write together, and a sum in `out` makes one for every pixel of the
# window.


# %% solution="box_blur"
@cuda.jit
def box_blur(image, radius, out):
    """Write the mean of the window around one pixel. About 12 lines.

    image   float32 (height, width)
    radius  0 or more; the window may be larger than the image
    out     float32 (height, width)

    1. Do nothing if this thread has no pixel.
    2. Add up the window's pixels that lie inside the image, and count them.
    3. Write the mean, once.
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    # Clipped ranges need no test inside the loops. Usual slips: the sum divided by (2 radius + 1)^2, which is the dark
    # frame; range() without its + 1; r >= 0 not checked (-1 is the last row, as in NumPy, and nobody objects); the sum
    # kept in out, which stores nine times at radius 1 and begins with whatever stands there.
    height, width = image.shape
    if col >= width or row >= height:
        return
    total = 0.0
    count = 0
    for r in range(max(0, row - radius), min(height, row + radius + 1)):
        for c in range(max(0, col - radius), min(width, col + radius + 1)):
            total += image[r, c]
            count += 1
    out[row, col] = total / count
    ### END SOLUTION


# %% grade="ps01/box_blur"
grade("ps01/box_blur", box_blur)

# %% [markdown]
# With radius 4. A dark frame means that every sum was divided by 9 x 9 = 81.

# %%
blurred = np.zeros_like(gray)
box_blur[(12, 8), (16, 16)](gray, 4, blurred)
alt = "The grey picture, sharp and blurred."
plots.picture((255 * np.hstack([gray, blurred])).astype(np.uint8), alt=alt, zoom=2)

# %% [markdown]
# ## 4. Pixels that take longer
#
# So far every thread did the same amount of work. Now each pixel stands for a complex number $c$, and the
# question is how long the sequence $z \leftarrow z^2 + c$, from $z = 0$, stays within a circle of radius 2.
# As two real numbers, $z = x + iy$:
#
# ```python
# def escape_steps(c_x, c_y, max_iterations):
#     x = y = 0.0
#     for step in range(max_iterations):
#         if x * x + y * y > 4.0:
#             return step
#         x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
#     return max_iterations
# ```
#
# For $c = 1$ the sequence is 0, 1, 2, 5: it passes 2 after three steps, so the pixel's value is 3. For $c =
# -1$ it goes on, 0, -1, 0, -1, until `max_iterations`.
#
# Keep to Python's own numbers of 64 bits here: near the border a rounding decides between 66 steps and 67.


# %% solution="mandelbrot"
@cuda.jit
def mandelbrot(x_min, y_min, step, max_iterations, out):
    """Write how many steps one pixel's c survives. About 12 lines.

    x_min, y_min    c of pixel (row 0, col 0)
    step            distance between neighbouring pixels, in x and in y
    max_iterations  value of a pixel that never escapes
    out             int32 (height, width)

    1. Do nothing if this thread has no pixel.
    2. Find c_x from col and c_y from row.
    3. Run the loop above; leave it as soon as x*x + y*y > 4, tested before each step.
    4. Write the number of steps made.
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    # Both conditions stand in the `while`: a lane leaves when its pixel has escaped, a warp with its last lane. Usual
    # slips: the new x in the formula of the new y; the test after the step, one too few; no value for pixels that never
    # escape; 32 bits, and a few pixels take a step more. A complex z ** 2 is a general power: right, and over the limit.
    height, width = out.shape
    if col >= width or row >= height:
        return
    c_x = x_min + col * step
    c_y = y_min + row * step
    x = 0.0
    y = 0.0
    steps = 0
    while steps < max_iterations and x * x + y * y <= 4.0:
        x, y = x * x - y * y + c_x, 2.0 * x * y + c_y
        steps += 1
    out[row, col] = steps
    ### END SOLUTION


# %% grade="ps01/mandelbrot"
grade("ps01/mandelbrot", mandelbrot)

# %% [markdown]
# The whole set, with at most 60 steps. Bright pixels ran longest, black ones never escaped.

# %%
steps = np.zeros((128, 192), np.int32)
mandelbrot[(12, 8), (16, 16)](-2.2, -1.0, 3.0 / 192, 60, steps)
shade = np.where(steps == 60, 0, 255 * np.sqrt(steps / 60)).astype(np.uint8)
alt = "The Mandelbrot set, black, in a halo that is brightest along its border."
plots.picture(shade, alt=alt, zoom=3)

# %% [markdown]
# The share of lanes that were switched on, averaged over all warp instructions, in three views of the set:


# %%
def efficiency(x_min, y_min, width, block=(16, 16)):
    """Warp execution efficiency of a view that is `width` wide, at 96 x 64 pixels."""
    view = np.zeros((64, 96), np.int32)
    launch = mandelbrot[(96 // block[0], 64 // block[1]), block]
    counts = warplab.profile(launch, x_min, y_min, width / 96, 200, view)
    return counts.warp_execution_efficiency


print(f"outside {efficiency(1.5, 1.5, 0.3):.3f}")
print(f"inside  {efficiency(-0.2, -0.1, 0.3):.3f}")
print(f"border  {efficiency(-0.9, 0.1, 0.3):.3f}")

# %% [markdown]
# ## 5. A stopwatch that waits
#
# A launch puts the work into a queue and returns, so a stopwatch that is read right after it has timed the
# queueing. The course's *virtual device*, a queue and a simulated clock, shows it with work of one
# millisecond:

# %%
device = VirtualDevice(DeviceTiming(duration=1e-3, noise=0)).connect()
start = device.clock()
device.launch("work")
print(f"after launch()       {1e3 * (device.clock() - start):.4f} ms")
device.synchronize()
print(f"after synchronize()  {1e3 * (device.clock() - start):.4f} ms")

# %% [markdown]
# Three more things spoil a measurement:
#
# - earlier work may still be in the queue when you begin;
# - the first launches are slow. Five launches before the first sample are enough here, and twenty are the
#   most;
# - now and then a sample takes forty times as long, which a mean carries into the result and a median does
#   not.
#
# You may use the queue's own time stamps instead, `event = record()` and `elapsed(first, second)`.


# %% solution="time_it"
def time_it(device, work, repeats):
    """Return the median seconds of one launch of `work`. About 10 lines.

    device   has launch(work), synchronize(), clock() in seconds
    repeats  number of samples, 1 or more; each sample times one launch

    1. Warm up, and wait until the queue is empty.
    2. For each sample: read the clock, launch, wait, read the clock.
    3. Return the median (statistics.median; of an even number of samples it lies half-way between the middle two).
    """
    ### BEGIN SOLUTION
    # Wait, empty queue, warm-up, median: a row for each. Usual slips: one clock around all launches, which is a mean; no
    # wait after the warm-up, so that the first sample pays for it; a single launch as warm-up where four are slow.
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    samples = []
    for _ in range(repeats):
        start = device.clock()
        device.launch(work)
        device.synchronize()
        samples.append(device.clock() - start)
    return statistics.median(samples)
    ### END SOLUTION


# %% grade="ps01/time_it"
grade("ps01/time_it", time_it)

# %% [markdown]
# A device in a bad mood. Your timer should still say one millisecond, to within 2 %.

# %%
with when_written():
    moody = DeviceTiming(
        duration=1e-3,
        pending=0.2,
        cold_launches=4,
        cold_factor=20,
        outlier_every=7,
        outlier_factor=40,
    )
    print(f"{1e3 * time_it(VirtualDevice(moody).connect(), 'work', 21):.4f} ms")

# %% [markdown]
# ## 6. A case: the lamp that went out
#
# A mountain rescue flies a camera at night. A pixel is one byte. The program below was meant to multiply each
# by a whole number, and to clip the result at 255, so that a person at the screen sees a lamp in the dark and
# knows where to send help.
#
# On its author's dark picture of 64 x 48 pixels it was right. Last night's picture had 70 x 43, and the pilot writes:
# "The ground got brighter, but the lamp that we flew for became a black spot, and the right and the lower edge stayed
# black." Here are the picture and what the program made of it:


# %%
@cuda.jit
def brighten_given(image, gain, out):
    col, row = cuda.grid(2)
    out[row, col] = gain * image[row, col]


def plan_given(height, width):
    return (width // 16, height // 16), (16, 16)


rows, cols = np.mgrid[0:43, 0:70]
night = (22 + 8 * np.sin(cols / 9) + rows / 4).astype(np.uint8)
night[np.hypot(rows - 14, cols - 40) < 4] = 192
seen = np.zeros_like(night)
brighten_given[plan_given(43, 70)](night, 4, seen)
alt = "A dark picture with a lamp; the ground brighter, the lamp and two edges black."
plots.picture(np.hstack([night, seen]), alt=alt, zoom=5)

# %% [markdown]
# With pictures of your own, of one colour and of other sizes, you see which pixels are wrong, and by how much. There
# are two causes. Before you mend them, write what this program *does*, so that it is right for every size and every
# value.


# %% solution="brighten_cause"
def brighten_cause(height, width, value, gain):
    """Return (missed, written), whole numbers: what the given program does. About 3 lines.

    height, width  of a picture
    value, gain    of a pixel, 0 to 255; 0 or more

    missed   how many of the picture's pixels get no thread from plan_given
    written  what brighten_given leaves in out for a pixel of this value; out holds bytes
    """
    ### BEGIN SOLUTION
    # // rounds down, so a partial block is not launched. A byte keeps the lowest eight bits of a product: its remainder by
    # 256, and 192 * 4 is three times 256. Usual slips: the corner counted twice; only values above 255 once, as value * gain - 256.
    missed = height * width - (height // 16 * 16) * (width // 16 * 16)
    return missed, value * gain % 256
    ### END SOLUTION


# %% grade="ps01/brighten_cause"
grade("ps01/brighten_cause", brighten_cause)

# %%
with when_written():
    print("{} pixels missed; the lamp is written as {}".format(*brighten_cause(43, 70, 192, 4)))

# %% [markdown]
# ## 7. The lamp, mended
#
# Mend the program: every pixel of every picture, and 255 for what would be brighter. One mend may bring out the next
# mistake: what do the new threads do?


# %% solution="brighten"
def plan_brighten(height, width):
    """Return (grid, block), each as (x, y). About 1 line."""
    ### BEGIN SOLUTION
    return (-(-width // 16), -(-height // 16)), (16, 16)
    ### END SOLUTION


@cuda.jit
def brighten(image, gain, out):
    """Write gain times one pixel, or 255 if that is more. About 3 lines.

    image, out  uint8 (height, width)
    gain        a whole number, 0 or more

    Launched as plan_brighten says. Neighbouring threads take neighbours of a row.
    """
    col, row = cuda.grid(2)
    ### BEGIN SOLUTION
    # The product has 64 bits, so min() comes in time; only the store cuts it down to a byte. Usual slips: blocks rounded up and no
    # bounds check; the test after the store, when the byte has wrapped already; gain held down to 255 instead of the product.
    if row < image.shape[0] and col < image.shape[1]:
        out[row, col] = min(gain * image[row, col], 255)
    ### END SOLUTION


# %% grade="ps01/brighten"
grade("ps01/brighten", brighten, plan_brighten)

# %%
with when_written():
    seen[:] = 0
    brighten[plan_brighten(43, 70)](night, 4, seen)
    alt = "The brightened picture, with a white lamp and no black edge."
    display(plots.picture(seen, alt=alt, zoom=5))

# %% [markdown]
# ## 8. Predict and explain
#
# The view across the border once more, in blocks of three shapes:
#
# | block | 32 x 8 | 16 x 16 | 8 x 32 |
# |---|---|---|---|
# | pixels of one warp | 32 x 1 | 16 x 2 | 8 x 4 |
#
# 1. **Predict** the warp execution efficiency of each, from 0 to 1, in the place of the `...`: which is the
#    highest, which the lowest? The counts come when all three are said.
# 2. **Explain** the order: what does a warp wait for, and what has the shape of its pixels to do with that?
# 3. The view inside the set takes by far the most steps. What is its efficiency, and why?
#
# About 150 words; a wrong prediction costs nothing.

# %%
predict(
    {(32, 8): ..., (16, 16): ..., (8, 32): ...},
    lambda block: efficiency(-0.9, 0.1, 0.3, block),
)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** The efficiencies are 0.73 for 32 x 1, 0.83 for 16 x 2 and 0.87 for 8 x 4: the more compact
# the piece, the higher.
#
# A warp runs until its slowest pixel has escaped. Until then the lanes that are done are switched off but still
# issued, so the efficiency of a warp is about the mean of its 32 step counts divided by the largest of them.
# Neighbouring pixels mostly need similar numbers of steps, except across the border. In a strip of 32 x 1 the
# two ends are 31 pixels apart, and one pixel of the set in it keeps 31 others waiting. In a piece of 8 x 4 no
# two pixels are more than 7 columns and 3 rows apart, so fewer pieces straddle the border: 38 of the 192
# against 58 and 87 (counted from the image; an estimate by eye is fine).
#
# Inside the set every pixel takes exactly `max_iterations` steps. All lanes finish together: 1.0. This is the
# most expensive view of all and the most efficient one; efficiency says how many lanes wait, not how much work
# there is.
#
# **Marking.** 1 point: order predicted, or the wrong prediction corrected. 2 points: a warp waits for its
# slowest pixel, the others are switched off (1 of the 2 for "divergence" without saying who waits for whom). 1
# point: compact pieces hold more similar counts. 1 point: inside, 1.0, because all counts are equal.
# ### END SOLUTION
