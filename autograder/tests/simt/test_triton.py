"""Triton's kernels on the engine, launched the ordinary way on CPU tensors, against torch.

The subjects are those of Triton's published tutorials, written anew: each brings something of its own (masks,
reductions in a warp and across warps, tensor cores and copies in stages, random numbers, locks).
"""

import inspect
import re
import warnings

import numpy as np
import pytest
import torch

import warplab
from warplab.timing.tuning import bound_of

triton = pytest.importorskip("triton", reason="Triton's wheels are for Linux")
import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def leaky(x):
    return tl.where(x > 0, x, 0.01 * x)


@triton.jit
def product(
    a, b, c, M, N, K, a_row, a_col, b_row, b_col, c_row, c_col,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr = "",
):  # fmt: skip
    tile, across = tl.program_id(0), tl.cdiv(N, BN)
    first = tile // (GROUP * across) * GROUP
    size = min(tl.cdiv(M, BM) - first, GROUP)
    tile_m = first + tile % (GROUP * across) % size
    tile_n = tile % (GROUP * across) // size
    m = (tile_m * BM + tl.arange(0, BM)) % M
    n = (tile_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_at = a + m[:, None] * a_row + k[None, :] * a_col
    b_at = b + k[:, None] * b_row + n[None, :] * b_col
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_at, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b_at, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(left, right, total)
        a_at += BK * a_col
        b_at += BK * b_row
    if ACTIVATION == "leaky":
        total = leaky(total)
    m = tile_m * BM + tl.arange(0, BM)
    n = tile_n * BN + tl.arange(0, BN)
    at = c + m[:, None] * c_row + n[None, :] * c_col
    tl.store(at, total.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def run_product(a, b, c, stages=3, **options):
    grid = (triton.cdiv(a.shape[0], 32) * triton.cdiv(b.shape[1], 32),)
    sizes = a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride()
    product[grid](a, b, c, *sizes, BM=32, BN=32, BK=32, GROUP=2, num_stages=stages, num_warps=4, **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "dtype, to, stages, turned, activation, near",
    [
        (torch.float16, torch.float16, 1, False, "", 1e-2),
        (torch.bfloat16, torch.bfloat16, 3, False, "", 1e-2),
        (torch.float16, torch.float32, 3, True, "leaky", 1e-2),  # strides are arguments: views need no copy
        (torch.float32, torch.float32, 3, False, "", 5e-2),  # in TF32
    ],
)
def test_product(dtype, to, stages, turned, activation, near):
    a, b = torch.randn(96, 96, dtype=dtype)[:80], torch.randn(96, 72, dtype=dtype)
    a, b = (b.T, a.T) if turned else (a, b)
    c = torch.empty(a.shape[0], b.shape[1], dtype=to)
    run_product(a, b, c, stages, ACTIVATION=activation)
    expected = a.float() @ b.float()
    expected = torch.nn.functional.leaky_relu(expected) if activation else expected
    torch.testing.assert_close(c, expected.to(to), atol=near, rtol=1e-2)


def test_random_numbers_are_philox_own():
    """The first draw of Philox-4x32-10 with key and counter 0, which its authors published as 6627e8d5."""

    @triton.jit
    def draw(out):
        at = tl.arange(0, 32)
        tl.store(out + at, tl.randint(0, at).to(tl.int32, bitcast=True))

    out = torch.empty(32, dtype=torch.int32)
    draw[(1,)](out)
    assert int(out[0]) & 0xFFFFFFFF == 0x6627E8D5


def add_up(n, **settings):
    """A profiled vector_add of ``n`` numbers."""
    x, y, out = torch.rand(n), torch.rand(n), torch.zeros(n)
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
    return warplab.profile(vector_add[grid], x, y, out, n, BLOCK=1024, **settings), x + y - out


def test_sectors_of_the_sum_are_those_of_a_hand_count():
    """98,432 floats are 12,304 sectors of 32 bytes: two arrays are read and one is written."""
    p, wrong = add_up(98432)
    assert not wrong.any()
    assert (p.global_load.sectors, p.global_store.sectors) == (2 * 12304, 12304)
    assert p.grid == (97, 1, 1) and p.block == (128, 1, 1) and p.arch == "sm_80"


def test_sectors_of_the_product_are_those_of_a_hand_count():
    """128 x 128 x 128 in tiles of 32 x 32: each of 16 tiles reads 32 rows of a and 32 columns of b.

    In fp16 that is 2 x 32 x 128 x 2 bytes = 512 sectors, and the result is 128 x 128 x 2 bytes. Of floating
    point there are 2 x 128**3 operations, all of them in the tensor cores' instructions.
    """
    a, b, c = torch.ones(128, 128).half(), torch.ones(128, 128).half(), torch.empty(128, 128).half()
    sizes = 128, 128, 128, *a.stride(), *b.stride(), *c.stride()
    p = warplab.profile(product[(16,)], a, b, c, *sizes, BM=32, BN=32, BK=32, GROUP=2, num_stages=3)
    assert (p.global_load.sectors, p.global_store.sectors) == (16 * 512, 1024)
    assert p.flops == 2 * 128**3
    assert p.shared_bytes > 0 and p.registers > 0


def test_counts_stand_by_the_kernels_own_lines():
    p, _ = add_up(4096)
    by_line = {entry.line: entry for entry in p.lines if entry.file.endswith("test_triton.py")}
    lines, first = inspect.getsourcelines(vector_add.fn)
    stored = by_line[next(first + i for i, line in enumerate(lines) if "tl.store" in line)]
    assert (stored.global_load.sectors, stored.global_store.sectors, stored.flops) == (1024, 512, 4096)
    assert sum(entry.warp_instructions for entry in p.lines) <= p.warp_instructions


def test_a_sample_of_blocks_is_scaled_and_leaves_the_tensors_alone():
    p, wrong = add_up(64 * 1024, sample_blocks=16)
    assert p.sampled == (16, 64) and p.global_load.sectors == 2 * 8192
    assert (wrong != 0).all()  # nothing was stored


def test_views_of_one_storage_are_one_memory():
    """What a kernel reads through one argument it may have written through another."""
    both = torch.arange(2048.0)
    vector_add[(1,)](both[:1024], both[1024:], both[1024:], 1024, BLOCK=1024)
    assert torch.equal(both[1024:], torch.arange(1024.0) * 2 + 1024)


def test_alignment_is_what_triton_compiled_for():
    """Triton compiles for the alignment that it finds: what lies aligned by chance only is refused."""
    space = np.zeros(1056, np.float32)
    space = space[(12 - space.ctypes.data) % 16 // 4 :]  # 12 bytes beyond a multiple of 16
    whole = torch.from_numpy(space[:1040])
    for start in (0, 2, 3):
        part = whole[start : start + 1024].fill_(1)
        vector_add[(1,)](part, part, part, 1024, BLOCK=1024)
        assert (part == 2).all()
    with pytest.raises(warplab.InvalidLaunch, match=r"(?s)aligned.*clone"):
        vector_add[(1,)](*[whole[1:1025]] * 3, 1024, BLOCK=1024)


@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)


@triton.jit
def turn(x, BLOCK: tl.constexpr):
    """Reads what other threads wrote a line above, with no barrier between."""
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at.to(tl.float32))
    tl.store(x + BLOCK + at, tl.load(x + BLOCK - 1 - at))


@triton.jit
def meet(x):
    tl.store(x, tl.program_id(0))


def test_replicas_of_an_element_are_no_conflict():
    """32 numbers in a block of 128 threads: each number is read by four threads and written by one."""
    x = torch.ones(32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double[(1,)](x, BLOCK=32)
    assert (x == 2).all()


@pytest.mark.parametrize("kernel, grid, options", [(turn, 1, {"BLOCK": 512}), (meet, 4, {})])
def test_conflicts_are_warned_of_in_tritons_words(kernel, grid, options):
    with pytest.warns(warplab.GlobalConflict, match=r"tl\.(debug_barrier|atomic_add)"):
        kernel[(grid,)](torch.rand(1024), **options)


def test_an_access_out_of_bounds_names_line_and_element():
    with pytest.raises(warplab.OutOfBounds, match=r"test_triton.py:\d+.*\[300\] of argument 'x'"):
        double[(3,)](torch.ones(300), BLOCK=128)


def test_a_tensor_that_is_elsewhere_is_refused():
    with pytest.raises(warplab.InvalidLaunch, match="'x' is a tensor on meta"):
        double[(1,)](torch.empty(128, device="meta"), BLOCK=128)


def test_too_much_shared_memory_is_refused_as_triton_refuses_it():
    a = torch.zeros(64, 512)
    sizes = 64, 64, 512, *a.stride(), 1, 512, *a.stride()
    with pytest.raises(triton.runtime.errors.OutOfResources, match="shared memory"):
        product[(1,)](a, a, a, *sizes, BM=64, BN=64, BK=512, GROUP=1, num_stages=1)


def test_an_empty_grid_launches_nothing():
    x = torch.ones(128)
    double[(0,)](x, BLOCK=128)
    assert (x == 1).all()
    with pytest.raises(warplab.ProfileError, match="grid is empty"):
        warplab.profile(double[(0,)], x, BLOCK=128)


def tuned(kernel, key, *configurations):
    """The kernel, autotuned over (warps, constants)."""
    made = [triton.Config(constants, num_warps=warps) for warps, constants in configurations]
    return triton.autotune(made, key=key)(kernel)


def test_autotune_takes_the_least_bound_and_says_what_that_is():
    add, out = tuned(vector_add, ["n"], *((4, {"BLOCK": size}) for size in (1024, 64))), torch.empty(1024)
    x, grid = torch.rand(1024), lambda meta: (triton.cdiv(1024, meta["BLOCK"]),)
    with pytest.warns(UserWarning, match=r"least time on an A100 SXM \(.*theory, not a time\)"):
        add[grid](x, x, out, 1024)
    assert torch.equal(out, x + x) and add.best_config.kwargs == {"BLOCK": 64}  # 16 SMs of 108, and not one
    counted = warplab.profile(vector_add[(16,)], x, x, out, 1024, BLOCK=64)
    least = warplab.bounds(counted, "a100-sxm")
    assert add.configs_timings[add.best_config] == [least.at_least, least.without_overlap]
    assert warplab.profile(add[grid], x, x, out, 1024).grid == (16, 1, 1)


@pytest.mark.full  # of the choices of set 12 make test judges right and wrong ones
@pytest.mark.filterwarnings("ignore:triton.autotune")
def test_autotune_chooses_again_for_a_new_key_and_never_what_does_not_fit():
    tiles = (4, 128, 512), (2, 16, 16), (4, 128, 32)  # the first needs more shared memory than there is
    choose = tuned(product, ["M"], *((warps, {"BM": side, "BN": side, "BK": k}) for warps, side, k in tiles))
    for size, side in ((64, 16), (1024, 128)):  # few small blocks leave SMs idle, many read more often
        a, c = torch.rand(size, 32).half(), torch.empty(size, size)
        grid = lambda meta: (triton.cdiv(size, meta["BM"]) ** 2,)  # noqa: B023, E731
        choose[grid](a, a.T, c, size, size, 32, 32, 1, 1, 32, size, 1, GROUP=1)
        assert choose.best_config.kwargs["BM"] == side
        assert torch.allclose(c, a.float() @ a.float().T, atol=1e-3)
    assert choose.configs_timings[choose.configs[0]][0] == float("inf")


@pytest.mark.filterwarnings("ignore:triton.autotune")
def test_candidates_run_on_copies_and_may_do_nothing():
    choose, x = tuned(double, [], (1, {"BLOCK": 64}), (1, {"BLOCK": 32})), torch.ones(64)
    choose[lambda meta: (64 // meta["BLOCK"],)](x)
    assert x.tolist() == [2.0] * 64
    add = tuned(vector_add, [], (1, {"BLOCK": 64}), (1, {"BLOCK": 32}))
    for blocks in (0, 1):
        add[(blocks,)](x, x, x, 0)
    assert add.best_config.kwargs == {"BLOCK": 64} and x.tolist() == [2.0] * 64


def test_of_a_large_grid_a_sample_is_counted():
    x, out = torch.rand(1 << 14), torch.empty(1 << 14)
    launch = lambda: vector_add[(64,)](x, x, out, 1 << 14, BLOCK=256)  # noqa: E731
    whole = warplab.profile(vector_add[(64,)], x, x, out, 1 << 14, BLOCK=256)
    out.zero_()
    assert bound_of(launch) == warplab.bounds(whole, "a100-sxm")  # all blocks do the same
    assert not out.any()


def test_there_are_no_times():
    launch = double[(1,)]
    with pytest.raises(RuntimeError, match="no times.*warplab.profile"):
        triton.testing.do_bench(lambda: launch(torch.ones(128), BLOCK=128))
    with pytest.raises(warplab.NotTimed):
        warplab.bench(launch, torch.ones(128))


def test_only_sm_80_is_compiled_for():
    with pytest.raises(warplab.ProfileError, match="compiled for sm_80 here, .* WARPLAB_TRITON_ARCH=sm_90"):
        add_up(1024, arch="sm_90")


def test_for_sm_90_a_product_is_one_of_warp_groups(monkeypatch):
    @triton.jit
    def product(a, b, c, BM: tl.constexpr, BK: tl.constexpr):
        m, k = tl.arange(0, BM), tl.arange(0, BK)
        acc = tl.dot(tl.load(a + m[:, None] * BK + k), tl.load(b + k[:, None] * BM + m))
        tl.store(c + m[:, None] * BM + m, acc)

    monkeypatch.setenv("WARPLAB_TRITON_ARCH", "sm_90")
    a, b = (torch.randint(-8, 9, shape).half() / 4 for shape in ((64, 32), (32, 64)))
    c = torch.empty(64, 64)
    p = warplab.profile(product[(1,)], a, b, c, BM=64, BK=32)
    assert torch.equal(c, a.float() @ b.float())
    assert p.unit_flops["fp16"] == 2 * 64 * 64 * 32 and p.operand_bytes > 0
    monkeypatch.delenv("WARPLAB_TRITON_ARCH")  # what was compiled for sm_90 does not run for sm_80
    assert warplab.profile(product[(1,)], a, b, c, BM=64, BK=32).operand_bytes == 0


def test_an_architecture_that_there_is_not_and_descriptors_of_sm_90(monkeypatch):
    @triton.jit
    def box(source, out):
        at = tl.arange(0, 32)
        tl.store(out + at[:, None] * 32 + at, source.load([0, 0]))

    from triton.tools.tensor_descriptor import TensorDescriptor

    tile, out = torch.ones(32, 32), torch.empty(32, 32)
    descriptor = TensorDescriptor.from_tensor(tile, [32, 32])
    monkeypatch.setenv("WARPLAB_TRITON_ARCH", "sm_90")
    with pytest.raises(warplab.InvalidLaunch, match="tensor map.*\n.*WARPLAB_TRITON_ARCH=sm_80"):
        box[(1,)](descriptor, out)
    monkeypatch.setenv("WARPLAB_TRITON_ARCH", "hopper")
    with pytest.raises(warplab.DeviceError, match="WARPLAB_TRITON_ARCH=hopper: .* known: .*sm_90"):
        box[(1,)](descriptor, out)


def test_constants_by_name_are_tritons_alone():
    kernel = warplab.cuda_kernel('extern "C" __global__ void f(float *x) { x[0] = 1; }', "f")
    with pytest.raises(warplab.ProfileError, match="n=.*by place"):
        warplab.profile(kernel[1, 1], torch.ones(1), n=3)


def test_too_many_threads_are_refused_before_they_run():
    with pytest.raises(warplab.ProfileError, match="sample_blocks"):
        warplab.profile(meet[(1 << 20,)], torch.zeros(1))


def test_scalars_keep_their_values():
    @triton.jit
    def scalars(out, a, b, c, d: tl.float16, pair):
        tl.store(out, a)
        tl.store(out + 1, b)
        tl.store(out + 2, c)
        tl.store(out + 3, d)
        tl.store(out + 4, tl.load(pair[0]) + pair[1])

    out = torch.empty(5, dtype=torch.float64)
    scalars[(1,)](out, -7, 2**40 + 1, 0.1, 0.1, (torch.ones(1), 16))
    expected = [-7, 2**40 + 1, np.float32(0.1), np.float16(0.1), 17]
    assert out.tolist() == [float(number) for number in expected]


def test_a_descriptor_of_a_tensor():
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def corner(there, out, SIZE: tl.constexpr):
        at = tl.arange(0, SIZE)
        tl.store(out + at[:, None] * SIZE + at[None, :], there.load([0, SIZE]))

    x, out = torch.rand(32, 32), torch.empty(16, 16)
    corner[(1,)](TensorDescriptor.from_tensor(x, [16, 16]), out, SIZE=16)
    assert torch.equal(out, x[:16, 16:])


def test_what_tutorials_ask_of_the_driver():
    driver = triton.runtime.driver.active
    assert driver.get_active_torch_device() == torch.device(warplab.torch_device)
    told = driver.utils.get_device_properties(driver.get_active_torch_device().index)
    assert told == {
        "max_shared_mem": 163 * 1024, "max_num_regs": 65536, "multiprocessor_count": 1, "warpSize": 32
    }  # fmt: skip
    x = torch.ones(128)
    compiled = double.warmup(x, BLOCK=128, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0 and compiled.metadata.shared == 0 and (x == 1).all()


@triton.jit
def dots_of_rows(x, y, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = row[:, None] * COLUMNS + column[None, :]
    tl.store(out + row, tl.sum(tl.load(x + at) * tl.load(y + at), axis=1))


def test_threads_that_hold_a_sum_together_and_round_it_differently_do_not_race():
    """Its 4 sums are held by 128 threads; of two lanes one adds its x * y rounded, the other unrounded."""
    x, y, out = torch.randn(4, 32), torch.randn(4, 32), torch.zeros(4)
    dots_of_rows[(1,)](x, y, out, ROWS=4, COLUMNS=32)
    torch.testing.assert_close(out, (x * y).sum(1))


@triton.jit
def sum_of_row(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < n), axis=0))


def test_triton_puts_zero_into_a_masked_place_without_other():
    """So PTX has nothing undefined to be found; the opening of set 12 says which version does it."""
    x, out = torch.ones(100), torch.empty(1)
    compiled = sum_of_row[(1,)](x, out, 100, BLOCK=128)
    (load,) = re.findall(r"(\S.*)\n\s*@%p\d+ ld\.global\.b32 \{ (%r\d+) \}", compiled.asm["ptx"])
    assert load[0] == f"mov.u32 {load[1]}, 0x0;" and out.item() == 100
    assert triton.__version__.startswith("3.7.")


def test_a_launch_is_reported_for_the_device_that_was_asked():
    blocks = 16 * 132  # of four warps: as many as an H100 holds at once
    x, out = torch.ones(1024 * blocks), torch.empty(1024 * blocks)
    report = warplab.report(vector_add[(blocks,)], x, x, out, x.numel(), BLOCK=1024)
    assert report.profile.arch == "sm_80" and report.residency.waves == 1.0 and report.findings == []
    assert "vector_add on the H100 SXM" in str(report) and (out == 2).all()
