"""The directive {spec-registry}: a table for each device with all facts of the hardware registry and sources.

The book's numbers link to its rows.

    ```{spec-registry}
    ```

A row's id is that of the links of spec_role.py. Computed facts show their formula.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from spec_role import depend_on_registry, device_id, explanation, offer_id, row_id

from warplab import prices, specs

FACTS = ("Fact", "Value", "Where it is from")
OFFERS = ("Machine", "An hour", "Where it is from")


class SpecRegistry(Directive):
    def run(self) -> list[nodes.Node]:
        depend_on_registry(self.state.document)
        holders = [specs.get(name) for name in specs.names()] + [specs.for_arch(a) for a in specs.archs()]
        folded = [fold(device_id(spec), spec.name, FACTS, facts_of(spec)) for spec in holders]
        offers = [
            (offer_id(offer), f"{offer.gpus} x {offer.card}", f"${offer.hourly:.2f}", offer.origin())
            for offer in prices.every().values()
        ]
        return [node for part in [*folded, fold("prices", "Prices", OFFERS, offers)] for node in part]


def facts_of(spec: specs.Spec) -> list[tuple[str, str, str, str]]:
    """[(id, name, value, explanation)] of a device's own facts; its architecture has a table of its own."""
    return [
        (row_id(fact), fact.label, fact.text(), explanation(fact))
        for fact in spec.values()
        if fact.device == spec.key
    ]


def fold(
    name: str, title: str, head: tuple[str, ...], rows: list[tuple[str, str, str, str]]
) -> list[nodes.Node]:
    """A folded table, which opens by its title, and by itself when a link leads into it."""
    opening = nodes.raw("", f'<details class="spec-facts" id="{name}"><summary>', format="html")
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", nodes.row("", *map(cell, head)))
    group += nodes.tbody("", *(nodes.row("", *map(cell, said), ids=[row]) for row, *said in rows))
    return [
        opening,
        nodes.inline("", title),
        nodes.raw("", "</summary>", format="html"),
        nodes.table("", group, classes=["colwidths-auto"]),
        nodes.raw("", "</details>", format="html"),
    ]


def cell(text: str) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", text))


def setup(app) -> dict:
    app.add_directive("spec-registry", SpecRegistry)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
