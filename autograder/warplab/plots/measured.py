"""Draws an experiment's evidence in one figure: each origin with its own marker and banner, theory dashed."""

import itertools
import json
import math
import re
import textwrap

from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from warplab.evidence.experiments.rooflines import INTENSITY
from warplab.evidence.measure import tag
from warplab.evidence.roofs import roof
from warplab.evidence.side_by_side import model
from warplab.plots.evidence import MARKERS, duration
from warplab.plots.figure import axes_place, show
from warplab.plots.responsive import COLUMN, PHONE, on_phone, responsive
from warplab.plots.theme import INK, PALETTE, PAPER, legend, new

COLOURS = list(PALETTE.values())
# Marker fillings: a row for each reuse of the colours, a column for each recorded device.
FILLS = (("full", "none"), ("left", "right"), ("bottom", "top"))
NOUNS = {"reduce": "sum", "matmul": "product", "transpose": "transpose"}
UNITS = {"s": (1.0, "time"), "B": (1e9, "GB"), "J": (1.0, "joules")}


@responsive
def measured(measurement, alt=None, caption=None):
    """Return a Figure of a `warplab.measure` result: rates if every point has one, else
    times or bytes held, on logarithmic axes. A series has one colour, and each recorded
    device its own filling. Published points at few places have a row each instead. With
    records and published figures together a plot is full: draw `measurement.own`.

    alt, caption: what was found; default to the question. The banners follow, once, under the plot. Without
    any evidence the figure says "not recorded yet".
    """
    points = [p for e in measurement.evidence for p in e.points]
    if _few_places(measurement):
        return _show(measurement, _rows(measurement), alt, caption)
    rates, flops, unit, label = _quantity(points)
    names = list(dict.fromkeys(_name(e, p.series) for e in measurement.evidence for p in e.points))
    figure, ax = new(COLUMN, 3.6 + 0.22 * len(names), phone=(PHONE, 3.6 + 0.44 * len(names)))
    taken = [e for e in measurement.evidence if e.kind in ("recorded", "contributed")]
    mixed = len({(e.kind, e.stale) for e in measurement.evidence}) > 1  # else the caption tells the origin
    for evidence in measurement.evidence:
        device = taken.index(evidence) if evidence in taken else 0
        for series, row in evidence.series().items():
            values = [(p.rate if rates else p.median) / unit for p in row]
            place = names.index(name := _name(evidence, series))
            said = name + (_origin(evidence) if mixed else "")
            _draw_series(ax, evidence, (place, device), said, row, values)
    ours = [e for e in measurement.evidence if e.kind != "published"]
    if rates or label != "time":
        _roofs(ax, ours, unit, slope=measurement.x == INTENSITY)
    for device, evidence in enumerate(taken if len(taken) > 1 else ()):
        style = _style(evidence, INK, (0, device))
        ax.plot([], [], linewidth=1.2, markersize=7, label=evidence.device, **style)
    if points:
        ax.set(xscale="log", yscale="log", xlabel=measurement.x, ylabel=label)
        _ticks(ax.xaxis, [p.x for p in points], _number)
        shown = [(p.rate if rates else p.median) / unit for p in points]
        _ticks(ax.yaxis, shown, duration if label == "time" else _number)
        if taken and not mixed:
            _name_ends(ax)
        if ax.get_legend_handles_labels()[1]:
            legend(figure)
    else:
        ax.set_axis_off()
        middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
        ax.text(0.5, 0.5, "not recorded yet", style="italic", color=PALETTE["grey"], **middle)
    shown = _show(measurement, figure, alt, caption)
    per = "flops" if flops else "bytes" if rates else "seconds"
    if points and label in ("TFLOP/s", "GB/s", "time"):  # units that the page's own lab measures, too
        place = axes_place(ax) | {"per": per, "unit": unit}
        shown.data = {"measured": measurement.name, "axes": json.dumps(place)}
    return shown


def _show(measurement, figure, alt, caption):
    """The Figure of a drawing, with its alternative text and the banners under its caption."""
    spoken = "; ".join(
        f"{p.series}{tag(e)} at {p.x:,g}: {p.text()}" for e in measurement.evidence for p in e.points[:9]
    )
    alt = alt or f"{measurement.question} {caption or ''} {spoken}"
    text = f"{caption or measurement.question} {said_of(measurement)}"
    shown = show(figure, alt, text, [e.kind for e in measurement.evidence])
    shown.name = measurement.name
    return shown


def _few_places(measurement):
    """Whether all evidence is published, in fewer places than series: lines and colours would say nothing."""
    published = all(e.kind == "published" for e in measurement.evidence)
    rows = [row for e in measurement.evidence for row in e.series().values()]
    places = {p.x for row in rows for p in row}
    return published and len(places) < len(rows) and all(len(row) <= 2 for row in rows)


def _rows(measurement):
    """A drawing with a row for each published point, under the name of its device."""
    points = [p for e in measurement.evidence for p in e.points]
    rates, _, unit, label = _quantity(points)
    words = duration if label == "time" else _rounded
    same = len({p.x for p in points}) == 1
    rows = []  # (text, value; None for a device)
    for evidence in measurement.evidence:
        rows.append((f"{evidence.device.removeprefix('NVIDIA ')}, {evidence.year}", None))
        for p in evidence.points:
            name = in_words(p.series) + ("" if same else f", {_place(p.x)}")
            name = textwrap.fill(name, 26 if on_phone() else 44)
            rows.append((name, (p.rate if rates else p.median) / unit))
    heights = [1 + 0.6 * name.count("\n") for name, _ in rows]  # lines of text are closer than rows
    ends = list(itertools.accumulate(heights))
    middles = [end - height / 2 for end, height in zip(ends, heights, strict=True)]
    tall = 0.8 + 0.25 * ends[-1]
    figure, ax = new(COLUMN, tall, phone=(PHONE, tall))
    ax.set_yticks(middles, [name for name, _ in rows])
    for (_, value), y, tick in zip(rows, middles, ax.get_yticklabels(), strict=True):
        if value is None:
            tick.set_fontweight("bold")
        else:
            ax.plot([value], [y], markersize=8, linestyle="none", **MARKERS["published"])
            place = {"textcoords": "offset points", "va": "center", "fontsize": 9.5}
            ax.annotate(words(value), (value, y), (8, 0), **place)
    values = [value for _, value in rows if value is not None]
    low, high = min(values) / 1.3, max(values) * 1.3
    room = (high / low) ** (0.3 if on_phone() else 0.1)  # for the last number
    ax.set(xscale="log", xlim=(low, high * room), ylim=(ends[-1], 0))
    ax.set_xlabel(label if same else f"{label} (each row names its {measurement.x})", loc="right")
    _ticks(ax.xaxis, values, words)
    if on_phone():
        ax.xaxis.set_major_locator(LogLocator(numticks=3))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.spines["left"].set_visible(False)
    return figure


def _quantity(points):
    """(whether rates are drawn, whether these are FLOP rates, the factor of the unit, the axis label)."""
    rates = bool(points) and all(p.rate for p in points) and len({bool(p.flops) for p in points}) == 1
    flops = rates and all(p.flops for p in points)
    if rates:
        return rates, flops, *((1e12, "TFLOP/s") if flops else (1e9, "GB/s"))
    return rates, flops, *UNITS[points[0].unit if points else "s"]


def _draw_series(ax, evidence, number, name, row, values):
    """Draw one series. number: (of its colour, of its device, which decides how markers are filled)."""
    label = textwrap.fill(name, 60)
    named = label not in ax.get_legend_handles_labels()[1]
    style = _style(evidence, COLOURS[number[0] % len(COLOURS)], number) | ({"label": label} if named else {})
    ax.plot([p.x for p in row], values, linewidth=1.2, markersize=7, **style)


def _name_ends(ax):
    """Label lines at their ends instead of in a legend, if there are at least three short names and no label
    would meet another line.
    """
    lines = [line for line in ax.get_lines() if len(line.get_xydata()) and line.get_label()[0] != "_"]
    ends = [max(map(tuple, line.get_xydata())) for line in lines]
    room = 0.06 * math.log(ax.get_ylim()[1] / ax.get_ylim()[0])
    near = any(
        at >= x and abs(math.log(height / y)) < room
        for (_, (x, y)), (other, end) in itertools.permutations(zip(lines, ends, strict=True), 2)
        for at, height in (*other.get_xydata(), (x, end[1]))
    )
    if near or on_phone() or len(lines) < 3 or max(len(line.get_label()) for line in lines) > 24:
        return
    place = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 10}
    for line, end in zip(lines, ends, strict=True):
        ax.annotate(line.get_label(), end, color=line.get_color(), **place)
        line.set_label("")


def _origin(evidence):
    return f" ({evidence.kind}{', earlier version' if evidence.stale else ''})"


def _style(evidence, colour, number):
    place, device = number
    fills = FILLS[place // len(COLOURS) % len(FILLS)]
    return {
        **MARKERS[evidence.kind],
        "color": colour,
        "markerfacecolor": colour,
        "linestyle": "none" if evidence.kind == "published" else ("-", (0, (4, 2)))[device % 2],
        "markerfacecoloralt": PAPER,
        "fillstyle": fills[device % 2],
    }


def said_of(measurement):
    """The banners of a measurement's evidence, as sentences."""
    return " ".join(f"{banner[0].upper()}{banner[1:]}." for banner in measurement.banners)


def _ticks(axis, values, words):
    """Set ticks at round numbers, fewer of them the more powers of ten there are. words: formats a number."""
    powers = math.log10(max(values) / min(values))
    # within half a power of ten a logarithmic axis has too many ticks for a phone
    few = MaxNLocator(4) if powers < 0.5 and on_phone() else None
    powers *= 1.7 if axis.axis_name == "x" and on_phone() else 1  # words side by side need more room
    finest = (1, 1.5, 2, 3, 5, 7) if powers < 1 else (1, 2, 5)
    subs = finest if powers < 2.5 else (1, 3) if powers < 4 else (1,)
    axis.set_major_locator(few or LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axis.set_minor_locator(NullLocator())


def _number(value):
    """A number as text: "4,096", "0.25", and "16 M" from a hundred thousand on."""
    return EngFormatter(sep=" ")(value) if value >= 1e5 else f"{value:,.0f}" if value >= 1e3 else f"{value:g}"


def _rounded(value):
    """A value as text with three significant digits, or all digits before the point: "2.87", "3,012"."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def _place(x):
    """A place as text: "4,096", "268 M"."""
    return _number(float(f"{x:.3g}") if x >= 1e5 else x)


def _name(evidence, series):
    """The series' name in the legend; published ones with device and year, as several measured the same."""
    if evidence.kind != "published":
        return in_words(series)
    return f"{series}, {evidence.device.removeprefix('NVIDIA ')}, {evidence.year}"


def in_words(series):
    """The name of a series as the text has it: reduce_atomic is "atomic sum"."""
    said = re.sub(r"^(cuda|course): ", "", series)
    verbs = rf"^({'|'.join(NOUNS)})_(\w+)"
    said = re.sub(verbs, lambda m: f"{m[2].replace('_', '-')} {NOUNS[m[1]]}", said)
    said = re.sub(r"\b(fp|bf|tf|int)(\d+)\b", lambda m: m[0].upper(), said)
    return re.sub(r"^torch\b", "PyTorch", said).replace("_", " ")


def _roofs(ax, ours, unit, slope=False):
    """Draw the theoretical peaks that the points name as dashed lines, equal ones once; with `slope` also the
    roof of memory bandwidth over FLOP a byte.
    """
    style = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3))}
    peaks, devices = {}, list(dict.fromkeys(e.device for e in ours))
    for evidence in ours:
        names = {p.roof for p in evidence.points if p.roof}
        limits = {name: limit for name in sorted(names) if (limit := roof(evidence.device, name))}
        for name, limit in limits.items():
            equal = next((known for known in peaks if abs(known / limit - 1) < 0.01), limit)
            peaks.setdefault(equal, {}).setdefault(name, []).append(evidence.device)
        bandwidth = roof(evidence.device, "memory") if slope else None
        if bandwidth:
            ends = [min(p.x for p in evidence.points), max(limits.values(), default=0) / bandwidth]
            ax.plot(ends, [bandwidth * x / unit for x in ends], **style)
    for limit, named in peaks.items():
        ax.axhline(limit / unit, **style)
        held = next(iter(named.values()))
        whose = "" if len(held) == len(devices) else ", ".join(model(device) for device in held) + ": "
        said = f"{whose}{in_words(', '.join(named))} peak"
        end, side = _free_place([p for e in ours for p in e.points], limit, [*peaks])
        place = {"ha": ("left", "right")[end], "va": "bottom" if side > 0 else "top", "fontsize": 9}
        place |= {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(said, (end, limit / unit), (-4 if end else 4, 3 * side), **place)


def _free_place(points, limit, peaks):
    """A place for a peak's name that meets no point and no other peak's line.

    Returns (1 for the right end of its line or 0 for the left, 1 for above or -1 for below).
    """
    first, last = (math.log(end(p.x for p in points)) for end in (min, max))
    heights = [*(p.rate or p.median for p in points), *peaks]
    away = 0.06 * math.log(max(heights) / min(heights))  # from the line to the middle of the name

    def room(place):
        at = last if place[0] else first  # a name is at most two fifths as wide as the axes
        near = [peak for peak in peaks if peak != limit]
        near += [p.rate or p.median for p in points if abs(math.log(p.x) - at) <= 0.39 * (last - first)]
        return min((abs(math.log(height / limit) - place[1] * away) for height in near), default=away)

    return max(itertools.product((1, 0), (1, -1)), key=lambda place: min(away, room(place)))
