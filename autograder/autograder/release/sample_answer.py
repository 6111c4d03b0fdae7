"""The sample answer to a written question, and its rubric, as solutions/ has them.

Behind `**Marking.**` stand the items: `1 point: names the broadcast. 2 points: counts the sectors.`
"""

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import Assignment
from autograder.release.source import solved_cells, without_markers

NUMBER = r"\d*\.?\d+"
ITEM = re.compile(rf"({NUMBER})\spoints?:\s(.*?)(?=\s{NUMBER}\spoints?:\s|\Z)", re.DOTALL)
TICKED = re.compile(rf"^\[(\d+)\] \+({NUMBER}): .*$", re.MULTILINE)  # an item in a comment


@dataclass(frozen=True)
class SampleAnswer:
    """text: Markdown. items: (points, words), in order."""

    text: str
    items: tuple[tuple[float, str], ...]

    @property
    def lines(self) -> dict[str, str]:
        """{number of an item: the line of a comment in which it is ticked}."""
        return {str(at): f"[{at}] +{points:g}: {words}" for at, (points, words) in enumerate(self.items, 1)}

    def renewed(self, comment: str) -> str:
        """A comment with what was ticked at the points and in the words of now."""
        lines = self.lines
        return TICKED.sub(lambda one: lines.get(one[1], f"[{one[1]}] +0: no longer counts"), comment)


def ticked(comment: str) -> float:
    """The points of all items that are ticked."""
    return sum(float(one[2]) for one in TICKED.finditer(comment))


def sample_answers(root: Path, assignment: Assignment) -> dict[str, SampleAnswer]:
    """{grade id: answer} of the cells that a person grades; none where solutions/ has not the set."""
    texts = {cell["id"]: cell["source"] for cell in solved_cells(root, assignment.name)}
    return {
        spec.grade_id: sample_answer(texts[spec.grade_id])
        for spec in assignment.graded()
        if spec.kind == "manual" and spec.grade_id in texts
    }


def sample_answer(source: str) -> SampleAnswer:
    """Of the text of a cell in solutions/."""
    text, _, marking = without_markers(source).partition("**Marking.**")
    items = tuple((float(points), " ".join(words.split())) for points, words in ITEM.findall(marking))
    return SampleAnswer(text.strip(), items)
