"""Student names that look alike (homoglyphs): lists add the code points; the names themselves stay."""

import functools
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import yaml


def told_apart(names: Iterable[str]) -> dict[str, str]:
    """{name: how a list shows it}: "Ada", but "Ad\u0430 (Ad U+0430)" where another name looks the same."""
    known = {name: skeleton(name) for name in names}
    often = Counter(known.values())
    return {name: _spelt(name) if often[looks] > 1 else name for name, looks in known.items()}


def skeleton(name: str) -> str:
    """A form that is equal for names that look alike, by Unicode's confusables (lookalikes.yml)."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name))
    return "".join(_classes().get(character, character) for character in plain)


def _spelt(name: str) -> str:
    if name.isascii():
        return name
    parts = (one if one.isascii() else f" U+{ord(one):04X} " for one in name)
    return f"{name} ({' '.join(''.join(parts).split())})"


@functools.cache
def _classes() -> dict[str, str]:
    """{character: the representative of its class of similar characters}."""
    alike = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    return {character: row[0] for row in alike for character in row}
