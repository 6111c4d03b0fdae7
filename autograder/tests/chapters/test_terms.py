"""A reader who knows Python and NumPy meets no term of the glossary before a page links or explains it.

Pages in reading order. Frames, headings, code and captions do not count.
"""

import re

import pytest
from test_chapters import BOOK, CHAPTERS, _parser, cells, directives

PAGES = [BOOK / "intro.md", BOOK / "what-a-network-computes.md", *CHAPTERS]
# Known to a Python programmer, or mostly said in the everyday sense
KNOWN = """block; cache; cluster; CPU; dependency; device; event; exponent; GPU; head; host; inference;
instance; instruction; launch; layer; matrix product; moment; operator; overflow; padding;
parameter; pixel; race; request; ring; scan; span; stream; stride; training; wave;
weight; word""".replace("\n", " ").split("; ")
ROLE = re.compile(r"(?:(.*?)\s*<)?([^<>]+)>?$", re.S)
EXPLAINED = (  # {} is the term; «» stand round what is emphasised
    r"«[^»]*{}[^»]*»",
    r"(?:called|named|call it|call this|says|known as|the name|the word|short for|,? or) (?:an? |the )?"
    r"[\"“]?{}",
    r"{},? (?:is|are|means|stands for) (?:an?|the|what|how|called|where|when|one|all|two)\b",
    r"{},? (?:an?|the|or|short for) ",
    r"\({}\)|{} \(|{}:",
)


def terms():
    """{term: (pattern, its patterns of explanation)}, longer ones first."""
    lines = "\n".join(token.content for token in directives(BOOK / "glossary.md", "glossary")).splitlines()
    found = {}
    for name in sorted({line.strip() for line in lines if line[:1].strip()} - set(KNOWN), key=len)[::-1]:
        body = re.escape(name).replace(r"\ ", r"[\s-]").replace("’", "['’]")
        body = re.sub("isation$", "is(?:ation|e|ed|ing)", re.sub("parallel$", "parallel(?:ism)?", body))
        body = rf"(?<![\w-]){body}(?:e?s)?(?!\w)"
        case = 0 if re.search("[A-Z]", name[1:]) or name.isupper() else re.IGNORECASE
        found[name] = (
            re.compile(body, case),
            [re.compile(form.replace("{}", body), case) for form in EXPLAINED],
        )
    return found


def sentences(source):
    """(text, linked terms) of each sentence below the frame; «» round what is emphasised, no code."""
    tokens = _parser().parse(source)
    for before, token in zip([None, *tokens], tokens, strict=False):
        directive = token.type == "colon_fence" or token.info.startswith("{")
        if directive and ":class: frame" not in token.content:
            yield from sentences(re.sub(r"^:[\w-]+:.*$", "", token.content, flags=re.M))
        elif token.type == "inline" and before.type != "heading_open":
            text = "".join(map(said, token.children))
            for sentence in re.split(r"(?<=[.?!:;])\s+(?=[A-Z«⟨(“\"])", text):
                linked = {term.lower() for term in re.findall(r"⟨.*?\|(.*?)⟩", sentence)}
                yield re.sub(r"⟨(.*?)\|.*?⟩", r"\1", sentence), linked


def said(token):
    if token.type == "myst_role" and token.meta["name"] == "term":
        shown, term = ROLE.match(" ".join(token.content.split())).groups()
        return f"⟨{shown or term}|{term}⟩"
    return {"text": token.content, "softbreak": " ", "em_open": "«", "em_close": "»"}.get(token.type, " · ")


def met_too_early():
    """{page: {term: sentence}}"""
    taught, early, patterns = set(), {}, terms()
    for page in PAGES:
        source = "\n\n".join(cell.source for cell in cells(page) if cell.cell_type == "markdown")
        for sentence, linked in sentences(source):
            taught |= linked
            rest = re.sub("[«»]", "", sentence)
            for name, (pattern, forms) in patterns.items():
                if not (match := pattern.search(rest)):
                    continue
                rest = pattern.sub("·", rest)
                if name.lower() not in taught:
                    if any(form.search(sentence) for form in forms):
                        taught.add(name.lower())
                    else:
                        around = match.string[max(0, match.start() - 70) : match.end() + 50]
                        early.setdefault(page.stem, {}).setdefault(name, around)
    return early


@pytest.mark.slow
def test_no_term_is_met_before_it_is_linked_or_explained():
    found = [
        f"{page}: {term}: …{around}…"
        for page, early in met_too_early().items()
        for term, around in early.items()
    ]
    assert not found, "\n".join(found)
