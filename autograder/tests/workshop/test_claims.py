"""The claims ledger: every verdict that arithmetic can decide is decided again here,
and every link and source is real.
"""

import re

import pytest
from conftest import ROOT

from workshop import claims

CHAPTERS = ROOT / "chapters"
LEDGER = claims.ledger()
DECIDED = [claim for claim in LEDGER if claim.code]
each_claim = pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_the_arithmetic_still_gives_the_verdict(claim):
    decision = claim.decide()
    assert decision.verdict == claim.verdict, decision.readings


@each_claim
def test_a_reason_reads_as_text(claim):
    reason = claim.reason()
    assert "{" not in reason and reason.endswith(".") and reason.count(". ") <= 3
    assert claim.verdict != claims.HOLDS_IF or reason.startswith("It holds if ")


def test_every_chapter_has_a_claim_but_one():
    chapters = {int(path.name[:2]) for path in CHAPTERS.glob("[0-9][0-9]-*.md")}
    without = {14}  # popular accounts say nothing of TMA and wgmma
    assert {claim.chapter for claim in LEDGER} == chapters - without, "claims.yml, or here in `without`"


def test_every_deciding_function_is_used_and_explains_itself_in_a_few_lines():
    assert set(claims.functions()) == {claim.code for claim in DECIDED}


@each_claim
def test_a_section_exists_where_its_page_does(claim):
    page = CHAPTERS / f"{claim.page}.md"
    assert bool(claim.page) == bool(claim.section)
    if claim.page and page.exists():
        headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
        assert claim.section in headings, f"{claim.id}: {page.name} has {headings}"


@each_claim
def test_a_claim_that_no_code_decides_has_a_page_or_a_source(claim):
    without_any = {"to-cuda", "training-once"}  # each says in its reason why there is none
    assert claim.code or claim.page or claim.cite or claim.id in without_any


def test_the_page_shows_every_chapter_of_the_ledger():
    shown = re.findall(r"```\{claims\} (\d+)", (CHAPTERS / "claims.md").read_text(encoding="utf-8"))
    assert sorted(map(int, shown)) == sorted({claim.chapter for claim in LEDGER}), "claims.md: a section each"
