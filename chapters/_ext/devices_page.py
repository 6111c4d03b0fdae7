"""The page "all devices side by side": every GPU with a recorded or published number.

    ```{devices}
    ```

It is one table with a row for each source on one device, readable without scripts. chapters/_static/devices
parses its rows and shows the GPUs that the reader picks beside each other; only this page loads it. Values of
data sheets are rows of the same table, marked as peaks.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from spec_role import depend_on_registry, number
from sphinx import addnodes

from warplab.evidence.declare import Experiment
from warplab.evidence.measure import RESULTS, Evidence, place, value
from warplab.evidence.side_by_side import all_evidence, sheets
from warplab.hardware import specs

HEAD = ("Experiment", "GPU", "Numbers", "Where they are from")
FACTS = ("peak_fp32", "peak_bf16", "peak_fp8", "memory_bandwidth", "memory_capacity", "tdp")
SHEET = "What the maker's data sheet says"


class Devices(Directive):
    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        for path in RESULTS.rglob("*.*"):
            env.note_dependency(str(path))
        depend_on_registry(self.state.document)
        found = all_evidence(RESULTS)
        models = sorted({name for _, name, _ in found}, key=str.lower)
        rows = [self.of_sheet(name, spec) for name in models for spec in sheets(name)]
        rows += [self.of_source(e, name, source) for e, name, source in found]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in HEAD), cols=len(HEAD))
        group += nodes.thead("", nodes.row("", *(cell(nodes.Text(word)) for word in HEAD)))
        group += nodes.tbody("", *rows)
        chooser = '<div class="devices-chooser"></div>'
        table = nodes.table("", group, classes=["devices-all", "colwidths-auto"])
        return [nodes.raw("", chooser, format="html"), table]

    def of_sheet(self, name: str, spec: specs.Spec) -> nodes.row:
        facts = [spec[fact] for fact in FACTS if fact in spec]
        listed = nodes.bullet_list()
        for fact in facts:
            dense = ", dense" if fact.dense else ""
            listed += item(nodes.strong("", "", number(fact)), nodes.Text(f" {fact.label}{dense}"))
        said = "Peaks and sizes, not measured; each number leads to its document."
        what = cell(nodes.strong("", SHEET))
        what[0] += [nodes.Text(" "), nodes.inline("", "not an experiment", classes=["devices-at"])]
        named = cell(nodes.strong("", name), nodes.Text(f" {spec.name}"))
        return row(name, what, named, nodes.entry("", listed), cell(nodes.Text(said)))

    def of_source(self, e: Experiment, name: str, source: Evidence) -> nodes.row:
        question = cell(self.link(e.name, e.question), nodes.Text(" "))
        question[0] += nodes.inline("", f"at: {e.x}", classes=["devices-at"])
        listed = nodes.bullet_list()
        for p in source.points:
            listed += item(nodes.strong("", value(p)), nodes.Text(f" {p.series}, at {place(p)}"))
        told = [
            nodes.strong("", source.kind.capitalize()),
            nodes.Text(f", {source.year}, {source.software}. "),
        ]
        if source.kind == "published":
            told += [
                nodes.emphasis("", "What differs: "),
                nodes.Text(f"{source.differs} "),
                *self.cited(source.cite),
            ]
        else:
            told.append(nodes.Text(f"{source.banner[0].upper()}{source.banner[1:]}."))
        named = cell(nodes.strong("", name), nodes.Text(f" {source.device}"))
        return row(name, question, named, nodes.entry("", listed), cell(*told))

    def link(self, label: str, words: str) -> nodes.Node:
        docname = self.state.document.settings.env.docname
        about = {"refdomain": "std", "reftype": "ref", "reftarget": label.lower(), "refexplicit": True}
        return addnodes.pending_xref("", nodes.inline("", words), refdoc=docname, **about)

    def cited(self, key: str) -> list[nodes.Node]:
        parsed = nodes.Element()
        self.state.nested_parse(StringList([f"{{cite}}`{key}`"]), self.content_offset, parsed)
        return list(parsed[0].children)


def row(name: str, *cells: nodes.entry) -> nodes.row:
    return nodes.row("", *cells, classes=[nodes.make_id(f"of-{name}")])


def cell(*parts: nodes.Node) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", "", *parts))


def item(*parts: nodes.Node) -> nodes.list_item:
    return nodes.list_item("", nodes.paragraph("", "", *parts))


def scripts(app, pagename, templatename, context, doctree) -> None:
    if 'class="devices-chooser"' in context.get("body", ""):
        app.add_js_file("devices/devices.js", type="module")
        app.add_css_file("devices/devices.css")


def setup(app) -> dict:
    app.add_directive("devices", Devices)
    app.connect("html-page-context", scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
