"""The price registry: what a card costs an hour, each price with its source and the day it was read.

    prices.offers("h100-sxm")                 # on demand, cheapest first
    prices.get("aws-p5").hourly, .gpu_hour    # 55.04 dollars an hour for eight cards, 6.88 for one
    prices.cheapest("v100-sxm2")              # None: no price recorded

Prices are in the card's file of the hardware registry, those of variants without a file in common/prices.yml.
Dollars are US dollars without tax. Edit a file and every table and figure of chapter 11 follows.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from warplab.hardware import specs
from warplab.hardware.specs import Source

ON_DEMAND, SPOT = "on demand", "spot"


@dataclass(frozen=True)
class Offer:
    """A machine with `gpus` cards for `hourly` dollars an hour.

    `device`: the card's key in the hardware registry, "" for a variant that is not there.
    """

    key: str
    provider: str
    card: str
    gpus: int
    hourly: float
    market: str
    source: Source
    seen: datetime.date
    device: str = ""
    instance: str = ""
    region: str = ""
    checked_in: str = ""
    note: str = ""

    @property
    def gpu_hour(self) -> float:
        """Dollars an hour for one card, even if single cards are not for rent."""
        return self.hourly / self.gpus

    def origin(self) -> str:
        """One line: the provider, the document with the price, and the day it was read."""
        where = " ".join(filter(None, (self.provider, self.instance, self.region, self.market)))
        return f"{where}; {self.source.publisher}: {self.source.title}; seen {self.seen}"


@dataclass(frozen=True)
class Purchase:
    """What a card costs to buy, in dollars."""

    device: str
    dollars: float
    source: Source
    seen: datetime.date
    note: str = ""


def every() -> dict[str, Offer]:
    """All offers by key: each card's, in the order of its file, then those of variants without a file."""
    found: dict[str, Offer] = {}
    for device in specs.names():
        found |= _offers(specs.path_of(device), device)
    return found | _offers(path(), "")


def get(key: str) -> Offer:
    """One offer. Raises KeyError, which lists all keys."""
    if key not in every():
        raise KeyError(f"no offer '{key}' in {specs.root()}; there are {', '.join(every())}")
    return every()[key]


def offers(device: str, market: str = ON_DEMAND) -> list[Offer]:
    """The offers of a card, cheapest card-hour first; empty if no price is recorded.

    Raises SpecError for an unknown device.
    """
    specs.get(device)
    found = [offer for offer in every().values() if offer.device == device and offer.market == market]
    return sorted(found, key=lambda offer: offer.gpu_hour)


def cheapest(device: str) -> Offer | None:
    """The offer on demand with the lowest price of a card-hour; None if no price is recorded."""
    return next(iter(offers(device)), None)


def purchase(device: str) -> Purchase | None:
    """What the card costs to buy; None if no price is recorded. Raises SpecError for an unknown device."""
    specs.get(device)
    file = specs.path_of(device)
    entry = specs.load(file).get("purchase")
    return Purchase(device, **{**entry, "source": specs.source(entry["source"], file)}) if entry else None


def electricity() -> float:
    """Dollars for a kWh; an assumption, not from a source."""
    return specs.load(path())["electricity"]["dollars_per_kwh"]


def path() -> Path:
    """The file with prices that belong to no card: offers of variants without a file, and electricity."""
    return specs.root() / "common" / "prices.yml"


def _offers(file: Path, device: str) -> dict[str, Offer]:
    entries = specs.load(file).get("offers", {})
    return {
        key: Offer(key, device=device, **{**entry, "source": specs.source(entry["source"], file)})
        for key, entry in entries.items()
    }
