"""A prediction beside its count: nothing is counted before every number has been said.

    predict({(32, 8): ..., (8, 32): ...}, lambda block: efficiency(block))

What was said stands in the notebook's own cell, and so it stays.
"""

import math
from numbers import Real

from warplab.crossing.explain import explain
from warplab.puzzles.blank import COLOURS
from warplab.rendering import render
from warplab.tasks.feedback import show

NEAR = 0.05  # of a count: so far off is called near
HITS = ("right", "near")


class Compared:
    """What a cell shows: a row for each thing that was asked, or a sentence on what is missing.

    rows: (what, said, came, how far off) as texts.
    """

    def __init__(self, rows, found, sentence=""):
        self.rows, self.found, self.sentence = rows, found, sentence

    def __repr__(self):
        lines = [
            f"{what}: you said {said}, {self.found} {came}: {off}" for what, said, came, off in self.rows
        ]
        return "\n".join([self.sentence, *lines] if self.sentence else lines)

    def _repr_html_(self):
        return render("warplab.puzzles", "prediction.html.j2", compared=self, colours=COLOURS, hits=HITS)


def compare(predicted, count, found="counted"):
    """warplab.check.predict."""
    unsaid = [_label(what) for what, said in predicted.items() if said is ... or said is None]
    if unsaid:
        all_of = "" if len(unsaid) == len(predicted) else f" (left: {'; '.join(unsaid)})"
        told = f"Predict first: put what you expect in the place of each `...`{all_of}, and run the cell."
        show(Compared([], found, f"{told} The count comes then, beside what you said."))
        return False
    wrong = next((said for said in predicted.values() if not _comparable(said)), None)
    if wrong is not None:
        show(Compared([], found, f"A number is asked for, or a word, and {wrong!r} is neither."))
        return False
    try:
        came = {what: count(what) for what in predicted}
    except Exception as error:  # noqa: BLE001 - it may run a student's code: told as that
        show(Compared([], found, f"There is nothing to compare with yet: {explain(error)}"))
        return False
    unfit = next((what for what, value in came.items() if not _comparable(value)), None)
    if unfit is not None:
        told = f"There is nothing to compare with yet: of {_label(unfit)} came {came[unfit]!r}."
        show(Compared([], found, told))
        return False
    rows = [
        (_label(what), text_of(said), text_of(came[what]), how_far(said, came[what]))
        for what, said in predicted.items()
    ]
    show(Compared(rows, found))
    return True


def _comparable(said):
    if isinstance(said, str):
        return True
    return isinstance(said, Real) and not isinstance(said, bool) and math.isfinite(said)


def _label(what):
    return ", ".join(map(str, what)) if isinstance(what, tuple) else str(what)


def text_of(value):
    """A number, or a word, as the table has it."""
    if isinstance(value, str):
        return value
    return f"{int(value):,}" if float(value).is_integer() else f"{float(value):,.4g}"


def how_far(said, came):
    """How far off a prediction was, in words."""
    if isinstance(said, str) or isinstance(came, str):
        return "right" if str(said).strip().casefold() == str(came).casefold() else "another"
    if said == came:
        return "right"
    if abs(said - came) <= NEAR * abs(came):
        return "near"
    if said > 0 and came > 0:
        factor = came / said
        return f"{factor:.3g} times as much" if factor > 1 else f"{factor:.3g} of it"
    return f"off by {text_of(abs(came - said))}"
