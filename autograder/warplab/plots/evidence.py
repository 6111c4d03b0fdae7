"""The marker of a point shows where it comes from: each kind of evidence has its own."""

from dataclasses import dataclass

from warplab.plots.responsive import COLUMN, on_phone
from warplab.plots.theme import INK, PALETTE, PAPER, legend, new

MARKERS = {
    "live": {"marker": "o", "color": PALETTE["blue"], "markerfacecolor": PALETTE["blue"]},
    "extrapolated": {"marker": "o", "color": PALETTE["blue"], "markerfacecolor": PAPER},
    "recorded": {"marker": "s", "color": PALETTE["green"], "markerfacecolor": PALETTE["green"]},
    "contributed": {"marker": "P", "color": PALETTE["green"], "markerfacecolor": PALETTE["green"]},
    "published": {"marker": "^", "color": PALETTE["gold"], "markerfacecolor": PALETTE["gold"]},
    "yours": {"marker": "D", "color": PALETTE["purple"], "markerfacecolor": PALETTE["purple"]},
}
# The marker of counts by the engine, which are not a kind of `Time`.
COUNTED = {"marker": "X", "color": INK, "markerfacecolor": INK}
MEANING = {
    "live": "live: measured on this machine, now",
    "extrapolated": "extrapolated from a smaller run on this machine",
    "recorded": "recorded on another machine, with date",
    "contributed": "recorded by a reader, checked",
    "published": "published by others, cited",
    "yours": "yours: your own GPU, in this browser",
}
UNITS = (("day", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True)
class Time:
    """One row: `seconds` (None when `kind` is "missing") and where they come from: a
    key of MARKERS, or "missing".
    """

    label: str
    seconds: float | None
    kind: str = "live"

    def __post_init__(self):
        if self.kind not in MARKERS and self.kind != "missing":
            raise ValueError(
                f"{self.label}: kind is {self.kind!r}, not one of {', '.join(MARKERS)} or missing"
            )
        if (self.seconds is None) != (self.kind == "missing"):
            raise ValueError(f"{self.label}: a row has seconds, or the kind 'missing' and none")


def times(rows, budget=None, budget_label="", nothing="not recorded yet"):
    """Return a matplotlib figure with one row a `Time`, on a logarithmic axis.

    budget: seconds; draws a line to stay left of, labelled `budget_label`. nothing: the text of missing rows.
    """
    known = [row.seconds for row in rows if row.seconds is not None] + ([budget] if budget else [])
    missing = [row.label for row in rows if row.kind == "missing"]
    rows = [row for row in rows if row.kind != "missing"]
    figure, ax = new(COLUMN, 0.9 + 0.42 * (len(rows) + 1) + (0.3 if missing else 0))
    low, high = min(known) / 4, max(known) * (60 if on_phone() else 12)
    for y, row in enumerate(rows):
        style = MARKERS[row.kind]
        ax.plot([low, row.seconds], [y, y], color=style["color"], alpha=0.35, linewidth=1.5)
        ax.plot([row.seconds], [y], markersize=9, markeredgewidth=2, linestyle="none", **style)
        ax.annotate(duration(row.seconds), (row.seconds, y), (9, 0), textcoords="offset points", va="center")
    if budget:
        ax.axvline(budget, color=INK, linestyle=(0, (4, 3)), linewidth=1.2)
        place = {"textcoords": "offset points", "va": "center", "fontsize": 10.5}
        ax.annotate(budget_label, (budget, len(rows) - 0.35), (5, 0), **place)
    ax.set(xscale="log", xlim=(low, high), ylim=(len(rows) - (0 if budget else 0.4), -0.6))
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.tick_params(axis="y", length=0)
    ticks = _ticks(low, high)
    ticks = ticks[:: 2 if on_phone() and len(ticks) > 2 else 1]  # their words would touch
    ax.set_xticks(ticks, [duration(tick) for tick in ticks])
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.spines["left"].set_visible(False)
    used = [kind for kind in MARKERS if any(row.kind == kind for row in rows)]
    handles = [
        ax.plot([], [], markersize=8, markeredgewidth=2, linestyle="none", **MARKERS[kind])[0]
        for kind in used
    ]
    legend(figure, *with_missing(ax, handles, [MEANING[kind] for kind in used], missing, nothing))
    return figure


def with_missing(ax, handles, words, missing, why="not recorded yet"):
    """`handles` and `words` of a legend with one more line, which lists what has no number yet."""
    if not missing:
        return handles, words
    nothing = ax.plot([], [], linestyle="none")
    return [*handles, *nothing], [*words, f"{why}: {'; '.join(missing)}"]


def duration(seconds):
    """Seconds as text with a suitable unit: 0.0042 is "4.2 ms"."""
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= size * 0.9995), UNITS[-1])
    return f"{_three(seconds / size)} {unit}"


def _ticks(low, high):
    """Ticks at familiar units; on a short axis also at every power of ten up to a second."""
    whole = [size for _, size in reversed(UNITS) if low < size < high]
    if len(whole) >= 3:
        return whole
    return sorted(
        {10.0**k for k in range(-9, 1) if low < 10.0**k < high} | {size for size in whole if size > 1}
    )


def _three(value):
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"
