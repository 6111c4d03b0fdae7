"""Chapter 14's derivations, held to the engine's counts and to what Nsight Compute counted of the same kernels."""

import pytest

from warplab.evidence.experiments.hopper import RUNGS
from warplab.figures import tomorrow


def test_a_stage_by_hand():
    """128 x 128 x 64: 2,097,152 operations; two boxes of 16 KiB; 8 warps of 64 x 32 load 12 KiB each."""
    first, last = tomorrow.step("threads_copy"), tomorrow.step("a_cluster_shares")
    assert (first.flops, first.from_l2, first.out_of_shared) == (2_097_152, 32_768, 98_304)
    assert (first.asked, first.loads, first.products) == (64, 192, 512)
    assert (last.from_l2, last.into_shared, last.out_of_shared, last.products) == (32_768, 49_152, 81_920, 32)


@pytest.mark.parametrize("name", RUNGS)
def test_what_was_derived_is_what_nsight_compute_counted(name):
    """Bytes into the SMs to the last; of shared memory the operands, beside which the counter has little."""
    seen, derived = tomorrow.profiled()[name], tomorrow.step(name)
    assert seen["into_sms"] == pytest.approx(derived.each("into_shared"), rel=1e-3)
    assert 1 <= seen["shared"] / derived.each("out_of_shared") < 1.09
    assert seen["per_clock"] == pytest.approx(4096 * (2 / 3 if derived.loads else 1), rel=0.002)
