"""The sample answer to a written question and its rubric, from solutions/.

The rubric follows `**Marking.**`, as in `1 point: names the broadcast. 2 points: counts the sectors.`
"""

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment
from autograder.release.source import solved_cells, without_markers

NUMBER = r"\d*\.?\d+"
ITEM = re.compile(rf"({NUMBER})\spoints?:\s(.*?)(?=\s{NUMBER}\spoints?:\s|\Z)", re.DOTALL)
TICKED = re.compile(rf"^\[(\d+)\] \+({NUMBER}): .*$", re.MULTILINE)  # a ticked item in a grader's comment


@dataclass(frozen=True)
class SampleAnswer:
    """text: the answer, Markdown. items: the rubric, (points, words) in order."""

    text: str
    items: tuple[tuple[float, str], ...]

    @property
    def lines(self) -> dict[str, str]:
        """{number of an item, from 1: the line that ticks it in a comment}."""
        return {str(at): f"[{at}] +{points:g}: {words}" for at, (points, words) in enumerate(self.items, 1)}

    def renewed(self, comment: str) -> str:
        """A comment with its ticked items brought to the present points and words."""
        lines = self.lines
        return TICKED.sub(lambda one: lines.get(one[1], f"[{one[1]}] +0: no longer counts"), comment)


def ticked(comment: str) -> float:
    """The sum of the points of the items ticked in a comment."""
    return sum(float(one[2]) for one in TICKED.finditer(comment))


def sample_answers(root: Path, assignment: Assignment) -> dict[str, SampleAnswer]:
    """{grade id: SampleAnswer} of the written answers of a set; {} where solutions/ lacks the set."""
    texts = {cell["id"]: cell["source"] for cell in solved_cells(root, assignment.name)}
    return {
        spec.grade_id: sample_answer(texts[spec.grade_id])
        for spec in assignment.graded()
        if spec.kind == "manual" and spec.grade_id in texts
    }


def sample_answer(source: str) -> SampleAnswer:
    """Parse the text of a written answer's cell in solutions/."""
    text, _, marking = without_markers(source).partition("**Marking.**")
    items = tuple((float(points), " ".join(words.split())) for points, words in ITEM.findall(marking))
    return SampleAnswer(text.strip(), items)
