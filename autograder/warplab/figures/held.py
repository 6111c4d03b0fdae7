"""Compares every published measurement with our bounds of the same work, or says why there is no bound.

``judged()`` goes through published.yml. The work of the course's own kernels at a published size is
extrapolated from profiles at small sizes; of others' kernels the minimum is derived from what they compute.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

import warplab
from warplab.evidence.experiments import kernels
from warplab.evidence.measure import RESULTS, Evidence, published
from warplab.evidence.record import Point
from warplab.hardware import specs
from warplab.timing.bounds import WAVEFRONT, Bounds, LaunchWork, bounds

f32 = np.float32
FIELDS = "wavefronts", "fetched", "written", "touched", "blocks"
MANY = 10**9  # blocks, if the source does not state their number


def grown(profile_of, sizes, powers, size, equal=False) -> LaunchWork:
    """The work at ``size``, extrapolated as a sum of ``powers`` of the size.

    It is fitted at the first of ``sizes`` and checked at the last. profile_of(size) -> profile.
    """
    works = [LaunchWork.of(profile_of(n)) for n in sizes]
    units = [*works[0].flops]
    known = np.array([[*(getattr(w, name) for name in FIELDS), *(w.flops[u] for u in units)] for w in works])
    places = np.array([[float(n) ** p for p in powers] for n in (*sizes, size)])
    factors = np.linalg.solve(places[: len(powers)], known[: len(powers)])
    if not np.allclose(places[-2] @ factors, known[-1], rtol=1e-9):
        raise ValueError(f"not of the powers {powers}: {known}")
    plain, flops = np.split(places[-1] @ factors, [len(FIELDS)])
    return LaunchWork(
        dict(zip(units, flops, strict=True)), **dict(zip(FIELDS, map(round, plain), strict=True)), equal=equal
    )


def square(kernel, tile=32):
    return lambda n: warplab.profile(kernel[(n // tile,) * 2, (tile, tile)], *np.ones((3, n, n), f32))


def transposed(kernel):
    return lambda n: warplab.profile(kernel[(n // 32,) * 2, (32, 8)], *np.ones((2, n, n), f32))


def summed(kernel, each):
    """A sum of n numbers by blocks of 256 threads, ``each`` numbers to a block."""
    return lambda n: warplab.profile(kernel[n // each, 256], np.ones(n, f32), np.zeros(1, f32))


def copied(stride, dtype: type = f32, kernel: Any = kernels.copy_strided):
    def profile_of(n):
        x = np.ones(n * stride, dtype)
        return warplab.profile(kernel[n // 256, 256], x, np.zeros_like(x), stride)

    return profile_of


def product_of(kernel):
    return lambda p: grown(square(kernel), (64, 96, 128), (3, 2), p.x, equal=True)


def transpose_of(kernel):
    return lambda p: grown(transposed(kernel), (64, 96, 128), (2, 0), p.x, equal=True)


def sum_of(kernel, each):
    return lambda p: grown(summed(kernel, each), (4096, 8192, 12288), (1, 0), p.x)


def copy_of_doubles(p):
    return grown(copied(1, np.float64), (4096, 8192, 12288), (1, 0), p.bytes / 16, equal=True)


def strided_copy(p):
    return grown(copied(int(p.x)), (4096, 8192, 12288), (1, 0), p.bytes / 8, equal=True)


def least(flops=None, read=0.0, written=0.0) -> LaunchWork:
    """The least work of a kernel of unknown code: its operations, each distinct byte once through L1."""
    return LaunchWork(flops or {}, (read + written) / WAVEFRONT, read, written, read + written, MANY)


def cube(unit, size):
    """The least work of an n x n x n product with elements of ``size`` bytes."""
    return lambda p: least({unit: p.flops}, 2 * size * p.x**2, size * p.x**2)


def arithmetic(unit):
    return lambda p: least({unit: p.flops})


def in_and_out(p):
    return least(read=p.bytes / 2, written=p.bytes / 2)


def read(p):
    return least(read=p.bytes)


def attention(p):
    """The least work of attention in FP16: 4 N^2 operations for each column; Q, K, V read, the output
    written.
    """
    columns = p.flops / (4 * p.x**2)
    return least({"fp16": p.flops}, 3 * 2 * p.x * columns, 2 * p.x * columns)


def llama(inner, keys, vocabulary):
    """(weights in 32 layers of width 4096, weights of the output matrix)."""
    return 32 * (2 * 4096**2 + 2 * 4096 * keys + 3 * 4096 * inner), 4096 * vocabulary


LLAMA_2_7B, LLAMA_3_8B = llama(11008, 4096, 32000), llama(14336, 1024, 128256)


def step(model, unit="bf16", requests=None):
    """A step reads all weights once, and multiplies by each for every request."""
    weights = sum(model)
    return lambda p: least({unit: 2 * weights * (requests or p.x)}, read=2 * weights)


def prompt(p):
    """The work of a prompt: every token goes through the layers, only the last through the output matrix."""
    return least({"fp16": 2 * LLAMA_3_8B[0] * p.x}, read=2 * sum(LLAMA_3_8B))


def token_of(requests):
    """A token's share of a decoding step with at most `requests` requests and 8 billion weights."""
    weights = sum(LLAMA_3_8B)
    return lambda p: least({"bf16": 2 * weights}, read=2 * weights / requests)


def chain(p):
    return least({"fp32": p.flops}, read=p.flops / p.x)


NAIVE, TILED = "one thread an element, coalesced", "tiles in shared memory"
HELD: dict[tuple[str, str], Callable[[Point], LaunchWork]] = {
    ("copy_bandwidth", "copy of doubles"): copy_of_doubles,
    ("copy_bandwidth", "strided copy"): strided_copy,
    ("occupancy", "a load at a time"): copy_of_doubles,
    ("matmul_by_size", NAIVE): product_of(kernels.matmul_naive),
    ("matmul_by_size", TILED): product_of(kernels.matmul_tiled),
    ("matmul_by_size", "tiles in registers"): cube("fp32", 4),
    ("matmul_by_size", "tiles in registers, no Tensor Cores"): cube("fp32", 2),
    ("matmul_by_size", "cuBLAS FP32"): cube("fp32", 4),
    ("matmul_by_size", "cuBLAS BF16"): cube("bf16", 2),
    ("matmul_by_size", "best by hand, BF16"): cube("bf16", 2),
    ("matmul_by_size", "torch BF16, best shape"): arithmetic("bf16"),
    ("hopper_ladder", "cuBLAS BF16"): cube("bf16", 2),
    ("hopper_ladder", "best by hand, BF16"): cube("bf16", 2),
    ("matmul_in_eight_bits", "torch fp8, best shape"): arithmetic("fp8"),
    ("matmul_in_eight_bits", "DeepGEMM fp8"): arithmetic("fp8"),
    ("crossover", "GPU: sum"): lambda p: least(read=4 * p.x),
    ("reduction", "library, CUB"): read,
    ("reduction", "library, Thrust"): read,
    ("reduction", "an atomic a number"): sum_of(kernels.reduce_atomic, 256),
    ("reduction", "a tree in shared memory"): sum_of(kernels.reduce_tree, 256),
    ("reduction", "a tree, two loads a thread"): read,
    ("reduction", "a tree, two loads a thread, last warp unrolled"): read,
    ("reduction", "by shuffles"): sum_of(kernels.reduce_shuffle, 2048),
    ("reduction", "by shuffles, several loads a thread"): read,
    ("transpose", "naive"): transpose_of(kernels.transpose_naive),
    ("transpose", "tiled"): transpose_of(kernels.transpose_tiled),
    ("transpose", "padded"): transpose_of(kernels.transpose_padded),
    ("transpose", "padded, four numbers a thread"): in_and_out,
    ("softmax", "one kernel"): in_and_out,
    ("bias_and_gelu", "bias, then F.gelu"): lambda p: least(read=4 * p.x, written=4 * p.x),
    ("bias_and_gelu", "one kernel, Triton"): lambda p: least(read=4 * p.x, written=4 * p.x),
    ("bias_and_gelu", "one kernel, cuTile"): lambda p: least(read=4 * p.x, written=4 * p.x),
    ("bias_and_gelu", "one kernel, threads by hand"): lambda p: least(read=4 * p.x, written=4 * p.x),
    ("attention", "fused, Triton"): attention,
    ("attention", "fused, FlashAttention-2"): attention,
    ("rooflines", "multiply-adds in a chain"): chain,
    ("energy", "reading 2 GiB"): read,
    ("energy", "2 x 8192^3 operations, FP32"): arithmetic("fp32"),
    ("energy", "a token, 8 at once"): token_of(8),
    ("energy", "a token, 64 at once"): token_of(64),
    ("energy", "a token, 128 at once"): token_of(128),
    ("energy", "a token, 512 at once"): token_of(512),
    ("energy", "a token, 768 at once"): token_of(768),
    ("energy", "a token, 2048 at once"): token_of(2048),
    ("decode_batch", "Llama 2 7B: a step"): step(LLAMA_2_7B),
    ("decode_batch", "Llama 3.1 8B: a step"): step(LLAMA_3_8B),
    ("decode_batch", "Llama 3.1 8B: batch over throughput"): step(LLAMA_3_8B),
    ("prefill_and_decode", "prefill"): prompt,
    ("prefill_and_decode", "decode"): step(LLAMA_3_8B, "fp16", 1),
}

STEPS = "a training step is many kernels, and the source does not say how many operations they are"
LAUNCHES = "nothing is computed: the time is that of launching, which the host and a queue can hide"
NOT_HELD: dict[str | tuple[str, str], str] = {
    "launch_overhead": LAUNCHES,
    "graph_replay": "the source does not say what the kernels compute",
    "latency": "one load waits for the next, and a bound is a rate",
    "host_device_transfer": "the bytes cross PCIe, and a bound is of a launch on the device",
    "stream_overlap": "copies over PCIe are most of the time",
    "checkpointing": STEPS,
    "training_by_format": STEPS,
    "training_memory": STEPS,
    "memory_by_part": "it is bytes held, not a time",
    "divergence": "the source does not say how many operations a path is",
    "random_reads": "the source does not say in which order, and so not which sectors",
    ("copy_bandwidth", "strided read"): "the source does not say which sectors of its buffer it reads",
    ("crossover", "GPU: product, with both copies"): "the bytes cross PCIe",
    ("crossover", "six cores: product"): "it ran on a CPU",
    ("crossover", "160 threads: sum"): "it ran on a CPU",
}
UNKNOWN = "the registry has no entry of the device"
NO_SMS = "bounds are counted by SMs, which the device does not have"


@dataclass(frozen=True)
class Judged:
    """A published measurement with its bounds (``found``), or the reason why it has none (``why``)."""

    experiment: str
    evidence: Evidence
    point: Point
    found: Bounds | None = None
    why: str = ""

    @property
    def ratio(self) -> float:
        """The measured time over the largest lower bound; below 1, one of the two would be wrong."""
        assert self.found is not None
        return self.point.median / self.found.at_least


@functools.cache
def judged() -> tuple[Judged, ...]:
    return tuple(_judged())


def _judged() -> Iterator[Judged]:
    raw = yaml.safe_load((RESULTS / "published.yml").read_text(encoding="utf-8"))
    for experiment, entries in raw.items():
        for entry, evidence in zip(entries, published(experiment), strict=True):
            card = entry.get("bounded_by") or specs.reported(evidence.device)
            for p in evidence.points:
                why = NOT_HELD.get((experiment, p.series)) or NOT_HELD.get(experiment, "")
                why = why or ("" if card else UNKNOWN) or ("" if "sms" in specs.get(card) else NO_SMS)
                how = HELD.get((experiment, p.series))
                if not why and not how:
                    raise KeyError(
                        f"{experiment}: '{p.series}' is neither in HELD nor in NOT_HELD of held.py"
                    )
                found = bounds(how(p), card, warm=True) if how and card and not why else None
                yield Judged(experiment, evidence, p, found, why)
