"""What chapters 2 to 6 say of our records: a new record that contradicts a sentence must fail here."""

import pytest

from warplab.evidence.measure import records
from warplab.figures.taken import taken


def test_a_median_is_that_of_the_record_of_the_gpu_that_was_asked_for():
    h200 = next(r for r in records("latency") if r.device == "NVIDIA H200")
    assert taken("latency", "H200")["one thread", 1 << 30] == h200.points[-1].median


@pytest.mark.parametrize("gpu", ["H100", "H200"])
def test_what_the_chapters_say_of_our_records_follows_from_them(gpu):
    stride = {x: x * t for (series, x), t in taken("copy_bandwidth", gpu).items() if series == "copy kernel"}
    assert all(abs(stride[s] / stride[1] / s - 1) < 0.2 for s in (2, 4, 8)) and stride[32] > 1.9 * stride[8]
    reads = taken("random_reads", gpu)
    assert 72 / 12 < reads["at random", 1 << 30] / reads["in order", 1 << 30] < 1.2 * 72 / 12
    paths = [taken("divergence", gpu)["the same arithmetic", 1 << k] for k in range(6)]
    assert abs((paths[5] - paths[4]) / 16 / (paths[1] - paths[0]) - 1) < 0.03
    sums = taken("reduction", gpu)
    each = sums["reduce_atomic", 1 << 24] / (1 << 24)
    longer = sums["reduce_shuffle", 1 << 20] - sums["reduce_tree", 1 << 20]
    assert each * 1.98e9 > 3 and abs(longer / (2048 * 7 * each) - 1) < 0.1
    held = {p.series: p.x for p in records("checkpointing")[0].points}
    rest = held["no checkpoints"] * 1e9 - 256 * (array := 8 * 512 * 1024 * 2)
    late = {k: rest + (1 + 256 / k) * array + (1 - 1 / k) * 16 * 12 * 1024**2 * 2 for k in (2, 4, 8, 16)}
    assert all(abs(late[k] / 1e9 / held[f"{k} segments"] - 1) < 0.02 for k in late)
