"""The sample answer to a written question, and its rubric, as solutions/ has them.

Behind `**Marking.**` stand the items: `1 point: names the broadcast. 2 points: counts the sectors.`
"""

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.layout import SOLUTIONS, Assignment
from autograder.release.source import BEGIN, END, source_notebook

ITEM = re.compile(r"([\d.]+)\spoints?:\s(.*?)(?=\s[\d.]+\spoints?:\s|\Z)", re.DOTALL)


@dataclass(frozen=True)
class SampleAnswer:
    """text: Markdown. items: (points, words), in order."""

    text: str
    items: tuple[tuple[float, str], ...]


def sample_answers(root: Path, assignment: Assignment) -> dict[str, SampleAnswer]:
    """{grade id: answer} of the cells that a person grades; none where solutions/ has not the set."""
    file = next((root / SOLUTIONS).glob(f"{assignment.name}_*.py"), None)
    texts = {cell["id"]: "".join(cell["source"]) for cell in source_notebook(file)["cells"]} if file else {}
    return {
        spec.grade_id: sample_answer(texts[spec.grade_id])
        for spec in assignment.graded()
        if spec.kind == "manual" and spec.grade_id in texts
    }


def sample_answer(source: str) -> SampleAnswer:
    """Of the text of a cell in solutions/."""
    text, _, marking = source.replace(BEGIN, "").replace(END, "").partition("**Marking.**")
    items = tuple((float(points), " ".join(words.split())) for points, words in ITEM.findall(marking))
    return SampleAnswer(text.strip(), items)
