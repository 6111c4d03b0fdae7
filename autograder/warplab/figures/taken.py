"""Recorded values of an experiment, for a page to compute with."""

from warplab.evidence.measure import records
from warplab.evidence.side_by_side import model


def unmeasured(name):
    """The text in place of a live time on a GPU, if a page shows the records of experiment `name` below."""
    return "none on this machine, records follow" if records(name) else "not recorded yet"


def taken(name, gpu):
    """{(series, x): median} of the record of experiment `name` on a GPU model ("H100"): seconds, or bytes.

    Raises KeyError where there is no such record.
    """
    record = {model(r.device): r for r in records(name) if not r.by}[gpu]
    return {(p.series, p.x): p.median for p in record.points}
