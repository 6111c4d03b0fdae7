"""The measurements page: every experiment of warplab.experiments, with its records, or the words that there are none.

    ```{measured} matmul_by_size
    ```

Nothing is run while the page is built: live numbers are in the chapters. Each record shows device, driver, date, commit, the
code's hash, a table of medians, and its raw samples as a download.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from warplab.bench import seconds
from warplab.experiments.record import Record
from warplab.experiments.registry import get
from warplab.measure import RESULTS, published, records

HEAD = ("series", "at", "median", "IQR/median", "samples")


class Measured(Directive):
    """One experiment: its question, who uses it, and every record."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        try:
            experiment = get(name)
        except KeyError as error:
            raise self.error(f"measured: {error.args[0]}") from None
        env = self.state.document.settings.env
        asks = nodes.paragraph("", "", nodes.strong("", experiment.question), nodes.Text(f" For chapter {int(experiment.chapter[:2])}. "))
        asks += [nodes.Text("Code "), nodes.literal("", experiment.code), nodes.Text("." + (" The CPU's side is measured live in the book." if experiment.cpu else ""))]
        found = records(name)
        for path in sorted((RESULTS / name).glob("*.json")):
            env.note_dependency(str(path))
        if not found:
            asks += [nodes.Text(" "), nodes.emphasis("", "Not recorded yet."), nodes.Text(" ")]
            asks += [nodes.Text(f"Until then: {e.banner}. ") for e in published(name)]
        return [asks, *(node for record in found for node in self.shown(record, experiment.code))]

    def shown(self, record: Record, code: str) -> list[nodes.Node]:
        changed = "" if record.code == code else f", with an earlier version of the experiment ({record.code})"
        clocks = ", ".join(f"{name} {value:,.0f} MHz" for name, value in record.clocks.items())
        text = f"Recorded on {record.device}, {record.date}{changed}; driver {record.driver}, CUDA {record.cuda}, torch {record.torch}, commit {record.commit[:12]}; {clocks}. "
        file = f"/chapters/results/{record.experiment}/{record.key}.json"
        link = addnodes.download_reference("", "", nodes.literal("", "raw samples"), reftarget=file, refdoc=self.state.document.settings.env.docname)
        rows = [(p.series, f"{p.x:,g}", seconds(p.median), f"{p.iqr / p.median:.1%}", str(p.n)) for p in record.points]
        return [nodes.paragraph("", "", nodes.Text(text), link), table(rows)]


def table(rows: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup(cols=len(HEAD))
    group += [nodes.colspec(colwidth=1) for _ in HEAD]
    group += nodes.thead("", _row(HEAD))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app) -> dict:
    app.add_directive("measured", Measured)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
