"""The claims ledger as a page, built from autograder/workshop/claims/claims.yml and the
functions of workshop.claims.

    ```{claims} 4                 the claims of chapter 4, each with verdict, reason, place and deciding code
    ```
    ```{claims-list} wrong        links to all claims of one verdict
    ```
    ```{claims-count}             how many claims, by chapter and verdict
    ```

The numbers in a reason are computed while the page is built. Sections are linked only if their page is in the
book.
"""

from __future__ import annotations

import inspect

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from workshop import claims

WORDS = {claims.HOLDS: "Holds", claims.HOLDS_IF: "Holds if", claims.WRONG: "Wrong"}
CLASSES = {claims.HOLDS: "holds", claims.HOLDS_IF: "holds-if", claims.WRONG: "wrong"}


def anchor(claim: claims.Claim) -> str:
    return f"claim-{claim.id}"


def pages_of(directive: Directive) -> list[str]:
    """Names of the book's pages ("04-matmul"). Also makes the page depend on the ledger's file."""
    env = directive.state.document.settings.env
    env.note_dependency(str(claims.path()))
    return [name.rsplit("/", 1)[-1] for name in env.found_docs]


class Claims(Directive):
    """All claims of one chapter."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        pages = pages_of(self)
        return [
            self.entry(claim, pages) for claim in claims.ledger() if claim.chapter == int(self.arguments[0])
        ]

    def entry(self, claim: claims.Claim, pages: list[str]) -> nodes.Node:
        kind = CLASSES[claim.verdict]
        verdict = nodes.inline("", WORDS[claim.verdict], classes=["claim-verdict"])
        said = nodes.paragraph(
            "", "", verdict, nodes.Text(" "), nodes.inline("", claim.claim, classes=["claim-said"])
        )
        box = nodes.container(
            "",
            said,
            nodes.paragraph("", claim.reason()),
            classes=["claim", f"claim-{kind}"],
            ids=[anchor(claim)],
        )
        box += self.where(claim, pages)
        if claim.code:
            box += deciding_code(claim.code)
        return box

    def where(self, claim: claims.Claim, pages: list[str]) -> nodes.Node:
        line = nodes.paragraph("", "", classes=["claim-where"])
        if claim.page in pages:
            title = claim.section.replace(
                "'", ""
            )  # the page has it as a curly quote, which the anchor leaves out
            target = f"{claim.page}.html#{nodes.make_id(title)}"
            line += [
                nodes.Text("Decided in "),
                nodes.reference("", claim.section, refuri=target, internal=True),
            ]
        else:
            page = next((name for name in pages if name.startswith(f"{claim.chapter:02d}-")), "")
            text = f"chapter {claim.chapter}"
            line += nodes.Text("See " if page else "Comes with ")
            line += (
                nodes.reference("", text, refuri=f"{page}.html", internal=True) if page else nodes.Text(text)
            )
        if claim.cite:
            line += nodes.Text(" · ")
            parsed = nodes.Element()
            self.state.nested_parse(
                StringList([f"{{cite}}`{','.join(claim.cite)}`"]), self.content_offset, parsed
            )
            line += parsed[0].children
        return line


def deciding_code(name: str) -> list[nodes.Node]:
    """The source of the function, folded."""
    source = inspect.getsource(claims.functions()[name])
    head = f'<details class="claim-code"><summary>the code that decides: <code>{name}</code></summary>'
    return [
        nodes.raw("", head, format="html"),
        nodes.literal_block(source, source, language="python"),
        nodes.raw("", "</details>", format="html"),
    ]


class ClaimsList(Directive):
    """Links to every claim of one verdict ("wrong", "holds if", "holds")."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        pages_of(self)
        listed = nodes.bullet_list(classes=["claims-list"])
        for claim in claims.ledger():
            if claim.verdict == self.arguments[0]:
                link = nodes.reference("", claim.claim, refuri=f"#{anchor(claim)}", internal=True)
                listed += nodes.list_item("", nodes.paragraph("", "", link))
        return [listed]


class ClaimsCount(Directive):
    """One sentence: how many claims, how many of each verdict, how many decided by code."""

    def run(self) -> list[nodes.Node]:
        pages_of(self)
        ledger = claims.ledger()
        counts = ", ".join(
            f"{sum(c.verdict == v for c in ledger)} {words.lower()}" for v, words in WORDS.items()
        )
        code = sum(bool(c.code) for c in ledger)
        text = (
            f"{len(ledger)} claims: {counts}. {code} verdicts were computed while this page was built; "
            f"sources decide the other {len(ledger) - code}."
        )
        return [nodes.paragraph("", text)]


def setup(app) -> dict:
    app.add_directive("claims", Claims)
    app.add_directive("claims-list", ClaimsList)
    app.add_directive("claims-count", ClaimsCount)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
