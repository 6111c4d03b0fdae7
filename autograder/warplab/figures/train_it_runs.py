"""Live drawings for the notebook of problem set 13: a run's loss while it learns, its mistakes, what it
writes, and where its bytes go.

Host code is recorded and replayed on the engine as in grading, so kernels may be in any language, and the
drawings are the same with and without a GPU.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml

from warplab import plots
from warplab.crossing import driver
from warplab.crossing.execute import Memory
from warplab.crossing.orders import LaunchStep, describe
from warplab.evidence.measure import RESULTS
from warplab.hardware.target import Target
from warplab.models.drawn_digits import drawn_digits
from warplab.models.training_runs import TIMED, WEIGHTS, mlp_scores
from warplab.simt.counters.collect import Counters
from warplab.simt.counters.footprint import DistinctSectors
from warplab.simt.profile import summary
from warplab.tasks import registry
from warplab.tasks.text_run import LETTERS, TEXT_WEIGHTS, write

COLOUR = plots.PALETTE
WRITING = Path(__file__).with_name("train_it_writing.yml")
EVERY = 1.0  # seconds between two drawings of a running training
MLP, TEXT = registry.get("ps13/train_mlp"), registry.get("ps13/train_text")


@dataclass
class WatchedRun:
    """A finished run. weights: {name: NumPy array}. want: the losses of the same run in float64.

    written: for a network that learns a text, [{"steps", "loss", "text"}] at intervals.
    """

    losses: np.ndarray
    weights: dict
    want: np.ndarray
    written: list = field(default_factory=list)


def watch(train_mlp, steps=64, seed=0):
    """Train by `train_mlp` on drawn digits, 32 of 512 pictures a step, and draw its loss live."""
    return _watched(MLP, _mlp_case(steps, seed), train_mlp)


def watch_text(train_text, steps=60, seed=0, every=20, sequences=4, width=16, hidden=32, letters=40):
    """Train by `train_text` on the rhyme, draw its loss live, and print a sample every `every` steps."""
    case, written = text_case(steps, seed, sequences, width, hidden), []

    def writes(done, arrays):
        if done % every == 0:
            text = sample({name: arrays[name] for name in TEXT_WEIGHTS}, letters)
            written.append({"steps": done, "loss": float(arrays["losses"][done]), "text": text})
            print(f"after {done} steps: {text!r}")

    run = _watched(TEXT, case, train_text, writes)
    run.written = written
    return run


def text_case(steps, seed, sequences, width, hidden):
    """A case of the text task: the rhyme in sequences of 16 letters, and initial weights."""
    numbers = TIMED | {"rate": 0.02, "steps": steps}
    rng = np.random.default_rng(seed)
    return TEXT.run(rng, "learns", 16, sequences, width, hidden, len(LETTERS), numbers)


def writing_record():
    """The record of `python -m workshop writing`: what the reference's network wrote as it learned."""
    return yaml.safe_load(WRITING.read_text(encoding="utf-8"))


def timed_record():
    """The reference's 128 steps beside its two yardsticks, as timed on a GPU; "made": where and when."""
    (record,) = yaml.safe_load((RESULTS / "timed.yml").read_text(encoding="utf-8"))
    made = f"{record['device']}, driver {record['driver']}, torch {record['torch']}, {record['date'][:10]}, "
    return record | {"made": f"recorded on {made}commit {record['commit'][:8]} - not this machine"}


def sample(weights, count=120, seed=0):
    """`count` letters sampled from a network, beginning with the rhyme's first word."""
    return write(weights, "twinkle", count, np.random.default_rng(seed))


def _mlp_case(steps, seed=0):
    numbers = TIMED | {"batch": 32, "steps": steps}
    return MLP.run(np.random.default_rng(seed), "learns", 512, 8, 32, 10, numbers)


def _recorded(task, case, train):
    """The Order of the host function `train`, recorded as in grading and not run yet."""
    answer = driver.answer(driver.question(task, case), [task.entry], train, None, None)
    return driver.finish(task, case, answer, None)


def _watched(task, case, train, also=None):
    """Run `train` launch by launch, with its loss drawn again and again; returns the WatchedRun."""
    order, want = _recorded(task, case, train), task.reference(case.inputs)["losses"]
    memory, shown, drawn, done = Memory(order.buffers), _Display(), time.monotonic(), 0
    losses = memory.arrays["losses"]
    try:
        for step in order.steps:
            memory.do(step, order)
            while done < len(losses) and np.isfinite(losses[done]) and losses[done]:
                if also:  # after this step's loss, before its update
                    also(done, memory.arrays)
                done += 1
            if shown.handle and time.monotonic() > drawn + EVERY:
                shown.show(lambda now=losses[:done]: loss_curve(now, want))
                drawn = time.monotonic()
    finally:
        memory.release()
    run = WatchedRun(losses, {name: memory.arrays[name] for name in task.weights}, want)
    shown.show(lambda: loss_curve(run.losses, want))
    return run


class _Display:
    """An output area of a notebook's cell whose figure can be replaced; does nothing outside of notebooks."""

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
        np.arange(1, len(want) + 1), want, color=COLOUR["orange"], linewidth=7, alpha=0.55, label="float64"
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
    """New pictures that a network classifies wrongly, with its answers."""
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


@dataclass
class Counted:
    """The memory traffic of one step. kernels: {name: (launches, bytes)}. between: the student's own arrays
    that one kernel writes and another reads, [(bytes, type and shape, writers, readers)], the largest first.
    """

    kernels: dict
    between: list


def counted(train_mlp, steps=2, seed=0):
    """Count `train_mlp`'s launches on the engine, 32 pictures of 64 pixels a step. Returns a Counted."""
    order = _recorded(MLP, _mlp_case(steps, seed), train_mlp)
    memory, kernels, writers, readers, moved, state = Memory(order.buffers), {}, {}, {}, {}, set()
    labels = {region.label: name for name, region in memory.regions.items()}
    try:
        for step in order.steps:
            counters, distinct = Counters(), DistinctSectors()
            machine = memory.do(step, order, (counters, distinct))
            if machine is None or type(step) is not LaunchStep:
                continue
            profile = summary(machine, counters, Target.of(order.arch), resources=False)
            name = order.kernels[step.kernel].name
            launches, total = kernels.get(name, (0, 0))
            kernels[name] = launches + 1 / steps, total + profile.global_memory.bytes / steps
            for label, print_ in distinct.by_buffer().items():
                array = labels.get(label, "")
                if print_.read:
                    if array not in writers:
                        state.add(array)  # read before it is written: it persists from step to step
                    readers.setdefault(array, {})[name] = None
                if print_.written:
                    writers.setdefault(array, {})[name] = None
                moved[array] = moved.get(array, 0) + (print_.read + print_.written) / steps
    finally:
        memory.release()
    between = [
        (moved[array], describe(order.buffers[array]), [*by], [*readers[array]])
        for array, by in writers.items()
        if array.startswith("#") and array not in state and array in readers
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
        lines.append(f"What fusing could save, most bytes first: {'; '.join(passed)}.")
    told = "; ".join(f"{name}: {n:g} launches, {moved:,.0f} bytes" for name, (n, moved) in reversed(rows))
    return plots.show(fig, alt=f"Bytes of a step by kernel. {told}.", caption=" ".join(lines))
