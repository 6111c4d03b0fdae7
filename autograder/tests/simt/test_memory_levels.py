"""Distinct sectors against hand counts; the model of the caches against cases worked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from bench_engine import add
from numba import cuda, float32

import warplab
from warplab.evidence.experiments.kernels import matmul_naive
from warplab.simt.counters import caches
from warplab.simt.counters.caches import CacheModel
from warplab.simt.counters.footprint import Footprint
from warplab.simt.watched import watched
from warplab.timing.bounds import LaunchWork, bounds

f32 = np.float32


@cuda.jit
def strided(a, out, stride):
    i = cuda.grid(1)
    out[i] = a[i * stride]


@cuda.jit
def reversed_in_place(x):
    i = cuda.grid(1)
    x[x.size - 1 - i] = x[i] + 1


@cuda.jit
def write_then_read(x, out):
    i = cuda.grid(1)
    x[i] = i
    cuda.syncthreads()
    out[i] = x[i ^ 1]


@cuda.jit
def sum_of_all(x, total):
    cuda.atomic.add(total, 0, x[cuda.grid(1)])


@cuda.jit
def tiled_product(a, b, c):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    j, i = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // 16):
        left[y, x], right[y, x] = a[i, tile * 16 + x], b[tile * 16 + y, j]
        cuda.syncthreads()
        for k in range(16):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[i, j] = total


def of(profile, name) -> Footprint:
    return next(one for label, one in profile.footprints.items() if f"'{name}'" in label)


@pytest.mark.slow
def test_a_sector_counts_once_however_often_it_is_asked_for():
    a, b, c = np.ones((32, 64), f32), np.ones((64, 32), f32), np.zeros((32, 32), f32)
    p = warplab.profile(matmul_naive[(2, 2), (16, 16)], a, b, c)
    assert of(p, "a") == of(p, "b") == Footprint(read=8192, fetched=8192, touched=8192)
    assert of(p, "c") == Footprint(written=4096, touched=4096)
    assert p.footprint == Footprint(read=16384, written=4096, fetched=16384, touched=20480)
    assert p.global_load.bytes > 8 * p.footprint.read


@pytest.mark.parametrize(("stride", "sectors"), [(1, 32), (2, 64), (8, 256), (16, 256)])
def test_a_stride_touches_every_sector_that_it_steps_into(stride, sectors):
    p = warplab.profile(strided[2, 128], np.ones(256 * stride, f32), np.zeros(256, f32), stride)
    assert of(p, "a").read == 32 * sectors


def test_the_offset_in_an_instruction_is_part_of_its_address():
    text = 'extern "C" __global__ void later(float* x, float* y) { y[threadIdx.x] = x[threadIdx.x + 64]; }'
    p = warplab.profile(warplab.cuda_kernel(text, "later")[1, 32], np.ones(96, f32), np.ones(32, f32))
    assert "+256]" in p.ptx and (p.footprint.read, p.footprint.written) == (128, 128)


def test_what_the_launch_wrote_itself_need_not_be_fetched():
    p = warplab.profile(write_then_read[2, 128], np.zeros(256, f32), np.zeros(256, f32))
    assert of(p, "x") == Footprint(read=1024, written=1024, fetched=0, touched=1024)


def test_what_is_read_before_it_is_overwritten_is_fetched():
    p = warplab.profile(reversed_in_place[1, 128], np.zeros(256, f32))
    assert of(p, "x") == Footprint(read=512, written=512, fetched=512, touched=1024)


def test_an_atomic_reads_and_writes_its_sector():
    p = warplab.profile(sum_of_all[4, 64], np.ones(256, f32), np.zeros(1, f32))
    assert of(p, "total") == Footprint(read=32, written=32, fetched=32, touched=32)


def test_a_sample_of_blocks_has_no_footprint_and_no_bounds():
    p = warplab.profile(add[64, 32], *np.ones((3, 2048), f32), sample_blocks=4)
    assert p.footprint is None and p.footprints == {}
    with pytest.raises(ValueError, match="a sample of the blocks does not show which sectors are distinct"):
        bounds(p)
    with pytest.raises(warplab.ProfileError, match="a sample of the blocks leaves the caches without"):
        warplab.profile(add[64, 32], *np.ones((3, 2048), f32), sample_blocks=4, caches="h100-sxm")


@pytest.mark.slow
def test_the_engine_computes_the_same_whether_its_caches_are_modelled_or_not():
    a, b = np.random.default_rng(1).random((2, 64, 64), f32)
    plain, modelled = np.zeros((2, 64, 64), f32)
    without = warplab.profile(tiled_product[(4, 4), (16, 16)], a, b, plain)
    with_them = warplab.profile(tiled_product[(4, 4), (16, 16)], a, b, modelled, caches="v100-sxm2")
    assert (plain == modelled).all() and without.as_dict() == with_them.as_dict()
    assert without.caches is None and with_them.caches.device == "V100 SXM2"


def test_a_sum_of_vectors_finds_nothing_in_l1_and_its_stores_alone_in_l2():
    m = warplab.profile(add[256, 256], *np.ones((3, 1 << 16), f32), caches="a100-sxm").caches
    assert (m.l1_hit_rate, m.l2_hit_rate) == (0, pytest.approx(1 / 3))
    assert (m.hbm_reads, m.hbm_writes, m.left_in_l2) == (16384, 0, 8192)


@pytest.mark.slow
def test_a_store_makes_room_for_its_line_and_the_next_store_to_it_is_a_hit():
    """As Nsight Compute reports a sum of vectors by one thread: (2 x 28/32 + 31/32) / 3, 90.6 %."""

    @cuda.jit
    def alone(a, b, out):
        for i in range(out.size):
            out[i] = a[i] + b[i]

    m = warplab.profile(alone[1, 1], *np.ones((3, 1024), f32), caches="a100-sxm").caches
    assert m.l1_hit_rate == pytest.approx((2 * 28 / 32 + 31 / 32) / 3)


def test_a_load_finds_in_l1_what_a_warp_stored_whole_and_not_what_it_stored_in_part():

    @cuda.jit
    def back(x, out, width):
        i = cuda.grid(1)
        x[i * width] = i
        cuda.syncthreads()
        out[i] = x[i * width]

    for width, found in ((1, 1), (2, 0)):  # floats from one thread's place to the next
        m = warplab.profile(back[1, 64], *np.zeros((2, 128), f32), width, caches="a100-sxm").caches
        assert m.l1_hits == found * m.l1_reads and m.l1_reads == 8 * width


def test_blocks_of_several_waves_run_one_after_another_through_l2(monkeypatch):
    """Two waves of blocks that all read the same: only the very first has to fetch it."""

    @cuda.jit
    def same(x, out):
        out[cuda.grid(1)] = x[cuda.threadIdx.x]

    monkeypatch.setattr(caches, "blocks_per_sm", lambda *about: {"blocks": 1})
    x, out = np.ones(32, f32), np.zeros(32 * 216, f32)
    m = warplab.profile(same[216, 32], x, out, caches="a100-sxm").caches
    assert (m.l1_hits, m.l2_reads, m.hbm_reads) == (4 * 108, 4 * 108, 4)


def test_shared_memory_takes_its_part_of_an_sm_in_steps():
    launch = tiled_product[(4, 4), (16, 16)], *np.ones((3, 64, 64), f32)
    model = CacheModel("h100-sxm")
    watched(launch[0], launch[1:], {}, "sm_90", (model,), None)
    assert model._l1[0].shape == (132, (256 - 8) * 1024 // 128 // caches.WAYS, caches.WAYS)  # 3 KiB: 8


def test_a_smaller_device_has_fewer_sms_and_smaller_caches():
    half = CacheModel("h100-sxm", smaller=2)
    assert half._sms == 66 and half._l2[0].size * 128 == pytest.approx(50 * 2**20 / 4, rel=1e-3)


@pytest.fixture
def small_l2(monkeypatch):
    """The name of an A100 with 64 KiB of L2."""
    small = dict(caches.specs.get("a100-sxm"))
    small["l2_cache"] = caches.specs.replace(small["l2_cache"], value=0.0625)  # MiB

    class Small(dict):
        short, arch = "a small one", "sm_80"

    monkeypatch.setattr(caches.specs, "get", lambda name: Small(small))
    return "any"


def test_what_l2_cannot_hold_goes_to_memory_and_comes_again(small_l2):
    x = np.ones((3, 1 << 16), f32)  # 256 KiB each
    m = warplab.profile(add[256, 256], *x, caches=small_l2).caches
    assert m.hbm_reads == 16384 and m.hbm_writes + m.left_in_l2 == 8192
    assert 0 < m.left_in_l2 <= 2048  # of 64 KiB


def test_the_blocks_of_a_wave_are_in_l2_together(small_l2, monkeypatch):
    """Each block reads 4 KiB of its own twice, past L1: one block's would stay in L2, 108 blocks' do not."""
    monkeypatch.setattr(caches, "blocks_per_sm", lambda *about: {"blocks": 1})
    twice = """extern "C" __global__ void twice(const float* x, float* out) {
        float sum = 0;
        for (int i = 0; i < 64; i++) sum += __ldcg(x + 1024 * blockIdx.x + 32 * (i % 32) + threadIdx.x);
        out[32 * blockIdx.x + threadIdx.x] = sum; }"""
    launch = warplab.cuda_kernel(twice, "twice")[216, 32]
    m = warplab.profile(launch, np.ones(216 * 1024, f32), np.ones(216 * 32, f32), caches=small_l2).caches
    assert m.l2_hits == 0 and m.l2_reads == 2 * 216 * 128


def test_neighbours_in_a_warp_share_a_line_and_the_next_step_finds_it_in_l1():
    """Of eight steps along a row of a, one fetches the sector. Of a block's eight warps, which ask for the
    same two sectors of b, one does.
    """
    a, b, c = np.ones((64, 64), f32), np.ones((64, 64), f32), np.zeros((64, 64), f32)
    m = warplab.profile(matmul_naive[(4, 4), (16, 16)], a, b, c, caches="h100-sxm").caches
    assert m.l1_hits == m.l1_reads * 7 / 8 and (m.l1_writes, m.l1_write_hits) == (512, 0)
    assert m.l1_hit_rate == m.l1_hits / (m.l1_reads + m.l1_writes)
    assert m.hbm_reads == 1024  # each of a's and b's 512 sectors once


def test_a_tile_in_shared_memory_leaves_l1_nothing_to_answer():
    a, b, c = np.ones((64, 64), f32), np.ones((64, 64), f32), np.zeros((64, 64), f32)
    m = warplab.profile(tiled_product[(4, 4), (16, 16)], a, b, c, caches="h100-sxm").caches
    assert m.l1_hits == 0 and m.l2_reads == 4 * 4 * 4 * 2 * 32  # blocks x tiles x two matrices x 32 sectors


@pytest.mark.slow
def test_bounds_are_counts_over_rates_and_the_longest_binds():
    p = warplab.profile(add[4096, 256], *np.ones((3, 1 << 20), f32))
    found = bounds(p, "h100-sxm")
    by_level = {b.level: b.seconds for b in found.bounds}
    assert by_level["HBM3"] == pytest.approx(2 * 4 * 2**20 / 3.35e12)  # what is stored may stay in L2
    assert by_level["L1 and shared memory"] == pytest.approx(3 * 2**15 * 128 / (132 * 128 * 1.98e9))
    assert by_level["FP32 on CUDA cores"] == pytest.approx(2**20 / 66.9e12)
    assert found.binds.level == "HBM3" and found.at_least == by_level["HBM3"]
    assert found.without_overlap == pytest.approx(sum(by_level.values()))
    assert (
        found.unknown == ("L2",)
        and "the longest known bound (HBM3)" in str(found)
        and "theory" in found._repr_html_()
    )


@cuda.jit
def exponentials(x, out):
    i = cuda.grid(1)
    for _ in range(100):
        x[i] = math.exp(x[i]) / float32(3)
    out[i] = x[i] / (x[i] + float32(1))


@pytest.mark.slow
def test_special_functions_are_bound_by_their_own_units_and_are_no_work_of_the_cuda_cores():
    p = warplab.profile(exponentials[132, 64], *np.zeros((2, 132 * 64), f32))
    assert p.unit_flops["special"] == 100 * 132 * 64 and sum(p.unit_flops.values()) == p.flops
    by_level = {b.level: b.seconds for b in bounds(p, "h100-sxm").bounds}
    assert by_level["Special functions"] == pytest.approx(100 * 64 / (16 * 1.98e9))  # 16 a clock and SM
    assert by_level["FP32 on CUDA cores"] == pytest.approx(p.unit_flops["fp32"] / 66.9e12)


def test_a_grid_of_few_blocks_uses_as_many_sms():
    work = LaunchWork({"fp32": 1e12}, 0, 0, 0, 0, blocks=16)
    assert bounds(work, "h100-sxm").at_least == pytest.approx(1e12 / (66.9e12 * 16 / 132))


def test_of_equal_blocks_some_sm_has_one_more():
    """133 equal blocks on 132 SMs take as long as 264; of blocks that may differ nobody can say so."""
    one, other = (LaunchWork({"fp32": n * 1e9}, 0, 0, 0, 0, blocks=n, equal=True) for n in (133, 264))
    assert bounds(one, "h100-sxm").at_least == pytest.approx(bounds(other, "h100-sxm").at_least)
    unequal = bounds(replace(one, equal=False), "h100-sxm").at_least
    assert unequal == pytest.approx(133e9 / 66.9e12)


def test_a_repeated_launch_waits_for_memory_only_beyond_l2():
    work = LaunchWork({}, 0, 30 * 2**20, 30 * 2**20, 60 * 2**20, blocks=1000)
    cold, warm = bounds(work, "h100-sxm"), bounds(work, "h100-sxm", warm=True)
    assert (cold.binds.amount, warm.binds.amount) == (30 * 2**20, 10 * 2**20)  # its L2 has 50 MiB


def test_l2_bounds_where_its_rate_is_published():
    work = LaunchWork({}, 0, 7.22e12, 0, 0, blocks=1000)
    (bound,) = (b for b in bounds(work, "a100-sxm", warm=True).bounds if b.level == "L2")
    assert bound.seconds == pytest.approx(7.22e12 / (5120 * 1.41e9))


def test_a_launch_that_does_nothing_has_no_bound():
    with pytest.raises(ValueError, match="no arithmetic, and no access to memory"):
        bounds(LaunchWork({}, 0, 0, 0, 0, blocks=1))


@cuda.jit
def transposed(a, out, padded):
    tile = cuda.shared.array((32, 33), float32)
    flat = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if padded:
        tile[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = tile[x, y]
    else:
        flat[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = flat[x, y]


@pytest.mark.slow
@pytest.mark.parametrize(("padded", "passes"), [(True, 4 * 32), (False, 3 * 32 + 32 * 32)])
def test_a_bank_conflict_is_a_pass_more_through_l1(padded, passes):
    """32 warps, one access of each kind: a column of 32 words in one bank takes 32 passes."""
    a = np.ones((32, 32), f32)
    assert warplab.profile(transposed[1, (32, 32)], a, a.copy(), padded).l1_wavefronts == passes


@cuda.jit
def scattered(x, out, stride):
    i = cuda.threadIdx.x
    out[stride * i] = x[i]


@pytest.mark.slow
@pytest.mark.parametrize(("stride", "passes"), [(1, 1), (2, 2), (3, 1), (8, 8), (31, 2), (32, 32)])
def test_l1_keeps_global_memory_in_the_banks_of_shared_memory(stride, passes):
    """gcd(stride, 32) lanes meet in a bank. Stride 31 meets in none, but touches 32 sectors, and four lines
    looked up in a pass hold 16."""
    x, out = np.ones(32, f32), np.ones(1024, f32)
    assert warplab.profile(scattered[1, 32], x, out, stride).l1_wavefronts == 1 + passes


@pytest.mark.slow
def test_a_load_of_16_bytes_a_lane_takes_four_passes():
    line = "{ out[threadIdx.x] = x[threadIdx.x]; }"
    copy = warplab.cuda_kernel('extern "C" __global__ void copy(const float4* x, float4* out)' + line, "copy")
    assert warplab.profile(copy[1, 32], np.ones(128, f32), np.ones(128, f32)).l1_wavefronts == 4 + 4


def test_bounds_of_what_is_no_profile_say_what_to_pass():
    with pytest.raises(TypeError, match=r"takes the result of warplab.profile\(kernel\[grid, block\], ...\)"):
        bounds(strided[1, 32])


def test_a_report_for_what_is_no_cuda_device_says_so():
    with pytest.raises(caches.specs.SpecError, match="a device that CUDA runs on"):
        warplab.report(strided[1, 32], np.ones(32, f32), np.ones(32, f32), 1, device="epyc-9654")
