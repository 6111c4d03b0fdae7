"""Copies by TMA: against a model in plain Python, in kernels of CUDA C++ with inline PTX and with cuda::ptx.

What a test asserts of results holds on a GPU too (``tests/gpu/test_tma_on_cuda.py`` runs it there).
"""

import itertools

import numpy as np
import pytest

import warplab
from warplab import BarrierMisuse, MisalignedAccess, NoProgress, OutOfBounds, SharedRace, UnfinishedCopy

PRELUDE = """
#include <cuda.h>
#include <stdint.h>
__device__ inline uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void start(uint64_t* bar, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(arrivals) : "memory");
}
__device__ inline void expect(uint64_t* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at(bar)), "r"(bytes) : "memory");
}
__device__ inline void arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory");
}
__device__ inline void wait(uint64_t* bar, int parity) {
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 " @done bra over; bra again; over: }" :: "r"(at(bar)), "r"(parity) : "memory");
}
__device__ inline void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ inline void fetch(void* to, const void* from, int bytes, uint64_t* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(bar)) : "memory");
}
__device__ inline void put(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
"""
FETCH_TILE = """
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {{{coordinates}}}], [%2];"
                 :: "r"(at(tile)), "l"(&map), "r"(at(&bar)), "r"(x), "r"(y), "r"(z) : "memory");
"""
PUT_TILE = """
    asm volatile("cp{reduce}.async.bulk.tensor.{rank}d.global.shared::cta{operation}.tile.bulk_group"
                 " [%0, {{{coordinates}}}], [%1];"
                 :: "l"(&map), "r"(at(tile)), "r"(0), "r"(x), "r"(y), "r"(z) : "memory");
"""
THERE = """
extern "C" __global__ void there(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes,
                                 int all, int x, int y, int z)
{{
    __shared__ alignas(1024) unsigned char tile[8192];
    __shared__ uint64_t bar;
    for (int i = threadIdx.x; i < all; i += blockDim.x) tile[i] = 0;
    fence_proxy();
    if (threadIdx.x == 0) start(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {{
        expect(&bar, bytes);
        {fetch}
    }}
    wait(&bar, 0);
    for (int i = threadIdx.x; i < all; i += blockDim.x) out[i] = tile[i];
}}
"""
BACK = """
extern "C" __global__ void back(const __grid_constant__ CUtensorMap map, const unsigned char* from, int bytes,
                                int x, int y, int z)
{{
    __shared__ alignas(1024) unsigned char tile[8192];
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) tile[i] = from[i];
    fence_proxy();
    __syncthreads();
    if (threadIdx.x == 0) {{
        {put}
        commit();
        wait_all();
    }}
}}
"""
_kernels = {}


def kernel(text, name):
    """Compiled once for all tests."""
    if (text, name) not in _kernels:
        _kernels[text, name] = warplab.cuda_kernel(PRELUDE + text, name)
    return _kernels[text, name]


def there(rank):
    coordinates = ", ".join(f"%{3 + i}" for i in range(rank))
    return kernel(THERE.format(fetch=FETCH_TILE.format(rank=rank, coordinates=coordinates)), "there")


def back(rank, operation=""):
    coordinates = ", ".join(f"%{3 + i}" for i in range(rank))
    reduce = ".reduce" if operation else ""
    put = PUT_TILE.format(rank=rank, coordinates=coordinates, reduce=reduce, operation=operation)
    return kernel(BACK.format(put=put), "back")


def model(array, box, corner, swizzle=0, fill=0):
    """What lies in shared memory behind a copy of the box at ``corner`` (in the array's order), as bytes,
    zeros where nothing comes, and by element whether the array has it.
    """
    out, inside = np.zeros(box, array.dtype), np.zeros(box, bool)
    for i in itertools.product(*map(range, box)):
        index = tuple(c + d for c, d in zip(corner, i))
        inside[i] = all(0 <= k < n for k, n in zip(index, array.shape))
        out[i] = array[index] if inside[i] else fill
    rows = out.reshape(-1, box[-1]).view(np.uint8)
    if swizzle:  # rows lie as many bytes apart as it has
        rows = np.pad(rows, ((0, 0), (0, swizzle - rows.shape[1])))
    flat, places = rows.reshape(-1, 16), []
    for piece in range(len(flat)):
        line, column = divmod(piece, 8)  # of 128 bytes
        places.append(8 * line + (column ^ (line % (swizzle // 16) if swizzle else 0)))
    laid = np.zeros_like(flat)
    laid[places] = flat
    return laid.reshape(-1), inside


CASES = {  # dtype, shape, box, corner, swizzle
    "a row": ("float32", (64,), (32,), (16,), 0),
    "a row over its end": ("uint8", (80,), (64,), (48,), 0),
    "a row before its start": ("int32", (64,), (32,), (-8,), 0),
    "a tile": ("float32", (40, 64), (8, 16), (3, 4), 0),
    "a tile over a corner": ("float16", (20, 40), (8, 16), (15, 32), 0),
    "a tile before the start": ("float16", (20, 40), (8, 16), (-3, -8), 0),
    "a tile that is nowhere": ("int64", (20, 40), (4, 8), (20, 40), 0),
    "32 bytes": ("uint8", (64, 64), (48, 32), (7, 16), 32),
    "64 bytes": ("float16", (64, 64), (48, 32), (7, 24), 64),
    "128 bytes": ("float16", (64, 80), (40, 64), (7, 32), 128),
    "128 bytes of doubles": ("float64", (64, 32), (24, 16), (50, 2), 128),
    "rows of 64 bytes in 128": ("uint16", (64, 64), (16, 32), (0, 0), 128),
    "rows of 48 bytes in 64": ("uint8", (64, 64), (16, 48), (3, 16), 64),
    "rows of 16 bytes in 32": ("float32", (64, 64), (16, 4), (1, 8), 32),
    "a brick": ("float32", (6, 10, 16), (3, 4, 8), (2, 3, 4), 0),
    "a brick over an edge": ("float32", (6, 10, 16), (3, 4, 8), (4, -2, 12), 0),
    "a swizzled brick": ("uint16", (6, 10, 64), (2, 8, 64), (1, 3, 0), 128),
}


def _array(dtype, shape):
    return np.random.default_rng(1).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("case", CASES)
def test_a_box_comes_as_the_model_has_it(case):
    dtype, shape, box, corner, swizzle = CASES[case]
    array = _array(dtype, shape)
    wanted, _ = model(array, box, corner, swizzle)
    out = np.full(wanted.size, 0xEE, np.uint8)
    index = (*corner[::-1], 0, 0)[:3]
    tensor_map = warplab.tensor_map(array, box, swizzle)
    there(len(shape))[1, 64](tensor_map, out, np.prod(box) * array.itemsize, out.size, *index)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("case", [case for case in CASES if min(CASES[case][3]) >= 0])
def test_a_box_goes_back_as_the_model_has_it(case):
    dtype, shape, box, corner, swizzle = CASES[case]
    array = _array(dtype, shape)
    new = _array(dtype, shape) + np.array(7, dtype)
    data, inside = model(new, box, corner, swizzle)
    wanted = array.copy()
    for i in zip(*np.nonzero(inside)):
        index = tuple(c + d for c, d in zip(corner, i))
        wanted[index] = new[index]
    index = (*corner[::-1], 0, 0)[:3]
    back(len(shape))[1, 64](warplab.tensor_map(array, box, swizzle), data, data.size, *index)
    np.testing.assert_array_equal(array, wanted)


def test_an_element_beyond_the_edge_is_a_nan_where_that_is_asked_for():
    array = np.ones((8, 64), np.float32)
    out = np.zeros(256, np.uint8)
    there(2)[1, 64](warplab.tensor_map(array, (4, 16), fill="nan"), out, 256, 256, 56, 6, 0)
    found = out.view(np.float32).reshape(4, 16)
    assert (found[:2, :8] == 1).all() and np.isnan(found[:, 8:]).all() and np.isnan(found[2:]).all()
    assert (found.view(np.uint32)[2:] == 0x7FF77FF7).all()  # as an H200 had it


@pytest.mark.parametrize("case", [case for case in CASES if min(CASES[case][3]) < 0])
def test_a_box_before_the_start_is_written_by_no_copy(case):
    dtype, shape, box, corner, swizzle = CASES[case]
    array, data = np.zeros(shape, dtype), np.zeros(4096, np.uint8)
    with pytest.raises(OutOfBounds, match="writes a box that begins at the index -"):
        tensor_map, index = warplab.tensor_map(array, box, swizzle), (*corner[::-1], 0, 0)[:3]
        back(len(shape))[1, 64](tensor_map, data, data.size, *index)


def test_where_an_h200_put_short_rows():
    """As it was read there: of each 16 bytes the first of elements 0, 1, 2, ..., 64 in a row of the array."""
    array, out = np.arange(4096, dtype=np.uint16).reshape(64, 64), np.zeros(640, np.uint8)
    there(2)[1, 64](warplab.tensor_map(array, (16, 32), 128), out, 1024, 640, 0, 0, 0)
    assert out.view(np.uint16).reshape(5, 8, 8)[:, :, 0].tolist() == [
        [0, 8, 16, 24, 0, 0, 0, 0],
        [72, 64, 88, 80, 0, 0, 0, 0],
        [144, 152, 128, 136, 0, 0, 0, 0],
        [216, 208, 200, 192, 0, 0, 0, 0],
        [0, 0, 0, 0, 256, 264, 272, 280],
    ]


def test_a_tensor_map_may_lie_in_global_memory():
    text = THERE.format(fetch=FETCH_TILE.format(rank=2, coordinates="%3, %4"))
    text = text.replace("const __grid_constant__ CUtensorMap map", "const CUtensorMap* map").replace(
        "&map", "map"
    )
    array, out = _array("float32", (40, 64)), np.zeros(512, np.uint8)
    kernel(text, "there")[1, 64](warplab.tensor_map(array, (8, 16)), out, 512, 512, 4, 3, 0)
    np.testing.assert_array_equal(out.view(np.float32).reshape(8, 16), array[3:11, 4:20])


def test_a_tensor_map_that_is_a_copy_in_local_memory_is_refused():
    text = THERE.format(fetch=FETCH_TILE.format(rank=2, coordinates="%3, %4"))
    text = text.replace("const __grid_constant__ CUtensorMap map", "CUtensorMap map")
    array, out = _array("float32", (40, 64)), np.zeros(512, np.uint8)
    words = r"(?s)invalid tensor map \(local memory\).*const __grid_constant__"
    with pytest.raises(warplab.InvalidLaunch, match=words):
        kernel(text, "there")[1, 64](warplab.tensor_map(array, (8, 16)), out, 512, 512, 4, 3, 0)


@pytest.mark.parametrize("copy", ["there", "back"])
def test_a_box_that_begins_between_pieces_of_16_bytes_is_refused(copy):
    array, data = np.zeros((40, 64), np.float32), np.zeros(512, np.uint8)
    with pytest.raises(MisalignedAccess, match="index 5 of the innermost dimension, byte 20 "):
        if copy == "there":
            there(2)[1, 64](warplab.tensor_map(array, (8, 16)), data, 512, 512, 5, 3, 0)
        else:
            back(2)[1, 64](warplab.tensor_map(array, (8, 16)), data, 512, 5, 3, 0)


REDUCED = {  # operation of a tensor map: its dtype, and NumPy's function
    ".add": ("float32", np.add),
    ".min": ("int32", np.minimum),
    ".max": ("uint32", np.maximum),
    ".xor": ("uint32", np.bitwise_xor),
}


@pytest.mark.parametrize("operation", REDUCED)
def test_a_box_is_combined_with_what_is_there(operation):
    dtype, combined = REDUCED[operation]
    random = np.random.default_rng(2)
    array, new = (random.integers(0, 100, (10, 16)).astype(dtype) for _ in range(2))
    wanted = array.copy()
    wanted[6:] = combined(array[6:], new[:4])
    back(2, operation)[1, 64](warplab.tensor_map(array, (8, 16)), new.view(np.uint8), 512, 0, 6, 0)
    np.testing.assert_array_equal(array, wanted)


ROW = """
extern "C" __global__ void row(const float* x, float* y, int bytes, int skip, int mistake)
{
    __shared__ alignas(128) float tile[300];
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    if (t == 0) start(&bar, 1);
    __syncthreads();
    if (t == 0 || mistake == 1) {
        if (mistake != 2) expect(&bar, bytes + (mistake == 3 ? 16 : mistake == 4 ? -16 : 0));
        fetch(tile, x + skip, bytes, &bar);
        if (mistake == 2) arrive(&bar);
    }
    if (mistake != 5) wait(&bar, 0);
    float mine = tile[t];
    tile[t] = 2 * mine;
    if (mistake != 7) fence_proxy();
    __syncthreads();
    if (t == 0) {
        put(y + skip, tile, bytes);
        commit();
        if (mistake != 8) wait_read();
    }
    __syncthreads();
    tile[t] = 0;
}
"""


def test_a_row_comes_is_doubled_and_goes_back():
    x, y = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    kernel(ROW, "row")[1, 256](x, y, 1024, 4, 0)
    np.testing.assert_array_equal(y[4:260], 2 * x[4:260])
    assert not y[:4].any() and not y[260:].any()


def line(part, text=ROW):
    """The line of a kernel's source that has this part."""
    return next(i for i, row in enumerate((PRELUDE + text).split("\n"), 1) if part in row)


PARTS = "arrive.expect_tx", "shared::cluster.global", "try_wait", "global.shared::cta.bulk_group"
EXPECT, FETCHED, WAIT, PUT = (line(part) + 1 for part in PARTS)  # where the asm statement ends
ARRIVED = line("mbarrier.arrive.sh")
READ, DOUBLED, CLEARED = line("mine = tile"), line("2 * mine"), line("tile[t] = 0")


@pytest.mark.parametrize(
    "mistake, error, said",
    [
        (1, BarrierMisuse, f":{EXPECT}: .* arrives at bar .* in phase 0, whose 1 arrivals are all made"),
        (2, BarrierMisuse, f":{ARRIVED}: .* ends a phase of bar .* have brought 1,024 bytes more"),
        (3, NoProgress, f":{WAIT}: .*and will for ever: 16 of the bytes that it expects have not come"),
        (4, BarrierMisuse, f":{FETCHED}: .* ends a phase of bar .* have brought 16 bytes more"),
        (5, UnfinishedCopy, rf":{READ}: .* reads tile\[0\] \(.*:{READ}\) that its own .*:{FETCHED}\)"),
        (
            7,
            SharedRace,
            rf":{PUT}: the bulk .*reads tile\[0\] .* writes \(.*:{DOUBLED}\), with no fence",
        ),
        (8, UnfinishedCopy, rf":{CLEARED}: .* writes tile\[0\] .* bulk copy .*:{PUT}\) may not have read"),
    ],
)
def test_a_mistake_around_a_row_is_found(mistake, error, said):
    x, y = np.zeros(512, np.float32), np.zeros(512, np.float32)
    with pytest.raises(error, match=said):
        kernel(ROW, "row")[1, 256](x, y, 1024, 4, mistake)


@pytest.mark.parametrize(
    "bytes_, skip, error, said",
    [
        (1000, 0, MisalignedAccess, "copies 1000 bytes; bulk copies are of multiples of 16"),
        (1024, 1, MisalignedAccess, r"reads 16 bytes at once at element \[1\]"),
        (1024, 260, OutOfBounds, r"reads element \[260\] of argument 'number 1'"),
        (1216, 0, OutOfBounds, r"writes tile"),
    ],
)
def test_a_row_that_no_copy_takes(bytes_, skip, error, said):
    x, y = np.zeros(512, np.float32), np.zeros(512, np.float32)
    with pytest.raises(error, match=said):
        kernel(ROW, "row")[1, 256](x, y, bytes_, skip, 0)


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(shape=(64, 63)), "begin 252 bytes apart.*multiple of 16"),
        (dict(box=(16, 257)), r"a box \(16, 257\).*1 to 256"),
        (dict(box=(0, 16)), r"a box \(0, 16\)"),
        (dict(box=(256, 256)), r"a box \(256, 256\) of 256 KiB or more"),
        (dict(box=(16,)), "for an array of 2 dimensions"),
        (dict(box=()), r"a box \(\) for an array of 2 dimensions"),
        (dict(box=(8.5, 16)), r"a box \(8.5, 16\).*1 to 256 elements"),
        (dict(box=None, shape=64), r"a box \(None,\)"),
        (dict(shape=(), box=()), "an array of 0 dimensions"),
        (dict(box=(16, 6)), "rows have 24 bytes.*a multiple of 16"),
        (dict(box=(16, 32), swizzle=64), "rows have 128 bytes, with a swizzle of 64"),
        (dict(swizzle=16), "a swizzle of 16"),
        (dict(swizzle=64.0), "a swizzle of 64.0"),
        (dict(dtype="int32", fill="nan"), "NaN for whole numbers"),
        (dict(fill="one"), "fill='one'"),
        (dict(dtype="complex64"), "an array of complex64"),
        (dict(shape=(2, 2, 2, 2, 2, 16), box=(1, 1, 1, 1, 1, 16)), "an array of 6 dimensions"),
        (dict(shape=(0, 64)), r"the shape \(0, 64\)"),
    ],
)
def test_what_the_driver_refuses_is_refused_with_a_reason(given, said):
    given = dict(shape=(64, 64), box=(16, 16), dtype="float32") | given
    array = np.zeros(given.pop("shape"), given.pop("dtype"))
    with pytest.raises(warplab.InvalidLaunch, match=f"(?s){said}"):
        warplab.tensor_map(array, **given)


def test_a_list_is_no_array():
    with pytest.raises(warplab.InvalidLaunch, match="(?s)a tensor map of a list.*an array of NumPy"):
        warplab.tensor_map([[1.0] * 64], (1, 16))


def test_an_array_in_place_of_its_tensor_map_is_refused():
    array, out = np.zeros((40, 64), np.float32), np.zeros(512, np.uint8)
    with pytest.raises(warplab.InvalidLaunch, match=r"(?s)of an array\), and .* 128.*warplab.tensor_map"):
        there(2)[1, 64](array, out, 512, 512, 4, 3, 0)


@pytest.mark.parametrize(
    "rank, shape, box", [(1, (64, 64), (8, 8)), (3, (64, 64), (8, 8)), (2, (64,), (64,))]
)
def test_as_many_coordinates_as_the_tensor_map_has_dimensions(rank, shape, box):
    tensor_map = warplab.tensor_map(np.zeros(shape, np.float32), box)
    with pytest.raises(warplab.InvalidLaunch, match=f"gives {rank} coord.* of {len(shape)} dimensions"):
        there(rank)[1, 64](tensor_map, np.zeros(512, np.uint8), 256, 256, 0, 0, 0)


def test_a_wait_for_the_parity_of_another_phase_is_found():
    source = THERE.format(fetch=FETCH_TILE.format(rank=1, coordinates="%3")).replace("&bar, 0);", "&bar, 1);")
    tensor_map = warplab.tensor_map(np.zeros(64, np.float32), (64,))
    with pytest.raises(NoProgress, match="(?s)for phase 1 of .* the parity of the wait"):
        kernel(source, "there")[1, 64](tensor_map, np.zeros(512, np.uint8), 256, 256, 0, 0, 0)


def test_a_box_that_reaches_beyond_shared_memory_is_read_there():
    array, data = np.zeros((64, 64), np.float32), np.zeros(512, np.uint8)
    with pytest.raises(OutOfBounds, match=r"thread \(0, 0, 0\) .* reads tile"):
        back(2)[1, 64](warplab.tensor_map(array, (64, 64)), data, 512, 0, 0, 0)


RING = """
extern "C" __global__ void ring(const __grid_constant__ CUtensorMap map, float* out, int tiles, int mistake)
{
    __shared__ alignas(128) float tile[2][8][32];
    __shared__ uint64_t full[2], empty[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
        for (int s = 0; s < 2; s++) { start(full + s, 1); start(empty + s, 64); }
    __syncthreads();
    if (warp == 0) {
        if (lane == 0)
            for (int i = 0; i < tiles; i++) {
                int s = i % 2, x = 0, y = 8 * i, turn = i / 2 % 2;
                if (i >= 2 && mistake != 1) wait(empty + s, turn ^ 1);
                expect(full + s, sizeof(tile[s]));
                asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
                             " [%0], [%1, {%2, %3}], [%4];"
                             :: "r"(at(tile[s])), "l"(&map), "r"(x), "r"(y), "r"(at(full + s)) : "memory");
            }
    } else {
        float sum = 0;
        for (int i = 0; i < tiles; i++) {
            int s = i % 2;
            wait(full + s, i / 2 % 2);
            for (int r = warp - 1; r < 8; r += 2) sum += (i + 1) * tile[s][r][lane];
            arrive(empty + s);
        }
        out[32 * (warp - 1) + lane] = sum;
    }
}
"""


def test_a_ring_of_stages():
    array, out = _array("float32", (40, 32)), np.zeros((2, 32), np.float32)
    weighed = (array.reshape(5, 4, 2, 32) * np.arange(1, 6, dtype=np.float32)[:, None, None, None]).sum(
        axis=(0, 1)
    )
    kernel(RING, "ring")[1, 96](warplab.tensor_map(array, (8, 32)), out, 5, 0)
    np.testing.assert_array_equal(out, weighed)


def test_a_stage_that_is_filled_before_it_is_free_is_found():
    array, out = _array("float32", (40, 32)), np.zeros((2, 32), np.float32)
    with pytest.raises(BarrierMisuse, match=r"arrives at full\[0\] .*nobody has waited for phase 0"):
        kernel(RING, "ring")[1, 96](warplab.tensor_map(array, (8, 32)), out, 5, 1)


CLUSTER = """
__device__ inline int rank() { int r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ inline void together() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""
BOTH = (
    CLUSTER
    + """
extern "C" __global__ __cluster_dims__(2) void both(const __grid_constant__ CUtensorMap map, float* out,
                                                    int mistake)
{
    __shared__ alignas(128) float tile[8][32];
    __shared__ uint64_t bar;
    int t = threadIdx.x, x = 0, y = blockIdx.x / 2 * 8;
    if (t == 0) { start(&bar, 1); expect(&bar, sizeof(tile)); }
    if (mistake != 1) together(); else __syncthreads();
    if (t == 0 && rank() == 0) {
        unsigned short blocks = mistake == 2 ? 1 : mistake == 3 ? 7 : 3;
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     :: "r"(at(tile)), "l"(&map), "r"(x), "r"(y), "r"(at(&bar)), "h"(blocks) : "memory");
    }
    wait(&bar, 0);
    out[256 * blockIdx.x + t] = tile[t / 32][t % 32] + rank();
    together();
}
"""
)


def test_one_copy_reaches_both_blocks():
    array, out = _array("float32", (16, 32)), np.zeros((2, 2, 8, 32), np.float32)
    kernel(BOTH, "both")[4, 256](warplab.tensor_map(array, (8, 32)), out, 0)
    np.testing.assert_array_equal(
        out, np.stack([array.reshape(2, 8, 32), array.reshape(2, 8, 32) + 1], axis=1)
    )


@pytest.mark.slow
def test_what_a_multicast_saves_is_counted():
    array, out = _array("float32", (16, 32)), np.zeros((2, 2, 8, 32), np.float32)
    p = warplab.profile(kernel(BOTH, "both")[4, 256], warplab.tensor_map(array, (8, 32)), out, 0)
    # of each cluster one request for a box of 1,024 bytes, 32 sectors, delivered twice
    assert (p.tma_load.requests, p.tma_load.sectors, p.tma_load.bytes) == (2, 64, 2048)
    assert (p.tma_load.shared_bytes, p.tma_load.sectors_saved) == (4096, 64)
    assert p.global_read.sectors == 64 and p.global_load.requests == 0
    report = warplab.report(kernel(BOTH, "both")[4, 256], warplab.tensor_map(array, (8, 32)), out, 0)
    rows = {label: (ours, metric) for label, ours, _, metric, _ in report.rows("Memory Workload Analysis")}
    assert rows["TMA Loads"] == ("2", "smsp__sass_inst_executed_op_tma_ld.sum")
    assert rows["TMA Load Sectors"][0] == "128" and "0 requests, 2 by TMA" in report._repr_html_()
    assert "2 requests, 64 sectors, 2,048 bytes, 4,096 bytes in shared memory; multicast saves 64" in str(p)


def test_a_copy_of_a_box_that_is_nowhere_is_a_request():
    """Nsight Compute counts instructions: smsp__sass_inst_executed_op_tma_ld."""
    array, data = np.zeros((8, 64), np.float32), np.zeros(512, np.uint8)
    map_, box = warplab.tensor_map(array, (8, 16)), (64, 8, 0)
    loads = warplab.profile(there(2)[2, 64], map_, data, 512, 512, *box).tma_load
    stores = warplab.profile(back(2)[2, 64], map_, data, 512, *box).tma_store
    assert (loads.requests, loads.sectors, loads.shared_bytes) == (2, 0, 1024)
    assert (stores.requests, stores.sectors) == (2, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake, error, said",
    [
        (1, warplab.LaunchError, "not an initialised mbarrier|which may not have begun yet|initialis"),
        (2, NoProgress, "1,024 of the bytes that it expects have not come"),
        (3, warplab.LaunchError, "both"),
    ],
)
def test_a_mistake_around_a_multicast_is_found(mistake, error, said):
    array, out = _array("float32", (16, 32)), np.zeros((2, 2, 8, 32), np.float32)
    with pytest.raises(error, match=said):
        kernel(BOTH, "both")[4, 256](warplab.tensor_map(array, (8, 32)), out, mistake)


PASS_ON = (
    CLUSTER
    + """
extern "C" __global__ __cluster_dims__(2) void pass_on(const float* x, float* out)
{
    __shared__ alignas(128) float mine[256], theirs[256];
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    mine[t] = x[256 * blockIdx.x + t];
    fence_proxy();
    if (t == 0) { start(&bar, 1); expect(&bar, 1024); }
    together();
    if (t == 0)
        asm volatile("{ .reg .b32 to, there; mapa.shared::cluster.u32 to, %0, %3;"
                     " mapa.shared::cluster.u32 there, %2, %3;"
                     " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                     " [to], [%1], 1024, [there]; }"
                     :: "r"(at(theirs)), "r"(at(mine)), "r"(at(&bar)), "r"(rank() ^ 1) : "memory");
    wait(&bar, 0);
    out[256 * blockIdx.x + t] = theirs[t];
    together();
}
"""
)


def test_a_block_passes_a_row_on_to_its_neighbour():
    x, out = np.arange(1024, dtype=np.float32), np.zeros((4, 256), np.float32)
    kernel(PASS_ON, "pass_on")[4, 256](x, out)
    np.testing.assert_array_equal(out, x.reshape(2, 2, 256)[:, ::-1].reshape(4, 256))


WRAPPED = """
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace ptx = cuda::ptx;
namespace cde = cuda::device::experimental;
extern "C" __global__ void wrapped(const __grid_constant__ CUtensorMap map, int x, int y)
{
    __shared__ alignas(128) float tile[8][16];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) { init(&bar, blockDim.x); ptx::fence_proxy_async(ptx::space_shared); }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        int corner[2] = {x, y};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &tile, &map, corner,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    tile[threadIdx.x / 16][threadIdx.x % 16] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}
"""


@pytest.mark.slow
def test_the_wrappers_of_cuda():
    array = _array("float32", (20, 40))
    wanted = array.copy()
    wanted[4:12, 32:] += 1
    if "wrapped" not in _kernels:
        _kernels["wrapped"] = warplab.cuda_kernel(WRAPPED, "wrapped")
    _kernels["wrapped"][1, 128](warplab.tensor_map(array, (8, 16)), 32, 4)
    np.testing.assert_array_equal(array, wanted)


ENDS = (
    CLUSTER
    + """
extern "C" __global__ __cluster_dims__(2) void ends(const float* x, float* y, int how, int waits)
{
    __shared__ alignas(128) float tile[256], theirs[256];
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    tile[t] = t;
    fence_proxy();
    if (t == 0) { start(&bar, 1); if (how != 1) expect(&bar, how == 3 ? 8 : 1024); }
    together();
    if (t == 0 && how == 0) fetch(theirs, x, 1024, &bar);
    if (t == 0 && how == 1) { put(y + 256 * blockIdx.x, tile, 1024); commit(); if (waits) wait_read(); }
    if (t == 0 && how >= 2 && rank() == 0) {
        uint32_t to, there;
        asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(to) : "r"(at(theirs)));
        asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(at(&bar)));
        if (how == 2)
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                         " [%0], [%1], 1024, [%2];" :: "r"(to), "r"(at(tile)), "r"(there) : "memory");
        else
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];"
                         :: "r"(to), "l"((uint64_t)t), "r"(there) : "memory");
    }
    if (how == 2 && waits == 2 && t == 0 && rank() == 0) tile[7] = 0;
    if (waits && how != 1 && (how == 0 || rank() == 1)) wait(&bar, 0);
    together();
}
"""
)
WHO = r"block \(1, 0, 0\) ends, and the bulk copy that thread \(0, 0, 0\) of block \(0, 0, 0\)"
ENDED = {  # of how, as in the kernel
    0: r"block \(0, 0, 0\) ends, and the bulk copy that thread \(0, 0, 0\) of block \(0, 0, 0\) "
    r"starts here may not have filled theirs\[0\] yet.*(?s:.)*a wait for the phase",
    1: r"block \(0, 0, 0\) ends, .* may not have read tile\[0\] yet.*(?s:.)*commit_group and wait_group.read",
    2: r"block \(0, 0, 0\) ends, .* may not have read tile\[0\] yet.*(?s:.)*a wait for the phase",
    3: rf"{WHO} starts here may not have filled theirs\[0\] yet",
}


@pytest.mark.parametrize("how", ENDED)
def test_a_block_that_ends_while_a_copy_uses_its_memory_is_found(how):
    x, y = np.zeros(256, np.float32), np.zeros(512, np.float32)
    kernel(ENDS, "ends")[2, 256](x, y, how, 1)
    copies = ("shared::cluster.global.", "global.shared::cta.bulk_group", "1024, [%2]", '"st.async')
    place = line(copies[how], ENDS) + (how != 2)
    with pytest.raises(UnfinishedCopy, match=rf":{place}: {ENDED[how]}"):
        kernel(ENDS, "ends")[2, 256](x, y, how, 0)


def test_what_goes_to_another_block_is_not_overwritten_before_its_phase_is_complete():
    with pytest.raises(UnfinishedCopy, match=r"writes tile\[7\] .* may not have read yet"):
        kernel(ENDS, "ends")[2, 256](np.zeros(256, np.float32), np.zeros(512, np.float32), 2, 2)
