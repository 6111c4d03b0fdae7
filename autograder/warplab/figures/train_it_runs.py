"""Problem set 13 in the notebook: a run watched while it learns, what it got wrong, what it writes, and where
its bytes go.
"""

import inspect
import re
import time
from dataclasses import dataclass

import numpy as np
from numba import cuda

import warplab
from warplab import plots
from warplab.models.drawn_digits import drawn_digits
from warplab.models.training_runs import TIMED, WEIGHTS, mlp_run, mlp_scores, mlp_start
from warplab.tasks.text_run import LETTERS, RHYME, TEXT_WEIGHTS, text_run, text_start, tokens_of, write

COLOUR = plots.PALETTE
EVERY = 1.0  # seconds between two drawings of a run that goes on
NUMBERS = ("rate", "beta1", "beta2", "eps", "decay")


class LiveDevice:
    """A device as a task's host code knows it, which does at once what it is told, on arrays with values.

    `look()` is called after a launch, at most once in EVERY seconds.
    """

    def __init__(self, look=None):
        self.look, self.next = look, time.monotonic() + EVERY

    def empty(self, shape, dtype):
        return cuda.device_array(shape, np.dtype(dtype))

    def zeros(self, shape, dtype):
        return cuda.to_device(np.zeros(shape, dtype))

    def fill(self, array, value):
        array.copy_to_device(np.full(array.shape, value, array.dtype))

    def copy(self, target, source):
        target.copy_to_device(source)

    def launch(self, kernel, grid, block, *arguments, shared=0):
        configured = kernel[grid, block, 0, shared] if shared else kernel[grid, block]
        configured(*arguments)
        if self.look and time.monotonic() > self.next:
            self.look()
            self.next = time.monotonic() + EVERY


@dataclass
class WatchedRun:
    """A run that has come to its end. weights: by name, NumPy; want: the same run in float64."""

    losses: np.ndarray
    weights: dict
    want: dict


def watch(train_mlp, steps=64, seed=0):
    """Let `train_mlp` learn drawn digits, 32 of 512 pictures a step, and draw its loss."""
    inputs = _mlp_inputs(steps, seed)
    return _watched(
        inputs,
        mlp_run(inputs)["losses"],
        lambda device, held, losses: train_mlp(
            device,
            *(held[name] for name in ("images", "labels")),
            inputs["batch"],
            steps,
            *(inputs[name] for name in NUMBERS),
            *(held[name] for name in WEIGHTS),
            losses,
        ),
        WEIGHTS,
    )


def watch_text(train_text, steps=60, seed=0, every=20):
    """Let `train_text` learn the rhyme, draw its loss, and print what it writes every so many steps."""
    rng = np.random.default_rng(seed)
    inputs = {"tokens": tokens_of(RHYME), "length": 16, "sequences": 4, "steps": steps} | TIMED_TEXT
    inputs |= text_start(rng, len(LETTERS), 16, 16, 32) | {"steps": steps}
    told = {"next": every}

    def writes(done, held):
        if done >= told["next"]:
            told["next"] = done + every
            print(f"after {done} steps: {sample(_on_host(held, TEXT_WEIGHTS), 40)!r}")

    return _watched(
        inputs,
        text_run(inputs)["losses"],
        lambda device, held, losses: train_text(
            device,
            held["tokens"],
            *(inputs[name] for name in ("length", "sequences", "steps", *NUMBERS)),
            *(held[name] for name in TEXT_WEIGHTS),
            losses,
        ),
        TEXT_WEIGHTS,
        writes,
    )


TIMED_TEXT = {name: TIMED[name] for name in NUMBERS} | {"rate": 0.02}


def sample(weights, count=120, seed=0):
    """What a network writes that begins with the rhyme's first word."""
    return write(weights, "twinkle", count, np.random.default_rng(seed))


def _mlp_inputs(steps, seed):
    rng = np.random.default_rng(seed)
    images, labels = drawn_digits(rng, 512)
    return TIMED | {
        "images": images,
        "labels": labels,
        **mlp_start(rng, 64, 32, 10),
        "batch": 32,
        "steps": steps,
    }


def _on_host(held, names):
    return {name: held[name].copy_to_host() for name in names}


def _watched(inputs, want, train, names, also=None):
    """WatchedRun `train` on a LiveDevice, with its loss drawn again and again; returns the WatchedRun."""
    held = {name: cuda.to_device(value) for name, value in inputs.items() if type(value) is np.ndarray}
    losses = cuda.to_device(np.full(inputs["steps"], np.nan, np.float32))
    shown = _Display()

    def look():
        now = losses.copy_to_host()
        done = int(np.count_nonzero(np.isfinite(now) & (now != 0)))
        shown.show(lambda: loss_curve(now[:done], want))
        if also:
            also(done, held)

    train(LiveDevice(look if shown.handle else None), held, losses)
    run = WatchedRun(losses.copy_to_host(), _on_host(held, names), want)
    shown.show(lambda: loss_curve(run.losses, want))
    return run


class _Display:
    """A place under a notebook's cell whose figure is replaced; nothing where no notebook is."""

    def __init__(self):
        self.handle = None
        try:
            from IPython import get_ipython
            from IPython.display import HTML, display
        except ImportError:
            return
        if get_ipython() is not None:
            self.handle = display(HTML("<p>The first step ...</p>"), display_id=True)

    def show(self, drawn):
        if self.handle:
            self.handle.update(drawn())


@plots.responsive
def loss_curve(losses, want):
    """The loss of each step so far, over the curve of the same run in float64."""
    fig, ax = plots.new(*((3.6, 2.6) if plots.on_phone() else (6.4, 2.8)))
    ax.plot(
        np.arange(1, len(want) + 1), want, color=COLOUR["orange"], linewidth=4, alpha=0.5, label="float64"
    )
    ax.plot(np.arange(1, len(losses) + 1), losses, color=COLOUR["blue"], linewidth=1.6, label="your kernels")
    ax.set_xlim(0, len(want) + 1)
    ax.set_ylim(0, 1.1 * max(np.max(want), np.nanmax(losses, initial=0)))
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    plots.legend(fig)
    last = f"{losses[-1]:.3f}" if len(losses) else "not yet known"
    there = f"{len(losses)} of {len(want)} steps"
    return plots.show(
        fig,
        alt=f"Loss by step. After {there} the loss is {last}; it began at {want[0]:.3f}. "
        "A wider line behind it is the same run in float64.",
        caption=f"After {there} the loss is {last}. The wide line is the same run in float64.",
    )


@plots.responsive
def mistakes(run, count=500, seed=1, most=12):
    """Fresh pictures that a network takes for another digit, with what it says of each."""
    images, labels = drawn_digits(np.random.default_rng([seed, 13]), count)
    said = mlp_scores(images, *(run.weights[name] for name in WEIGHTS))[2].argmax(axis=1)
    wrong = np.flatnonzero(said != labels)
    columns = 4 if plots.on_phone() else 6
    shown = wrong[:most]
    rows = max(1, -(-len(shown) // columns))
    fig, axes = plots.new(0.95 * columns, 1.25 * rows, rows=rows, columns=columns)
    for ax in np.ravel(axes):
        ax.set_axis_off()
    for ax, number in zip(np.ravel(axes), shown, strict=False):
        side = int(np.sqrt(images.shape[1]))
        ax.imshow(images[number].reshape(side, side), cmap="gray_r", vmin=0, vmax=1)
        ax.set_title(f"{labels[number]}, said {said[number]}", fontsize=9)
    told = ", ".join(f"a {labels[number]} taken for a {said[number]}" for number in shown) or "none"
    return plots.show(
        fig,
        alt=f"{len(wrong)} of {count} fresh pictures are taken for another digit. Shown: {told}.",
        caption=f"{len(wrong)} of {count} fresh pictures are taken for another digit. Above each stands the "
        "digit that was drawn, then what the network said.",
    )


class CountingDevice:
    """A device whose launches are counted on the engine. Its arrays are NumPy's."""

    def __init__(self):
        self.profiles = []  # (kernel's name, Profile, {number of an array: Footprint})
        self.names, self.made = {}, []

    def empty(self, shape, dtype):
        self.made.append(np.zeros(shape, dtype))
        return self.made[-1]

    zeros = empty

    def fill(self, array, value):
        array[...] = value

    def copy(self, target, source):
        target[...] = source

    def launch(self, kernel, grid, block, *arguments, shared=0):
        configured = kernel[grid, block, 0, shared] if shared else kernel[grid, block]
        profile = warplab.profile(configured, *arguments)
        python = getattr(kernel, "py_func", None)
        known = list(inspect.signature(python).parameters) if python else []
        touched = {}
        for label, footprint in profile.footprints.items():
            name = (re.match(r"argument '(.*?)' \(", label) or [label, ""])[1]
            place = known.index(name) if name in known else int((re.findall(r"\d+$", name) or ["0"])[0]) - 1
            if 0 <= place < len(arguments):
                array = arguments[place]
                touched[id(array)] = footprint
                if footprint.written and name in known:
                    self.names.setdefault(id(array), name)
        self.profiles.append((profile.kernel, profile, touched))


@dataclass
class Counted:
    """Where the bytes of a step go. kernels: name -> (launches, bytes); between: arrays of the student's own
    that one kernel writes and another reads: [(bytes, name, writer, readers)], most first. All of one step.
    """

    kernels: dict
    between: list


def counted(train_mlp, steps=2, seed=0):
    """Count `train_mlp`'s launches on the engine, 32 pictures of 64 pixels a step. Returns a Counted."""
    inputs, device = _mlp_inputs(steps, seed), CountingDevice()
    given = {name: np.array(value) for name, value in inputs.items() if type(value) is np.ndarray}
    train_mlp(
        device,
        *(given[name] for name in ("images", "labels")),
        inputs["batch"],
        steps,
        *(inputs[name] for name in NUMBERS),
        *(given[name] for name in WEIGHTS),
        np.zeros(steps, np.float32),
    )
    kernels, writers, readers, moved, state = {}, {}, {}, {}, set()
    for name, profile, touched in device.profiles:
        launches, total = kernels.get(name, (0, 0))
        kernels[name] = launches + 1 / steps, total + profile.global_memory.bytes / steps
        for array, print_ in touched.items():
            if print_.read:
                if array not in writers:
                    state.add(array)  # read before it was written: it lives on from step to step
                readers.setdefault(array, {})[name] = None
            if print_.written:
                writers.setdefault(array, {})[name] = None
            moved[array] = moved.get(array, 0) + (print_.read + print_.written) / steps
    own = {id(array): array for array in device.made}
    between = [
        (moved[array], f"{device.names.get(array, 'an array')} {own[array].shape}", [*by], [*readers[array]])
        for array, by in writers.items()
        if array in own and array not in state and array in readers
    ]
    return Counted(kernels, sorted(between, key=lambda one: -one[0]))


@plots.responsive
def by_kernel(found):
    """A bar for each kernel of a step: launches, bytes, share; below it the arrays between kernels."""
    rows = sorted(found.kernels.items(), key=lambda row: row[1][1])
    total = sum(moved for _, (_, moved) in rows)
    phone = plots.on_phone()
    fig, ax = plots.new(3.6 if phone else 6.6, 0.9 + 0.42 * len(rows))
    ax.barh([name for name, _ in rows], [moved for _, (_, moved) in rows], color=COLOUR["blue"], height=0.6)
    for place, (_, (launches, moved)) in enumerate(rows):
        more = f"{moved / total:.0%}" if phone else f"{launches:g} x, {moved:,.0f} bytes, {moved / total:.0%}"
        ax.annotate(more, (moved, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_xlim(0, max(moved for _, (_, moved) in rows) * (1.25 if phone else 1.6))
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    launches = sum(count for _, (count, _) in rows)
    lines = [f"{launches:g} launches and {total:,.0f} bytes a step, counted by sectors."]
    if found.between:
        passed = (
            f"{name}, {moved:,.0f} bytes: written by {' and '.join(by)}, read by {' and '.join(of)}"
            for moved, name, by, of in found.between[:4]
        )
        lines.append(f"Written by one kernel and read by another: {'; '.join(passed)}.")
    told = "; ".join(f"{name}: {n:g} launches, {moved:,.0f} bytes" for name, (n, moved) in reversed(rows))
    return plots.show(fig, alt=f"Bytes of a step by kernel. {told}.", caption=" ".join(lines))
