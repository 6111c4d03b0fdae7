"""Tables that compare computed with measured values, for the measurements page and the engine's page.

```{held} bounds     published measurements beside the bounds of the same work, and why others have no bound
```
```{held} caches     hit rates that others profiled, beside those of the cache model
```
```{held} counters   the engine's counts beside Nsight Compute's of the same launches
```
```{held} times      the times of those launches beside their bounds
```
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from measured_page import table
from spec_role import depend_on_registry

from warplab.evidence.measure import RESULTS, place
from warplab.figures import counted
from warplab.figures.held import Judged, judged
from warplab.hardware import specs
from warplab.timing.bench import seconds

BOUNDS = ("kernel", "GPU", "measured", "at least", "ratio", "other bounds", "from")
CACHES = ("what was profiled", "GPU", "rate", "profiled", "modelled", "off by", "from")
COUNTERS = (
    "Nsight Compute's name",
    "launches",
    "equal",
    "Nsight Compute to engine",
    "where not equal",
)
TIMES = ("launch", "measured", "at least", "ratio", "limit")
RATES = {"l1": "L1 hits", "l2": "L2 hits", "hbm": "from HBM"}


class Held(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        for path in RESULTS.glob("*.yml"):
            self.state.document.settings.env.note_dependency(str(path))
        depend_on_registry(self.state.document)
        shown = {
            "bounds": self.bounds,
            "caches": self.caches,
            "counters": self.counters,
            "times": self.times,
        }
        if self.arguments[0] not in shown:
            raise self.error(f"held: {', '.join(shown)}, not {self.arguments[0]!r}")
        return shown[self.arguments[0]]()

    def bounds(self) -> list[nodes.Node]:
        rows = [self.of(j) for j in judged() if j.found]
        lead = nodes.paragraph("", "Published, and held against no bound, with the reason:")
        return [table(rows, BOUNDS), lead, not_held(judged())]

    def of(self, j: Judged) -> tuple[str | nodes.Node, ...]:
        assert j.found is not None
        longest, *others = (f"{seconds(b.seconds)}, {b.level}" for b in j.found.bounds)
        return (
            f"{j.point.series}, at {place(j.point)} ({j.experiment})",
            j.evidence.device,
            seconds(j.point.median),
            longest,
            f"{j.ratio:.3g}",
            "; ".join(others),
            self.cited(j.evidence.cite),
        )

    def caches(self) -> list[nodes.Node]:
        sources = yaml.safe_load((RESULTS / "profiled.yml").read_text(encoding="utf-8"))
        rows, why = [], nodes.bullet_list()
        for source in sources:
            for kernel in source["kernels"]:
                for rate, name in RATES.items():
                    if rate in kernel:
                        theirs, ours = kernel[rate]
                        numbers = (
                            f"{theirs:.1f} %",
                            f"{ours:.1f} %",
                            f"{ours - theirs:+.1f}",
                        )
                        said = kernel["what"] + (f"; ours {kernel['at']}" if "at" in kernel else "")
                        card = specs.get(source["card"]).short
                        rows.append((said, card, name, *numbers, self.by(source)))
                if "wrong" in kernel:
                    why += item(f"{kernel['what']} ({source['device']}): {kernel['wrong']}.")
        errors = [nodes.paragraph("", one) for one in map(errors_of, sources) if one]
        return [
            table(rows, CACHES),
            *errors,
            nodes.paragraph("", "Where it is further off, and why:"),
            why,
        ]

    def counters(self) -> list[nodes.Node]:
        cards = [
            f"{len(c['launches'])} launches on an {c['device']}, driver {c['driver']}"
            for c in counted.cards()
        ]
        rows, numbers = [], {True: [0, 0], False: [0, 0]}
        for metric in (*counted.AGREE, *counted.DIFFER):
            pairs = counted.pairs(metric)
            if not pairs:  # no launch has any
                continue
            same = sum(here == there for here, there in pairs)
            ratios = sorted(there / here for here, there in pairs if here)
            equal = numbers[metric in counted.AGREE]
            equal[:] = equal[0] + same, equal[1] + len(pairs)
            span = "1" if same == len(pairs) else f"{ratios[0]:.4g} to {ratios[-1]:.4g}"
            rows.append((name_of(metric), f"{len(pairs)}", f"{same}", span, counted.WHY.get(metric, "")))
        (agree, of), (also, others) = numbers[True], numbers[False]
        said = (
            f"{'; '.join(cards)}; {counted.cards()[0]['date']}. Of {of} numbers that the assembler has no "
            f"reason to change {agree} are equal, and of {others} others {also}."
        )
        return [nodes.paragraph("", said), table(rows, COUNTERS)]

    def times(self) -> list[nodes.Node]:
        sources = yaml.safe_load((RESULTS / "profiled.yml").read_text(encoding="utf-8"))
        ours = {k["case"]: k["what"] for s in sources if "cite" not in s for k in s["kernels"]}
        what = ours | counted.WHAT
        every = sorted(
            (c for c in counted.counted() if counted.TIME in c.there),
            key=lambda c: c.ratio,
        )
        rows = [
            (
                what.get(c.name, f"{c.name}, of the benchmark"),
                seconds(c.there[counted.TIME] * 1e-9),
                seconds(c.bounds.at_least),
                f"{c.ratio:.3g}",
                c.bounds.binds.level,
            )
            for c in every
        ]
        middle = median(c.ratio for c in every)
        said = f"{len(every)} launches; the least ratio is {every[0].ratio:.2f}, the middle one {middle:.1f}."
        return [nodes.paragraph("", said), table(rows, TIMES)]

    def by(self, source: dict) -> nodes.Node:
        return self.cited(source["cite"]) if "cite" in source else nodes.Text(f"ours, {source['opened']}")

    def cited(self, key: str) -> nodes.Node:
        parsed = nodes.Element()
        self.state.nested_parse(StringList([f"{{cite}}`{key}`"]), self.content_offset, parsed)
        return nodes.inline("", "", *parsed[0].children)


def not_held(every: Iterable[Judged]) -> nodes.bullet_list:
    """A list item for each reason why measurements have no bound, with the series concerned."""
    kept: dict[str, dict[str, None]] = {}
    for j in every:
        if j.why:
            kept.setdefault(j.why, {})[f"{j.experiment}, {j.point.series} on {j.evidence.device}"] = None
    listed = nodes.bullet_list()
    for why, series in kept.items():
        listed += item(f"{why[0].upper()}{why[1:]}: {'; '.join(series)}.")
    return listed


def errors_of(source: dict) -> str:
    """A sentence on the model's errors in percentage points, for a source of our own; nothing for others."""
    if "cite" in source:
        return ""
    said = []
    for rate in ("l1", "l2"):
        off = sorted(abs(k[rate][0] - k[rate][1]) for k in source["kernels"] if rate in k)
        said.append(f"{RATES[rate]} by {median(off):.1f} points at the median and {off[-1]:.1f} at worst")
    times = sorted(max(k["hbm"]) / min(k["hbm"]) for k in source["kernels"])
    said.append(
        f"bytes read from HBM by {median(times) - 1:.1%} at the median and {times[-1] - 1:.0%} at worst"
    )
    there = {c.name: c.there for c in counted.counted() if c.card == source["card"]}
    missed = []
    for kernel in source["kernels"]:
        count = there[kernel["case"]]
        fetched = kernel["hbm"][1] / 100 * count["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
        missed.append(count["lts__t_sectors_srcunit_tex_lookup_miss.sum"] / fetched)
    said.append(
        f"and in L2 a sector from HBM was missed {min(missed):.1f} to {max(missed):.1f} times, "
        "where the model has one"
    )
    launches = f"{len(source['kernels'])} launches on an {source['device']}"
    return f"Of our own {launches} it misses {'; '.join(said)}."


def name_of(metric: str) -> nodes.inline:
    """A metric's name, with places at which a narrow column may break it."""
    first, *others = metric.split("_")
    inside: list[nodes.Node] = [nodes.Text(first)]
    for part in others:
        inside += [nodes.Text("_"), nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]
    return nodes.inline("", "", *inside)


def item(said: str) -> nodes.list_item:
    return nodes.list_item("", nodes.paragraph("", said))


def setup(app) -> dict:
    app.add_directive("held", Held)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
