"""`make slides`: a lecture for each chapter in _build/html/slides, made of the built pages."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from autograder.layout import find_root
from autograder.user_error import UserError
from warplab.rendering import render
from workshop.editions.paper import SHEET
from workshop.slides.lecture import WHOLE, LecturedPage

HERE = Path(__file__).parent
FOLDER = "slides"


def lectures() -> dict[str, list[Any]]:
    """{chapter: what its lecture shows, in order} from lectures.yml."""
    with (HERE / "lectures.yml").open(encoding="utf-8") as file:
        return yaml.safe_load(file)


def lecture(name: str, text: str, chosen: list[Any]) -> tuple[str, str]:
    """(title, HTML of the slides) of a chapter's lecture. text: HTML of its built page. Raises UserError."""
    chapter = LecturedPage(name, text)
    slides, begins = chapter.slides(chosen), [0.0]
    for slide in slides:
        begins.append(begins[-1] + slide.minutes)
    sheets = dict.fromkeys(re.sub(r"\?.*", "", sheet) for sheet in SHEET.findall(text))
    page = render(
        "workshop.slides",
        "lecture.html.j2",
        name=name,
        title=chapter.title,
        slides=list(zip(begins, begins[1:], slides)),
        sheets=[sheet for sheet in sheets if not sheet.endswith("/print.css")],
        style=(HERE / "lecture.css").read_text(encoding="utf-8"),
        script=(HERE / "lecture.js").read_text(encoding="utf-8"),
    )
    return chapter.title, page


def make(root: Path, say: Callable[[str], None]) -> None:
    """Write the slides of all chapters, and a page that lists them. Raises UserError."""
    html, titles = root / "_build" / "html", {}
    (html / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, chosen in lectures().items():
        page = html / "chapters" / f"{name}.html"
        if not page.is_file():
            raise UserError(f"{page.relative_to(root)} is not there; run make book")
        titles[name], slides = lecture(name, page.read_text(encoding="utf-8"), chosen or [])
        (html / FOLDER / f"{name}.html").write_text(slides, encoding="utf-8")
    listed = render("workshop.slides", "index.html.j2", titles=titles, minutes=WHOLE)
    (html / FOLDER / "index.html").write_text(listed, encoding="utf-8")
    say(f"_build/html/{FOLDER}/index.html: {len(titles)} lectures of {WHOLE} minutes")


def main() -> int:
    """Entry point: an error that the user can fix is one line on stderr, never a traceback."""
    try:
        make(find_root(), say=functools.partial(print, flush=True))
    except (UserError, yaml.YAMLError) as error:
        print(f"make: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
