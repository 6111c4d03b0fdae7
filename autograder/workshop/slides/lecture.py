"""Makes the slides of one chapter from the figures and cells of its built page that lectures.yml names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bs4 import BeautifulSoup, Tag

from autograder.user_error import UserError

DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
WHOLE, OPENING, ASKING, ANSWERING, CLOSING = 40, 2, 2, 3, 3  # minutes


@dataclass(frozen=True)
class Slide:
    """One slide. body, notes: HTML. place: its id on the chapter's page. minutes: how long it is shown.

    wrong: of an answer, [(what a student may say, what misconception that shows)].
    """

    title: str
    body: str
    place: str
    minutes: float
    notes: str = ""
    wrong: tuple[tuple[str, str], ...] = ()


class LecturedPage:
    """The built page of a chapter. Its SVG drawings, most of its bytes, are kept apart while it is parsed."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.drawings = name, list[str]()
        found = BeautifulSoup(DRAWING.sub(self._put_by, text), "html.parser").article
        if found is None:
            raise UserError(f"{name}.html has no article; run make book")
        self.page = found
        for extra in found.select("a.headerlink, a.ask"):
            extra.decompose()
        self.title = self.one("h1").get_text()

    def _put_by(self, drawing: re.Match[str]) -> str:
        self.drawings.append(drawing[0])
        return f'<svg data-drawing="{len(self.drawings) - 1}"></svg>'

    def one(self, selector: str, among: Tag | None = None, line: str = "") -> Tag:
        """The one element that matches `selector` and contains `line`. Raises UserError unless it is one."""
        found = [part for part in (among or self.page).select(selector) if line in part.get_text()]
        if len(found) != 1:
            named = f"{selector} with {line!r}" if line else selector
            raise UserError(f"lectures.yml: {self.name} has {len(found)} of {named}, expected one")
        return found[0]

    def html(self, *parts: Tag) -> str:
        """The HTML of parts of the page, with drawings put back and links adapted to _build/html/slides."""
        text = "".join(map(str, parts))
        text = re.sub(r'href="(?=[\w-]+\.html)', 'href="../chapters/', text)
        text = re.sub(r'href="#', f'href="../chapters/{self.name}.html#', text)
        put_by = re.compile(r'<svg data-drawing="(\d+)"></svg>')
        return put_by.sub(lambda found: self.drawings[int(found[1])], text)

    def slides(self, chosen: list[Any]) -> list[Slide]:
        """The slides of the lecture, whose minutes add up to WHOLE. Raises UserError.

        chosen: figures' ids, lines of code, and {"ask": "quiz 2", "wrong": {wrong answer: what it shows}}.
        """
        for one in chosen:
            match one:
                case str() | {"ask": str(), "wrong": dict()}:
                    continue
            raise UserError(
                f"lectures.yml: {self.name} has {one!r}, expected a figure's id, a line of code in quotes, "
                "or ask: with wrong: under it"
            )
        asked = sum(isinstance(one, dict) for one in chosen)
        left = WHOLE - OPENING - CLOSING - asked * (ASKING + ANSWERING)
        if left <= 0 or asked == len(chosen):
            raise UserError(f"lectures.yml: {self.name} has no time or nothing to show beside its questions")
        each = left / (len(chosen) - asked)
        opening = self.one("div.frame > p", line="Questions.")
        made = [Slide(self.title, self.html(*self.page.select(".opener"), opening), "", OPENING)]
        for one in chosen:
            made += (
                self.question(one["ask"], one["wrong"]) if isinstance(one, dict) else [self.shown(one, each)]
            )
        closing = self.one("#in-short")
        return [*made, Slide("In short", self.html(*closing.find_all("ul")), "in-short", CLOSING)]

    def shown(self, what: str, minutes: float) -> Slide:
        """The slide of a figure, or of code with its output; notes are the paragraphs before and after it."""
        code = "div[class*=highlight-]:not(.output)"
        found = self.one(f"figure[id={what!r}]") if what.startswith("fig-") else self.one(code, line=what)
        block = found.find_parent("div", class_="cell") or found
        beside = [block.find_previous_sibling(), block.find_next_sibling()]
        notes = self.html(*(part for part in beside if part and part.name in ("p", "ul", "ol")))
        heading: Any = block.find_previous(["h2", "h3"])
        place = str(found.get("id") or heading.parent["id"])
        return Slide(
            heading.get_text(), self.html(found if found.name == "figure" else block), place, minutes, notes
        )

    def question(self, ask: str, wrong: dict[str, Any]) -> list[Slide]:
        """The slides of a question and its answer. ask: "quiz 2", "problem 5.3" or "predict 5.1"."""
        kind, _, number = ask.partition(" ")
        parts: list[Any]  # as all that is found beside them
        if kind == "quiz":
            place, parts = "quiz", [self.one("section#quiz > p > strong", line=f"{number}.").find_parent("p")]
            while (following := parts[-1].find_next_sibling()) and following.name != "details":
                parts.append(following)
        else:
            place = f"problem-{'p-' if kind == 'predict' else ''}{number.replace('.', '-')}"
            parts = [self.one(f"div[id={place!r}]")]
        answer = parts[-1].find_next_sibling("details")
        if answer is None:
            raise UserError(f"lectures.yml: {self.name} has no answer to {ask}")
        for extra in answer.select("summary, div.cell_input"):
            extra.decompose()
        means = tuple(
            (str(said), told[0] if isinstance(told, list) else told) for said, told in wrong.items()
        )
        return [
            Slide("A question to the room", f'<div class="asked">{self.html(*parts)}</div>', place, ASKING),
            Slide(
                "The answer",
                self.html(*answer.find_all(True, recursive=False)),
                place,
                ANSWERING,
                wrong=means,
            ),
        ]
