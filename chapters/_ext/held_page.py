"""What we compute, held against what others measured: two tables of the measurements page.

```{held} bounds     every published measurement of work whose bounds are known, and why the others have none
```
```{held} caches     rates that others profiled, beside those of the model of the caches
```
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from measured_page import table
from spec_role import depend_on_registry

from warplab.evidence.measure import RESULTS, place
from warplab.figures.held import Judged, judged
from warplab.hardware import specs
from warplab.timing.bench import seconds

BOUNDS = ("kernel", "GPU", "measured", "at least", "ratio", "other bounds", "from")
CACHES = ("what was profiled", "GPU", "rate", "profiled", "modelled", "off by", "from")
RATES = {"l1": "L1 hits", "l2": "L2 hits", "hbm": "from HBM"}


class Held(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        for path in RESULTS.glob("*.yml"):
            self.state.document.settings.env.note_dependency(str(path))
        depend_on_registry(self.state.document)
        shown = {"bounds": self.bounds, "caches": self.caches}
        if self.arguments[0] not in shown:
            raise self.error(f"held: bounds or caches, not {self.arguments[0]!r}")
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
                        numbers = f"{theirs:.1f} %", f"{ours:.1f} %", f"{ours - theirs:+.1f}"
                        said = kernel["what"] + (f"; ours {kernel['at']}" if "at" in kernel else "")
                        card = specs.get(source["card"]).short
                        rows.append((said, card, name, *numbers, self.cited(source["cite"])))
                if "wrong" in kernel:
                    why += item(f"{kernel['what']} ({source['device']}): {kernel['wrong']}.")
        return [table(rows, CACHES), nodes.paragraph("", "Where it is further off, and why:"), why]

    def cited(self, key: str) -> nodes.Node:
        parsed = nodes.Element()
        self.state.nested_parse(StringList([f"{{cite}}`{key}`"]), self.content_offset, parsed)
        return nodes.inline("", "", *parsed[0].children)


def not_held(every: Iterable[Judged]) -> nodes.bullet_list:
    """Each reason once, with the series that it keeps out."""
    kept: dict[str, dict[str, None]] = {}
    for j in every:
        if j.why:
            kept.setdefault(j.why, {})[f"{j.experiment}, {j.point.series} on {j.evidence.device}"] = None
    listed = nodes.bullet_list()
    for why, series in kept.items():
        listed += item(f"{why[0].upper()}{why[1:]}: {'; '.join(series)}.")
    return listed


def item(said: str) -> nodes.list_item:
    return nodes.list_item("", nodes.paragraph("", said))


def setup(app) -> dict:
    app.add_directive("held", Held)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
