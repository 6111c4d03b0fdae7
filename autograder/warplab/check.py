"""`from warplab.check import grade`: a task's visible test cell. Shows the rubric as a table, returns points."""

import contextlib
import linecache
import re
import time
from html import escape
from pathlib import PurePath

from warplab import lanes, progress
from warplab import task as tasks
from warplab.crossing.access import quoted, request_of

PATIENCE_S = 2.0
WORDS = {"full": "full", "partial": "in part", "lost": "lost", "ungraded": "not graded"}
COLOURS = {"full": progress.EARNED, "partial": "#c98a1b", "lost": "#d1495b", "ungraded": progress.OPEN}
COLUMNS = {"Check": "32%", "Points": "4.5em", "Why": "auto"}
PLAIN = "color:inherit;background:transparent;"  # the page's own colours, light or dark
TABLE = f"{PLAIN}border-collapse:collapse;margin:0;"
COUNTS = f"{TABLE}table-layout:auto;font-size:.9em;white-space:nowrap;overflow-wrap:normal;"
CELL = "padding:.35em .7em;text-align:left;vertical-align:top;border-top:1px solid rgba(128,128,128,.35);"
CAPTION = "caption-side:top;text-align:left;color:inherit;font-weight:600;padding:.35em .7em;"


def grade(name, submission, plan=None, rubric=None):
    """Run the public cases of one task on `submission`, show what was checked, and return the points as a float.

    name: for example "ps04/matmul_tiled". plan: your launch plan, for the tasks that ask for one.
    rubric: None for everything but the timed rows, "time" for the timed rows alone (not graded without CUDA).
    """
    report = report_on(name, submission, plan, rubric)
    show(Table(report))
    show(progress.after(report, rubric))
    return report.score


@contextlib.contextmanager
def when_written():
    """Around a demonstration: where a task is still its stub, say so instead of stopping the notebook."""
    try:
        yield
    except NotImplementedError:
        print("not written yet: run this cell again when the task above is done")


def report_on(name, submission, plan=None, rubric=None, seed=0):
    """The warplab.task.Report that `grade` shows: one grade cell of one task, run in this process."""
    task = tasks.get(name)
    cases = task.cases(seed) if rubric is None else task.timed_cases(seed) if tasks.can_time() else []
    outcomes = []
    for case in cases:
        start = time.monotonic()
        outcomes.append(tasks.run(task, case, submission, plan))
        if outcomes[-1].error and time.monotonic() - start > PATIENCE_S:  # a loop without end: once is enough
            break
    outcomes += [tasks.Outcome(case.name, error=outcomes[-1].error) for case in cases[len(outcomes) :]]
    return quoted(task.judge(cases, outcomes).part(rubric), task.entry, lambda: _sources(submission))


def _sources(submission):
    """{name of a cell or file, without its folder: text}: all that Python keeps lines of, and where the submission stands."""
    if isinstance(getattr(submission, "source", None), str):  # CUDA C++
        return {f"{submission.name}.cu": submission.source}
    code = getattr(getattr(submission, "py_func", submission), "__code__", None)  # an object that can be called has none
    own = [code.co_filename] if code else []
    return {PurePath(file).name: "".join(linecache.getlines(file)) for file in (*linecache.cache, *own)}


def show(table):
    """Display in a notebook, print elsewhere."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(table)
        return
    if get_ipython() is None:
        print(table)
    else:
        display(table)


class Table:
    """A report as an HTML table that inherits the page's colours, or as plain text."""

    def __init__(self, report):
        self.report = report

    def __repr__(self):
        lines = [self._headline()]
        for line in self.report.lines:
            lines.append(f"  [{WORDS[line.state]:>10}] {_points(line):>8}  {line.title}")
            more = f"   ({len(line.hints) - 1} more in a notebook)" if len(line.hints) > 1 else ""
            hint = f"Hint: {line.hints[0]}{more}" if line.hints else ""
            lines += [f"{'':25}{text}" for text in (line.reason, _blame(line.access), hint) if text]
        return "\n".join(lines)

    def _repr_html_(self):
        drawn = set()
        rows = "".join(_row(line) + _plot(line, drawn) for line in self.report.lines)
        heads = "".join(f'<th scope="col" style="{CELL}border-top:0;width:{width};">{name}</th>' for name, width in COLUMNS.items())
        return (
            f'<table class="warplab-grade" style="{TABLE}table-layout:fixed;width:100%;max-width:60em;">'
            f'<caption style="{CAPTION}">{escape(self._headline())}</caption>'
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _headline(self):
        report = self.report
        parts = [f"{report.score:g} of {report.max:g} points"] if report.max else []
        parts += [f"{report.ungraded:g} points left open"] if report.ungraded else []
        return f"{report.task}: {', '.join(parts)}"


def _points(line):
    return f"- / {line.max:g}" if line.state == "ungraded" else f"{line.points:g} / {line.max:g}"


def _row(line):
    title = f'<div style="{_mark(line)}">{escape(line.title)}<br><small>{WORDS[line.state]}</small></div>'
    why = f"<div>{_prose(line.reason)}</div>" if line.reason else ""
    why += _hints(line.hints)
    cells = (
        f'<td style="{CELL}">{title}</td>',
        f'<td style="{CELL}white-space:nowrap;">{_points(line)}</td>',
        f'<td style="{CELL}overflow-wrap:anywhere;">{why}{_counters(line.counters)}</td>',
    )
    return f'<tr style="{PLAIN}">{"".join(cells)}</tr>'


def _mark(line):
    return f"border-left:.35em solid {COLOURS[line.state]};padding-left:.45em;"


def _plot(line, drawn):
    """A row of its own under the row that lost points: the line of code that costs most, what is wrong, and a warp's request.

    drawn: what has been drawn in this table; the same again is told and not drawn.
    """
    access = line.access
    if not access:
        return ""
    where, finding, more = _told(access)
    code = f': <code style="overflow-wrap:anywhere;">{escape(access["source"])}</code>' if access.get("source") else ""
    caption = f'<figcaption style="margin-bottom:.4em;">{where}{code}<br><strong>{escape(finding)}</strong> {escape(more)}</figcaption>'
    what = (access["file"], access["line"], access["space"], access["kind"], finding)
    picture = "" if what in drawn else lanes.svg(request_of(access), f"{where}: {finding}")
    drawn.add(what)
    figure = f'<figure style="margin:0 0 .4em;{_mark(line)}">{caption}{picture}</figure>'
    return f'<tr style="{PLAIN}"><td colspan="3" style="{CELL}border-top:0;">{figure}</td></tr>'


def _blame(access):
    """The same as plain text; empty where no line is to blame."""
    if not access:
        return ""
    where, finding, more = _told(access)
    return f"{where}{', ' if access.get('source') else ''}{access.get('source', '')}: {finding} {more}"


def _told(access):
    """(which line, the finding, the rest) as sentences without markup."""
    request = request_of(access)
    finding = lanes.finding(request, request.label, compared=access["wasted"] > 0)
    requests = lanes.counted(access["requests"], "such request")
    part, whole = tasks.number(access["counted"]), tasks.number(access["of"])
    share = f"{f'all {whole}' if part == whole else f'{part} of the {whole}'} {access['unit']} come from this line."
    where = f"Line {access['line']}" if access["line"] else "The line that costs most"
    if access["wasted"]:
        return where, f"{finding}.", f"{requests}; {share}"
    return where, f"Warps make {requests}.", f"In this one {finding}; {share}"


def _hints(hints):
    """The first hint in sight, the others each behind the one before."""
    if not hints:
        return ""
    closed = ""
    for number in range(len(hints), 1, -1):
        summary = "Another hint" if number < len(hints) else "The last hint, nearly the answer"
        closed = f'<details style="margin-top:.3em;"><summary>{summary}</summary><em>{_prose(hints[number - 1])}</em>{closed}</details>'
    return f'<div style="margin-top:.3em;"><em>Hint: {_prose(hints[0])}</em>{closed}</div>'


def _prose(text):
    """Text with its `code` and its lines, escaped."""
    return re.sub("`([^`\n]+)`", r"<code>\1</code>", escape(text)).replace("\n", "<br>")


def _counters(counters):
    """A closed <details> with every non-zero counter, one column a case."""
    cases = [(name, values) for name, values in counters.items() if values]
    names = [key for key in dict.fromkeys(key for _, values in cases for key in values) if any(v.get(key) for _, v in cases)]
    if not names:
        return ""
    head = "".join(f'<th scope="col" style="{CELL}">{escape(name)}</th>' for name, _ in cases)
    rows = [f'<tr style="{PLAIN}"><td style="{CELL}"></td>{head}</tr>']
    for key in names:
        label = f'<th scope="row" style="{CELL}font-weight:400;"><code>{escape(key)}</code></th>'
        numbers = "".join(f'<td style="{CELL}">{tasks.number(values.get(key, 0))}</td>' for _, values in cases)
        rows.append(f'<tr style="{PLAIN}">{label}{numbers}</tr>')
    table = f'<div tabindex="0" role="group" aria-label="Counters" style="overflow-x:auto;"><table style="{COUNTS}">{"".join(rows)}</table></div>'
    return f'<details style="margin-top:.3em;"><summary>Counters</summary>{table}</details>'
