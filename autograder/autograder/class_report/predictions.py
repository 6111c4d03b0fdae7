"""What a class predicted, beside the right counts; read from the judged notebooks, worth no points."""

import re
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment, beside_solutions
from autograder.report.page import judged_notebooks
from warplab.puzzles.prediction import HITS, how_far, text_of

# a question in the released cell: its key before a `...`
KEY = re.compile(r"""(\([^()]*\)|"[^"]*"|\d+): \.\.\.""")
SAID = r"\s*:\s*([^,{}\n#]{1,60})"  # the answer behind the key in a student's cell
WORD = re.compile(r"""(["'])([^"'\\]{1,40})\1""")
NUMBER = re.compile(r"(-?\d{0,12}\.?\d{1,12}(?:e-?\d)?)\.?(?: ?([*/]) ?(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True)
class Predicted:
    """The answers to one question. said: the median of numbers, or the commonest word.

    counted: the right answer. hits: how many were right or near. Both are None where
    solutions/predictions.yml does not have the question.
    """

    question: str
    students: int
    said: str
    counted: str | None
    hits: int | None


def predictions(assignment: Assignment, root: Path, grades: Path) -> list[Predicted]:
    """The questions that somebody has answered, the one most often wrong first."""
    keys = [key for text in assignment.given() if "predict(" in text for key in KEY.findall(text)]
    answers: defaultdict[str, list[float | str]] = defaultdict(list)
    for _, cells in judged_notebooks(assignment, grades):
        text = "\n".join(one["source"] for one in cells if "predict(" in one["source"])
        for key in keys:
            written = re.search(rf"(?<![\w.]){re.escape(key)}{SAID}", text)
            said = value_of(written[1].strip()) if written else None
            if said is not None:
                answers[key].append(said)
    counted = beside_solutions(root, "predictions.yml").get(assignment.name) or {}
    found = [_predicted(key, said, counted) for key, said in answers.items()]
    return sorted(found, key=lambda one: ((one.hits or 0) / one.students, one.question))


def _predicted(key: str, said: list[float | str], counted: dict[str, float | str]) -> Predicted:
    question, numbers = re.sub('[()"]', "", key), [one for one in said if not isinstance(one, str)]
    middle = statistics.median(numbers) if 2 * len(numbers) > len(said) else statistics.mode(said)
    came = counted.get(question)
    hits = None if came is None else sum(how_far(one, came) in HITS for one in said)
    return Predicted(question, len(said), text_of(middle), None if came is None else text_of(came), hits)


def value_of(text: str) -> float | str | None:
    """The value of "3", "3 * 4", "3 / 4" or a quoted word. None for anything else: nothing is evaluated."""
    if word := WORD.fullmatch(text):
        return word[2].strip().casefold()
    if number := NUMBER.fullmatch(text.replace("_", "")):
        value, by = float(number[1]), float(number[3] or 1)
        return value * by if number[2] == "*" else value / by if by else None
    return None
