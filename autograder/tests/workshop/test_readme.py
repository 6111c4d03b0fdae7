"""What the README shows is what its code prints, and what it links is there."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_counts_in_the_readme_are_what_its_code_counts():
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", README, flags=re.DOTALL)[:2]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<of the README>", "exec"), {})
    assert printed.getvalue() == shown


def test_what_the_readme_links_is_there():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 5 and not [link for link in links if not (ROOT / link).exists()]
