"""Names that a reader takes for one another: told apart where people read lists of them, never changed."""

import functools
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import yaml


def told_apart(names: Iterable[str]) -> dict[str, str]:
    """{name: as a list shows it}: "Ada", and "Ad\u0430 (Ad U+0430)" where another one looks like it."""
    known = {name: skeleton(name) for name in names}
    often = Counter(known.values())
    return {name: _spelt(name) if often[looks] > 1 else name for name, looks in known.items()}


def skeleton(name: str) -> str:
    """Equal for names that look alike, by Unicode's table (lookalikes.yml) and its normal forms."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", name))
    return "".join(_classes().get(character, character) for character in plain)


def _spelt(name: str) -> str:
    if name.isascii():
        return name
    parts = (one if one.isascii() else f" U+{ord(one):04X} " for one in name)
    return f"{name} ({' '.join(''.join(parts).split())})"


@functools.cache
def _classes() -> dict[str, str]:
    """{character: the first of those that it looks like}."""
    alike = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    return {character: row[0] for row in alike for character in row}
