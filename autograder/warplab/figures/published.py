"""What the published numbers on an experiment show, in a sentence whose numbers are computed from
`published.yml`: the captions of the figures of what others measured.
"""

from warplab.evidence.measure import published
from warplab.evidence.side_by_side import model
from warplab.figures.recorded import _listed, _percent, _rate, _three
from warplab.plots.evidence import duration

FINDINGS = {}


def finding_of_others(name):
    """What others found on the experiment `name`; empty where no sentence is written yet."""
    return FINDINGS[name](Others(published(name))) if name in FINDINGS else ""


class Others:
    """The numbers of several sources. Raises LookupError for one that no source has."""

    def __init__(self, sources):
        self.devices = {}
        for e in sources:
            self.devices.setdefault(model(e.device.split(",")[0]), {}).update(e.series())

    def series(self, device, series):
        """{x: Point} of one device."""
        return {p.x: p for p in self.devices[device][series]}

    def last(self, device, series):
        return max(self.devices[device][series], key=lambda p: p.x)


def found(name):
    """Register a function from Others to the sentence on the experiment `name`."""

    def register(say):
        FINDINGS[name] = say
        return say

    return register


@found("crossover")
def _(o):
    gpu, copies, cpu = (
        o.series("GTX 1070 Ti", name)
        for name in ("GPU: product", "GPU: product, with both copies", "six cores: product")
    )
    wins = min(x for x in cpu if all(copies[more].median < cpu[more].median for more in cpu if more >= x))
    before = max(x for x in cpu if x < wins)
    side, next_side = (f"{(x / 2) ** (1 / 3):,.0f}" for x in (before, wins))
    times = [duration(row[before].median) for row in (gpu, copies, cpu)]
    return (
        f"GTX 1070 Ti: a product of side {side} takes {times[0]}, or {times[1]} with the copies there and "
        f"back. Six CPU cores take {times[2]}. From side {next_side} on the GPU wins even with the copies."
    )


@found("occupancy")
def _(o):
    shares, rates = [], []
    for device, series in o.devices.items():
        row = {p.x: p for p in series["a load at a time"]}
        shares.append(f"{_percent(row[32].rate / row[64].rate)} on the {device}")
        rates.append(_rate(row[64]))
    return (
        f"Of the bandwidth that 64 warps reach with one load a thread, 32 warps reach {_listed(shares)}. "
        f"The 64 warps reach {_listed(rates)}."
    )


@found("divergence")
def _(o):
    lanes = o.series("GTX 1070 Ti", "lanes disagree")
    warps = o.last("GTX 1070 Ti", "whole warps disagree")
    most, alone = lanes[max(lanes)], lanes[1].median
    return (
        f"GTX 1070 Ti: {most.x:g} paths within each warp take {_three(most.median / alone)} times as long as "
        f"one path, and {warps.x:g} paths, each in whole warps, {_three(warps.median / alone)} times as long."
    )


@found("reduction")
def _(o):
    names = ("an atomic a number", "a tree in shared memory", "by shuffles, several loads a thread")
    rates = [_rate(o.last("RTX 4090", name)) for name in names]
    return (
        f"An RTX 4090 adds up {rates[0]} of numbers with an atomic for each, {rates[1]} with a tree in each "
        f"block, and {rates[2]} with shuffles and several loads a thread."
    )
