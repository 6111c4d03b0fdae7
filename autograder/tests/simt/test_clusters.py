"""Thread block clusters: ranks, shared memory of other blocks, the cluster's barrier, and what is refused."""

import numpy as np
import pytest

import warplab

HEAD = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void {dims} k(int* out) {{
    __shared__ int s[32];
    cg::cluster_group cluster = cg::this_cluster();
    int rank = cluster.block_rank(), t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
SYNC = "cluster.sync();"
OTHER = "cluster.map_shared_rank(s + t, rank ^ 1)"
READS = f"out[i] = *{OTHER};"


def kernel(body: str, dims: str = "__cluster_dims__(2)"):
    return warplab.cuda_kernel(HEAD.format(dims=dims) + body + "\n}\n", "k")


def run(body: str, dims="__cluster_dims__(2)", grid=4, n=128, more=()):
    out = np.zeros(n, np.int32)
    kernel(body, dims)[(grid, 32, *more)](out)
    return out


def test_blocks_of_a_cluster_are_ranked_with_x_first():
    body = """if (t == 0) {
        int b = blockIdx.x + 4 * (blockIdx.y + 2 * blockIdx.z);
        dim3 c = cluster.block_index(), d = cluster.dim_blocks();
        unsigned id, n;
        asm("mov.u32 %0, %%clusterid.y; mov.u32 %1, %%nclusterid.x;" : "=r"(id), "=r"(n));
        out[8 * b] = rank; out[8 * b + 1] = c.x + 10 * c.y + 100 * c.z;
        out[8 * b + 2] = d.x + 10 * d.y + 100 * d.z;
        out[8 * b + 3] = cluster.num_blocks(); out[8 * b + 4] = cluster.num_threads();
        out[8 * b + 5] = cluster.thread_rank(); out[8 * b + 6] = id; out[8 * b + 7] = n; }"""
    found = run(body, "__cluster_dims__(2, 1, 3)", (4, 2, 3), 24 * 8).reshape(3, 2, 4, 8)
    for (z, y, x), row in ((at, found[at]) for at in np.ndindex(3, 2, 4)):
        rank = x % 2 + 2 * z
        assert row.tolist() == [rank, x % 2 + 100 * z, 312, 6, 192, 32 * rank, y, 2]


def test_a_block_reads_and_writes_its_neighbours_shared_memory():
    read = run(f"s[t] = 100 * blockIdx.x + t; {SYNC} {READS} {SYNC}").reshape(4, 32)
    assert (read == 100 * np.array([[1], [0], [3], [2]]) + np.arange(32)).all()
    written = run(f"{SYNC} *{OTHER} = 100 * blockIdx.x + t; {SYNC} out[i] = s[t];")
    assert (written.reshape(4, 32) == read).all()


def test_what_blocks_of_a_cluster_count_together():
    body = f"""if (t == 0) s[0] = 0;
        {SYNC}
        atomicAdd(cluster.map_shared_rank(s, 0), t + rank);
        {SYNC}
        if (t == 0) out[blockIdx.x] = s[0];"""
    sums = run(body, "__cluster_dims__(4)", 8, 8)
    assert sums[[0, 4]].tolist() == [4 * 496 + 32 * (0 + 1 + 2 + 3)] * 2


BY_ADDRESS = """unsigned a = (unsigned)__cvta_generic_to_shared(s + t), b;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(a), "r"(rank ^ 1));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(b));
        asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r) : "r"(b));"""
BY_POINTER = f"""int* p = {OTHER};
        asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p));
        r = cluster.query_shared_rank(p);"""


@pytest.mark.parametrize("access", [BY_ADDRESS, BY_POINTER])
def test_ptx_reaches_other_blocks_by_both_kinds_of_addresses(access):
    body = f"s[t] = 10 * rank + t % 2; unsigned v, r; {SYNC} {access} {SYNC} out[i] = v + 100 * r;"
    found = run(body).reshape(2, 2, 32)
    assert (found[:, 0] == 110 + np.arange(32) % 2).all() and (found[:, 1] == np.arange(32) % 2).all()


def test_a_launch_may_say_how_large_its_clusters_are():
    body = "out[i] = 10 * cluster.num_blocks() + rank;"
    assert run(body, "", more=(0, 0, 4)).reshape(4, 32)[:, 0].tolist() == [40, 41, 42, 43]
    assert run(body, "").reshape(4, 32)[:, 0].tolist() == [10] * 4


REFUSED = [
    ("__cluster_dims__(16)", 16, (), "a cluster of 16 blocks; the limit is 8"),
    ("__cluster_dims__(2)", 5, (), "grid dimension x is 5, which is not a multiple of the 2 blocks"),
    ("", (4, 3), (0, 0, (1, 2)), "grid dimension y is 3"),
    ("__cluster_dims__(2)", 4, (0, 0, 4), "compiled for"),
]


@pytest.mark.parametrize("dims, grid, more, said", REFUSED)
def test_clusters_that_cuda_refuses(dims, grid, more, said):
    with pytest.raises(warplab.InvalidLaunch, match=said):
        run("", dims, grid, more=more)


def test_sixteen_blocks_by_consent():
    k, out = kernel("if (t == 0) out[blockIdx.x] = rank;", "__cluster_dims__(16)"), np.zeros(16, np.int32)
    k.non_portable_cluster_size_allowed = True
    k[16, 32](out)
    assert out.tolist() == list(range(16))


@pytest.mark.parametrize(
    "configuration, said",
    [
        ((4.0, 32), "the grid is 4.0, and not a whole number"),
        ((4, (1, 1, 1, 1)), r"the block is \(1, 1, 1, 1\)"),
        ((4, 32, 0, 0, "2"), "the cluster is '2'"),
        ((4, 32, 0, 0, (2, 0)), r"a cluster of \(2, 0, 1\) blocks must be positive"),
        ((4, 32, 0, (2, 1, 1)), r"\(2, 1, 1\) bytes of dynamic shared memory"),
        ((4, 32, 0, -5), "-5 bytes"),
        (4, "has 1 part\n"),
        ((4, 32, 0, 0, 2, 1), "has 6 parts\n"),
        ((32, 1, 0, 0, 32), "32 blocks; the limit is 16\n  Look at: fewer blocks in a cluster$"),
    ],
)
def test_a_configuration_that_is_none(configuration, said):
    k = kernel("", "")
    k.non_portable_cluster_size_allowed = "yes"  # as true as True
    with pytest.raises(warplab.InvalidLaunch, match=said):
        k[configuration](np.zeros(1, np.int32))


@pytest.mark.parametrize(
    "body, said",
    [
        (f"s[t] = t; {SYNC} {READS}", r"block \(1, 0, 0\) accesses .* \(0, 0, 0\), which may leave"),
        (f"s[t] = t; __syncthreads(); {READS} {SYNC}", "which may not have begun yet"),
        (f"*{OTHER} = t; {SYNC} out[i] = s[t];", "which may not have begun yet"),
        (f"{SYNC} if (rank) return; __nanosleep(9); {READS}", "which has left the kernel|uninitialised"),
        ("cluster.barrier_arrive(); cluster.barrier_arrive();", "arrives at its cluster's barrier again"),
        ('asm volatile("barrier.cluster.wait;");', "at which it has not arrived"),
        (f"if (t < 16) {SYNC} __syncthreads();", r"waits at its cluster's barrier for thread \(16, 0, 0\)"),
        (
            "out[i] = *cluster.map_shared_rank(s, 2);",
            "reads shared memory of block 2 of its cluster, which has 2",
        ),
        (
            "*cluster.map_shared_rank(s, rank - 1) = t;",
            "of a block of a rank below 0 or far beyond of its cl",
        ),
    ],
)
def test_what_breaks_the_rules_of_a_cluster_is_told(body, said):
    with pytest.raises(warplab.LaunchError, match=said):
        run(body)


@pytest.mark.parametrize(
    "body",
    [
        f"{SYNC} s[t] = t; __syncthreads(); {READS} {SYNC}",  # the neighbour has not met this barrier
        f"s[t] = t; {SYNC} {READS} s[t] = 0; {SYNC}",
        f"{SYNC} *{OTHER} = t; __syncthreads(); out[i] = s[t]; {SYNC}",
        f"s[t] = 0; {SYNC} *cluster.map_shared_rank(s, 0) = i; {SYNC}",
        "s[t] = t; cluster.sync(); s[t] = 1; "
        'asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");'
        f"{READS} {SYNC}",
    ],
)
def test_races_between_blocks_of_a_cluster(body):
    with pytest.raises(warplab.LaunchError, match="shared-memory race"):
        run(body)


def test_a_fence_orders_what_a_relaxed_arrival_does_not():
    body = f"""{SYNC} s[t] = 7 + t;
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
        asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
        {READS} {SYNC}"""
    assert (run(body).reshape(4, 32) == 7 + np.arange(32)).all()


def test_work_between_arrival_and_wait():
    body = f"""s[t] = i; auto token = cluster.barrier_arrive(); int own = 3 * t;
        cluster.barrier_wait(static_cast<decltype(token)&&>(token)); out[i] = own + *{OTHER}; {SYNC}"""
    assert (run(body).reshape(2, 2, 32)[0, 0] == 32 + 4 * np.arange(32)).all()


def test_relaxed_arrivals_at_the_end_keep_blocks_there():
    leaves = 'asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;");'
    assert run(f"s[t] = i; {SYNC} {READS} {leaves}")[5] == 37


def test_a_generic_pointer_means_the_same_in_all_blocks_of_a_cluster():
    body = f"""__shared__ int* p;
        s[t] = i; {SYNC}
        if (t == 0) *cluster.map_shared_rank(&p, rank ^ 1) = s;
        {SYNC}
        out[i] = p[t] + 1000 * __isShared(p) + 2000 * __isShared(s) + 4000 * __isClusterShared(p); {SYNC}"""
    assert (run(body).reshape(2, 2, 32)[:, ::-1] - 6000 == np.arange(128).reshape(2, 2, 32)).all()


def test_a_flag_in_another_blocks_memory():
    body = f"""__shared__ int flag;
        flag = 0; {SYNC}
        *{OTHER} = i; __threadfence(); __syncthreads();
        if (t == 0) {{
            atomicExch(cluster.map_shared_rank(&flag, rank ^ 1), 1);
            while (!atomicAdd(&flag, 0));
        }}
        __threadfence(); __syncthreads();
        out[i] = s[t];"""
    assert (run(body).reshape(2, 2, 32)[:, ::-1] == np.arange(128).reshape(2, 2, 32)).all()


def test_an_index_beyond_the_neighbours_array_is_told():
    with pytest.raises(warplab.OutOfBounds, match=r"reads s\[32\], whose last element is \[31\]"):
        run(f"s[t] = 0; {SYNC} out[i] = {OTHER}[1]; {SYNC}")


@pytest.mark.slow
def test_accesses_to_other_blocks_are_counted_apart():
    out = np.zeros(128, np.int32)
    body = f"""s[t] = t; {SYNC} int v = *{OTHER}; {SYNC} *{OTHER} = v; atomicAdd({OTHER}, 1);
        {SYNC} out[i] = s[t];"""
    p = warplab.profile(kernel(body)[4, 32], out)
    assert (p.shared_store.requests, p.shared_load.requests, p.shared_atomic.requests) == (4, 4, 0)
    for part in (p.distributed_load, p.distributed_store, p.distributed_atomic):
        assert (part.requests, part.bytes) == (4, 4 * 32 * 4)
    assert p.shared_memory.requests == 8 + 4 + 4 + 2 * 4
    assert "distributed loads" in str(p) and p.as_dict()["distributed_store.bytes"] == 512


BARRIERS = f"""__shared__ __align__(8) long long bar;
    unsigned own = (unsigned)__cvta_generic_to_shared(&bar), theirs, done;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(own));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    {SYNC}
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(own), "r"(rank ^ 1));
"""
ARRIVES = """asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(theirs) : "memory");
"""
WAITS = """do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                     "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(own) : "memory");
    } while (!done);
"""


def test_a_barrier_of_another_block_is_arrived_at():
    found = run(f"{BARRIERS} *{OTHER} = i; {ARRIVES} {WAITS} out[i] = s[t];").reshape(2, 2, 32)
    assert (found[:, 0] == [np.arange(32, 64), np.arange(96, 128)]).all() and found[0, 1, 3] == 3


@pytest.mark.parametrize(
    "body, said",
    [
        (f"*{OTHER} = i; {ARRIVES} out[i] = s[t]; {SYNC}", "shared-memory race"),
        (f"{ARRIVES} *{OTHER} = i; {WAITS} out[i] = s[t]; {SYNC}", "shared-memory race"),
        (f"{ARRIVES} if (rank) return; {WAITS}", "which may leave the kernel before"),
        (f"if (rank) {ARRIVES} {WAITS}", r"waits? for phase 0 .* will for ever: 0 of 32 arrivals"),
        ("own = theirs;" + WAITS, "an address in another block's shared memory as one in its own"),
        (
            "long long* p = cluster.map_shared_rank(&bar, rank ^ 1);"
            + WAITS.replace(".shared::cta", "").replace('"r"(own)', '"l"(p)'),
            "at which it may only arrive",
        ),
    ],
)
def test_mistakes_at_a_barrier_of_another_block(body, said):
    with pytest.raises(warplab.LaunchError, match=said):
        run(BARRIERS + body)


SENDS = """if (t == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(own) : "memory");
    unsigned a = (unsigned)__cvta_generic_to_shared(s + t), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(a), "r"(rank ^ 1));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :: "r"(there), "r"(i), "r"(theirs) : "memory");
"""
ONE_ARRIVAL = BARRIERS.replace("[%0], 32;", "[%0], 1;")


def test_a_store_completes_at_a_barrier_of_the_block_that_it_goes_to():
    found = run(f"{ONE_ARRIVAL} {SENDS} {WAITS} out[i] = s[t]; {SYNC}").reshape(2, 2, 32)
    assert (found[:, ::-1] == np.arange(128).reshape(2, 2, 32)).all()


@pytest.mark.parametrize(
    "body, said",
    [
        (f"{SENDS} {SYNC} out[i] = s[t];", "unfinished asynchronous copy"),
        (f"{SENDS.replace('128', '132')} {WAITS}", "will for ever"),
        (f"{SENDS.replace('128', '124')} {WAITS}", "4 bytes more than expect_tx announced"),
    ],
)
def test_mistakes_at_stores_that_complete_at_a_barrier(body, said):
    with pytest.raises(warplab.LaunchError, match=said):
        run(ONE_ARRIVAL + body)


@pytest.mark.slow
def test_what_nsight_compute_counted_of_other_blocks_memory():
    """On an H200 (2026-11-26): 12, 4 and 4 requests of 128 bytes; of the own memory 4 loads and 4 stores."""
    body = f"""s[t] = i; {SYNC} int v = 0;
        for (int j = 0; j < 3; ++j) v += *(volatile int*){OTHER};
        {SYNC} *{OTHER} = v; atomicAdd({OTHER}, 1); {SYNC} out[i] = s[t];"""
    counted = warplab.profile(kernel(body)[4, 32], np.zeros(128, np.int32)).ncu()
    for op, requests in {"ld": 12, "st": 4, "atom": 4}.items():
        assert counted[f"l1tex__t_requests_pipe_lsu_mem_dshared_op_{op}.sum"] == requests
        assert counted[f"l1tex__t_bytes_pipe_lsu_mem_dshared_op_{op}.sum"] == 128 * requests
    assert [counted[f"smsp__sass_inst_executed_op_shared_{op}.sum"] for op in ("ld", "st")] == [4, 4]
