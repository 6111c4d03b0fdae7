"""Turns outcomes into points: each row of a task's rubric is judged by the worst of its cases."""

import math
import re
from dataclasses import dataclass, field, replace

from warplab.simt import errors
from warplab.tasks.drawn import drawings
from warplab.tasks.hints import hints_for, hints_for_failure
from warplab.tasks.rubric import Line, Report, number, right_first, same_error

NOT_TIMED = "not timed: there is no CUDA device here, or its clock did not hold still; no points are lost"
NOT_HERE = "not judged: {} is not installed on this machine, and has no wheel for some; no points are lost"
BEFORE_ANY_CASE = re.compile(
    "not written yet|does not compile|`[^`]*` does not exist|line .*still, which stops your code"
)  # what is true of every case
AT_AN_EDGE = re.compile(
    r"(: |\A)((out-of-bounds access|uninitialised read) in kernel|`\w+` was never written to)"
)
ONLY_RIGHT = "only counted for a right result: "
FOUND = {
    "race": "threads race in global memory, so that on a GPU the numbers may be others",
    "other": "the threads that come to a barrier or an exchange are not those it is for, as the warning says",
}
STOPS = (
    *(errors.SharedRace, errors.UninitialisedRead, errors.BarrierDivergence, errors.WarpWide),
    *(errors.UnfinishedCopy, errors.WarpgroupMisuse, errors.BarrierMisuse, errors.ClusterMisuse),
)  # what no kernel may do, whatever its numbers are
STOPPED = re.compile(rf"({'|'.join(error.kind for error in STOPS)}) in kernel ")
RIGHT_HERE = "the numbers are right here"
RIGHT = {1: "right", 2: "right in both cases"}


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict of one case on its row.

    case: its name. share: of the row's points, a float in [0, 1]. reason: why, "" for a right result.
    hints_help: whether the row's hints are about this loss. access, warnings, drawings: as in Line.
    """

    case: str
    share: float
    reason: str = ""
    access: dict = field(default_factory=dict)
    hints_help: bool = True
    warnings: tuple = ()
    drawings: tuple = ()


def judge(task, cases, outcomes):
    """Compare outcomes with the task's reference, row by row; returns a Report.

    A missing or malformed outcome only loses its own row. An error is given in full once; other rows lost to
    it refer to the first one.
    """
    found = {outcome.case: outcome for outcome in outcomes}
    lines, told = [], {}
    for item in task.items:
        mine = [case for case in cases if case.item == item.key]
        line = _line(task, item, mine, found)
        errors = (found[case.name].error for case in mine if case.name in found)
        error = next((error for error in errors if error and line.reason.endswith(error)), None)
        if error:
            first = told.setdefault(_form(error), line)
            if first is not line:
                line = replace(line, reason=same_error(first.title), hints=(), drawings=())
        lines.append(line)
    wrong = next((line for line in lines if line.kind == "correctness" and line.points < line.max), None)
    if wrong:
        known = {"reason": right_first(wrong.title), "hints": (), "drawings": ()}
        lines = [replace(line, **known) if ONLY_RIGHT in line.reason else line for line in lines]
    lines = _well_formed(task, cases, found, list(_hinted(task, cases, lines)))
    return Report(task.name, tuple(_warned_once(lines)))


def _well_formed(task, cases, found, lines):
    """The lines, limited to the share `keeps["task"]` of the points if the engine found a mistake in any run.

    All rows run the same kernel, so rows without the finding lose points in proportion, too.
    """
    met = {case.item for case in cases if case.name in found and _is_malformed(found[case.name])}
    judged = [line for line in lines if line.kind != "time" and line.state != "ungraded"]
    others = [line for line in judged if line.key not in met]
    owed = (1 - task.keeps["task"]) * sum(line.max for line in judged)
    owed -= sum(line.max - line.points for line in judged if line.key in met)
    if not met or not others or owed <= 0:
        return lines
    share = max(0.0, 1 - owed / sum(line.max for line in others))
    title = next(line.title for line in judged if line.key in met)
    told = (
        f"; but what the engine found in {title!r} is a mistake of the whole kernel, which costs "
        f"{1 - task.keeps['task']:.0%} of the task: {share:.0%} of these points are left"
    )
    kept = {
        line.key: replace(
            line, points=round(share * line.points, 2), state="partial", reason=line.reason + told
        )
        for line in others
        if line.points > 0
    }
    return [kept.get(line.key, line) for line in lines]


def _is_malformed(outcome):
    """Whether the engine found a race, a barrier or exchange error, or an uninitialised value in this run."""
    return bool(STOPPED.match(outcome.error or "") or any(record["text"] for record in outcome.findings))


def _hinted(task, cases, lines):
    """The lines with hints that fit their failures.

    A row with an out-of-bounds error gets its own hints if another row that compares the same results has no
    error, since then its own inputs cause the error.
    """
    compared = {item.key: {case.only for case in cases if case.item == item.key} for item in task.items}
    for line in lines:
        right = {
            frozenset(compared[other.key])
            for other in lines
            if other.state == "full" and other.kind == line.kind
        }
        own = hints_for(task.name, line.key)
        if own and line.hints and frozenset(compared[line.key]) in right and AT_AN_EDGE.search(line.reason):
            line = replace(line, hints=own)
        yield line


def _warned_once(lines):
    """The lines with equal hints and equal engine warnings kept only at the first of them."""
    told, hinted = set(), set()
    for line in lines:
        if line.hints in hinted:
            line = replace(line, hints=())
        hinted.add(line.hints)
        fresh = {_form(text): text for text in reversed(line.warnings) if _form(text) not in told}
        told.update(fresh)
        yield replace(line, warnings=tuple(reversed(fresh.values())))


def _form(text):
    """A sentence without its numbers, equal for the same mistake with other indices."""
    return re.sub(r"\d[\d,]*", "0", text)


def _line(task, item, cases, found):
    """The Line of one row from its own cases; found: {name of a case: Outcome}."""
    counters = {case.name: _finite(found[case.name].counters) for case in cases if case.name in found}
    if not task.is_judged_here():
        why = NOT_HERE.format(task.needs.capitalize())
        return Line(item.key, item.kind, item.title, 0.0, item.points, "ungraded", why)
    if item.kind == "time" and not _was_timed(cases, found, counters):
        return Line(item.key, item.kind, item.title, 0.0, item.points, "ungraded", NOT_TIMED)
    verdicts = [_judge_case(task, item, case, found.get(case.name)) for case in cases]
    worst = min(verdicts, key=lambda verdict: verdict.share, default=CaseVerdict("", 1.0))
    share = min(worst.share, 1.0)
    points = round(float(item.points * min(max(share, 0.0), 1.0)), 2) if cases else 0.0
    state = "full" if points == item.points else "partial" if points > 0 else "lost"
    hints = () if state == "full" else _hints(task, item, verdicts)
    return Line(
        item.key,
        item.kind,
        item.title,
        points,
        item.points,
        state,
        _reason(verdicts),
        hints,
        counters,
        worst.access if share < 1.0 else {},
        tuple(dict.fromkeys(text for verdict in verdicts for text in verdict.warnings)),
        worst.drawings if share < 1.0 else (),
    )


def _hints(task, item, verdicts):
    """The hints about a common kind of failure, else the row's own."""
    first = next((verdict for verdict in verdicts if verdict.reason and verdict.share < 1.0), None)
    told = () if first is None else (first.reason.removeprefix(ONLY_RIGHT),)
    told = (*first.warnings, *told) if first and first.hints_help else told
    by_failure = next(filter(None, map(hints_for_failure, told)), None)
    if by_failure is not None:
        return by_failure
    return hints_for(task.name, item.key) if all(verdict.hints_help for verdict in verdicts) else ()


def _reason(verdicts):
    """The first failure with its case and the number of others; or a sentence that all is right."""
    first_case = {}
    for verdict in [verdict for verdict in verdicts if verdict.share < 1.0] or verdicts:
        if verdict.reason:
            first_case.setdefault(verdict.reason, verdict.case)
    if not first_case:
        return RIGHT.get(len(verdicts), f"right in all {len(verdicts)} cases")
    others = f" (and {len(first_case) - 1} more)" if len(first_case) > 1 else ""
    reason, name = next(iter(first_case.items()))
    if BEFORE_ANY_CASE.match(reason):
        return reason
    return f"{name}{others}: {reason}"


def _judge_case(task, item, case, outcome):
    """The CaseVerdict of one case, with drawings and the engine's warnings."""
    verdict = _points_of_case(task, item, case, outcome)
    if outcome is None:
        return verdict
    warnings = tuple(record["text"] for record in outcome.findings if record.get("text"))
    if warnings and verdict.share > 0:
        found = "race" if any(record["text"] and record["acts"] for record in outcome.findings) else "other"
        kept = task.keeps[found]
        told = f"{verdict.reason or RIGHT_HERE}; but {FOUND[found]}: {kept:.0%} of the points are left"
        verdict = replace(verdict, share=kept * verdict.share, reason=told)
    return replace(
        verdict,
        warnings=warnings,
        drawings=drawings(task, case, outcome) if verdict.share < 1.0 and verdict.hints_help else (),
    )


def _points_of_case(task, item, case, outcome):
    """The CaseVerdict of one case: a right result earns a correctness row, its counters earn the others."""
    wrong = task.wrong_result(case, outcome)
    if item.kind == "correctness":
        return CaseVerdict(case.name, 0.0, wrong) if wrong else CaseVerdict(case.name, 1.0)
    if wrong:  # hints about counters would not help with a wrong result
        alone = all(each.kind != "correctness" for each in task.items)  # no other row judges the result
        return CaseVerdict(case.name, 0.0, wrong if alone else f"{ONLY_RIGHT}{wrong}", hints_help=alone)
    bound, counters = task.bounds_of(case)[item.key], _finite(outcome.counters)
    dodged = task.needless_atomics(bound, counters)
    dodged = dodged or task.unshared(case.inputs, counters, outcome.launch)
    if dodged:
        return CaseVerdict(case.name, 0.0, dodged, hints_help=False)
    total, unit = bound.total(counters), bound.unit or bound.counter
    if unit.startswith(("s on ", "s of ")):  # seconds too small to read as such
        scaled = {name: 1e6 * getattr(bound, name) for name in ("full", "zero")}
        bound, total, unit = replace(bound, **scaled), 1e6 * total, f"microseconds{unit[1:]}"
    counted = number(total) if math.isfinite(total) else "no"
    one = total == 1 and bound.unit and not unit.startswith("times ")
    told = re.sub(r"(?<=ch)es\b|(?<!ch)s\b", "", unit, count=1) if one else unit  # 1 request, 1 launch
    if total < bound.least:
        why = f"{counted} {unit}, and no right result takes fewer than {number(bound.least)}"
        more = "send numbers whole, and by messages alone"
        return CaseVerdict(case.name, 0.0, f"{why}: {more}", hints_help=False)
    limits = f"full points up to {number(bound.full)}, none from {number(bound.zero)}"
    missing = [name for name in bound.counter.split(" + ") if name not in counters]
    limits += f"; nothing was counted as {', '.join(missing)}" if missing else ""
    # a line that wastes nothing is not blamed for a slightly too large total
    blamed = outcome.access and math.isfinite(total)
    blamed = blamed and (outcome.access.get("wasted") or total >= 1.25 * bound.full)
    access = outcome.access | {"of": total, "unit": unit} if blamed else {}
    return CaseVerdict(case.name, bound.fraction(total), f"{counted} {told}; {limits}", access)


def _was_timed(cases, found, counters):
    """Whether a timed row was measured or failed; if neither, it stays ungraded."""
    measured = any("time.seconds" in row for row in counters.values())
    return measured or any(found[case.name].error for case in cases if case.name in found)


def _finite(counters):
    """Counters that are real, finite numbers; anything else is dropped."""
    return {
        str(key): float(value)
        for key, value in dict(counters).items()
        if type(value) in (int, float) and abs(value) < 1e300
    }
