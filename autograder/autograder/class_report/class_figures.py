"""The plots of the class report; each plot's alt text has its numbers."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.class_report.overview import SetOverview, TaskOutcome, TimedRow
from warplab import plots
from warplab.plots.responsive import on_phone, responsive
from warplab.plots.theme import INK, legend

SPREAD = 0.3  # dots lie within this part of a row's height above and below its middle
PARTS = (("all points", "full", "green"), ("some", "partial", "gold"), ("none", "none", "orange"))


@responsive
def scores(sets: Sequence[SetOverview]) -> plots.Figure:
    """A dot for each student in each set, at the share of the points judged so far; and the median."""
    shown = [one for one in sets if one.shares]
    figure, ax = plots.new(height=0.9 + 0.5 * len(shown))
    for row, one in enumerate(shown):
        shares = 100 * np.sort(np.array(list(one.shares.values())))
        # students with similar points get dots at different heights, the same in every run
        apart = SPREAD * (np.arange(len(shares)) * 0.618 % 1 - 0.5) * 2
        ax.plot(shares, row + apart, "o", color=plots.PALETTE["blue"], alpha=0.6, markersize=5, clip_on=False)
        median = statistics.median(shares)
        ax.plot([median] * 2, [row - 0.4, row + 0.4], color=plots.PALETTE["orange"])
    name_rows(ax, [one.name for one in shown])
    ax.set_xlim(0, 100)
    ax.set_xlabel("points, in % of those judged so far")
    ax.grid(axis="x")
    told = [
        f"{one.name}: {len(one.shares)} students, median {100 * statistics.median(one.shares.values()):.0f} %"
        for one in shown
    ]
    alt = "Points of each student by set, in per cent of those judged so far. " + "; ".join(told) + "."
    return plots.show(figure, alt, "One dot is one student; the line is the median.")


@responsive
def tasks(outcomes: Sequence[TaskOutcome]) -> plots.Figure:
    """For each task a bar of the students with all, some and none of its points, the hardest task on top."""
    room = 0.55 if on_phone() else 0.36
    figure, ax = plots.new(height=1.3 + room * len(outcomes))
    left = np.zeros(len(outcomes))
    totals = np.array([one.full + one.partial + one.none for one in outcomes])
    for name, field, colour in PARTS:
        counts = np.array([getattr(one, field) for one in outcomes])
        width = 100 * counts / totals
        ax.barh(range(len(outcomes)), width, 0.7, left, color=plots.PALETTE[colour], label=name)
        for row, (count, start, wide) in enumerate(zip(counts, left, width, strict=True)):
            if wide >= 6:
                middle: Any = {"ha": "center", "va": "center", "fontweight": "bold"}
                ax.text(start + wide / 2, row, f"{count}", color="#ffffff", fontsize=11, **middle)
        left += width
    labels = [one.task.replace("/", "/\n", 1) if on_phone() else one.task for one in outcomes]
    name_rows(ax, labels)
    ax.set_xlim(0, 100)
    ax.set_xlabel("students, in %")
    legend(figure)
    told = [f"{one.task}: {one.full} all, {one.partial} some, {one.none} none" for one in outcomes]
    alt = (
        f"How many students got all, some or none of a task's points, hardest task first. {'; '.join(told)}."
    )
    return plots.show(figure, alt, "The hardest task stands on top; the numbers are students.")


@responsive
def times(timings: Sequence[TimedRow]) -> plots.Figure:
    """Each timed kernel's time divided by the library's on the same device in the same run, with interval."""
    names = list(dict.fromkeys(one.task for one in timings))
    figure, ax = plots.new(height=1.1 + 0.5 * len(names))
    for row, name in enumerate(names):
        mine = sorted((one for one in timings if one.task == name), key=lambda one: one.ratio)
        places = row + np.linspace(-SPREAD, SPREAD, len(mine)) if len(mine) > 1 else [row]
        for place, one in zip(places, mine, strict=True):
            ax.plot([one.low, one.high], [place] * 2, color=plots.PALETTE["blue"], linewidth=1.2)
            ax.plot(one.ratio, place, "o", color=plots.PALETTE["blue"], markersize=4)
    ax.axvline(1, color=INK, linewidth=1, linestyle="--")
    ax.set_xscale("log")
    name_rows(ax, names)
    ax.set_xlabel("time over the library's, same device and run")
    told = [
        f"{name}: {', '.join(f'{one.ratio:.3g}' for one in timings if one.task == name)}" for name in names
    ]
    alt = "Time of each timed kernel over the library's on the same device. " + "; ".join(told) + "."
    return plots.show(figure, alt, "The dashed line is the library's own time; a bar is a 95 % interval.")


def name_rows(ax: Any, names: Sequence[str]) -> None:
    """Label the rows of a plot, the first name on top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
