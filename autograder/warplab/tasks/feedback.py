"""What a test cell in a notebook does: `grade` shows the rubric as a table and returns the points."""

import linecache
import os
import re
from html import escape
from pathlib import PurePath

from warplab import crossing
from warplab.crossing.costliest import quoted, request_of
from warplab.plots import failures
from warplab.plots import warp_request as lanes
from warplab.rendering import render
from warplab.tasks import progress, registry, scoring
from warplab.tasks.rubric import number, so_many

WORDS = {"full": "full", "partial": "in part", "lost": "lost", "ungraded": "not graded"}
COLOURS = {"full": progress.EARNED, "partial": "#c98a1b", "lost": "#d1495b", "ungraded": progress.OPEN}
SUM = re.compile(r"(global|shared)_(read|write|memory)\.")  # counters that are sums of other counters
UNDRAWN = "What else was found cannot be shown; the points are not touched by that."
NOTHING = {"acts": [], "lanes": [], "picture": "", "told": ""}  # of a drawing
TOLD = {"told": UNDRAWN}
CODE = re.compile("`([^`\n]+)`")  # code quoted in a sentence


def grade(name, submission, plan=None, rubric=None):
    """warplab.check.grade."""
    task = registry.get(name)
    card = task.instead(submission)
    if card:
        show(card)
        return Points(0.0) if _is_read_by_a_person() else 0.0
    report = report_on(name, submission, plan, rubric)
    again = progress.changed_attempts(report, _text_of(submission) + _text_of(plan)) > 1
    card = task.beside(report, submission)
    if card:
        show(card)
    show(Table(report, again))
    bar = progress.after(report, rubric)
    if _is_read_by_a_person():
        progress.remember(report, rubric)
    _show_card(bar)
    return Points(report.score) if _is_read_by_a_person() else report.score


class Points(float):
    """The number that `grade` returns, which a notebook does not display again under the table."""

    def _ipython_display_(self):
        """Show nothing, as the table has the points."""


def _is_read_by_a_person():
    """Whether this is a notebook or IPython, and not nbgrader, which parses the cell's output."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return get_ipython() is not None and "NBGRADER_EXECUTION" not in os.environ


_cards = []  # [display handle of the latest card of points], which the next one replaces


def _show_card(bar):
    """Show the points so far under the table, and remove the card under the previous table."""
    if not _is_read_by_a_person():
        show(bar)
        return
    from IPython.display import display

    for card in _cards:
        card.update({"text/plain": "", "text/html": ""}, raw=True)
    _cards[:] = [display(bar, display_id=True)]


def report_on(name, submission, plan=None, rubric=None, seed=0):
    """Run one grade cell of one task in this process; returns the Report that `grade` shows."""
    task = registry.get(name)
    cases = task.cases(seed) if rubric is None else task.timed_cases(seed) if crossing.can_time() else []
    outcomes = []
    for case in crossing.tried(cases, outcomes):
        outcomes.append(crossing.try_here(task, case, submission, plan))
    return quoted(scoring.judge(task, cases, outcomes).part(rubric), lambda: _sources(submission))


def _sources(submission):
    """{name of a cell or file, without its folder: text} of all sources in linecache and the submission."""
    if isinstance(getattr(submission, "source", None), str):  # CUDA C++
        return {f"{submission.name}.cu": submission.source}
    code = getattr(getattr(submission, "py_func", submission), "__code__", None)
    own = [code.co_filename] if code else []  # a callable object has no __code__
    return {PurePath(file).name: "".join(linecache.getlines(file)) for file in (*linecache.cache, *own)}


def _text_of(submission):
    """The text of all cells that contain the submission or functions that it calls."""
    if isinstance(getattr(submission, "source", None), str):
        return submission.source
    seen, left, texts = set(), [submission], []
    while left and len(seen) < 50:
        one = left.pop()
        function = getattr(one, "py_func", one)
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen or "site-packages" in code.co_filename:
            continue
        seen.add(id(code))
        texts.append("".join(linecache.getlines(code.co_filename)))
        known = getattr(function, "__globals__", {})
        left += [known[name] for name in code.co_names if name in known]
    return "\n".join(texts)


def drawn_or_told(draw, told):
    """draw(), or `told` if that raises anything.

    A report may contain untrusted data from a student's process; a picture that cannot be drawn must cost
    neither the table nor the points.
    """
    try:
        return draw()
    except Exception:  # noqa: BLE001 - as above
        return told


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
    """A report as an HTML table in the page's colours, or as plain text.

    again: whether more than one attempt was made; the last of three hints is shown only then.
    """

    def __init__(self, report, again=True):
        self.report, self.again = report, again

    def __repr__(self):
        lines = [self._headline()]
        for line in self.report.lines:
            lines.append(f"  [{WORDS[line.state]:>10}] {_points(line):>8}  {line.title}")
            more = f"   ({len(line.hints) - 1} more in a notebook)" if len(line.hints) > 1 else ""
            hint = f"Hint: {line.hints[0]}{more}" if line.hints else ""
            quoted = drawn_or_told(lambda line=line: _quotations(line), [UNDRAWN])
            blamed = drawn_or_told(lambda line=line: _blame(line.access), UNDRAWN)
            said = [line.reason, *quoted, *line.warnings, blamed, hint]
            lines += [f"{'':25}{text}" for text in said if text]
        return "\n".join(lines)

    def _repr_html_(self):
        drawn = set()
        rows = [_row(line, drawn, self.again) for line in self.report.lines]
        headline = self._headline()
        bare = [row | {"drawings": [NOTHING | TOLD], "counters": None, "access": None} for row in rows]
        for shown in (rows, bare):
            given = {"headline": headline, "rows": shown, "code_spans": CODE.split}
            page = drawn_or_told(lambda given=given: render("warplab.tasks", "feedback.html.j2", **given), "")
            if page:
                return page
        return f"<pre>{escape(repr(self))}</pre>"

    def _headline(self):
        report = self.report
        parts = [f"{report.score:g} of {so_many(report.max, 'point')}"] if report.max else []
        parts += [f"{so_many(report.ungraded, 'point')} left open"] if report.ungraded else []
        if report.first:
            title, count = report.first
            others = f"{so_many(count, 'other row')} {'is' if count == 1 else 'are'} lost to it"
            parts.append(f"begin with {title!r}: {others}")
        return f"{report.task}: {', '.join(parts)}"


def _points(line):
    return f"- / {line.max:g}" if line.state == "ungraded" else f"{line.points:g} / {line.max:g}"


def _row(line, drawn, again):
    """The variables of the template for one line of the report.

    drawn: drawings already in this table, which are not repeated. again: as in Table.
    """
    locked = not again and len(line.hints) > 2
    return {
        "title": line.title,
        "state": WORDS[line.state],
        "colour": COLOURS[line.state],
        "points": _points(line),
        "reason": line.reason,
        "hints": line.hints[:-1] if locked else line.hints,
        "locked": locked,
        "warnings": line.warnings,
        "drawings": [
            shown
            for drawing in line.drawings
            if (shown := drawn_or_told(lambda drawing=drawing: _drawing(drawing, drawn), NOTHING | TOLD))
        ],
        "counters": drawn_or_told(lambda: _counters(line.counters), None),
        "access": drawn_or_told(lambda: _access(line.access, drawn), None),
    }


def _access(access, drawn):
    """The costliest line of code, what is wrong there, and a warp's request; None without such a record."""
    if not access:
        return None
    where, finding, more = _told(access)
    what = (access["file"], access["line"], access["space"], access["kind"], finding)
    picture = "" if what in drawn else lanes.svg(request_of(access), f"{where}: {finding}")
    drawn.add(what)
    source = access.get("source")
    return {"where": where, "source": source, "finding": finding, "more": more, "picture": picture}


def _drawing(drawing, drawn):
    """The variables of the template for a drawing; None if the table has it already, or it shows nothing.

    {"acts": for a finding's threads, "lanes": for a kernel's lines, "picture" and "told": for other kinds}
    """
    key = repr(drawing)
    if key in drawn:
        return None
    drawn.add(key)
    acts = drawing.get("acts", ())
    if drawing["kind"] == "threads":
        alone = not (acts[1:] or acts[0].get("source"))
        threads = [{"source": ""} | act | {"where": _where(act), "who": _who(act)} for act in acts]
        return None if alone else NOTHING | {"acts": threads}
    if drawing["kind"] == "lanes":
        most = max(line["warps"] for line in acts)
        return NOTHING | {"lanes": [_lanes_of(line, most) for line in acts]}
    picture, told = failures.svg_of(drawing)
    return NOTHING | {"picture": picture, "told": told}


def _lanes_of(line, most):
    """A kernel's line with its bar: its length shows the instructions, its filling the active lanes."""
    active = line["threads"] / line["warps"]
    told = f"{lanes.counted(line['warps'], 'instruction')}, {active:.3g} of 32 lanes active"
    share, full = 100 * line["warps"] / most, 100 * active / 32
    return {"where": _where(line), "source": line.get("source"), "told": told, "share": share, "full": full}


def _where(act):
    return f"line {act['line']}" if act["line"] else "a line of the kernel"


def _who(act):
    thread, block = (", ".join(map(str, act[index])) for index in ("thread", "block"))
    return f"thread ({thread}) of block ({block})"


def _quotations(line):
    """The quotations of all acts in a line's drawings, each line of code once."""
    acts = [act for one in line.drawings if one["kind"] == "threads" for act in one["acts"]]
    return list(dict.fromkeys(map(_quotation, acts)))


def _quotation(act):
    """ "line 12: `tile[t] = x[i]`" for an act of a thread; "" if the line is not known."""
    return f"{_where(act)}: `{act['source']}`" if act.get("source") else ""


def _blame(access):
    """The costliest line as plain text; "" without such a record."""
    if not access:
        return ""
    where, finding, more = _told(access)
    return f"{where}{', ' if access.get('source') else ''}{access.get('source', '')}: {finding} {more}"


def _told(access):
    """(the line, the finding, further sentences) about the costliest line, without markup."""
    request = request_of(access)
    finding = lanes.finding(request, request.label, compared=access["wasted"] > 0)
    requests = lanes.counted(access["requests"], "such request")
    part, whole = number(access["counted"]), number(access["of"])
    much = f"all {whole}" if part == whole else f"{part} of the {whole}"
    others = access.get("lines", 1) - 1
    lines = f"this line and {others} more of its kind" if others else "this line"
    share = f"{much} {access['unit']} come from {lines}."
    where = f"Line {access['line']}" if access["line"] else "The line that costs most"
    if access["wasted"]:
        return where, f"{finding}.", f"{requests}; {share}"
    return where, f"Warps make {requests}.", f"In this one {finding}; {share}"


def _counters(counters):
    """The table of counters that are neither 0 nor sums of others, a number for each case; None if empty."""
    cases = {name: values for name, values in counters.items() if values}
    counted = dict.fromkeys(key for values in cases.values() for key in values if not SUM.match(key))
    numbers = {
        key: [number(values.get(key, 0)) for values in cases.values()]
        for key in counted
        if any(values.get(key) for values in cases.values())
    }
    return {"cases": list(cases), "numbers": numbers} if numbers else None
