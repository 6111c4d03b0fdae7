"""Chapter 14's derivations, held to the engine's counts and to what Nsight Compute counted of the kernels;
a wait that is missing, found.
"""

import pytest
import torch
import yaml

import warplab
from warplab import specs
from warplab.evidence.experiments.hopper import LADDER, RUNGS, configuration
from warplab.evidence.measure import RESULTS, records
from warplab.figures import tomorrow


def test_a_stage_by_hand():
    """128 x 128 x 64: 2,097,152 operations; two boxes of 16 KiB; 8 warps of 64 x 32 load 12 KiB each."""
    first, last = tomorrow.step("threads_copy"), tomorrow.step("a_cluster_shares")
    assert (first.flops, first.from_l2, first.out_of_shared) == (2_097_152, 32_768, 98_304)
    assert (first.asked, first.loads, first.products) == (64, 192, 512)
    assert (last.from_l2, last.into_shared, last.out_of_shared, last.products) == (32_768, 49_152, 81_920, 32)


@pytest.mark.parametrize("name", RUNGS)
def test_what_was_derived_is_what_nsight_compute_counted(name):
    """Bytes into the SMs to the last; of shared memory the operands, beside which the counter has little but
    where all threads copy."""
    seen, derived = tomorrow.profiled()[name], tomorrow.step(name)
    assert seen["into_sms"] == pytest.approx(derived.each("into_shared"), rel=1e-3)
    most = 1.0033 if RUNGS[name][4] else 1.085
    assert 1 <= seen["shared"] / derived.each("out_of_shared") < most
    assert seen["per_clock"] == pytest.approx(4096 * (2 / 3 if derived.loads else 1), rel=0.002)


def test_what_the_text_says_of_the_counters():
    """12 times the library's instructions, of which TMA removes more than half and wgmma most of the rest."""
    *ours, library = tomorrow.profiled().values()
    copy, tma, wgmma, *_ = (r["instructions"] for r in ours)
    assert copy / library["instructions"] == pytest.approx(12, abs=0.05)
    assert tma < copy / 2 and wgmma < tma / 2
    assert (max(round(r["busy"], 2) for r in ours), round(library["busy"], 2)) == (0.80, 0.90)
    assert ours[3]["into_sms"] / ours[3]["hbm"] == pytest.approx(9.2, abs=0.05)
    steps = tomorrow.steps()
    assert steps["one_thread_copies"].products == 16 * steps["warpgroup_multiplies"].products


def test_what_the_text_says_of_l2():
    """Two measured bandwidths, both below what 128 x 128 asks for at the peak. The third kernel read more
    than the lower of them.
    """
    h100, h200 = specs.get("h100-sxm"), specs.get("h200-sxm")
    low, high = h100["l2_measured"].si, h200["l2_measured"].si
    asked = tomorrow.step("threads_copy").each("from_l2") / 1000 * h100["peak_bf16"].si
    assert low < high < asked and 1.8 < high / low < 2.2
    seen = tomorrow.profiled()
    third, fourth = seen["warpgroup_multiplies"]["l2_a_clock"], seen["roles_apart"]["l2_a_clock"]
    assert round(third) == 4949 and round(high / h200["boost_clock"].si) == 4934
    assert fourth / third == pytest.approx(2 / 3, abs=0.02) and third * 1.3e9 > low


def test_what_the_text_says_of_the_record_on_the_h200():
    (record,) = (r for r in records("hopper_ladder") if r.device == "NVIDIA H200")
    taken = {(p.series.removeprefix("course: "), p.x): p for p in record.points}
    copy, tma, wgmma, roles, cluster, slow = (
        taken[name, 4096].median for name in [*RUNGS, "a_cluster_shares, release.cluster"]
    )
    assert tma / copy == pytest.approx(0.75, abs=0.02) and tma / wgmma == pytest.approx(1.5, abs=0.02)
    assert wgmma / roles == pytest.approx(1.08, abs=0.005) and roles / cluster == pytest.approx(1, abs=0.03)
    assert slow / cluster == pytest.approx(1.27, abs=0.005)
    rates = {name: taken[name, 8192].rate / 1e12 for name in [*RUNGS, "torch bf16"]}
    assert max(RUNGS, key=rates.get) == "a_cluster_shares" and record.clocks["sm_after"] == 1455
    again = yaml.safe_load((RESULTS / "climbed.yml").read_text(encoding="utf-8"))["again"]
    later, third = again["roles_apart"], taken["warpgroup_multiplies", again["side"]].median
    recorded = taken["roles_apart", again["side"]].median
    assert later < third < recorded and later / recorded == pytest.approx(7 / 8, abs=0.005)
    assert (round(rates["a_cluster_shares"]), round(rates["torch bf16"])) == (651, 692)


def profile(name, source=LADDER, k=320, side=256):
    a, b = torch.randn(2, side, k).bfloat16()
    c = torch.empty(side, side, dtype=torch.bfloat16)
    blocks, threads, shared = configuration(name, side, side)
    given = [warplab.tensor_map(x, (128, 64), swizzle=128) if RUNGS[name][4] else x for x in (a, b)]
    return warplab.profile(
        warplab.cuda_kernel(source, name)[blocks, threads, 0, shared], *given, c, side, side, k
    )


@pytest.mark.full
@pytest.mark.parametrize("name", RUNGS)
def test_what_was_derived_is_what_the_engine_counts(name):
    p, derived = profile(name), tomorrow.step(name)
    read = 128 * p.shared_load.wavefronts + p.operand_bytes
    assert 1000 * p.global_read.bytes / p.flops == derived.each("from_l2")
    assert 1000 * read / p.flops == derived.each("out_of_shared")


def without(text, after):
    """The source without the first ``text`` after another one."""
    head, tail = LADDER[: LADDER.index(after)], LADDER[LADDER.index(after) :]
    assert text in tail
    return head + tail.replace(text, "", 1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        ("warpgroup_multiplies", without("wait_for_products<0>();", "\nwarpgroup_"), "has not waited"),
        (
            "one_thread_copies",
            without("wait(full + step % 2 * 8, step / 2 % 2);", "\none_thread"),
            "may not have filled yet",
        ),
        (
            "roles_apart",
            LADDER.replace("if (step > 0)\n            release(step - 1)", "release(step)"),
            "race",
        ),
        (
            "a_cluster_shares",
            LADDER[: LADDER.rindex("meet_in_cluster();")] + "}",
            "may leave the kernel before this access",
        ),
    ],
)
def test_a_missing_wait_is_found(name, source, told):
    assert source != LADDER
    with pytest.raises(warplab.LaunchError, match=told):
        profile(name, source)
