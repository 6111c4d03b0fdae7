"""No published measurement is faster than our bound of the same kernel on the same device.

The work of a kernel at a published size follows from profiles at small sizes: each number is a polynomial
of the size, fitted at the first sizes and checked at the last.
"""

from dataclasses import replace

import numpy as np
import pytest

import warplab
from warplab.evidence.experiments import kernels
from warplab.evidence.measure import published
from warplab.hardware import specs
from warplab.timing import bounds as bounds_of
from warplab.timing.bounds import Work, bounds

f32 = np.float32
FIELDS = "wavefronts", "fetched", "written", "touched", "blocks"


def grown(profile_of, sizes, powers, size) -> Work:
    """The work at ``size``: a sum of ``powers`` of the size, fitted at the first sizes, right at the last."""

    works = [Work.of(profile_of(n)) for n in sizes]
    units = [*works[0].flops]
    known = np.array([[*(getattr(w, name) for name in FIELDS), *(w.flops[u] for u in units)] for w in works])
    places = np.array([[float(n) ** p for p in powers] for n in (*sizes, size)])
    factors = np.linalg.solve(places[: len(powers)], known[: len(powers)])
    assert places[-2] @ factors == pytest.approx(known[-1], rel=1e-9), "not of these powers"
    plain, flops = np.split(places[-1] @ factors, [len(FIELDS)])
    return Work(dict(zip(units, flops, strict=True)), **dict(zip(FIELDS, plain, strict=True)))


def square(kernel, tile=32):
    def profile_of(n):
        return warplab.profile(kernel[(n // tile,) * 2, (tile, tile)], *np.ones((3, n, n), f32))

    return profile_of


def transposed(kernel):
    def profile_of(n):
        return warplab.profile(kernel[(n // 32,) * 2, (32, 8)], np.ones((n, n), f32), np.zeros((n, n), f32))

    return profile_of


def summed(n):
    return warplab.profile(kernels.reduce_shuffle[n // 2048, 256], np.ones(n, f32), np.zeros(1, f32))


def copied(n):
    """Doubles, as the published copies move."""
    x = np.ones(n)
    return warplab.profile(kernels.copy_strided[n // 256, 256], x, np.zeros(n), 1)


MATMULS, ROWS, LINES = ((64, 96, 128), (3, 2)), ((64, 96, 128), (2, 0)), ((4096, 8192, 12288), (1, 0))
SAME = {
    ("matmul_by_size", "one thread an element, coalesced"): (square(kernels.matmul_naive), *MATMULS),
    ("matmul_by_size", "tiles in shared memory"): (square(kernels.matmul_tiled), *MATMULS),
    ("transpose", "naive"): (transposed(kernels.transpose_naive), *ROWS),
    ("transpose", "tiled"): (transposed(kernels.transpose_tiled), *ROWS),
    ("reduction", "by shuffles"): (summed, *LINES),
    ("copy_bandwidth", "copy of doubles"): (copied, *LINES),
}


def a6000() -> specs.Spec:
    """What a bound asks of Boehm's card: sysrqmts.com's and ServeTheHome's tables of the RTX A6000."""
    like = specs.get("rtx-4090")
    facts = dict(like.facts)
    for name, value in {
        "peak_fp32": 38.71,
        "sms": 84,
        "memory_bandwidth": 768,
        "l2_cache": 6,
        "boost_clock": 1800,
        "l1_bandwidth": 84 * 128 * 1.8e9 / 1e12,
    }.items():
        facts[name] = replace(facts[name], value=value)
    return replace(like, facts=facts)


DEVICES = {
    "NVIDIA V100": "v100-sxm2",
    "NVIDIA A100 80 GB": "a100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 (DGX)": "h100-sxm",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA A6000 (Ampere)": "a6000",
}


def points():
    for (experiment, series), how in SAME.items():
        for evidence in published(experiment):
            for p in evidence.points if evidence.device in DEVICES else ():
                if p.series == series:
                    name = f"{series} on {evidence.device} at {p.x:g}"
                    yield pytest.param(DEVICES[evidence.device], p, how, id=name)


@pytest.mark.parametrize(("device", "point", "how"), [*points()])
def test_a_published_measurement_is_no_faster_than_the_bound(device, point, how, monkeypatch):
    profile_of, sizes, powers = how
    size = point.bytes / 16 if "doubles" in point.series else point.x
    work = grown(profile_of, sizes, powers, size)
    if device == "a6000":
        card = a6000()
        monkeypatch.setattr(bounds_of.specs, "get", lambda name: card)
    found = bounds(work, device, warm=True)
    assert found.at_least <= point.median


def test_there_are_published_measurements_to_hold_the_bounds_against():
    assert len(list(points())) >= 14
