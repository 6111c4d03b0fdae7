"""The measurements page: every experiment of warplab.evidence.experiments, in a section if it has evidence.

    ```{measured}                          the whole page
    ```
    ```{measured} latency transpose        these experiments within a chapter: a plot of our records, with
                                           published figures folded below it; or only those
    ```

The page begins with an index: each experiment with its chapter and the origin of its numbers. A section has
the question, the method, what to learn, a plot, and every number with its origin.

Nothing is measured while the page is built; live numbers are in the chapters. Each record is shown with a
plot, device, driver, date, commit, the code's hash, its file with the raw samples as a download, and a table
of all medians. Figures that others published on the same question are folded below it.
"""

from __future__ import annotations

from dataclasses import replace

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from lab import asking, figure
from sphinx import addnodes

from warplab.evidence.catalogue import experiments, get
from warplab.evidence.declare import Experiment
from warplab.evidence.measure import (
    RESULTS,
    Evidence,
    Measurement,
    place,
    published,
    recorded,
    records,
    shown_without_running,
    value,
)
from warplab.evidence.record import Record
from warplab.figures import matmul
from warplab.figures.published import finding_of_others
from warplab.figures.recorded import ASKED, finding
from warplab.plots.measured import in_words, measured

OF_OTHERS = ("series", "at", "published", "device", "year")
OTHERS = "What others published on this question"


DRAWN = {"matmul_by_size": matmul.shares_of_peak}  # experiments with a special figure of published numbers
NOT_DRAWN = {"matmul_by_size": "torch fp16"}  # series left out of a plot, as it coincides with another one
LESSONS = yaml.safe_load((RESULTS / "lessons.yml").read_text(encoding="utf-8"))


class Measured(Directive):
    """The index, a section for each experiment with a record or published figure, a list of the others."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        for path in RESULTS.rglob("*.*"):
            env.note_dependency(str(path))
        if self.arguments:
            return self.named(self.arguments[0].split())
        known = {name: bool(records(name) or published(name)) for name in experiments()}
        sections = [self.section(e) for e in experiments().values() if known[e.name]]
        missing = [e for e in experiments().values() if not known[e.name]]
        return [self.index(), *sections, *([self.not_recorded(missing)] if missing else [])]

    def named(self, names: list[str]) -> list[nodes.Node]:
        try:
            chosen = [get(name) for name in names]
        except KeyError as error:
            raise self.error(f"measured: {error.args[0]}") from None
        found = []
        for e in chosen:
            found.append(nodes.paragraph("", "", nodes.strong("", asked(e))))
            found += [self.plot(shown_without_running(e.name)), self.elsewhere(e)]
            if records(e.name) and published(e.name):
                found += folded(OTHERS, [self.plot(of_others(e))])
            if lab := asking(e.name):
                question = nodes.paragraph("", "The same on your own GPU", classes=["lab-question"])
                said = nodes.paragraph("", "In this page, by WebGPU, in less than a minute. ")
                said += [self.link("lab", "What runs, and how it is timed"), nodes.Text(".")]
                found += figure(lab, question, [said], " data-small")
        return found

    def index(self) -> nodes.table:
        """A row for each experiment, in the order of the chapters."""
        rows = []
        for e in sorted(experiments().values(), key=lambda e: (e.chapter, e.name)):
            kept, others = records(e.name), len(published(e.name))
            sent = sum(bool(record.by) for record in kept)
            ours = len(kept) - sent
            rows.append(
                (
                    self.link(e.name, asked(e)),
                    str(int(e.chapter[:2])),
                    f"{ours} recorded" if ours else "not recorded yet",
                    ", ".join(f"{n} {how}" for n, how in ((sent, "contributed"), (others, "published")) if n)
                    or "none published",
                    self.link("lab", "try it") if asking(e.name) else "",
                )
            )
        return table(rows, ("question", "chapter", "by us", "by others", "your GPU"))

    def link(self, label: str, words: str) -> nodes.Node:
        """A link to a labelled place in the book."""
        return addnodes.pending_xref(
            "",
            nodes.inline("", words),
            refdomain="std",
            reftype="ref",
            reftarget=label.lower(),
            refexplicit=True,
            refdoc=self.state.document.settings.env.docname,
        )

    def plot(self, shown: Measurement) -> nodes.raw:
        if shown.kind == "published":
            own = DRAWN.get(shown.name)
            drawn = own(shown.own) if own else measured(shown.own, caption=finding_of_others(shown.name))
        else:
            kept = without(shown.own, NOT_DRAWN.get(shown.name))
            drawn = measured(replace(kept, question=asked(get(shown.name))), caption=finding(shown))
        return nodes.raw("", drawn._repr_html_(), format="html")

    def elsewhere(self, e: Experiment) -> nodes.paragraph:
        """A sentence with a link to the numbers of a chapter's plot."""
        ours = bool(records(e.name))
        said = "Every median, its spread" if ours else "Not recorded on a GPU by us yet: "
        more = (
            ", the raw samples and others' sources stand in "
            if ours
            else ("these are others' numbers. Their sources, and what each did otherwise, stand in ")
        )
        return nodes.paragraph(
            "",
            "",
            nodes.Text(said) if ours else nodes.emphasis("", said),
            nodes.Text(more),
            self.link(e.name, "What was measured"),
            nodes.Text("."),
        )

    def section(self, experiment: Experiment) -> nodes.section:
        section = self.titled(asked(experiment), experiment.name)
        section += nodes.paragraph("", "", *self.about(experiment))
        told = LESSONS[experiment.name]
        for name, words in (("How", told["method"]), ("What to learn", told["lesson"])):
            section += nodes.paragraph("", "", nodes.strong("", f"{name}. "), nodes.Text(words))
        section.extend(self.evidence(experiment))
        return section

    def evidence(self, experiment: Experiment) -> list[nodes.Node]:
        """The plot, and the provenance and table of each record or published figure; [] without any."""
        shown, kept = shown_without_running(experiment.name), records(experiment.name)
        found: list[nodes.Node] = [self.plot(shown)] if shown.evidence else []
        found += [self.provenance(record, experiment.code) for record in kept]
        if kept:
            found.append(medians(kept))
        if others := published(experiment.name):
            listed = self.of_others(others)
            if kept:
                found += folded(OTHERS, [self.plot(of_others(experiment)), *listed])
            else:
                found += [
                    nodes.paragraph("", "Not recorded yet. Until then, what others published:"),
                    *listed,
                ]
        return found

    def of_others(self, sources: list[Evidence]) -> list[nodes.Node]:
        """A table of all published numbers, then each source with what it did differently."""
        rows = [
            (p.series, place(p), value(p), source.device, str(source.year))
            for source in sources
            for p in source.points
        ]
        listed = nodes.bullet_list()
        for source in sources:
            said = f"{source.banner}, {source.software}: {source.where}. "
            listed += nodes.list_item(
                "",
                nodes.paragraph(
                    "",
                    "",
                    nodes.Text(said[0].upper() + said[1:]),
                    nodes.emphasis("", "What differs: "),
                    nodes.Text(source.differs + " "),
                    nodes.Text(f"Left out: {source.left_out}. " if source.left_out else ""),
                    *self.cited(source.cite),
                ),
            )
        return [table(rows, OF_OTHERS), listed]

    def not_recorded(self, missing: list[Experiment]) -> nodes.section:
        section = self.titled("Not recorded yet", "not-recorded-yet")
        listed = nodes.bullet_list()
        for e in sorted(missing, key=lambda e: e.chapter):
            listed += nodes.list_item(
                "", nodes.paragraph("", "", nodes.Text(f"{e.question} "), *self.about(e))
            )
        section += listed
        return section

    def titled(self, title: str, name: str) -> nodes.section:
        section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(name)], names=[name])
        self.state.document.note_explicit_target(section, section)
        return section

    def about(self, e: Experiment) -> list[nodes.Node]:
        live = " The CPU's side is measured live in the book." if e.cpu else ""
        name = nodes.literal("", e.name)
        return [
            name,
            nodes.Text(f", for chapter {int(e.chapter[:2])}; code "),
            nodes.literal("", e.code),
            nodes.Text("." + live),
        ]

    def provenance(self, record: Record, code: str) -> nodes.paragraph:
        clocks = (
            ", ".join(f"{name} {value:,.0f} MHz" for name, value in record.clocks.items()) or "clocks unknown"
        )
        text = (
            f"{recorded(record, code).banner}. Taken {record.date}; driver {record.driver}, CUDA "
            f"{record.cuda}, torch {record.torch}, Python {record.python}, commit {record.commit[:12]}, code "
            f"{record.code}; {clocks}. Largest IQR/median {record.spread():.1%}. "
        )
        file = f"/autograder/warplab/evidence/results/{record.experiment}/{record.key}.json"
        link = addnodes.download_reference(
            "",
            "",
            nodes.literal("", "raw samples"),
            reftarget=file,
            refdoc=self.state.document.settings.env.docname,
        )
        return nodes.paragraph("", "", nodes.Text(text[0].upper() + text[1:]), link)

    def cited(self, key: str) -> list[nodes.Node]:
        parsed = nodes.Element()
        self.state.nested_parse(StringList([f"{{cite}}`{key}`"]), self.content_offset, parsed)
        return list(parsed[0].children)


def asked(e: Experiment) -> str:
    """The question that the figure answers, which may be narrower: records have no times of CPUs."""
    return ASKED.get(e.name, e.question) if records(e.name) else e.question


def of_others(e: Experiment) -> Measurement:
    """The experiment's Measurement with published figures only."""
    return replace(shown_without_running(e.name), kind="published", evidence=tuple(published(e.name)))


def without(shown: Measurement, series: str | None) -> Measurement:
    kept = [replace(e, points=tuple(p for p in e.points if p.series != series)) for e in shown.evidence]
    return replace(shown, evidence=tuple(kept))


def folded(title: str, inside: list[nodes.Node]) -> list[nodes.Node]:
    """`inside`, folded behind a title."""
    opening = f'<details class="dropdown others"><summary>{title}</summary>'
    return [nodes.raw("", opening, format="html"), *inside, nodes.raw("", "</details>", format="html")]


def medians(kept: list[Record]) -> nodes.table:
    """A table with a row for each measured point and a column for each device: median, rate, IQR/median."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for record in kept:
        for p in record.points:
            rate = f", {value(p)}" if p.rate else ""
            cells.setdefault((in_words(p.series), place(p)), {})[record.key] = (
                f"{p.text()}{rate} ({p.iqr / p.median:.1%})"
            )
    rows = [(*where, *(those.get(record.key, "-") for record in kept)) for where, those in cells.items()]
    heads = [f"{record.device}: median (IQR/median)" for record in kept]
    return table(rows, ("series", "at", *heads))


def table(rows: list[tuple[str | nodes.Node, ...]], head: tuple[str, ...]) -> nodes.table:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(cells: tuple[str | nodes.Node, ...]) -> nodes.row:
    inside = [nodes.Text(cell) if isinstance(cell, str) else cell for cell in cells]
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", part)) for part in inside))


def setup(app) -> dict:
    app.add_directive("measured", Measured)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
