"""Records of measurements that nobody made, for tests: never written outside a temporary folder."""

from warplab.evidence.catalogue import get
from warplab.evidence.record import Point, Record

H200 = "NVIDIA H200"


def a_point(**changes):
    """A GiB copied in a millisecond: 1.07 TB/s."""
    what = {"series": "copy kernel", "x": 1, "clock": "cuda", "bytes": 1 << 30, "roof": "memory"}
    return Point.of([1e-3, 1.01e-3, 0.99e-3, 1e-3, 1.02e-3, 1e-3], 3, **(what | changes))


def a_record(**changes):
    """A whole record, with these fields changed."""
    what = dict(
        schema=1,
        experiment="copy_bandwidth",
        device=H200,
        kind="cuda",
        driver="570.1",
        cuda="13.0",
        torch="2.11",
        python="3.12.3",
        clocks={"sm": 1980.0},
        date="2026-11-21T03:00:00+00:00",
        commit="unknown",
        code=get("copy_bandwidth").code,
        points=[a_point()],
    )
    return Record(**(what | changes))
