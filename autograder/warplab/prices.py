"""The price registry: what a card costs an hour, each price with its source and the day it was seen. Data: specs/common/prices.yml.

    prices.offers("h100-sxm")                 # on demand, cheapest first
    prices.get("aws-p5").hourly, .gpu_hour    # 55.04 dollars an hour for eight cards, 6.88 for one
    prices.cheapest("v100-sxm2")              # None: no price recorded

Dollars are US dollars without tax. Edit the file and every table and figure of chapter 11 follows.
"""

from __future__ import annotations

import datetime
import functools
from dataclasses import dataclass

import yaml

from . import specs
from .specs import Source

ON_DEMAND, SPOT = "on demand", "spot"


@dataclass(frozen=True)
class Offer:
    """A machine of `gpus` cards for `hourly` dollars. `device`: its card's key in the hardware registry, "" for a variant that is not there."""

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
        """Dollars an hour for one card, though one card alone may not be for rent."""
        return self.hourly / self.gpus

    def origin(self) -> str:
        """One line: who asks the price, who wrote it down and when."""
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
    """All offers by key, in the order of the file."""
    return {key: Offer(key, **{**entry, "source": _source(entry["source"])}) for key, entry in _data()["offers"].items()}


def get(key: str) -> Offer:
    """One offer. Raises KeyError, naming those that there are."""
    if key not in every():
        raise KeyError(f"no offer '{key}' in {path()}; there are {', '.join(every())}")
    return every()[key]


def offers(device: str, market: str = ON_DEMAND) -> list[Offer]:
    """The offers of a card, cheapest card-hour first; empty if no price is recorded. Raises SpecError for an unknown device."""
    specs.get(device)
    found = [offer for offer in every().values() if offer.device == device and offer.market == market]
    return sorted(found, key=lambda offer: offer.gpu_hour)


def cheapest(device: str) -> Offer | None:
    """The offer on demand with the lowest price of a card-hour; None if no price is recorded."""
    return next(iter(offers(device)), None)


def purchase(device: str) -> Purchase | None:
    """What the card costs to buy; None if no price is recorded."""
    entry = _data()["purchases"].get(device)
    return Purchase(device, **{**entry, "source": _source(entry["source"])}) if entry else None


def electricity() -> float:
    """Dollars for a kWh: an assumption, not a source."""
    return _data()["electricity"]["dollars_per_kwh"]


def path():
    """The file to edit."""
    return specs.root() / "common" / "prices.yml"


@functools.cache
def _data() -> dict:
    return yaml.safe_load(path().read_text(encoding="utf-8"))


def _source(key: str) -> Source:
    return Source(key, **_data()["sources"][key])
