"""Roles and directives for numbers of the hardware registry, so that no chapter writes one by hand.

    {spec}`h100-sxm memory_bandwidth`       3.35 TB/s, a link to its row in the registry's page
    {spec}`h100-sxm peak_bf16 0`            989 TFLOP/s: rounded to 0 decimals
    {spec}`h100-sxm memory_reported:GiB`    79.2 GiB: in another unit
    {price}`aws-p5`, {price}`aws-p5 gpu`    $55.04, $6.88: an hour's rent of the machine, of one of its cards
    ```{spec-table}                         a row for each device, a column for each fact
    :devices: h100-sxm h100-pcie
    :facts: sms fp32_lanes memory_bandwidth:TB/s
    ```
    ```{spec-table}                         a row for every GPU and CPU that has one of the facts,
    :every: gpu cpu                         the oldest first (gpu, cpu, accelerator or arch)
    :facts: peak_fp32 peak_bf16
    ```
    ```{spec-registry}                      every fact of every device with its source, where the numbers lead
    ```
    ```{spec-sources}                       every document that a device or an architecture names
    ```

A number's title has its source; chapters/_static/preview.js shows it for mouse, touch and keyboard.

An unknown device or fact is a Sphinx warning with file and line, so the build fails.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from warplab import prices, specs

MISSING = "–"
PAGE = "specs.html"
HEADS = {"gpu": "GPU", "cpu": "CPU", "accelerator": "Chip", "arch": "Architecture"}


def explanation(fact: specs.Fact) -> str:
    """The title of a number: peak, dense or sparse, form factor; source; date; note."""
    return "; ".join(part for part in (", ".join(fact.qualities()), fact.origin(), fact.note) if part)


def number(fact: specs.Fact, decimals: int | None = None, unit: str = "") -> nodes.reference:
    """The number as a link with its explanation. unit: cut from the end, as the table's head has it."""
    text = fact.text(decimals).removesuffix(f" {unit}").replace(" ", "\u00a0")
    return sourced(text, explanation(fact), row_id(fact))


def sourced(text: str, told: str, row: str) -> nodes.reference:
    """`text` as a link to a row of the registry's page, with the title `told`."""
    return nodes.reference("", text, refuri=f"{PAGE}#{row}", reftitle=told, internal=True, classes=["spec"])


def row_id(fact: specs.Fact) -> str:
    return nodes.make_id(f"fact-{fact.device}-{fact.name}")


def offer_id(offer: prices.Offer) -> str:
    return nodes.make_id(f"price-{offer.key}")


def spec_role(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role {spec}`device fact [decimals]`."""
    try:
        fact, decimals = look_up(text)
    except specs.SpecError as error:
        message = inliner.reporter.error(f"spec: {error}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    depend_on_registry(inliner.document)
    return [number(fact, decimals)], []


def price_role(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role {price}`offer`, dollars an hour for the machine, or {price}`offer gpu`, for one of its cards.

    It leads to the offer's row in the registry's page.
    """
    key, _, share = text.partition(" ")
    try:
        offer = prices.get(key)
        dollars = {"": offer.hourly, "gpu": offer.gpu_hour}[share]
    except KeyError as error:
        message = inliner.reporter.error(
            f"price: {error} in '{text}', which is neither 'offer' nor 'offer gpu'", line=lineno
        )
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    depend_on_registry(inliner.document)
    shown = f"${dollars:.2f}"
    return [sourced(shown, offer.origin(), offer_id(offer))], []


def look_up(text: str) -> tuple[specs.Fact, int | None]:
    """(fact, decimals to show or None) from a role's text. Raises SpecError, also for malformed text."""
    words = text.split()
    if len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
        raise specs.SpecError(
            f"'{text}' is not 'device fact' or 'device fact decimals', as in 'h100-sxm peak_bf16 0'"
        )
    return in_unit(specs.get(words[0]), words[1]), int(words[2]) if len(words) == 3 else None


def in_unit(spec: specs.Spec, name: str) -> specs.Fact:
    """The fact for `name` or `name:unit`. Raises SpecError."""
    name, _, unit = name.partition(":")
    return spec[name].to(unit) if unit else spec[name]


def depend_on_registry(document: nodes.document) -> None:
    """Make the page depend on the registry's files. Does nothing outside Sphinx."""
    env = getattr(document.settings, "env", None)
    if env is not None:
        for path in specs.root().resolve().rglob("*.yml"):
            env.note_dependency(str(path))


class SpecTable(Directive):
    """A table: a row for each device or architecture, a column for each fact, common units in the heads."""

    option_spec = {
        "devices": directives.unchanged_required,
        "every": directives.unchanged_required,
        "facts": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        names = self.options["facts"].split()
        try:
            devices = [holder(name) for name in self.options.get("devices", "").split()]
            for kind in self.options.get("every", "").split():
                devices += every(kind, names)
            columns = [column(devices, name) for name in names]
        except KeyError as error:  # SpecError is one
            raise self.error(f"spec-table: {error}") from None
        depend_on_registry(self.state.document)
        kinds = {spec.kind for spec in devices}
        first = HEADS[kinds.pop()] if len(kinds) == 1 else "Machine"
        head = [nodes.Text(first), *(head for head, _ in columns)]
        rows = [[device_name(spec), *(cells[i] for _, cells in columns)] for i, spec in enumerate(devices)]
        return [table(head, rows)]


class SpecSources(Directive):
    """A list of all documents that the registry cites, the manufacturers' first."""

    def run(self) -> list[nodes.Node]:
        depend_on_registry(self.state.document)
        holders = [specs.get(name) for name in specs.names()] + [
            specs.for_arch(arch) for arch in specs.archs()
        ]
        uses: dict[specs.Source, list[str]] = {}
        for spec in holders:
            for source in dict.fromkeys(
                fact.source for fact in spec.values() if fact.source and fact.device == spec.key
            ):
                if spec.key not in uses.setdefault(source, []):
                    uses[source].append(spec.key)
        result = nodes.bullet_list()
        for source in sorted(uses, key=lambda s: (s.by != "vendor", s.publisher, s.title)):
            link = nodes.reference("", source.title, refuri=source.url)
            named_by = ", ".join(uses[source])
            result += nodes.list_item(
                "", nodes.paragraph("", f"{source.publisher}: ", link, nodes.Text(f" ({named_by})"))
            )
        return [result]


def holder(name: str) -> specs.Spec:
    """A device's spec, or an architecture's by its sm_ name. Raises SpecError."""
    return specs.for_arch(name) if name.startswith("sm_") else specs.get(name)


def every(kind: str, names: list[str]) -> list[specs.Spec]:
    """All devices of a kind that have one of the facts, oldest first. Raises SpecError if there is none."""
    if kind == "arch":
        found = [specs.for_arch(arch) for arch in specs.archs()]
    else:
        found = sorted(map(specs.get, specs.names(kind)), key=lambda spec: (spec.year, spec.key))
    having = [spec for spec in found if any(name.partition(":")[0] in spec for name in names)]
    if not having:
        raise specs.SpecError(
            f"no '{kind}' has one of the facts {', '.join(names)}; kinds are gpu, cpu, accelerator, arch"
        )
    return having


def device_id(spec: specs.Spec) -> str:
    return nodes.make_id(f"facts-{spec.key}")


def device_name(spec: specs.Spec) -> nodes.Node:
    short = spec.short.replace(" ", "\u00a0")
    return sourced(short, spec.name, device_id(spec))


def column(devices: list[specs.Spec], name: str) -> tuple[nodes.Node, list[nodes.Node]]:
    """(head, cells) of one fact's column over all devices. Raises SpecError if no device has the fact."""
    bare = name.partition(":")[0]
    facts = [in_unit(spec, name) if bare in spec else None for spec in devices]
    if not any(facts):
        raise specs.SpecError(f"none of these devices has the fact '{bare}'")
    units = {fact.unit for fact in facts if fact}
    unit = units.pop() if len(units) == 1 else ""
    head = specs.labels()[bare]["label"]
    cells = [
        number(fact, unit=unit) if fact else missing(spec, bare)
        for spec, fact in zip(devices, facts, strict=True)
    ]
    return nodes.Text(f"{head} ({unit})" if unit else head), cells


def missing(spec: specs.Spec, name: str) -> nodes.Node:
    """A dash with the reason why the fact is missing as its title."""
    reason = spec.omitted.get(name, "no such thing on this device, or no source was found")
    return sourced(MISSING, reason, device_id(spec))


def table(head: list[nodes.Node], rows: list[list[nodes.Node]]) -> nodes.table:
    """A docutils table; the first column is text, the others are numbers."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", row(head))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=["spec-table", "colwidths-auto"])


def row(cells: list[nodes.Node]) -> nodes.row:
    first, *others = (nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells)
    for entry in others:
        entry["classes"].append("text-right")
    return nodes.row("", first, *others)


def setup(app) -> dict:
    app.add_role("spec", spec_role)
    app.add_role("price", price_role)
    app.add_directive("spec-table", SpecTable)
    app.add_directive("spec-sources", SpecSources)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
